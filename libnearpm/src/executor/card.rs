//! The card makes the copies.
//!
//! The link is not coherent and fences give order only, so that every call here keeps these rules:
//! - source lines that may be dirty are written back, and fenced, before a command is posted;
//! - posting ends with a fence, before the caller's first store to what the command covers;
//! - lines that a command writes are dropped from the cache before it is posted and again when it has
//!   completed, and nobody loads or stores them in between. Log slots need no such care: the processor only ever stores
//!   whole entries there, writes them back at once, and reads none without dropping it first;
//! - durable means that the card's status, read behind the commit, counts it as accepted;
//! - on a card that does not order host accesses each command is waited for.

use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::registers::Capabilities;
use nearpm_driver::{Card, CardError, CommandError, CommandFailure, Ticket};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::COMMAND_PAGES;
use nearpm_interface::media::{EntryHead, EntryKind, PAGE_BYTES, PoolHead, entry_bytes, entry_data};
use nearpm_interface::seal;

use super::{Executor, Publication, Word};
use crate::error::Error;
use crate::interval::IntervalSet;
use crate::lane::Entry;
use crate::memory::Medium;
use crate::options::Durability;
use crate::statistics::count;

/// Posts the commands of one lane.
pub(crate) struct CardExecutor {
    card: Arc<Card>,
    page: usize,
    pool: u32,
    thread: u16,
    /// Host accesses pass the card's ordering point.
    ordered: bool,
    /// Commit that was posted and not read back.
    asynchronous: Option<Ticket>,
    /// A redo log that is being applied: its last command, and what it writes.
    applying: Option<(Ticket, IntervalSet)>,
    mapped: bool,
}

impl CardExecutor {
    /// Maps a lane into the card; `None` when its mapping table is full.
    pub fn map(
        card: Arc<Card>,
        head: &PoolHead,
        base: u64,
        thread: u16,
        committed: u64,
    ) -> Result<Option<CardExecutor>, Error> {
        let mapping = PoolMapping {
            pool: head.pool,
            thread,
            base,
            bytes: head.bytes,
            ring: head.ring(thread),
            ring_bytes: head.ring_bytes,
            committed,
        };
        match card.map_pool(mapping) {
            Ok(()) => {}
            Err(CardError::Command(CommandFailure { error: CommandError::MapFull, .. })) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Page 0 is for mapping; the others are shared out.
        let page = 1 + usize::from(thread) % (COMMAND_PAGES - 1);
        let ordered = card.capabilities().contains(Capabilities::HOST_ORDERED);
        Ok(Some(CardExecutor {
            card,
            page,
            pool: head.pool,
            thread,
            ordered,
            asynchronous: None,
            applying: None,
            mapped: true,
        }))
    }

    fn post(&self, medium: &Medium, opcode: Opcode, command: Command, notify: bool) -> Result<Ticket, Error> {
        count(&medium.counters.commands, 1);
        Ok(self.card.post(self.page, self.command(opcode, command), notify)?)
    }

    /// Posts commands under one fence. They must not depend on each other.
    fn post_all(&self, medium: &Medium, commands: &[Command], notify: bool) -> Result<Option<Ticket>, Error> {
        count(&medium.counters.commands, commands.len() as u64);
        Ok(self.card.post_all(self.page, commands, notify)?)
    }

    fn command(&self, opcode: Opcode, command: Command) -> Command {
        Command { opcode: opcode as u8, pool: self.pool, thread: self.thread, ..command }
    }

    /// Waits for every command of the page up to this one: others may end later than the last.
    fn settle_all(&self, medium: &Medium, last: Ticket) -> Result<(), Error> {
        let waited = self.wait(medium, last);
        self.card.drain(self.page)?;
        self.check()?;
        waited
    }

    /// Waits for a command. The failure of an earlier one comes first: it is why this one was refused.
    fn wait(&self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        let waited = self.card.wait(ticket);
        self.check()?;
        waited.map_err(damage)
    }

    fn read_back(&self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        let read_back = self.card.read_back(ticket);
        self.check()?;
        read_back.map_err(damage)
    }

    /// A failure of an earlier command of this lane that nobody waited for.
    fn check(&self) -> Result<(), Error> {
        match self.card.take_failure(self.page, self.pool, self.thread)? {
            Some(failure) => Err(damage(failure.into())),
            None => Ok(()),
        }
    }

    fn word_command(word: Word) -> Command {
        Command {
            txid: word.txid,
            destination: word.offset,
            auxiliary: seal::seal_word(word.txid),
            ..Command::default()
        }
    }
}

/// Names the range that a failed command leaves undefined.
fn damage(error: CardError) -> Error {
    let CardError::Command(failure) = &error else { return error.into() };
    if !failure.error.had_side_effects() {
        return error.into();
    }
    let command = failure.command;
    let (offset, length) = match Opcode::from_code(command.opcode) {
        // The card holds every store to what the log should have covered.
        Some(Opcode::UndoLog | Opcode::Checkpoint) => (command.source, command.length.into()),
        Some(Opcode::Commit | Opcode::Switch) => (command.destination, 8),
        _ => (command.destination, command.length.into()),
    };
    Error::Damaged { offset, length, source: error }
}

impl Executor for CardExecutor {
    fn log(&mut self, medium: &Medium, entries: &[Entry], head: &EntryHead, dirty: bool) -> Result<(), Error> {
        if dirty {
            for entry in entries {
                medium.write_back(entry.offset, entry.length.into());
            }
            medium.fence()?;
        }
        let opcode = match EntryKind::from_code(head.kind) {
            Some(EntryKind::Checkpoint) => Opcode::Checkpoint,
            _ => Opcode::UndoLog,
        };
        let command = |entry: &Entry| {
            let command = Command {
                txid: head.txid,
                source: entry.offset,
                destination: entry.slot,
                sequence: entry.sequence,
                length: entry.length,
                ..Command::default()
            };
            self.command(opcode, command)
        };
        let bytes: u64 = entries.iter().map(|e| entry_bytes(e.offset, e.length)).sum();
        let commands: Vec<Command> = entries.iter().map(command).collect();
        let Some(last) = self.post_all(medium, &commands, !self.ordered)? else { return Ok(()) };
        count(&medium.counters.bytes_by_card, bytes);
        if self.ordered { self.check() } else { self.settle_all(medium, last) }
    }

    fn commit(&mut self, medium: &Medium, word: Word, durability: Durability) -> Result<(), Error> {
        let ticket = self.post(medium, Opcode::Commit, Self::word_command(word), !self.ordered)?;
        if !self.ordered {
            self.asynchronous = None;
            return self.wait(medium, ticket);
        }
        match durability {
            Durability::Durable => {
                self.asynchronous = None;
                self.read_back(medium, ticket)
            }
            Durability::Asynchronous => {
                self.asynchronous = Some(ticket);
                Ok(())
            }
        }
    }

    fn persist(&mut self, medium: &Medium) -> Result<(), Error> {
        match self.asynchronous.take() {
            Some(ticket) => self.read_back(medium, ticket),
            None => Ok(()),
        }
    }

    fn publish(&mut self, medium: &Medium, publication: Publication<'_>, durability: Durability) -> Result<(), Error> {
        assert!(self.applying.is_none(), "the caller settles the former log first");
        let mut written = IntervalSet::default();
        for entry in publication.entries {
            written.insert(entry.offset..entry.offset + u64::from(entry.length));
        }
        for range in written.iter() {
            medium.invalidate(range.start, range.end - range.start);
        }
        medium.fence()?;
        let txid = publication.committed.txid;
        self.post(medium, Opcode::Commit, Self::word_command(publication.committed), false)?;
        if publication.switches {
            let words = publication.values.chunks_exact(8);
            let places = publication.entries.iter().flat_map(|e| (e.offset..e.offset + u64::from(e.length)).step_by(8));
            for (place, word) in places.zip(words) {
                let auxiliary = u64::from_le_bytes(word.try_into().expect("chunks have eight bytes"));
                let command = Command { txid, destination: place, auxiliary, ..Command::default() };
                self.post(medium, Opcode::Switch, command, false)?;
                count(&medium.counters.bytes_by_card, 8);
            }
        } else {
            for entry in publication.entries {
                let command = Command {
                    txid,
                    source: entry.slot + entry_data(entry.offset),
                    destination: entry.offset,
                    length: entry.length,
                    ..Command::default()
                };
                self.post(medium, Opcode::Apply, command, false)?;
                count(&medium.counters.bytes_by_card, entry.length.into());
            }
        }
        let last = self.post(medium, Opcode::Switch, Self::word_command(publication.applied), true)?;
        self.applying = Some((last, written));
        match durability {
            Durability::Durable => {
                self.asynchronous = None;
                self.read_back(medium, last)
            }
            Durability::Asynchronous => {
                self.asynchronous = Some(last);
                Ok(())
            }
        }
    }

    fn can_pile_up(&self) -> bool {
        false
    }

    fn unsettled(&self, range: &Range<u64>) -> bool {
        self.applying.as_ref().is_some_and(|(_, written)| {
            // What commands write is owned in whole lines.
            let line = nearpm_interface::geometry::LINE_U64;
            written.overlaps(&(range.start / line * line..range.end.next_multiple_of(line)))
        })
    }

    fn settle(&mut self, medium: &Medium) -> Result<(), Error> {
        if let Some((ticket, written)) = self.applying.take() {
            self.wait(medium, ticket)?;
            self.asynchronous = None;
            for range in written.iter() {
                medium.invalidate(range.start, range.end - range.start);
            }
            medium.fence()?;
        }
        Ok(())
    }

    fn shadow_copy(&mut self, medium: &Medium, from: u64, to: u64, dirty: bool) -> Result<(), Error> {
        if dirty {
            medium.write_back(from, PAGE_BYTES);
        }
        medium.invalidate(to, PAGE_BYTES);
        medium.fence()?;
        let command = Command { source: from, destination: to, length: PAGE_BYTES as u32, ..Command::default() };
        let ticket = self.post(medium, Opcode::ShadowCopy, command, true)?;
        count(&medium.counters.bytes_by_card, PAGE_BYTES);
        self.wait(medium, ticket)?;
        medium.invalidate(to, PAGE_BYTES);
        medium.fence()
    }

    fn restore(&mut self, medium: &Medium, entries: &[Entry], txid: u64) -> Result<(), Error> {
        // An entry that was never made must not be restored from: its slot holds something else.
        self.card.drain(self.page)?;
        self.check()?;
        let mut last = None;
        for entry in entries.iter().rev() {
            let command = Command {
                txid,
                source: entry.slot + entry_data(entry.offset),
                destination: entry.offset,
                length: entry.length,
                ..Command::default()
            };
            last = Some(self.post(medium, Opcode::Recover, command, true)?);
            count(&medium.counters.bytes_by_card, entry.length.into());
        }
        if let Some(ticket) = last {
            self.wait(medium, ticket)?;
        }
        for entry in entries {
            medium.invalidate(entry.offset, entry.length.into());
        }
        medium.fence()
    }

    fn close(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.mapped) {
            self.card.unmap_pool(self.pool, self.thread)?;
        }
        Ok(())
    }
}

impl Drop for CardExecutor {
    fn drop(&mut self) {
        // A pool that was not closed leaves its mapping behind if the card has gone; there is nobody to tell.
        let _ = self.close();
    }
}
