//! Text to image.
//!
//! One program a file (several are allowed), one statement a line, `;` starts a comment:
//!
//! ```text
//! program NAME = OPCODE
//!     reads   OPERAND [in ring]        bytes that are read
//!     writes  OPERAND [in ring]        bytes that are written
//!     allocs  OPERAND                  a log slot in the ring
//!     word    OPERAND [in ring]        one 8-byte word that is written
//!     logs    OPERAND                  whose old value the slots hold
//!     congruent | ordered | commits | privileged | maps | unmaps
//! begin
//!     copy    OPERAND -> OPERAND [+ LINES] [whole]
//!     gen     OPERAND KIND of OPERAND  KIND: undo, redo, checkpoint
//!     delete  OPERAND                  raises an epoch word
//!     switch  OPERAND                  stores a reference
//!     wait | synchronise
//!     end
//! ```
//!
//! An `OPERAND` is `source`, `destination` or `auxiliary`.

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, Use, descriptor};
use nearpm_interface::media::EntryKind;
use nearpm_interface::status::Status;

use crate::check::CheckError;
use crate::image::Image;

/// Bytes of an image's name.
const NAME_BYTES: usize = 32;

/// Why a text does not assemble.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AssembleError {
    /// A line is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// File name, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column of the word, from 1.
        column: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A program breaks a rule.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The image's name is too long.
    #[error("the name of the image has {bytes} bytes, at most {NAME_BYTES} are kept")]
    NameTooLong {
        /// Bytes of the name.
        bytes: usize,
    },
}

/// Assembles sources, (file name, text) each, to a checked image.
pub fn assemble(name: &str, revision: u32, sources: &[(&str, &str)]) -> Result<Image, AssembleError> {
    if name.len() > NAME_BYTES {
        return Err(AssembleError::NameTooLong { bytes: name.len() });
    }
    let mut assembler = Assembler {
        descriptors: [Descriptor::default(); OPCODES],
        words: vec![Instruction::End { status: Status::FirmwareFault.code() }.encode()],
        current: None,
    };
    for (file, text) in sources {
        for (number, line) in text.lines().enumerate() {
            let mut words = Words::new(file, number + 1, line);
            assembler.statement(&mut words)?;
        }
        if assembler.current.is_some() {
            let lines = text.lines().count().max(1);
            return Err(Words::new(file, lines, "").error("the program has no `end`"));
        }
    }
    Ok(Image::new(name, revision, assembler.descriptors, assembler.words)?)
}

/// The words of a line, with their columns.
struct Words<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end: usize,
    words: std::vec::IntoIter<(usize, &'a str)>,
}

impl<'a> Words<'a> {
    fn new(file: &'a str, line: usize, text: &'a str) -> Self {
        let code = text.split(';').next().unwrap_or_default();
        let words: Vec<_> =
            code.split_whitespace().map(|w| (w.as_ptr() as usize - code.as_ptr() as usize + 1, w)).collect();
        let end = code.trim_end().len() + 1;
        Words { file, line, column: end, end, words: words.into_iter() }
    }

    fn next(&mut self) -> Option<&'a str> {
        let (column, word) = self.words.next()?;
        self.column = column;
        Some(word)
    }

    fn error(&self, message: impl Into<String>) -> AssembleError {
        AssembleError::Syntax { file: self.file.into(), line: self.line, column: self.column, message: message.into() }
    }

    fn expect(&mut self, what: &str) -> Result<&'a str, AssembleError> {
        if let Some(word) = self.next() {
            return Ok(word);
        }
        self.column = self.end;
        Err(self.error(format!("{what} is missing")))
    }

    fn keyword(&mut self, word: &str) -> Result<(), AssembleError> {
        match self.expect(word)? {
            w if w == word => Ok(()),
            other => Err(self.error(format!("`{word}` expected, not `{other}`"))),
        }
    }

    fn operand(&mut self) -> Result<Operand, AssembleError> {
        match self.expect("an operand")? {
            "source" => Ok(Operand::Source),
            "destination" => Ok(Operand::Destination),
            "auxiliary" => Ok(Operand::Auxiliary),
            other => Err(self.error(format!("`{other}` is no operand (source, destination, auxiliary)"))),
        }
    }

    fn number(&mut self, most: u64) -> Result<u64, AssembleError> {
        let word = self.expect("a number")?;
        let number = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        match number {
            Ok(n) if n <= most => Ok(n),
            _ => Err(self.error(format!("`{word}` is no number from 0 to {most}"))),
        }
    }

    fn finish(&mut self) -> Result<(), AssembleError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("`{word}` is too much"))),
        }
    }
}

/// The program that is being read.
struct Program {
    opcode: usize,
    descriptor: Descriptor,
    in_body: bool,
}

struct Assembler {
    descriptors: [Descriptor; OPCODES],
    words: Vec<u32>,
    current: Option<Program>,
}

impl Assembler {
    fn statement(&mut self, words: &mut Words) -> Result<(), AssembleError> {
        let Some(word) = words.next() else { return Ok(()) };
        match &mut self.current {
            None => self.program(word, words)?,
            Some(program) if program.in_body => self.instruction(word, words)?,
            Some(program) => Self::declaration(program, self.words.len(), word, words)?,
        }
        words.finish()
    }

    fn program(&mut self, word: &str, words: &mut Words) -> Result<(), AssembleError> {
        if word != "program" {
            return Err(words.error(format!("`program` expected, not `{word}`")));
        }
        words.expect("the program's name")?;
        words.keyword("=")?;
        let opcode = words.number(OPCODES as u64 - 1)? as usize;
        if self.descriptors[opcode].flag(descriptor::VALID) {
            return Err(words.error(format!("opcode {opcode:#04x} has a program already")));
        }
        let descriptor = Descriptor::default().with(descriptor::VALID);
        self.current = Some(Program { opcode, descriptor, in_body: false });
        Ok(())
    }

    fn declaration(program: &mut Program, pc: usize, word: &str, words: &mut Words) -> Result<(), AssembleError> {
        let d = program.descriptor;
        let flag = |bit| Ok::<_, AssembleError>(d.with(bit));
        program.descriptor = match word {
            "reads" | "writes" => Self::operand(d, Use::Bytes, (word == "reads") as u8, words)?,
            "allocs" => Self::operand(d, Use::Entry, 0, words)?,
            "word" => Self::operand(d, Use::Word, 0, words)?,
            "logs" => match words.operand()? {
                Operand::Source => d.with(descriptor::LOGS),
                Operand::Destination => d.with(descriptor::LOGS).with(descriptor::LOGS_DESTINATION),
                Operand::Auxiliary => return Err(words.error("only source or destination can be logged")),
            },
            "congruent" => flag(descriptor::CONGRUENT)?,
            "ordered" => flag(descriptor::ORDERED)?,
            "commits" => flag(descriptor::COMMITS)?,
            "privileged" => flag(descriptor::PRIVILEGED)?,
            "maps" => flag(descriptor::MAPS)?,
            "unmaps" => flag(descriptor::UNMAPS)?,
            "begin" => {
                program.in_body = true;
                let entry =
                    u8::try_from(pc).map_err(|_| words.error("the programs are longer than the control store"))?;
                d.with_entry(entry)
            }
            other => return Err(words.error(format!("`{other}` is no declaration"))),
        };
        Ok(())
    }

    fn operand(d: Descriptor, how: Use, read: u8, words: &mut Words) -> Result<Descriptor, AssembleError> {
        let operand = words.operand()?;
        if (operand == Operand::Source) != (read == 1) {
            return Err(words.error("source is what is read; destination and auxiliary are what is written"));
        }
        if d.operand_use(operand) != Use::None {
            return Err(words.error("the operand is declared already"));
        }
        let d = d.with_use(operand, how);
        let in_ring = match words.next() {
            None => how == Use::Entry,
            Some("in") => {
                words.keyword("ring")?;
                true
            }
            Some(other) => return Err(words.error(format!("`in ring` expected, not `{other}`"))),
        };
        Ok(if in_ring { d.with(descriptor::IN_RING + operand as u32) } else { d })
    }

    fn instruction(&mut self, word: &str, words: &mut Words) -> Result<(), AssembleError> {
        let instruction = match word {
            "copy" => Self::copy(words)?,
            "gen" => {
                let at = words.operand()?;
                let kind = match words.expect("a kind of log entry")? {
                    "undo" => EntryKind::Undo,
                    "redo" => EntryKind::Redo,
                    "checkpoint" => EntryKind::Checkpoint,
                    other => return Err(words.error(format!("`{other}` is no kind of log entry"))),
                };
                words.keyword("of")?;
                Instruction::Generate { at, object: words.operand()?, kind: kind as u8 }
            }
            // Two names for one store: the paper's primitives differ in what the word means.
            "delete" | "switch" => Instruction::Store { at: words.operand()? },
            "wait" => Instruction::Wait,
            "synchronise" => Instruction::Synchronise,
            "end" => Instruction::End { status: Status::Ok.code() },
            other => return Err(words.error(format!("`{other}` is no instruction"))),
        };
        self.words.push(instruction.encode());
        if matches!(instruction, Instruction::End { .. }) {
            let program = self.current.take().expect("instructions stand in programs");
            self.descriptors[program.opcode] = program.descriptor;
        }
        Ok(())
    }

    fn copy(words: &mut Words) -> Result<Instruction, AssembleError> {
        let from = words.operand()?;
        words.keyword("->")?;
        let to = words.operand()?;
        let mut to_lines = 0;
        let mut lines = false;
        while let Some(word) = words.next() {
            match word {
                "+" if to_lines == 0 && !lines => to_lines = words.number(255)? as u8,
                "whole" if !lines => lines = true,
                other => return Err(words.error(format!("`+ LINES` or `whole` expected, not `{other}`"))),
            }
        }
        Ok(Instruction::Copy { from, from_lines: 0, to, to_lines, lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        assemble("test", 1, &[("t.npm", text)]).expect_err("the text is wrong").to_string()
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(error("porgram x = 1"), "t.npm:1:1: `program` expected, not `porgram`");
        assert_eq!(error("program x = 32"), "t.npm:1:13: `32` is no number from 0 to 31");
        assert_eq!(error("program x ="), "t.npm:1:12: a number is missing");
        assert_eq!(
            error("program x = 1\n  reads destination"),
            "t.npm:2:9: source is what is read; destination and auxiliary are what is written"
        );
        assert_eq!(error("program x = 1\nbegin\n  jump ; nowhere"), "t.npm:3:3: `jump` is no instruction");
        assert_eq!(error("program x = 1\nbegin\n  wait"), "t.npm:3:1: the program has no `end`");
        assert_eq!(error("program x = 1\nbegin\nend too"), "t.npm:3:5: `too` is too much");
    }

    #[test]
    fn programs_that_the_card_could_not_run_safely_are_refused() {
        let head = "program x = 1\n reads source\n allocs destination\n logs source\nbegin\n";
        assert!(error(&format!("{head} gen destination undo of source\n end")).contains("slot of the last copy"));
        assert!(error(&format!("{head} copy source -> destination\n end")).contains("behind the head"));
        assert!(error(&format!("{head} copy source -> auxiliary\n end")).contains("a copy writes bytes or a log slot"));
        assert!(error("program x = 1\n writes destination\nbegin\n delete destination\n end").contains("is a word"));
        assert!(error("program x = 1\n reads source\n logs source\nbegin\n end").contains("allocates a log slot"));
        let long = format!("program x = 1\nbegin\n{} end", "wait\n".repeat(200));
        assert!(error(&long).contains("longer than the control store"));
    }
}
