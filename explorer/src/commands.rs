//! Commands on their way to a card, and what they do to memory.
//!
//! **Fault model.** A command is a posted write: fenced, it is in the link ahead of everything later; before, it arrives whole at any moment up to
//! the fence, in any order with other commands and with what the processor writes back, or evicts. At a crash each command that was not fenced is kept or
//! lost; a part of one is none, by its checksum. What the card has got it carries out, whatever happens to the power, and as if one after the other in
//! the order of their arrival: so a command's work is done here when it arrives, by the driver's mock.
//!
//! What a command finds in a line that is not certain is decided when it arrives. A correct library lets no command meet such a line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use nearpm_driver::mock::MockCard;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE, LINE_U64};

use crate::card;
use crate::choices::Choices;

/// A command as it was posted: page and line.
pub type Posted = (usize, [u8; LINE]);

/// The card's tables, and the commands that were not fenced.
pub struct Commands {
    /// Its memory is of no account: a command is given what it reads.
    card: MockCard,
    posted: Vec<Posted>,
    /// Hash of the commands that have changed the tables, in order.
    tables: u64,
}

impl Clone for Commands {
    fn clone(&self) -> Commands {
        Commands { card: self.card.without_memory(), posted: self.posted.clone(), tables: self.tables }
    }
}

/// Words of memory as a command sees them, and may change them.
pub trait Words {
    /// Decides what these words hold, where that is open.
    fn settle(&mut self, words: Range<usize>, choices: &mut Choices);
    /// What a word holds.
    fn word(&self, word: usize) -> u64;
    /// The card writes a word.
    fn write(&mut self, word: usize, value: u64);
}

/// Words that hold a range of device addresses.
fn words_of(range: &Range<u64>) -> Range<usize> {
    let start = card::address_of(0);
    ((range.start - start) / 8) as usize..(range.end - start).div_ceil(8) as usize
}

/// Whether a command may change what the card keeps of pools, or in which order it works.
fn changes_tables((_, line): &Posted) -> bool {
    use Opcode::{Apply, Checkpoint, ShadowCopy, Switch, UndoLog};
    let opcode = Command::decode(line).and_then(|command| Opcode::from_code(command.opcode));
    !matches!(opcode, Some(UndoLog | Checkpoint | Apply | ShadowCopy | Switch))
}

impl Commands {
    /// A card that was powered up.
    pub fn after_power_up() -> Commands {
        Commands { card: card::blank(), posted: Vec::new(), tables: 0 }
    }

    /// What tells the card's tables from those of other runs.
    pub fn tables(&self) -> u64 {
        self.tables
    }

    /// Whether some were not fenced.
    pub fn are_open(&self) -> bool {
        !self.posted.is_empty()
    }

    /// A command is posted.
    pub fn post(&mut self, page: usize, line: &[u8; LINE]) {
        self.posted.push((page, *line));
    }

    /// Lets every command that was not fenced arrive, or, at a crash, any of them.
    pub fn arrive(&mut self, is_crash: bool, memory: &mut impl Words, choices: &mut Choices) {
        let mut left = std::mem::take(&mut self.posted);
        left.retain(|_| !is_crash || choices.choose(2) == 0);
        while !left.is_empty() {
            // One that no other has to do with may as well be the first.
            let is_alone = left[1..].iter().all(|other| self.are_independent(&left[0], other));
            let next = if is_alone { 0 } else { choices.choose(left.len()) };
            self.carry_out(left.remove(next), memory, choices);
        }
    }

    /// Whether it makes no difference which of two commands arrives first: they change none of the card's tables and have no line in common.
    fn are_independent(&self, a: &Posted, b: &Posted) -> bool {
        let ranges =
            |(page, line): &Posted| self.card.footprint(*page, line).map(|(reads, writes)| [reads, writes].concat());
        let (Some(of_a), Some(of_b)) = (ranges(a), ranges(b)) else { return false };
        let touch = |a: &Range<u64>, b: &Range<u64>| a.start / LINE_U64 < b.end.div_ceil(LINE_U64);
        let have_lines_in_common = of_a.iter().any(|a| of_b.iter().any(|b| touch(a, b) && touch(b, a)));
        !changes_tables(a) && !changes_tables(b) && !have_lines_in_common
    }

    fn carry_out(&mut self, (page, line): Posted, memory: &mut impl Words, choices: &mut Choices) {
        if changes_tables(&(page, line)) {
            let mut hasher = DefaultHasher::new();
            (self.tables, page, line).hash(&mut hasher);
            self.tables = hasher.finish();
        }
        // A refused command has no memory, and does nothing.
        let (reads, writes) = self.card.footprint(page, &line).unwrap_or_default();
        for words in reads.iter().chain(&writes).map(words_of) {
            memory.settle(words.clone(), choices);
            let bytes: Vec<u8> = words.clone().flat_map(|word| memory.word(word).to_le_bytes()).collect();
            self.card.set_memory(card::address_of(words.start), &bytes);
        }
        self.card.carry_out(page, &line);
        for words in writes.iter().map(words_of) {
            let after = self.card.memory(card::address_of(words.start)..card::address_of(words.end));
            for (word, bytes) in words.zip(after.as_chunks().0) {
                let value = u64::from_le_bytes(*bytes);
                if memory.word(word) != value {
                    memory.write(word, value);
                }
            }
        }
    }
}
