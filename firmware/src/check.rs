//! What a program must satisfy before a card may run it.
//!
//! The card checks every address of a command against its descriptor, so a program that touches
//! only what its descriptor declares can harm nothing outside. These checks hold a program to its
//! declaration, and to what a replay after a power cut needs.

use nearpm_interface::firmware::{Descriptor, Instruction, Operand, Use, descriptor};
use nearpm_interface::media::EntryKind;
use nearpm_interface::status::Status;

nearpm_interface::debug_as_display!(Fault);

/// What is wrong with a program.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Descriptor bits that mean nothing.
    #[error("the descriptor sets reserved bits")]
    ReservedBits,
    /// `source` is what a command reads; it can be nothing else.
    #[error("source can only be read")]
    SourceWritten,
    /// A log entry outside the ring would not be found by recovery.
    #[error("{0} is a log entry and must lie in the ring")]
    EntryOutsideRing(Name),
    /// In-ring without being an address.
    #[error("{0} is no address, so it cannot lie in the ring")]
    RingWithoutAddress(Name),
    /// Congruence compares two byte ranges.
    #[error("congruent needs byte ranges at source and destination")]
    CongruentWithoutRanges,
    /// `maps` and `unmaps` act in the dispatcher and need the privileged page.
    #[error("a program that maps or unmaps is privileged")]
    MappingWithoutPrivilege,
    /// `maps` and `unmaps` give the fields of the command another meaning.
    #[error("a program that maps or unmaps declares no operands and does nothing but end")]
    MappingWithWork,
    /// Without order a commit could overtake the logs that it deletes.
    #[error("a program that stores a word, commits or unmaps is ordered")]
    NotOrdered,
    /// A commit is the store of the epoch word.
    #[error("a program that commits stores a word")]
    CommitWithoutWord,
    /// Every log entry is sized by the logged operand.
    #[error("a program with a log entry says by `logs` which byte range it logs")]
    EntryWithoutLogs,
    /// The other way round.
    #[error("a program that logs has a log entry")]
    LogsWithoutEntry,
    /// The logged operand must be bytes.
    #[error("the logged operand {0} is not a byte range")]
    LoggedIsNoRange(Name),
    /// A copy reads the bytes of a range.
    #[error("copies from {0}, which is not a byte range")]
    CopyFromNoRange(Name),
    /// A copy writes a byte range or an entry.
    #[error("copies to {0}, which is neither a byte range nor a log entry")]
    CopyToNoRange(Name),
    /// A line added to a byte range leaves what the card checked.
    #[error("adds lines to {0}, which is a byte range")]
    LinesAdded(Name),
    /// Whole lines would overwrite the neighbours of a byte range.
    #[error("copies whole lines to {0}, whose first and last line it does not own")]
    LinesToRange(Name),
    /// The units have no byte shifter, and the card compares only these two.
    #[error("an exact copy goes from source to destination of a congruent program")]
    ExactNotCongruent,
    /// Data of an entry follows its head line.
    #[error("log data is copied in whole lines from the logged operand to line 1 of the entry")]
    EntryData,
    /// Replay would read what the first run overwrote.
    #[error(
        "overwrites {0}, which the program has read since its start or its last wait: a replay would read the new value"
    )]
    OverwritesWhatItRead(Name),
    /// A copy reads while the one before it still writes.
    #[error(
        "copies from {0}, to which the program has copied since its start or its last wait: it may read the old value"
    )]
    ReadsWhatItWrote(Name),
    /// A head without data behind it.
    #[error(
        "generates a head at {0} without a copy of the logged operand to it before (and no wait or other copy between)"
    )]
    GenerateWithoutCopy(Name),
    /// A head records the logged operand.
    #[error("the head records {0}, which is not the logged operand")]
    GenerateWrongObject(Name),
    /// A kind that recovery does not know.
    #[error("there is no kind {0} of log entry")]
    BadKind(u8),
    /// An entry that is never completed.
    #[error("{0} is allocated and gets no head")]
    EntryWithoutHead(Name),
    /// The word goes to a word.
    #[error("stores to {0}, which is not a word")]
    StoreToNoWord(Name),
    /// The stored value is the auxiliary field.
    #[error("stores the value of auxiliary, which is declared as an address")]
    StoreWithoutValue,
    /// A word that nobody writes.
    #[error("{0} is a word and is not stored")]
    WordNotStored(Name),
    /// A command that waits for other devices holds nothing, and a log must hold the stores that it
    /// covers.
    #[error(
        "a program that logs must not synchronise: while it waits for another device, nothing holds the stores that it covers"
    )]
    LogSynchronises,
    /// A refusal promises that nothing was done.
    #[error("ends with status {0:#04x}, which is neither ok nor one that admits side effects")]
    BadStatus(u8),
    /// A declaration that the program does not need.
    #[error("{0} is declared and not used")]
    Unused(Name),
    /// The program has no `end`.
    #[error("runs past its last instruction without end")]
    NoEnd,
    /// Something follows the `end`.
    #[error("an instruction follows end and is never reached")]
    Unreachable,
}

/// An operand, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub Operand);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(operand_name(self.0))
    }
}

/// All operands by code.
pub const OPERANDS: [Operand; 3] = [Operand::Source, Operand::Destination, Operand::Auxiliary];

/// The name of an operand in assembly.
pub fn operand_name(operand: Operand) -> &'static str {
    match operand {
        Operand::Source => "source",
        Operand::Destination => "destination",
        Operand::Auxiliary => "auxiliary",
    }
}

/// A fault and the instruction, counted from the program's first, that has it; `None` where the
/// declaration has it.
pub type Located = (Option<usize>, Fault);

/// Checks one program: its descriptor (entry and valid bit aside) and its instructions, `end`
/// included.
pub fn program(head: Descriptor, code: &[Instruction]) -> Result<(), Located> {
    declaration(head).map_err(|fault| (None, fault))?;
    let mut run = Run::new(head);
    for (pc, &instruction) in code.iter().enumerate() {
        run.step(instruction).map_err(|fault| (Some(pc), fault))?;
    }
    run.finish().map_err(|fault| (None, fault))
}

/// Checks a descriptor by itself.
fn declaration(head: Descriptor) -> Result<(), Fault> {
    use descriptor::*;
    let uses = |how| OPERANDS.into_iter().any(|o| head.operand_use(o) == how);
    if head.0 >> (SYNCHRONISES + 1) != 0 || (head.flag(LOGS_DESTINATION) && !head.flag(LOGS)) {
        return Err(Fault::ReservedBits);
    }
    if matches!(head.operand_use(Operand::Source), Use::Entry | Use::Word) {
        return Err(Fault::SourceWritten);
    }
    for operand in OPERANDS {
        match (head.operand_use(operand), head.in_ring(operand)) {
            (Use::Entry, false) => return Err(Fault::EntryOutsideRing(Name(operand))),
            (Use::None, true) => return Err(Fault::RingWithoutAddress(Name(operand))),
            _ => {}
        }
    }
    let range = |operand| head.operand_use(operand) == Use::Bytes;
    if head.flag(CONGRUENT) && !(range(Operand::Source) && range(Operand::Destination)) {
        return Err(Fault::CongruentWithoutRanges);
    }
    if head.flag(MAPS) || head.flag(UNMAPS) {
        if !head.flag(PRIVILEGED) {
            return Err(Fault::MappingWithoutPrivilege);
        }
        let works = OPERANDS.into_iter().any(|o| head.operand_use(o) != Use::None) || head.flag(SYNCHRONISES);
        if works || (head.flag(MAPS) && head.flag(UNMAPS)) {
            return Err(Fault::MappingWithWork);
        }
    }
    if head.flag(SYNCHRONISES) && head.flag(LOGS) {
        return Err(Fault::LogSynchronises);
    }
    if (uses(Use::Word) || head.flag(COMMITS) || head.flag(UNMAPS)) && !head.flag(ORDERED) {
        return Err(Fault::NotOrdered);
    }
    if head.flag(COMMITS) && !uses(Use::Word) {
        return Err(Fault::CommitWithoutWord);
    }
    match (uses(Use::Entry), head.flag(LOGS)) {
        (true, false) => return Err(Fault::EntryWithoutLogs),
        (false, true) => return Err(Fault::LogsWithoutEntry),
        (true, true) if !range(head.logged()) => return Err(Fault::LoggedIsNoRange(Name(head.logged()))),
        _ => {}
    }
    Ok(())
}

/// What the checker knows of a program up to an instruction.
struct Run {
    head: Descriptor,
    /// Operands that were read since the start or the last wait.
    read: Vec<Operand>,
    /// Ranges that were written since then.
    written: Vec<Operand>,
    /// Entry whose data the last copy wrote, until a wait.
    data_at: Option<Operand>,
    /// Entries with a head, words that were stored, ranges that were copied from or to.
    done: Vec<Operand>,
    ended: bool,
}

impl Run {
    fn new(head: Descriptor) -> Self {
        Run { head, read: Vec::new(), written: Vec::new(), data_at: None, done: Vec::new(), ended: false }
    }

    fn step(&mut self, instruction: Instruction) -> Result<(), Fault> {
        if self.ended {
            return Err(Fault::Unreachable);
        }
        let mapping = self.head.flag(descriptor::MAPS) || self.head.flag(descriptor::UNMAPS);
        if mapping && !matches!(instruction, Instruction::End { .. }) {
            return Err(Fault::MappingWithWork);
        }
        match instruction {
            Instruction::End { status } => {
                self.ended = true;
                match Status::from_code(status) {
                    Some(status) if status.had_side_effects() => Ok(()),
                    _ => Err(Fault::BadStatus(status)),
                }
            }
            Instruction::Copy { from, from_lines, to, to_lines, lines } => {
                self.copy(from, from_lines, to, to_lines, lines)
            }
            Instruction::Generate { at, object, kind } => self.generate(at, object, kind),
            Instruction::Store { at } => self.store(at),
            Instruction::Wait => {
                // A replay resumes here: the checksum of an earlier copy is not known any more, and
                // what was read before is not read again.
                self.read.clear();
                self.written.clear();
                self.data_at = None;
                Ok(())
            }
        }
    }

    fn copy(&mut self, from: Operand, from_lines: u8, to: Operand, to_lines: u8, lines: bool) -> Result<(), Fault> {
        if self.head.operand_use(from) != Use::Bytes {
            return Err(Fault::CopyFromNoRange(Name(from)));
        }
        if from_lines != 0 {
            return Err(Fault::LinesAdded(Name(from)));
        }
        if to == Operand::Source {
            return Err(Fault::SourceWritten);
        }
        if from == to || self.read.contains(&to) {
            return Err(Fault::OverwritesWhatItRead(Name(to)));
        }
        if self.written.contains(&from) {
            return Err(Fault::ReadsWhatItWrote(Name(from)));
        }
        match self.head.operand_use(to) {
            Use::Entry if from != self.head.logged() || to_lines != 1 || !lines => return Err(Fault::EntryData),
            Use::Entry => self.data_at = Some(to),
            Use::Bytes if to_lines != 0 => return Err(Fault::LinesAdded(Name(to))),
            Use::Bytes if lines => return Err(Fault::LinesToRange(Name(to))),
            Use::Bytes if to != Operand::Destination || from != Operand::Source => {
                return Err(Fault::ExactNotCongruent);
            }
            Use::Bytes if !self.head.flag(descriptor::CONGRUENT) => return Err(Fault::ExactNotCongruent),
            Use::Bytes => {
                self.data_at = None;
                self.written.push(to);
                self.done.push(to);
            }
            Use::None | Use::Word => return Err(Fault::CopyToNoRange(Name(to))),
        }
        self.read.push(from);
        self.done.push(from);
        Ok(())
    }

    fn generate(&mut self, at: Operand, object: Operand, kind: u8) -> Result<(), Fault> {
        if object != self.head.logged() {
            return Err(Fault::GenerateWrongObject(Name(object)));
        }
        if EntryKind::from_code(kind).is_none() {
            return Err(Fault::BadKind(kind));
        }
        if self.data_at != Some(at) {
            return Err(Fault::GenerateWithoutCopy(Name(at)));
        }
        self.done.push(at);
        Ok(())
    }

    fn store(&mut self, at: Operand) -> Result<(), Fault> {
        if self.head.operand_use(at) != Use::Word {
            return Err(Fault::StoreToNoWord(Name(at)));
        }
        if self.head.operand_use(Operand::Auxiliary) != Use::None {
            return Err(Fault::StoreWithoutValue);
        }
        self.done.push(at);
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        if !self.ended {
            return Err(Fault::NoEnd);
        }
        for operand in OPERANDS {
            if !self.done.contains(&operand) {
                match self.head.operand_use(operand) {
                    Use::None => {}
                    Use::Bytes => return Err(Fault::Unused(Name(operand))),
                    Use::Entry => return Err(Fault::EntryWithoutHead(Name(operand))),
                    Use::Word => return Err(Fault::WordNotStored(Name(operand))),
                }
            }
        }
        Ok(())
    }
}
