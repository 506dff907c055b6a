//! Old bytes of large transactions in a working copy, which the log keeps instead of memory and new
//! bytes.
//!
//! A transaction copies what it adds to memory, for an abort; its commit copies the new bytes to
//! the log, and then home. Of what is larger than a cache each of these is a pass over memory. So
//! once a transaction has added much, the old bytes of further long ranges go to the log at once,
//! around the cache: an abort reads them there, and the commit copies the new ones home without
//! another record of them.
//!
//! | step | durable behind it |
//! |---|---|
//! | an addition writes old bytes to the log, without the heads of their records | nothing: a recovery sees no record there |
//! | the commit, with its shard locked: heads, which number the records | undo records |
//! | new bytes go home | they; a recovery takes them back |
//! | the commit record, with everything else | the transaction |
//!
//! The shard is locked from the heads to the commit record, so that no truncation comes between
//! them: a truncation during the transaction need not know of it. What is at home is the old bytes
//! as long as nothing that a recovery would replay names them; the commit sees to that first.

use std::ops::Range;
use std::sync::atomic::Ordering;

use nearpm_interface::geometry::{LINE, LINE_U64};
use nearpm_interface::media::lines_of;
use nearpm_interface::record::{Kind, RecordHead};

use super::log::{Stamp, Unsealed, Writer};
use super::persist::Copied;
use super::pool::COMMIT_LANE;
use super::records::{LONG_RANGE, Record, Records};
use super::shard::ShardState;
use super::state::{OldBytes, no_memory, range_bytes};
use super::truncate::sizes;
use super::{DirectPool, Mode, Transaction};
use crate::error::{Error, Problem};
use crate::planted::{Fault, planted};

/// A transaction keeps so many old bytes in memory before the log gets long ranges: they may still
/// be in a cache at the commit. In tests they are few, so that small pools have transactions of
/// both kinds.
pub(super) const MOST_SAVED: usize = if cfg!(test) { 1500 } else { 2 << 20 };

impl Transaction {
    /// Whether the old bytes of a range that is added go to the log.
    #[inline]
    pub(super) fn logs_old(&self, pool: &DirectPool, range: &Range<u64>) -> bool {
        range.end - range.start >= LONG_RANGE && self.logs_long(pool, range)
    }

    #[cold]
    fn logs_long(&self, pool: &DirectPool, range: &Range<u64>) -> bool {
        let state = self.state();
        let is_much = state.saved.len() as u64 + (range.end - range.start) > MOST_SAVED as u64
            || !state.has_room(range_bytes(range));
        let by_fences = pool.mode() == Mode::WorkingCopy && !pool.drain_is_a_call() && pool.by_mechanism.is_none();
        // What it was promised is for records of new bytes.
        // Nor do these records say which asynchronous commits they depend on.
        is_much && by_fences && pool.commits_are_durable() && !state.promised
    }

    /// Writes the old bytes of a range to the log. `false`: it has no room, and they are kept as
    /// those of others.
    ///
    /// # Errors
    /// [`Error::NoMemory`]; what poisons the pool.
    pub(super) fn log_old_bytes(&mut self, pool: &DirectPool, range: &Range<u64>) -> Result<bool, Error> {
        let state = self.state_mut();
        state.known.try_reserve().and_then(|()| state.old.ranges.try_reserve()).map_err(no_memory())?;
        state.records.begin(pool.record_limit()).map_err(no_memory())?;
        state.records.store_from(pool.view(), range.start, range.end - range.start).map_err(no_memory())?;
        state.records.finish();
        state.old.records.try_reserve(state.records.len()).map_err(no_memory())?;
        let took_lane = state.lane == COMMIT_LANE;
        if took_lane {
            state.lane = pool.shards[state.slot].lock().take_lane(COMMIT_LANE + 1);
        }
        match pool.append_headless(state.writer(), &mut state.records, &mut state.old.records) {
            Ok(()) => {}
            Err(Error::Full { .. } | Error::Pool { problem: Problem::NoSpace { .. }, .. }) => {
                if took_lane {
                    pool.give_lane_back(state.slot, std::mem::replace(&mut state.lane, COMMIT_LANE));
                }
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        state.old.ranges.insert(range.clone());
        state.known.insert(range.clone());
        Ok(true)
    }
}

impl DirectPool {
    fn give_lane_back(&self, slot: usize, lane: usize) {
        self.shards[slot].lock().lanes[lane].busy = false;
    }

    /// Writes records of old bytes without their heads.
    #[cfg_attr(test, track_caller)]
    fn append_headless(
        &self,
        Writer { slot, lane, .. }: Writer,
        records: &mut Records,
        to: &mut Vec<Unsealed>,
    ) -> Result<(), Error> {
        // The commit is to find room behind them.
        let limit = RecordHead::stride(self.record_limit());
        let mut shard = self.fit_with(slot, lane, records, sizes(records, Kind::Undo).chain([(limit, limit)]))?;
        let applied = self.applied.load(Ordering::Relaxed);
        shard.lanes[lane].append_headless((self.medium.backing(), self.view()), records, applied, to);
        let bytes: u64 = records.iter().map(Record::stride).sum();
        shard.tally.log_entries += records.len() as u64;
        shard.tally.bytes_logged += bytes;
        shard.tally.bytes_by_cpu += bytes;
        shard.tally.lines_written_back += bytes / LINE_U64;
        // Another thread may commit, whose fences order its own stores alone.
        shard.tally.fences += 1;
        let drained = self.medium.backing().drain();
        drop(shard);
        // The bytes came from the view just now.
        drained.and_then(|()| self.alive()).map_err(|error| self.poison(error))
    }

    /// Commits a transaction whose log has old bytes: `records` hold all else, `parts` are the
    /// ranges that they name. Gives the number of the commit.
    ///
    /// # Errors
    /// [`Error::Full`], and nothing has changed; what poisons the pool.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_over_old(
        &self,
        Writer { slot, lane, .. }: Writer,
        records: &mut Records,
        old: &OldBytes,
        parts: &[Range<u64>],
    ) -> Result<u64, Error> {
        let at_home = records.has_long() && self.make_homeable(parts.iter().cloned())?;
        let lies_over = |range| self.heap.may_be_logged(&range) && !planted(Fault::LeavesRecordsBeneath);
        if old.ranges.iter().any(lies_over) {
            self.truncate_beside(&self.truncation()?)?;
        }
        let mut shard = self.fit(slot, lane, records, Kind::Commit)?;
        self.alive().map_err(|error| self.poison(error))?;
        let count = old.records.len() as u64 + records.len() as u64;
        let first = self.sequence.0.fetch_add(count, Ordering::Relaxed);
        self.note_logged(parts.iter().cloned(), at_home);
        let shard = &mut *shard;
        let done = self.write_over_old(shard, lane, records, at_home, old, first);
        shard.lanes[lane].end_headless(Some(first + old.records.len() as u64 - 1));
        done.map_err(|error| self.poison(error))?;
        Ok(first + count - 1)
    }

    #[cfg_attr(test, track_caller)]
    fn write_over_old(
        &self,
        shard: &mut ShardState,
        lane: usize,
        records: &mut Records,
        at_home: bool,
        old: &OldBytes,
        first: u64,
    ) -> Result<(), Error> {
        let backing = self.medium.backing();
        for (record, sequence) in old.records.iter().zip(first..) {
            let head = RecordHead {
                crc: 0,
                bytes: record.bytes as u32,
                nonce: record.nonce,
                sequence,
                first,
                depends: 0,
                kind: Kind::Undo as u32,
                parts: 0,
            };
            let mut line = [0; LINE];
            self.medium.load(record.at, &mut line);
            line[..RecordHead::SIZE].copy_from_slice(&head.over(record.sum));
            backing.stream(record.at, &line);
        }
        // A line of the log that was lost reads as zeros, over which a head would have been sealed.
        self.alive()?;
        backing.drain()?;
        for range in old.ranges.iter() {
            self.copy_home(&range, Copied::Covered, &mut shard.piece)?;
            shard.tally.lines_written_back += lines_of(range.start, range.end - range.start);
        }
        // Else zeros went home in the place of what was lost, and a recovery has to take them back.
        self.alive()?;
        backing.drain()?;
        let stamp = Stamp { sequence: first + old.records.len() as u64, first, depends: 0, kind: Kind::Commit };
        let applied = self.applied.load(Ordering::Relaxed);
        shard.lanes[lane].append((backing, self.view()), records, stamp, applied, at_home);
        backing.drain()?;
        if at_home {
            self.copy_long_home(records, shard)?;
        }
        let bytes: u64 = records.iter().map(Record::stride).sum();
        shard.tally.log_entries += records.len() as u64;
        shard.tally.bytes_logged += bytes;
        shard.tally.bytes_by_cpu += bytes;
        shard.tally.lines_written_back += bytes / LINE_U64 + old.records.len() as u64;
        shard.tally.fences += 3;
        // Long ranges came from the view just now.
        self.alive()
    }
}
