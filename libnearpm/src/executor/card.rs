//! The card makes the copies.
//!
//! The link is not coherent and fences give order only, so that every call here keeps these rules:
//! - source lines that may be dirty are written back, and fenced, before a command is posted;
//! - posting ends with a fence, before the caller's first store to what the command covers;
//! - lines that a command writes are dropped from the cache before it is posted and again when it
//!   has completed, and nobody loads or stores them in between. Log slots need no such care: the
//!   processor only ever stores whole entries there, writes them back at once, and reads none
//!   without dropping it first;
//! - durable means that the card's status, read behind the commit, counts it as accepted, and shows
//!   no failed log of the pool and no store to it that memory refused: what such a log covers may
//!   have been dropped after it was accepted;
//! - on a card that does not order host accesses each command is waited for.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::registers::Capabilities;
use nearpm_driver::{Card, CardError, CommandError, CommandFailure, Latched, Ticket};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{COMMAND_PAGES, LINE_U64, MAP_ENTRIES, PARKED_COMMANDS};
use nearpm_interface::media::{EntryHead, EntryKind, PAGE_BYTES, PoolHead, entry_bytes, entry_data};
use nearpm_interface::seal;

use super::{Entry, Executor, Posted, Publication, ReadBack, Word};
use crate::error::Error;
use crate::interval::{IntervalSet, Overlap};
use crate::memory::Medium;
use crate::options::Durability;
use crate::process::Process;
use crate::statistics::count;

/// Copies that are posted under one fence.
const POSTED_TOGETHER: usize = 4;
/// Ranges after which the set of written lines is taken for one range, so that it stays small.
const MOST_RANGES: usize = 1024;

/// Commits that may wait on the card for other cards: the share of a mapping.
const MOST_SYNCHRONISING: usize = PARKED_COMMANDS / MAP_ENTRIES;

/// Posts the commands of one lane.
pub(crate) struct CardExecutor {
    at: ReadBack,
    /// Host accesses pass the card's ordering point.
    ordered: bool,
    /// Commit that was posted and not read back.
    asynchronous: Option<Ticket>,
    /// Commits that may wait on the card for other cards, oldest first.
    synchronising: VecDeque<Ticket>,
    /// Commands that the next barrier posts. None depends on another.
    waiting: Vec<Command>,
    /// Commands that are being posted; kept for their memory.
    posting: Vec<Command>,
    /// Logs are being applied: what will say that they are.
    unapplied: Option<Word>,
    /// Lines that were written behind the processor's cache since they were last dropped from it.
    behind_the_cache: IntervalSet,
    /// See [`Executor::verifications`].
    verifications: u64,
    mapped: bool,
    /// Who mapped it: in a child of `fork` the card is its parent's.
    process: Process,
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
        // Page 0 is for mapping; the others are shared out among lanes, and among pools of one
        // lane.
        let page = 1 + (head.pool as usize + usize::from(thread)) % (COMMAND_PAGES - 1);
        let ordered = card.capabilities().contains(Capabilities::HOST_ORDERED);
        Ok(Some(CardExecutor {
            at: ReadBack { card, page, pool: head.pool, place: base..base + head.bytes, thread },
            ordered,
            asynchronous: None,
            synchronising: VecDeque::new(),
            waiting: Vec::new(),
            posting: Vec::new(),
            unapplied: None,
            behind_the_cache: IntervalSet::default(),
            verifications: 0,
            mapped: true,
            process: Process::current(),
        }))
    }

    fn post(&self, medium: &Medium, opcode: Opcode, command: Command, notify: bool) -> Result<Ticket, Error> {
        count(&medium.counters.commands, 1);
        Ok(self.at.card.post(self.at.page, self.command(opcode, command), notify)?)
    }

    /// Posts commands under one fence. They must not depend on each other.
    fn post_all(&self, medium: &Medium, commands: &[Command], notify: bool) -> Result<Option<Ticket>, Error> {
        count(&medium.counters.commands, commands.len() as u64);
        Ok(self.at.card.post_all(self.at.page, commands, notify)?)
    }

    fn command(&self, opcode: Opcode, command: Command) -> Command {
        Command { opcode: opcode as u8, pool: self.at.pool, thread: self.at.thread, ..command }
    }

    /// Waits for every command of the page up to this one: others may end later than the last.
    fn settle_all(&self, medium: &Medium, last: Ticket) -> Result<(), Error> {
        let waited = self.wait(medium, last);
        self.at.card.drain(self.at.page)?;
        self.at.check()?;
        waited
    }

    /// Waits for a command. The failure of an earlier one comes first: it is why this one was
    /// refused.
    fn wait(&self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        let waited = self.at.card.wait(ticket);
        self.at.check()?;
        waited.map_err(|error| self.at.failed(error))
    }

    /// Waits for a commit that is to be acknowledged, on a card that does not order host accesses.
    fn wait_durable(&mut self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        self.verified(self.at.card.wait(ticket).and_then(|()| self.at.card.push(self.at.page)))
    }

    fn read_back(&mut self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        self.verified(self.at.card.read_back(ticket))
    }

    /// See [`ReadBack::verified`].
    fn verified(&mut self, outcome: Result<Latched, CardError>) -> Result<(), Error> {
        self.at.verified(outcome)?;
        self.verifications += 1;
        Ok(())
    }

    /// Notes lines that are written behind the cache.
    fn written(&mut self, range: Range<u64>) {
        let lines = whole_lines(&range);
        match self.behind_the_cache.overlap(&lines) {
            Overlap::All => return,
            Overlap::Nothing(position) => self.behind_the_cache.insert_at(position, lines),
            Overlap::Part => self.behind_the_cache.insert(lines),
        }
        if self.behind_the_cache.len() > MOST_RANGES {
            self.behind_the_cache.join();
        }
    }

    /// Puts the commands that apply a log among those that wait.
    fn apply(&mut self, medium: &Medium, publication: &Publication<'_>) {
        let txid = publication.committed.txid;
        let mut values = publication.values.chunks_exact(8);
        for entry in publication.entries {
            let end = entry.offset + u64::from(entry.length);
            self.written(entry.offset..end);
            count(&medium.counters.bytes_by_card, entry.length.into());
            if publication.switches {
                for destination in (entry.offset..end).step_by(8) {
                    let word = values.next().expect("each word has a value");
                    let auxiliary = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                    let command = Command { txid, destination, auxiliary, ..Command::default() };
                    self.waiting.push(self.command(Opcode::Switch, command));
                }
            } else {
                let (source, destination) = (entry.slot + entry_data(entry.offset), entry.offset);
                let command = Command { txid, source, destination, length: entry.length, ..Command::default() };
                self.waiting.push(self.command(Opcode::Apply, command));
            }
        }
    }

    /// Waits until at most so many commits may still wait for other cards.
    fn await_synchronised(&mut self, medium: &Medium, left: usize) -> Result<(), Error> {
        while self.synchronising.len() > left {
            let oldest = self.synchronising[0];
            self.wait(medium, oldest)?;
            self.synchronising.pop_front();
        }
        Ok(())
    }

    /// Posts a commit. One that synchronises may wait on the card, where there is room for few, and
    /// what comes behind it would, too.
    fn post_commit(&mut self, medium: &Medium, word: Word) -> Result<Ticket, Error> {
        let synchronises = word.participants != 0;
        self.await_synchronised(medium, if synchronises { MOST_SYNCHRONISING - 1 } else { 0 })?;
        let notify = synchronises || !self.ordered;
        let ticket = self.post(medium, Opcode::Commit, Self::word_command(word), notify)?;
        if synchronises {
            self.synchronising.push_back(ticket);
        }
        Ok(ticket)
    }

    fn word_command(word: Word) -> Command {
        Command {
            participants: word.participants,
            txid: word.txid,
            destination: word.offset,
            auxiliary: seal::seal_word(word.txid),
            ..Command::default()
        }
    }
}

fn whole_lines(range: &Range<u64>) -> Range<u64> {
    range.start / LINE_U64 * LINE_U64..range.end.next_multiple_of(LINE_U64)
}

/// Bytes that a waiting command writes at its destination.
fn written_bytes(command: &Command) -> u64 {
    if command.opcode == Opcode::Switch as u8 { 8 } else { command.length.into() }
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
        let mut commands = std::mem::take(&mut self.posting);
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
        commands.clear();
        commands.extend(entries.iter().map(command));
        let posted = self.post_all(medium, &commands, !self.ordered);
        self.posting = commands;
        let Some(last) = posted? else { return Ok(()) };
        count(&medium.counters.bytes_by_card, bytes);
        if self.ordered { self.at.check() } else { self.settle_all(medium, last) }
    }

    fn commit(&mut self, medium: &Medium, word: Word, durability: Durability) -> Result<(), Error> {
        let ticket = self.post_commit(medium, word)?;
        if !self.ordered {
            self.asynchronous = None;
            return self.wait_durable(medium, ticket);
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

    /// A load of the status line comes behind everything that was sent to the card.
    fn sync(&mut self, medium: &Medium) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        self.asynchronous = None;
        self.verify(false)
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What waits applies logs, and goes when their commits wait for nobody any more: it has no
    /// place on the card until then, and what is posted behind the commits does not depend on them.
    fn send(&mut self, medium: &Medium) -> Result<(), Error> {
        self.await_synchronised(medium, 0)?;
        count(&medium.counters.commands, self.waiting.len() as u64);
        let posted = self.at.card.post_unfenced(self.at.page, &self.waiting);
        self.waiting.clear();
        Ok(posted?)
    }

    fn barrier(&mut self, medium: &Medium) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            self.send(medium)?;
        }
        medium.fence()
    }

    fn publish(&mut self, medium: &Medium, publication: Publication<'_>, durability: Durability) -> Result<(), Error> {
        assert!(self.waiting.is_empty(), "the barrier behind the log's entries has sent everything");
        if publication.dirty {
            for entry in publication.entries {
                medium.invalidate(entry.offset, entry.length.into());
            }
            medium.fence()?;
        }
        self.commit(medium, publication.committed, durability)?;
        self.apply(medium, &publication);
        self.unapplied = Some(publication.applied);
        if self.ordered { Ok(()) } else { self.settle(medium) }
    }

    fn writes_around_the_cache(&self) -> bool {
        true
    }

    fn stores(&mut self, medium: &Medium, lines: Range<u64>) -> Result<(), Error> {
        let conflicts = |c: &Command| {
            let written = whole_lines(&(c.destination..c.destination + written_bytes(c)));
            written.start < lines.end && lines.start < written.end
        };
        if self.waiting.iter().any(conflicts) {
            self.barrier(medium)?;
        }
        self.written(lines);
        Ok(())
    }

    fn settle(&mut self, medium: &Medium) -> Result<(), Error> {
        self.barrier(medium)?;
        self.await_synchronised(medium, 0)?;
        if let Some(applied) = self.unapplied.take() {
            let last = self.post(medium, Opcode::Switch, Self::word_command(applied), true)?;
            self.wait(medium, last)?;
            self.asynchronous = None;
        }
        for range in self.behind_the_cache.iter() {
            medium.invalidate(range.start, range.end - range.start);
        }
        self.behind_the_cache.clear();
        medium.fence()
    }

    fn begin_shadow_copy(&mut self, medium: &Medium, from: u64, to: u64) -> Result<(), Error> {
        self.written(to..to + PAGE_BYTES);
        if !self.ordered {
            return self.shadow_copy(medium, from, to, false);
        }
        let command = Command { source: from, destination: to, length: PAGE_BYTES as u32, ..Command::default() };
        self.waiting.push(self.command(Opcode::ShadowCopy, command));
        count(&medium.counters.bytes_by_card, PAGE_BYTES);
        if self.waiting.len() < POSTED_TOGETHER { Ok(()) } else { self.barrier(medium) }
    }

    fn shadow_copy(&mut self, medium: &Medium, from: u64, to: u64, dirty: bool) -> Result<(), Error> {
        self.barrier(medium)?;
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
        self.at.card.drain(self.at.page)?;
        self.at.check()?;
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

    fn verify(&mut self, drain: bool) -> Result<(), Error> {
        if drain {
            self.at.card.drain(self.at.page)?;
        }
        self.verified(self.at.card.push(self.at.page))
    }

    fn verifications(&self) -> u64 {
        self.verifications
    }

    fn posts(&self, _: &Medium) -> bool {
        self.ordered
    }

    fn posted(&self) -> Option<Posted> {
        self.asynchronous.map(|ticket| Posted::Command(self.at.clone(), ticket))
    }

    fn close(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.mapped) && self.process.is_current() {
            self.at.card.unmap_pool(self.at.pool, self.at.thread)?;
        }
        Ok(())
    }
}

impl Drop for CardExecutor {
    fn drop(&mut self) {
        // A pool that was not closed leaves its mapping behind if the card has gone; there is
        // nobody to tell.
        let _ = self.close();
    }
}
