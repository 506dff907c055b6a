//! Appending to the log of an open pool.

use std::ops::Range;
use std::sync::atomic::Ordering;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::lines_of;
use nearpm_interface::record::{Kind, MAX_STORE_BYTES, Operation, RecordHead};

use super::log::{Lane, Stamp, WORTH_A_TRUNCATION, Writer};
use super::persist::Copied;
use super::records::{LONG_RANGE, Record, Records};
use super::shard::{ShardGuard, ShardState};
use super::truncate::sizes;
use super::{DirectPool, Mode};
use crate::error::Error;
use crate::options::Durability;

/// What becomes of the records.
#[derive(Clone, Copy)]
struct Fate {
    kind: Kind,
    /// The append returns when they are durable.
    durable: bool,
    /// Long ones go home at once.
    at_home: bool,
}

impl DirectPool {
    /// Whether a commit that has returned survives, be it brought home by a mechanism or by
    /// records.
    pub(super) fn acknowledges_at_once(&self) -> bool {
        match &self.by_mechanism {
            Some(_) => self.options.durability == Durability::Durable,
            None => self.commits_are_durable(),
        }
    }

    /// Whether a commit by records that has returned survives. Where a fence is that of one
    /// processor, no other can make an asynchronous commit durable. Behind a link, where a fence
    /// orders for everybody, every drain can; and what goes home later cannot be durable before the
    /// commit that has freed its place.
    pub(super) fn commits_are_durable(&self) -> bool {
        let backing = self.medium.backing();
        self.options.durability == Durability::Durable
            || self.mode == Mode::InPlace
            || !(backing.drains_for_all() || backing.is_read_back())
    }

    /// Whether a drain is a call that waits for a device, as of an ordinary file, and not an
    /// instruction.
    pub(super) fn drain_is_a_call(&self) -> bool {
        self.medium.backing().drains_for_all()
    }

    /// Appends undo records and makes them durable. Gives the number of the first one.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_undo(&self, writer: Writer, records: &mut Records) -> Result<u64, Error> {
        let fate = Fate { kind: Kind::Undo, durable: true, at_home: false };
        self.append(writer, records, fate, std::iter::empty())
    }

    /// Appends the last records of a transaction, durable if the pool's commits are, and gives the
    /// number of the commit. `logged` are ranges of the heap that they name. The long ones may be
    /// `at_home`: [`DirectPool::make_homeable`] said so.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_commit(
        &self,
        writer: Writer,
        records: &mut Records,
        logged: impl Iterator<Item = Range<u64>>,
        at_home: bool,
    ) -> Result<u64, Error> {
        let fate = Fate { kind: Kind::Commit, durable: self.commits_are_durable(), at_home };
        let first = self.append(writer, records, fate, logged)?;
        Ok(first + records.len() as u64 - 1)
    }

    /// Appends new bytes that belong to no transaction, durable.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_persist(
        &self,
        writer: Writer,
        records: &mut Records,
        logged: impl Iterator<Item = Range<u64>>,
    ) -> Result<(), Error> {
        let fate = Fate { kind: Kind::Commit, durable: true, at_home: false };
        self.append(writer, records, fate, logged).map(drop)
    }

    #[cfg_attr(test, track_caller)]
    fn append(
        &self,
        Writer { slot, lane, first }: Writer,
        records: &mut Records,
        Fate { kind, durable, at_home }: Fate,
        logged: impl Iterator<Item = Range<u64>>,
    ) -> Result<u64, Error> {
        let mut shard = self.fit(slot, lane, records, kind)?;
        // The records are made of what the view had.
        self.alive().map_err(|error| self.poison(error))?;
        let count = records.len() as u64;
        let sequence = match self.writes_once {
            true => {
                records.is_drained = durable && count == 1;
                self.known.issue(&self.sequence.0, count, records.says, records.names_home)
            }
            false => self.sequence.0.fetch_add(count, Ordering::Relaxed),
        };
        let last = sequence + count - 1;
        let first = if first == 0 { sequence } else { first };
        let depends = self.unacknowledged.newest();
        let applied = self.applied.load(Ordering::Relaxed);
        self.note_logged(logged, at_home);
        let shard = &mut *shard;
        let to = &mut shard.lanes[lane];
        if kind == Kind::Undo && to.open == 0 {
            to.open = sequence;
        }
        let stamp = Stamp { sequence, first, depends, kind };
        to.append((self.medium.backing(), self.view()), records, stamp, applied, at_home);
        let bytes: u64 = records.iter().map(Record::stride).sum();
        shard.tally.log_entries += count;
        shard.tally.bytes_logged += bytes;
        shard.tally.bytes_by_cpu += bytes;
        shard.tally.lines_written_back += bytes / LINE_U64;
        if durable {
            shard.tally.fences += 1;
            self.medium.backing().drain().map_err(|error| self.poison(error))?;
            if self.writes_once {
                self.known.written(last);
            }
        } else {
            if !self.drain_is_a_call() {
                // From here on a drain by whatever thread waits for them, and they come before all
                // that is stored later.
                shard.tally.fences += 1;
                self.medium.backing().fence().map_err(|error| self.poison(error))?;
            }
            self.unacknowledged.raise(last);
        }
        if at_home {
            self.copy_long_home(records, shard).map_err(|error| self.poison(error))?;
        }
        // Long ranges came from the view just now.
        self.alive().map_err(|error| self.poison(error))?;
        Ok(sequence)
    }

    /// Records name ranges of the heap; the long ones of them may go home at once.
    #[inline]
    pub(super) fn note_logged(&self, ranges: impl Iterator<Item = Range<u64>>, at_home: bool) {
        self.heap.log(ranges.map(|range| {
            let pending = !at_home || range.end - range.start < LONG_RANGE;
            (range, pending)
        }));
    }

    /// Copies what long records hold home, with their shard locked: a truncation would declare them
    /// dead while their bytes are on the way. They are durable: a recovery brings home what is not
    /// copied here.
    #[cfg_attr(test, track_caller)]
    pub(super) fn copy_long_home(&self, records: &Records, shard: &mut ShardState) -> Result<(), Error> {
        let long = records.iter().filter_map(Record::long);
        long.clone().try_for_each(|range| self.copy_home(range, Copied::Covered, &mut shard.piece))?;
        shard.tally.fences += 1;
        shard.tally.lines_written_back += long.map(|range| lines_of(range.start, range.end - range.start)).sum::<u64>();
        self.medium.backing().drain()
    }

    /// Whether the long ones among the ranges of a transaction can go home as soon as their records
    /// are durable, when the view still has their bytes at hand. No record that is not home yet may
    /// name them; a truncation sees to that where it is worth it.
    pub(super) fn make_homeable(&self, ranges: impl Iterator<Item = Range<u64>> + Clone) -> Result<bool, Error> {
        // The drain behind the copy is worth more than the bytes that a truncation reads again,
        // where it is a call.
        if self.mode == Mode::InPlace || !self.commits_are_durable() || self.drain_is_a_call() {
            return Ok(false);
        }
        let long = ranges.filter(|range| range.end - range.start >= LONG_RANGE);
        let bytes: u64 = long.clone().map(|range| range.end - range.start).sum();
        if bytes > 0 && long.clone().any(|range| self.heap.may_be_pending(&range)) {
            if bytes < WORTH_A_TRUNCATION {
                return Ok(false);
            }
            self.truncate_beside(&self.truncation()?)?;
        }
        Ok(bytes > 0)
    }

    /// Hands on what the record at an offset of the log stores: offsets and bytes. One operation is
    /// in memory at a time.
    pub(super) fn stored_by(&self, record: u64, bytes: u64, mut each: impl FnMut(u64, &[u8])) {
        const WORD: usize = 8;
        let mut buffer = [0; WORD + MAX_STORE_BYTES];
        let (mut at, end) = (record + RecordHead::SIZE as u64, record + bytes);
        while at < end {
            let piece = (buffer.len() as u64).min(end - at) as usize;
            self.medium.load(at, &mut buffer[..piece]);
            let Some((Operation::Store(offset, data), rest)) = Operation::decode(&buffer[..piece]) else { return };
            each(offset, data);
            at += (piece - rest.len()) as u64;
        }
    }

    /// Locks a shard when the records fit into its lane, making room if need be.
    pub(super) fn fit(&self, slot: usize, lane: usize, records: &Records, kind: Kind) -> Result<ShardGuard<'_>, Error> {
        self.fit_with(slot, lane, records, sizes(records, kind))
    }

    /// As [`DirectPool::fit`], when there is room for records of these sizes, of which the first
    /// are those.
    #[inline]
    pub(super) fn fit_with(
        &self,
        slot: usize,
        lane: usize,
        records: &Records,
        sizes: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<ShardGuard<'_>, Error> {
        loop {
            let mut shard = self.shards[slot].lock();
            if self.poisoned.load(Ordering::Relaxed) {
                return Err(Error::Poisoned);
            }
            if shard.lanes.is_empty() {
                shard.lanes.push(Lane::default());
            }
            if self.fit_of(&shard.lanes[lane], sizes.clone()) {
                shard.lanes[lane].try_reserve(records).map_err(Error::no_memory("the log"))?;
                return Ok(shard);
            }
            drop(shard);
            self.make_room_for(slot, lane, sizes.clone())?;
        }
    }
}
