//! What becomes durable outside of transactions, and what goes home without the log.

use std::collections::TryReserveError;
use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};
use nearpm_interface::media::{PAGE_BYTES, lines_of};

use super::by_mechanism::{ByMechanism, Changes, What};
use super::log::Writer;
use super::pool::COMMIT_LANE;
use super::records::Records;
use super::slot::slot;
use super::{DirectPool, Mode};
use crate::error::Error;
use crate::memory::Backing;
use crate::options::Durability;

/// Ranges of up to so many bytes go home through the cache, which has them for the next time;
/// longer ones go around it.
const CACHED: u64 = 4096;

/// As [`CACHED`], where all bytes are new: a write-back of so many dirty lines takes longer than
/// stores around the cache.
const SHORT: u64 = 512;

/// Bytes that go around the cache at a time: what holds them on the way stays in the processor's
/// nearest cache.
const STREAMED: usize = 4096;

/// So many persists of a thread go by the log before what is there is brought home: a truncation
/// takes as long as a few of them.
const LOGGED_PERSISTS: u32 = 32;

/// More bytes than this are durable by the log as soon as at home: they go around the cache either
/// way, in one piece there.
const AS_FAST_BY_LOG: u64 = 2048;

/// Longer ranges that are made durable outside of transactions are written home, behind no log.
const LONG_PERSIST: u64 = 64 * 1024;

fn bytes_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// What is known of bytes that go home.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// Some differ from what is there.
    Changed,
    /// Most differ from what is there, so that nobody looks.
    Written,
    /// Most differ, and nobody relies on what is there before another record: of a new object, or
    /// of what a recovery stores over. By way of no buffer.
    Covered,
}

/// Whether two lines are the same; written so that it becomes a few instructions and no call.
#[inline]
fn is_same(one: &[u8; LINE], other: &[u8; LINE]) -> bool {
    let (one, other) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    one.iter().zip(other).fold(0, |all, (one, other)| all | u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other)) == 0
}

/// Stores those lines that differ from what is at home: one that is not stored to is not dirty, and
/// its write-back is cheap.
fn store_changed(backing: &Backing, start: u64, bytes: &[u8]) {
    const LOOK: usize = 8 * LINE;
    let mut home = [0; LOOK];
    let mut at = 0;
    while at < bytes.len() {
        let here = start + at as u64;
        let to_line = LINE - here as usize % LINE;
        if to_line < LINE || bytes.len() - at < LINE {
            let end = bytes.len().min(at + to_line);
            backing.store(here, &bytes[at..end]);
            at = end;
            continue;
        }
        let end = bytes.len().min(at + LOOK);
        let (lines, _) = bytes[at..end].as_chunks::<LINE>();
        let (home, _) = home[..lines.len() * LINE].as_chunks_mut::<LINE>();
        backing.load(here, home.as_flattened_mut());
        if *home.as_flattened() == *lines.as_flattened() {
            at += home.len() * LINE;
            continue;
        }
        for (number, (line, home)) in lines.iter().zip(home).enumerate() {
            if !is_same(line, home) {
                backing.store(here + (number * LINE) as u64, line);
            }
        }
        at += lines.len() * LINE;
    }
}

/// The next piece of a range that goes around the cache, of up to so many bytes: up to the next
/// line, then lines, then what is left of one. Whether it is whole lines.
pub(super) fn next_piece(range: Range<u64>, most: u64) -> (u64, bool) {
    let left = range.end - range.start;
    let lines = left / LINE_U64 * LINE_U64;
    match range.start % LINE_U64 {
        0 if lines > 0 => (lines.min(most), true),
        0 => (left, false),
        beside => ((LINE_U64 - beside).min(left), false),
    }
}

impl DirectPool {
    /// In place: what the program stored becomes durable.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn write_back_and_drain(&self, ranges: impl Iterator<Item = Range<u64>>) -> Result<(), Error> {
        let backing = self.medium.backing();
        let mut lines = 0;
        for range in ranges {
            backing.write_back(range.start, range.end - range.start);
            lines += lines_of(range.start, range.end - range.start);
        }
        backing.drain().map_err(|error| self.poison(error))?;
        let mut shard = self.shards[slot()].lock();
        shard.tally.lines_written_back += lines;
        shard.tally.fences += 1;
        Ok(())
    }

    /// Writes bytes home that nobody refers to yet; they are durable with the next drain. Every
    /// commit that has freed what lay here is durable, or is ordered before this.
    #[cfg_attr(test, track_caller)]
    pub(super) fn write_home(&self, range: &Range<u64>) -> Result<(), Error> {
        self.write_past_log(range, Copied::Covered)
    }

    /// Writes bytes home past the log; they are durable with the next drain.
    ///
    /// # Errors
    /// As [`DirectPool::copy_home`].
    #[cfg_attr(test, track_caller)]
    fn write_past_log(&self, range: &Range<u64>, what: Copied) -> Result<(), Error> {
        let bytes = range.end - range.start;
        self.shards[slot()].lock().tally.lines_written_back += lines_of(range.start, bytes);
        if self.mode == Mode::InPlace {
            self.medium.backing().write_back(range.start, bytes);
            return Ok(());
        }
        if self.heap.may_be_logged(range) || self.writes_once {
            // Records of what was here before would be written over it, and records that speak of
            // bytes here would not find them.
            self.truncate_beside(&self.truncation()?)?;
        }
        self.copy_home(range, what, &mut Vec::new())
    }

    /// Copies bytes of the view home. They are durable with the next drain of this thread.
    ///
    /// # Errors
    /// The view has lost bytes, whose place zeros took: those do not go home, unless the bytes
    /// there are [covered](Copied::Covered).
    #[cfg_attr(test, track_caller)]
    pub(super) fn copy_home(&self, range: &Range<u64>, what: Copied, piece: &mut Vec<u8>) -> Result<(), Error> {
        let all_new = what != Copied::Changed;
        let backing = self.medium.backing();
        let bytes = range.end - range.start;
        piece.clear();
        piece.try_reserve(STREAMED.min(bytes as usize)).map_err(Error::no_memory("what is written home"))?;
        if bytes <= (if all_new { SHORT } else { CACHED }) && backing.is_mapped() {
            self.view().append(range.start, bytes as usize, piece);
            self.alive().map_err(|error| self.poison(error))?;
            if all_new || bytes <= LINE_U64 {
                backing.store(range.start, piece)
            } else {
                store_changed(backing, range.start, piece)
            }
            // Also what is at home already: it may be there by another thread that has not begun to
            // write it back.
            backing.write_back(range.start, bytes);
            return Ok(());
        }
        let mut at = range.start;
        while at < range.end {
            let (length, whole) = next_piece(at..range.end, STREAMED as u64);
            if whole && what == Copied::Covered {
                let (rest, _) = next_piece(at..range.end, u64::MAX);
                if backing.stream_from(self.view(), at, rest) {
                    self.alive().map_err(|error| self.poison(error))?;
                    at += rest;
                    continue;
                }
            }
            piece.clear();
            self.view().append(at, length as usize, piece);
            self.alive().map_err(|error| self.poison(error))?;
            if whole {
                backing.stream(at, piece);
            } else {
                backing.store(at, piece);
                backing.write_back(at, length);
            }
            at += length;
        }
        Ok(())
    }

    /// Makes bytes durable that the program has stored outside of transactions. Several ranges of
    /// one call share their fence. From a working copy they become durable all together or not at
    /// all, unless one of them has more than 64 KiB.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::NotAllocated`], [`Error::ReadOnly`], [`Error::Forked`],
    /// [`Error::NoMemory`]; over several cards [`Error::TooLarge`] where a log ring has no room for
    /// what becomes durable together: nothing has happened. What the medium refuses poisons the
    /// pool.
    pub fn persist(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        self.admit(ranges)?;
        self.shards[slot()].lock().outside_bytes += bytes_of(ranges);
        if self.mode == Mode::InPlace {
            return self.write_back_and_drain(ranges.iter().cloned());
        }
        match &self.by_mechanism {
            Some(by) => self.persist_by_mechanism(by, ranges),
            None => self.persist_by_log(ranges),
        }
    }

    fn persist_by_mechanism(&self, by: &ByMechanism, ranges: &[Range<u64>]) -> Result<(), Error> {
        if !self.has_log() {
            return self.persist_in_parts(by, ranges);
        }
        let store = |changes: &mut Changes<'_>| ranges.iter().try_for_each(|range| changes.store(range));
        let Some(mut turn) = by.commit(self, Durability::Durable, What::Shared, store)? else { return Ok(()) };
        turn.settle()?;
        self.persist_by_log(ranges)?;
        self.bring_home()
    }

    /// Without a log of records: what is to be there all together by one commit, and long ranges
    /// piece by piece.
    #[cold]
    fn persist_in_parts(&self, by: &ByMechanism, ranges: &[Range<u64>]) -> Result<(), Error> {
        let is_long = |range: &&Range<u64>| range.end - range.start > LONG_PERSIST;
        let persist = |what: &mut dyn FnMut(&mut Changes<'_>) -> Result<(), Error>| -> Result<(), Error> {
            let goes_past = by.commit(self, Durability::Durable, What::Shared, what)?;
            assert!(goes_past.is_none(), "what has no room is refused");
            Ok(())
        };
        let mut short = ranges.iter().filter(|range| !is_long(range)).peekable();
        if short.peek().is_some() {
            persist(&mut |changes| short.try_for_each(|range| changes.store(range)))?;
        }
        // A piece lies in one page more than it has, each of which may be copied whole.
        let piece = LONG_PERSIST.min(u64::from(self.head.ring_bytes) / 4);
        for range in ranges.iter().filter(is_long) {
            for at in range.clone().step_by(piece as usize) {
                persist(&mut |changes| changes.store(&(at..range.end.min(at + piece))))?;
            }
        }
        Ok(())
    }

    /// As [`DirectPool::persist`], but only as much as persistent memory itself promises: when it
    /// returns everything is durable, and a crash before that leaves of each aligned word of eight
    /// bytes the old or the new value, in any order. In memory whose caches are written back by
    /// instructions that takes no log.
    ///
    /// # Errors
    /// As [`DirectPool::persist`]: [`Error::OutOfRange`], [`Error::NotAllocated`],
    /// [`Error::ReadOnly`], [`Error::Forked`], [`Error::NoMemory`]; what the medium refuses poisons
    /// the pool.
    pub fn persist_words(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        self.persist_unlogged(ranges, Copied::Changed)
    }

    /// As [`DirectPool::persist_words`] of a range that has just been written as a whole, as by a
    /// copy or a fill: what is at home is not compared with it.
    ///
    /// # Errors
    /// As [`DirectPool::persist_words`].
    pub fn persist_written(&self, range: Range<u64>) -> Result<(), Error> {
        self.persist_unlogged(&[range], Copied::Written)
    }

    fn persist_unlogged(&self, ranges: &[Range<u64>], what: Copied) -> Result<(), Error> {
        self.admit(ranges)?;
        if self.mode == Mode::InPlace {
            self.shards[slot()].lock().outside_bytes += bytes_of(ranges);
            return self.write_back_and_drain(ranges.iter().cloned());
        }
        if let Some(by) = &self.by_mechanism {
            return self.persist_by_mechanism(by, ranges);
        }
        // On a file each way synchronises once, and the log takes fewer blocks. Where records that
        // are not home yet name the bytes, a recovery would write those over what goes home now.
        if self.drain_is_a_call() {
            return self.persist_by_log(ranges);
        }
        if self.are_logged(ranges) && !self.bring_often_logged_home(ranges)? {
            self.shards[slot()].lock().outside_bytes += bytes_of(ranges);
            return self.persist_by_log(ranges);
        }
        let mut shard = self.shards[slot()].lock();
        let shard = &mut *shard;
        shard.outside_bytes += bytes_of(ranges);
        for range in ranges {
            self.copy_home(range, what, &mut shard.piece)?;
            shard.tally.lines_written_back += lines_of(range.start, range.end - range.start);
        }
        shard.tally.fences += 1;
        self.medium.backing().drain().map_err(|error| self.poison(error))
    }

    /// Whether records that are not home yet may name bytes of ranges.
    pub(super) fn are_logged(&self, ranges: &[Range<u64>]) -> bool {
        ranges.iter().any(|range| self.heap.may_be_logged(range))
    }

    /// A persist that goes by the log keeps its chunk among those that the log names, so that the
    /// next one has to go there too. Now and then what is in the log is brought home, so that a
    /// program that leaves off with transactions leaves off with the log. Gives whether no record
    /// names the ranges now.
    #[cold]
    fn bring_often_logged_home(&self, ranges: &[Range<u64>]) -> Result<bool, Error> {
        if bytes_of(ranges) > AS_FAST_BY_LOG {
            return Ok(false);
        }
        let logged = {
            let mut shard = self.shards[slot()].lock();
            shard.logged_persists = shard.logged_persists % LOGGED_PERSISTS + 1;
            shard.logged_persists
        };
        if logged < LOGGED_PERSISTS {
            return Ok(false);
        }
        self.wait_for_records()?;
        self.truncate_beside(&self.truncation()?)?;
        Ok(!self.are_logged(ranges))
    }

    /// Whether ranges may be made durable outside of transactions.
    pub(super) fn admit(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        self.check_writable()?;
        self.refuse_poisoned()?;
        ranges.iter().try_for_each(|range| self.check(range))?;
        if let Some(linter) = &self.linter {
            linter.persist(self, ranges);
        }
        Ok(())
    }

    fn persist_by_log(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        let slot = slot();
        let mut records = std::mem::take(&mut self.shards[slot].lock().records);
        let short = || ranges.iter().filter(|range| range.end - range.start <= LONG_PERSIST).cloned();
        let mut done = self.build(&mut records, short()).map_err(Error::no_memory("what is to become durable"));
        if done.is_ok() && !records.is_empty() {
            records.finish();
            done = self.append_persist(Writer { slot, lane: COMMIT_LANE, first: 0 }, &mut records, short());
        }
        self.shards[slot].lock().records = records;
        done?;
        // The record depends on asynchronous commits: those of other threads may have been on their
        // way into the log when it was drained. And what goes home past the log may lie where one
        // of them has freed an object, which must keep its bytes while it may live again.
        self.wait_for_records()?;
        for range in ranges.iter().filter(|r| r.end - r.start > LONG_PERSIST) {
            // What is there is all that there is of it, should the view have lost bytes.
            self.write_past_log(range, Copied::Written)?;
            self.drain_counted()?;
        }
        Ok(())
    }

    fn build(&self, records: &mut Records, ranges: impl Iterator<Item = Range<u64>>) -> Result<(), TryReserveError> {
        records.begin(self.record_limit())?;
        for range in ranges {
            records.store_from(self.view(), range.start, range.end - range.start)?;
        }
        Ok(())
    }

    #[cfg_attr(test, track_caller)]
    fn drain_counted(&self) -> Result<(), Error> {
        self.shards[slot()].lock().tally.fences += 1;
        self.medium.backing().drain().map_err(|error| self.poison(error))
    }

    /// Waits until what asynchronous commits have done is durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; what the medium refuses.
    pub fn wait_durable(&self) -> Result<(), Error> {
        if !self.belongs_here() {
            return Err(Error::Forked);
        }
        self.refuse_poisoned()?;
        match &self.by_mechanism {
            Some(by) => by.turn(self)?.persist(),
            None => self.wait_for_records(),
        }
    }

    /// Waits until what asynchronous commits have appended is durable.
    pub(super) fn wait_for_records(&self) -> Result<(), Error> {
        let seen = self.unacknowledged.wait(|| self.lock_all(), || self.drain_counted())?;
        if self.writes_once && seen != 0 {
            self.known.waited(seen);
        }
        Ok(())
    }

    /// A program may store without a transaction or a persist: an orderly end keeps such stores, as
    /// memory itself would. They are durable with the next drain.
    ///
    /// # Errors
    /// Something was lost, whose place zeros took: those do not go home.
    pub(super) fn write_differences_home(&self) -> Result<(), Error> {
        let (mut ours, mut home) = ([0; PAGE_BYTES as usize], [0; PAGE_BYTES as usize]);
        for range in self.heap.ranges_in_use() {
            let mut at = range.start;
            while at < range.end {
                self.view().load(at, &mut ours);
                self.medium.load(at, &mut home);
                if ours != home {
                    self.alive().map_err(|error| self.poison(error))?;
                    self.medium.put(at, &ours);
                }
                at += PAGE_BYTES;
            }
        }
        Ok(())
    }
}
