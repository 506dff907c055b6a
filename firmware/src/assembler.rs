//! Text to image.
//!
//! ```text
//! file        = { image | program }
//! image       = "image" NAME "revision" NUMBER                 once in all files
//! program     = "program" NAME "=" OPCODE { declaration } "begin" { instruction }     the last one is an end
//! declaration = "read" "source" [ "in" "ring" ]                bytes that are read
//!             | "write" OPERAND [ "in" "ring" ]                bytes that are written
//!             | "alloc" OPERAND                                a log entry in the ring
//!             | "word" OPERAND [ "in" "ring" ]                 an 8-byte word
//!             | "value" "auxiliary"                            the value that the word gets
//!             | "logs" OPERAND                                 the bytes that the entries hold
//!             | "ordered" | "synchronises" | "congruent" | "commits" | "privileged" | "maps" | "unmaps"
//! instruction = "copy" ( "lines" | "bytes" ) OPERAND "->" OPERAND [ "+" NUMBER ( "line" | "lines" ) ]
//!             | "gen" OPERAND KIND OPERAND                     head at, kind, of
//!             | "delete" OPERAND | "switch" OPERAND
//!             | "wait"
//!             | "end" [ STATUS ]
//! ```
//!
//! One declaration or instruction a line; `;` starts a comment. `docs/firmware.md` says what each
//! one does.

use std::collections::BTreeMap;
use std::fmt;

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, Use, descriptor};
use nearpm_interface::media::EntryKind;
use nearpm_interface::status::Status;

use crate::check::{self, Fault, OPERANDS, operand_name};
use crate::image::{Image, ImageError};

nearpm_interface::debug_as_display!(AssemblyError, Mistake);

/// One source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// File name, for messages.
    pub name: &'a str,
    /// Contents.
    pub text: &'a str,
}

/// A mistake and where it stands.
#[derive(Clone, PartialEq, Eq)]
pub struct AssemblyError {
    /// Name of the source.
    pub source_name: String,
    /// Line, from 1; 0 where no line is at fault.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub mistake: Mistake,
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.mistake),
            line => write!(f, "{}:{line}:{}: {}", self.source_name, self.column, self.mistake),
        }
    }
}

impl std::error::Error for AssemblyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.mistake)
    }
}

/// What can be wrong with a text.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// Another word was needed.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What would have been right.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// Two programs of one opcode.
    #[error("opcode {opcode:#04x} already has the program {name}")]
    DuplicateOpcode {
        /// The opcode.
        opcode: u8,
        /// Its first program.
        name: String,
    },
    /// Two uses of one operand, or a flag twice.
    #[error("{0} is declared twice")]
    DuplicateDeclaration(String),
    /// `image` more than once.
    #[error("the image is named twice")]
    DuplicateImage,
    /// No `image` anywhere.
    #[error("no source names the image (`image NAME revision NUMBER`)")]
    NoImage,
    /// `delete` and `switch` need something to store.
    #[error("the program needs `value auxiliary`: that is what it stores")]
    NoValue,
    /// `value` without a store.
    #[error("`value auxiliary` is declared and nothing stores it")]
    ValueNotStored,
    /// `delete` is for programs that commit.
    #[error("delete raises the epoch of a log, so its program `commits`; to store another word, write switch")]
    DeleteWithoutCommit,
    /// The program breaks a rule of [`crate::check`].
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The image as a whole is wrong.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// Assembles all sources into one image. Programs are laid out by opcode, whatever the order of the
/// sources.
pub fn assemble(sources: &[Source<'_>]) -> Result<Image, AssemblyError> {
    let mut named = None;
    let mut programs = BTreeMap::<u8, Program>::new();
    for &source in sources {
        let mut lines = Lines::new(source);
        while let Some(mut line) = lines.next() {
            match line.word("`program` or `image`")? {
                "image" => {
                    let name = line.word("the name of the image")?.to_string();
                    line.keyword("revision")?;
                    let revision = line.number("the revision", u32::MAX as u64)? as u32;
                    line.end()?;
                    if named.replace((name, revision)).is_some() {
                        return Err(line.error_at(0, Mistake::DuplicateImage));
                    }
                }
                "program" => {
                    let program = program(&mut line, &mut lines)?;
                    if let Some(first) = programs.get(&program.opcode) {
                        let mistake = Mistake::DuplicateOpcode { opcode: program.opcode, name: first.name.clone() };
                        return Err(line.error_at(0, mistake));
                    }
                    programs.insert(program.opcode, program);
                }
                _ => return Err(line.unexpected("`program` or `image`")),
            }
        }
    }
    let whole = |mistake| AssemblyError { source_name: String::new(), line: 0, column: 0, mistake };
    let (name, revision) = named.ok_or_else(|| whole(Mistake::NoImage))?;
    let mut descriptors = [Descriptor::default(); OPCODES];
    let mut words = vec![Instruction::End { status: Status::FirmwareFault.code() }.encode()];
    for program in programs.values() {
        // An entry that does not fit its field is cut off here and reported by the size check of
        // the image.
        descriptors[program.opcode as usize] = program.head.with_entry(words.len() as u8);
        words.extend(program.code.iter().map(|i| i.encode()));
    }
    Image::new(&name, revision, descriptors, words).map_err(|error| whole(error.into()))
}

/// One assembled program.
struct Program {
    name: String,
    opcode: u8,
    head: Descriptor,
    code: Vec<Instruction>,
}

/// Assembles a program from behind the word `program`.
fn program(first: &mut Line<'_>, lines: &mut Lines<'_>) -> Result<Program, AssemblyError> {
    let name = first.word("the name of the program")?.to_string();
    first.keyword("=")?;
    let opcode = first.number("an opcode", OPCODES as u64 - 1)? as u8;
    first.end()?;

    let mut declared = Declared { head: Descriptor::default().with(descriptor::VALID), value: None };
    loop {
        let mut line =
            lines.next().ok_or_else(|| first.error_at(0, expected("`begin` of the program", "the end of the text")))?;
        if line.peek() == Some("begin") {
            line.keyword("begin")?;
            line.end()?;
            break;
        }
        declared.line(&mut line)?;
    }

    let mut code = Vec::new();
    let mut places = Vec::new();
    while !matches!(code.last(), Some(Instruction::End { .. })) {
        let mut line = lines.next().ok_or_else(|| first.error_at(0, Fault::NoEnd.into()))?;
        let instruction = instruction(&mut line, &declared)?;
        line.end()?;
        code.push(instruction);
        places.push(line);
    }
    if let Some(line) = &declared.value
        && !code.iter().any(|i| matches!(i, Instruction::Store { .. }))
    {
        return Err(line.error_at(0, Mistake::ValueNotStored));
    }
    check::program(declared.head, &code)
        .map_err(|(pc, fault)| pc.map_or(&*first, |pc| &places[pc]).error_at(0, fault.into()))?;
    Ok(Program { name, opcode, head: declared.head, code })
}

/// The declarations of a program so far.
struct Declared<'a> {
    head: Descriptor,
    /// The line of `value auxiliary`.
    value: Option<Line<'a>>,
}

impl<'a> Declared<'a> {
    fn line(&mut self, line: &mut Line<'a>) -> Result<(), AssemblyError> {
        let word = line.word("a declaration or `begin`")?;
        match word {
            "read" | "write" | "alloc" | "word" => {
                let operand = line.operand()?;
                let how = match word {
                    "alloc" => Use::Entry,
                    "word" => Use::Word,
                    _ => Use::Bytes,
                };
                if (word == "read") != (operand == Operand::Source) {
                    return Err(line.error_at(
                        0,
                        if word == "read" {
                            expected("`read source`", &format!("`read {}`", operand_name(operand)))
                        } else {
                            Fault::SourceWritten.into()
                        },
                    ));
                }
                if self.head.operand_use(operand) != Use::None {
                    return Err(line.error_at(1, Mistake::DuplicateDeclaration(operand_name(operand).into())));
                }
                self.head = self.head.with_use(operand, how);
                let in_ring = line.peek() == Some("in");
                if in_ring {
                    line.keyword("in")?;
                    line.keyword("ring")?;
                }
                if in_ring || how == Use::Entry {
                    self.head = self.head.with(descriptor::IN_RING + operand as u32);
                }
            }
            "value" => {
                line.keyword("auxiliary")?;
                if self.value.replace(line.clone()).is_some() {
                    return Err(line.error_at(0, Mistake::DuplicateDeclaration("the value".into())));
                }
            }
            "logs" => {
                let operand = line.operand()?;
                self.flag(line, "logs", descriptor::LOGS)?;
                match operand {
                    Operand::Source => {}
                    Operand::Destination => self.head = self.head.with(descriptor::LOGS_DESTINATION),
                    Operand::Auxiliary => {
                        return Err(line.error_at(1, expected("`source` or `destination`", "`auxiliary`")));
                    }
                }
            }
            _ => match FLAGS.iter().find(|(name, _)| *name == word) {
                Some(&(name, bit)) => self.flag(line, name, bit)?,
                None => return Err(line.unexpected("a declaration or `begin`")),
            },
        }
        line.end()
    }

    fn flag(&mut self, line: &Line<'_>, name: &str, bit: u32) -> Result<(), AssemblyError> {
        if self.head.flag(bit) {
            return Err(line.error_at(0, Mistake::DuplicateDeclaration(format!("`{name}`"))));
        }
        self.head = self.head.with(bit);
        Ok(())
    }
}

/// Declarations that are one word, with their bit of the descriptor.
pub(crate) const FLAGS: &[(&str, u32)] = &[
    ("ordered", descriptor::ORDERED),
    ("synchronises", descriptor::SYNCHRONISES),
    ("congruent", descriptor::CONGRUENT),
    ("commits", descriptor::COMMITS),
    ("privileged", descriptor::PRIVILEGED),
    ("maps", descriptor::MAPS),
    ("unmaps", descriptor::UNMAPS),
];

/// Kinds of log entry by name.
pub(crate) const KINDS: &[(&str, EntryKind)] =
    &[("undo", EntryKind::Undo), ("redo", EntryKind::Redo), ("checkpoint", EntryKind::Checkpoint)];

/// Statuses that a program may end with, by name; `end` alone is the first.
pub(crate) const STATUSES: &[(&str, Status)] =
    &[("ok", Status::Ok), ("memory_error", Status::MemoryError), ("firmware_fault", Status::FirmwareFault)];

fn instruction(line: &mut Line<'_>, declared: &Declared<'_>) -> Result<Instruction, AssemblyError> {
    let what = "an instruction";
    Ok(match line.word(what)? {
        "copy" => {
            let lines = match line.word("`lines` or `bytes`")? {
                "lines" => true,
                "bytes" => false,
                _ => return Err(line.unexpected("`lines` or `bytes`")),
            };
            let from = line.operand()?;
            line.keyword("->")?;
            let to = line.operand()?;
            let to_lines = if line.peek() == Some("+") {
                line.keyword("+")?;
                let count = line.number("a number of lines", u8::MAX as u64)? as u8;
                let unit = line.word("`lines`")?;
                if unit != "line" && unit != "lines" {
                    return Err(line.unexpected("`lines`"));
                }
                count
            } else {
                0
            };
            Instruction::Copy { from, from_lines: 0, to, to_lines, lines }
        }
        "gen" => {
            let at = line.operand()?;
            let kind = line.choice("a kind of log entry", KINDS)?;
            Instruction::Generate { at, object: line.operand()?, kind: kind as u8 }
        }
        word @ ("delete" | "switch") => {
            let at = line.operand()?;
            if declared.value.is_none() {
                return Err(line.error_at(0, Mistake::NoValue));
            }
            if word == "delete" && !declared.head.flag(descriptor::COMMITS) {
                return Err(line.error_at(0, Mistake::DeleteWithoutCommit));
            }
            Instruction::Store { at }
        }
        "wait" => Instruction::Wait,
        "end" => {
            let status = if line.peek().is_some() { line.choice("a status", STATUSES)? } else { Status::Ok };
            Instruction::End { status: status.code() }
        }
        _ => return Err(line.unexpected(what)),
    })
}

/// The lines of a source that hold something.
struct Lines<'a> {
    source: Source<'a>,
    rest: std::iter::Enumerate<std::str::Lines<'a>>,
}

impl<'a> Lines<'a> {
    fn new(source: Source<'a>) -> Self {
        Lines { source, rest: source.text.lines().enumerate() }
    }

    fn next(&mut self) -> Option<Line<'a>> {
        let source_name = self.source.name;
        self.rest.by_ref().find_map(|(index, text)| {
            let line =
                Line { source_name, number: index + 1, words: words(text), taken: 0, length: text.chars().count() };
            (!line.words.is_empty()).then_some(line)
        })
    }
}

/// The words of a line with their columns, up to the comment.
fn words(text: &str) -> Vec<(usize, &str)> {
    let code = text.split(';').next().unwrap_or("");
    let mut found = Vec::new();
    for word in code.split_whitespace() {
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        found.push((text[..at].chars().count() + 1, word));
    }
    found
}

/// A line and how much of it was read.
#[derive(Clone)]
struct Line<'a> {
    source_name: &'a str,
    number: usize,
    words: Vec<(usize, &'a str)>,
    taken: usize,
    length: usize,
}

/// The mistake that something else was needed.
fn expected(expected: &str, found: &str) -> Mistake {
    Mistake::Expected { expected: expected.into(), found: found.into() }
}

impl<'a> Line<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.taken).map(|&(_, word)| word)
    }

    fn word(&mut self, what: &str) -> Result<&'a str, AssemblyError> {
        let word = self.peek().ok_or_else(|| self.error_at(self.taken, expected(what, "the end of the line")))?;
        self.taken += 1;
        Ok(word)
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), AssemblyError> {
        let what = format!("`{keyword}`");
        if self.word(&what)? == keyword { Ok(()) } else { Err(self.unexpected(&what)) }
    }

    fn operand(&mut self) -> Result<Operand, AssemblyError> {
        let what = "`source`, `destination` or `auxiliary`";
        let word = self.word(what)?;
        OPERANDS.into_iter().find(|&o| operand_name(o) == word).ok_or_else(|| self.unexpected(what))
    }

    fn choice<T: Copy>(&mut self, what: &str, choices: &[(&str, T)]) -> Result<T, AssemblyError> {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        let what = format!("{what} ({})", names.join(", "));
        let word = self.word(&what)?;
        choices.iter().find(|(name, _)| *name == word).map(|&(_, v)| v).ok_or_else(|| self.unexpected(&what))
    }

    fn number(&mut self, what: &str, most: u64) -> Result<u64, AssemblyError> {
        let what = format!("{what} (0 to {most})");
        let word = self.word(&what)?;
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        parsed.ok().filter(|&n| n <= most).ok_or_else(|| self.unexpected(&what))
    }

    fn end(&self) -> Result<(), AssemblyError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(self.error_at(self.taken, expected("the end of the line", &format!("`{word}`")))),
        }
    }

    /// The word that was read last is not what was needed.
    fn unexpected(&self, what: &str) -> AssemblyError {
        let at = self.taken - 1;
        self.error_at(at, expected(what, &format!("`{}`", self.words[at].1)))
    }

    /// A mistake at a word; behind the last word, at the end of the line.
    fn error_at(&self, word: usize, mistake: Mistake) -> AssemblyError {
        AssemblyError {
            source_name: self.source_name.to_string(),
            line: self.number,
            column: self.words.get(word).map_or(self.length + 1, |&(column, _)| column),
            mistake,
        }
    }
}
