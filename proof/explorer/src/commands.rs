//! Commands on their way to a card, and what they do to memory.
//!
//! **Fault model.** A command is a posted write: fenced, it is in the link ahead of everything
//! later; before, it arrives whole at any moment up to the fence, in any order with other commands
//! and with what the processor writes back, or evicts. At a crash each command that was not fenced
//! is kept or lost; a part of one is none, by its checksum. What the card has got it carries out,
//! whatever happens to the power, and as if one after the other in the order of their arrival: so a
//! command's work is done here when it arrives, by the driver's mock.
//!
//! On a card that does not order host accesses, commands keep that order among themselves alone.
//! What the host stores reaches memory at once, and a command reads and writes it at any moment
//! from its arrival until the host has seen that it has ended. So it is done here before each
//! access of the host that it conflicts with, or after it: other moments make no difference.
//!
//! What a command finds in a line that is not certain is decided when it arrives. A correct library
//! lets no command meet such a line.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use nearpm_driver::mock::MockCard;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE, LINE_U64};

use crate::card::{self, Rules};
use crate::choices::Choices;

/// Bytes that neither host nor card tears.
const WORD: u64 = 8;

/// A command as it was posted: page and line.
pub type Posted = (usize, [u8; LINE]);

/// The card's tables, and the commands that were not fenced, or not carried out.
pub struct Commands {
    /// Its memory is of no account: a command is given what it reads.
    card: MockCard,
    rules: Rules,
    posted: Vec<Posted>,
    /// Those that have arrived and are not carried out, in the order of their arrival: none where
    /// host accesses are ordered.
    accepted: Vec<Posted>,
    /// Hash of the commands that have changed the tables, in order.
    tables: u64,
}

impl Clone for Commands {
    fn clone(&self) -> Commands {
        let (posted, accepted) = (self.posted.clone(), self.accepted.clone());
        Commands { card: self.card.without_memory(), rules: self.rules, posted, accepted, tables: self.tables }
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

/// Whether a command waits for an earlier one because both are of the same (pool, thread) (C1).
fn waits_for_thread(later: &[u8; LINE], earlier: &[u8; LINE]) -> bool {
    use Opcode::{Commit, Fence, Map, Recover, Switch, Unmap};
    let (Some(later), Some(earlier)) = (Command::decode(later), Command::decode(earlier)) else { return false };
    let waits = matches!(Opcode::from_code(later.opcode), Some(Fence | Commit | Switch | Recover | Map | Unmap));
    waits && (later.pool, later.thread) == (earlier.pool, earlier.thread)
}

impl Commands {
    /// A card that was powered up.
    pub fn after_power_up(rules: Rules) -> Commands {
        Commands { card: card::blank(rules), rules, posted: Vec::new(), accepted: Vec::new(), tables: 0 }
    }

    /// What tells the card's tables, and what it has not carried out, from those of other runs.
    pub fn identity(&self) -> impl Hash {
        (self.tables, self.accepted.clone())
    }

    /// Whether some were not fenced.
    pub fn are_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// Whether some have arrived and are not carried out.
    pub fn are_accepted(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// A command is posted.
    pub fn post(&mut self, page: usize, line: &[u8; LINE]) {
        self.posted.push((page, *line));
    }

    /// Lets every command that was not fenced arrive, or, at a crash, any of them, whereupon
    /// whatever has arrived is carried out.
    pub fn arrive(&mut self, is_crash: bool, memory: &mut impl Words, choices: &mut Choices) {
        let mut left = std::mem::take(&mut self.posted);
        left.retain(|_| !is_crash || choices.choose(2) == 0);
        while !left.is_empty() {
            // One that no other has to do with may as well be the first.
            let is_alone = left[1..].iter().all(|other| self.are_independent(&left[0], other, WORD));
            let next = if is_alone { 0 } else { choices.choose(left.len()) };
            self.accepted.push(left.remove(next));
            // What touches no memory has nothing to do with the host's accesses: it may as well be
            // done now.
            let last = self.accepted.len() - 1;
            if self.rules.host_ordered || self.lines_of(&self.accepted[last]).is_empty() {
                self.carry_out_those(|number, _| number == last, memory, choices);
            }
        }
        if is_crash {
            self.carry_out_those(|_, _| true, memory, choices);
        }
    }

    /// The host is about to change lines: what touches them may be carried out before, or later.
    pub fn meet(&mut self, lines: &BTreeSet<u64>, memory: &mut impl Words, choices: &mut Choices) {
        let first = card::address_of(0);
        let touches = |range: &Range<u64>| (range.start - first) / LINE_U64..(range.end - first).div_ceil(LINE_U64);
        let meets =
            |command: &Posted| self.lines_of(command).iter().any(|range| lines.range(touches(range)).next().is_some());
        let met: Vec<bool> = self.accepted.iter().map(|command| meets(command) && choices.choose(2) == 1).collect();
        self.carry_out_those(|number, _| met[number], memory, choices);
    }

    /// The host has seen that the command of this tag has ended, or all that were posted on the
    /// page.
    pub fn end(&mut self, page: usize, tag: Option<u32>, memory: &mut impl Words, choices: &mut Choices) {
        let has_tag =
            |line: &[u8; LINE]| tag.is_none_or(|tag| Command::decode(line).is_some_and(|command| command.tag == tag));
        self.carry_out_those(|_, (on, line)| *on == page && has_tag(line), memory, choices);
    }

    /// Carries out some of those that were accepted, each behind the earlier ones that it waits
    /// for.
    fn carry_out_those(
        &mut self,
        is_wanted: impl Fn(usize, &Posted) -> bool,
        memory: &mut impl Words,
        choices: &mut Choices,
    ) {
        let mut wanted: Vec<bool> =
            self.accepted.iter().enumerate().map(|(number, command)| is_wanted(number, command)).collect();
        for later in (0..wanted.len()).rev() {
            for earlier in 0..later {
                wanted[earlier] |= wanted[later] && self.waits_for(&self.accepted[later], &self.accepted[earlier]);
            }
        }
        for (command, is_wanted) in std::mem::take(&mut self.accepted).into_iter().zip(wanted) {
            if is_wanted {
                self.carry_out(command, memory, choices);
            } else {
                self.accepted.push(command);
            }
        }
    }

    /// Whether a command is carried out behind an earlier one: a card tells lines apart, not words.
    fn waits_for(&self, later: &Posted, earlier: &Posted) -> bool {
        waits_for_thread(&later.1, &earlier.1) || !self.are_independent(earlier, later, LINE_U64)
    }

    /// Device addresses that a command reads or writes; none where it is refused.
    fn lines_of(&self, (page, line): &Posted) -> Vec<Range<u64>> {
        self.card.footprint(*page, line).map_or(Vec::new(), |(reads, writes)| [reads, writes].concat())
    }

    /// Whether it makes no difference which of two commands arrives first: they change none of the
    /// card's tables, and neither writes what is of the same unit, so many bytes, as what the other
    /// reads or writes.
    fn are_independent(&self, a: &Posted, b: &Posted, unit: u64) -> bool {
        let access = |(page, line): &Posted| self.card.footprint(*page, line);
        let (Some(of_a), Some(of_b)) = (access(a), access(b)) else { return false };
        let touch = |a: &Range<u64>, b: &Range<u64>| a.start / unit < b.end.div_ceil(unit);
        let meet = |a: &[Range<u64>], b: &[Range<u64>]| a.iter().any(|a| b.iter().any(|b| touch(a, b) && touch(b, a)));
        let conflict = meet(&of_a.1, &of_b.1) || meet(&of_a.1, &of_b.0) || meet(&of_a.0, &of_b.1);
        !changes_tables(a) && !changes_tables(b) && !conflict
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
