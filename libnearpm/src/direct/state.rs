//! What an open transaction remembers.

use std::collections::TryReserveError;
use std::ops::Range;

use super::log::{Unsealed, WORTH_A_TRUNCATION, Writer};
use super::records::{HomeSum, LONG_RANGE, Record, Records};
use super::{DirectPool, Mode, differences};
use crate::error::Error;
use crate::heap::index::{Change, Heap};
use crate::interval::IntervalSet;

/// Most space of a transaction's buffers that is kept for the next one.
const KEPT_BYTES: usize = 32 << 20;

/// Bytes that a change of a word of the tables takes in a record.
pub(super) const WORD_BYTES: u64 = 16;

/// Bytes of a first record that no range or word gets: its head, a root, and the end of its line.
const FIRST_ROOM: u64 = 256;

/// Bytes that a range takes in records, at most: with the words in front of its pieces, and the
/// heads of records of its own.
#[inline]
pub(super) fn range_bytes(range: &Range<u64>) -> u64 {
    let length = range.end - range.start;
    let heads = if length >= LONG_RANGE { FIRST_ROOM } else { 0 };
    length + length / 256 + WORD_BYTES + heads
}

/// The error where there is no memory for what a transaction is to remember.
pub(super) fn no_memory() -> impl FnOnce(TryReserveError) -> Error {
    Error::no_memory("what a transaction has to remember")
}

/// Old bytes that the log keeps.
#[derive(Default)]
pub(super) struct OldBytes {
    pub records: Vec<Unsealed>,
    pub ranges: IntervalSet,
}

#[derive(Default)]
pub(super) struct State {
    pub slot: usize,
    /// In place: index of the lane.
    pub lane: usize,
    /// In place: number of the first undo record, 0 for none.
    pub first: u64,
    /// Ranges that become durable at commit.
    pub known: IntervalSet,
    /// Ranges of objects that are written home at once, or whose bytes are the program's own care.
    pub fresh: IntervalSet,
    pub gaps: Vec<Range<u64>>,
    /// Old bytes.
    pub saved: Vec<u8>,
    /// What they are: offset in the pool, bytes. One after the other in `saved`.
    pub saved_ranges: Vec<(u64, usize)>,
    /// The same by offset, for a commit that logs what has changed.
    saved_by_offset: Vec<differences::Saved>,
    /// Old bytes that the log keeps, and the ranges that they are of.
    pub old: OldBytes,
    /// Undo records of long ranges, which hold the old bytes: offset in the pool, bytes.
    pub saved_records: Vec<(u64, u64)>,
    pub allocated: Vec<u64>,
    /// Ranges of allocated objects that are written home at once.
    pub home: Vec<Range<u64>>,
    pub freed: Vec<u64>,
    /// Allocated and freed again.
    pub cancelled: Vec<u64>,
    pub root: Option<u64>,
    pub records: Records,
    /// Bytes that the records of the commit have, at most: see [`State::take_room`].
    logged: u64,
    /// Checksums of what was written once.
    pub sums: Vec<HomeSum>,
    /// New objects of at least so many bytes are written once in any case.
    pub once_from: u64,
    /// Bytes of long new objects that may still be logged, where they could go home at once.
    pub new_room: u64,
    /// So many have room in the log for sure.
    pub room: u64,
    /// The lane keeps its segments for this transaction.
    pub promised: bool,
    /// Its commit logs what has changed of its ranges.
    pub differences: bool,
}

impl State {
    /// Makes it ready for use, in a lane of a shard.
    pub fn start(&mut self, pool: &DirectPool, slot: usize, lane: usize) {
        self.reset();
        (self.slot, self.lane) = (slot, lane);
        (self.once_from, self.new_room) = (pool.once_from, pool.logged_new);
        self.differences = false;
        // In place old bytes are in the log before a call returns, and a commit adds words of
        // tables alone.
        let has_room = pool.mode() == Mode::InPlace || !pool.has_log();
        self.room = if has_room { u64::MAX } else { pool.record_limit() - FIRST_ROOM };
    }

    pub fn writer(&self) -> Writer {
        Writer { slot: self.slot, lane: self.lane, first: self.first }
    }

    /// Ranges become durable at commit.
    #[inline]
    pub fn know(&mut self, ranges: &[Range<u64>]) -> Result<(), TryReserveError> {
        for range in ranges {
            self.known.try_reserve()?;
            self.known.insert(range.clone());
        }
        Ok(())
    }

    /// Keeps the old bytes of ranges.
    #[inline]
    pub fn save<'r>(
        &mut self,
        pool: &DirectPool,
        ranges: impl Iterator<Item = &'r Range<u64>>,
    ) -> Result<(), TryReserveError> {
        for range in ranges {
            let bytes = (range.end - range.start) as usize;
            self.saved_ranges.try_reserve(1)?;
            self.saved.try_reserve(bytes)?;
            pool.view().append(range.start, bytes, &mut self.saved);
            self.saved_ranges.push((range.start, bytes));
        }
        Ok(())
    }

    pub fn reset(&mut self) {
        self.first = 0;
        self.known.clear();
        self.fresh.clear();
        self.saved.clear();
        self.saved.shrink_to(KEPT_BYTES);
        self.saved_ranges.clear();
        self.saved_records.clear();
        if !self.old.records.is_empty() {
            self.old = OldBytes::default();
        }
        self.allocated.clear();
        self.home.clear();
        self.sums.clear();
        self.freed.clear();
        self.cancelled.clear();
        self.root = None;
        self.logged = 0;
        self.promised = false;
    }

    /// Whether records of so many bytes more have room for sure.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.logged + bytes <= self.room
    }

    /// The commit will have records of so many bytes more: [`range_bytes`], [`WORD_BYTES`]. Those
    /// of a small transaction have room whatever happens, because chunks are kept for them. For a
    /// large one the log gets its segments here, so that it is the call that makes it too large
    /// which is refused, and not the commit.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::NoMemory`], what the medium refuses. The transaction goes on as it
    /// was.
    #[inline]
    pub fn take_room(&mut self, pool: &DirectPool, bytes: u64) -> Result<(), Error> {
        if self.logged + bytes > self.room {
            self.ask_for_room(pool, bytes)?;
        }
        self.logged += bytes;
        Ok(())
    }

    #[cold]
    fn ask_for_room(&mut self, pool: &DirectPool, more: u64) -> Result<(), Error> {
        // What is as it was now may be another by then, and a promise is for records as they are
        // built here.
        let first = !std::mem::replace(&mut self.promised, true);
        if let Err(error) = self.build(pool) {
            self.promised = !first;
            return Err(no_memory()(error));
        }
        self.records.finish();
        let sums: u64 = self.home.iter().map(|range| pool.bytes_of_sums(range.end - range.start)).sum();
        let exact = self.records.iter().map(Record::stride).sum::<u64>() + sums + FIRST_ROOM;
        let spare = pool.promise(self.slot, self.lane, &self.records, more, first);
        if first && spare.is_err() {
            self.promised = false;
        }
        (self.logged, self.room) = (exact, exact + spare?);
        Ok(())
    }

    /// Objects that lie where records of former objects may name bytes are logged like everything
    /// else: what went home at once would be overwritten by those records. Long ones are worth a
    /// truncation instead, as are those that have no room in the log.
    pub fn log_what_must_be(&mut self, pool: &DirectPool) {
        let (known, logged, room) = (&mut self.known, &mut self.logged, self.room);
        self.home.retain(|range| {
            let bytes = range_bytes(range);
            let has_room = range.end - range.start < WORTH_A_TRUNCATION && *logged + bytes <= room;
            let must_be = has_room && !pool.may_go_home(range);
            if must_be {
                known.insert(range.clone());
                *logged += bytes;
            }
            !must_be
        });
    }

    /// Builds the records of the commit.
    #[inline]
    pub fn build(&mut self, pool: &DirectPool) -> Result<(), TryReserveError> {
        let differences = self.differences && !self.promised;
        let Self { records, known, old, allocated, freed, root, sums, saved, saved_ranges, saved_by_offset, .. } = self;
        records.begin(pool.record_limit())?;
        if differences {
            differences::by_offset(saved_ranges, saved_by_offset)?;
            differences::log_changed(records, pool.view(), known, saved, saved_by_offset)?;
        } else if pool.mode() == Mode::WorkingCopy && !old.records.is_empty() {
            self.gaps.clear();
            known.iter().try_for_each(|range| old.ranges.try_gaps(&range, &mut self.gaps))?;
            for range in &self.gaps {
                records.store_from(pool.view(), range.start, range.end - range.start)?;
            }
        } else if pool.mode() == Mode::WorkingCopy {
            for range in known.iter() {
                records.store_from(pool.view(), range.start, range.end - range.start)?;
            }
        }
        sums.iter().try_for_each(|&sum| records.home(sum))?;
        changes_of_tables(pool.heap_index(), allocated, freed, *root, |change| records.change(change))?;
        match pool.says_durable(records) {
            0 => Ok(()),
            number => records.through(number),
        }
    }

    /// Whether the commit changes the heap's tables.
    #[inline]
    pub fn changes_tables(&self) -> bool {
        !(self.allocated.is_empty() && self.freed.is_empty() && self.root.is_none())
    }

    /// What the commit changes of the heap's tables.
    #[inline]
    pub fn change_tables<E>(&self, heap: &Heap, change: impl FnMut(Change) -> Result<(), E>) -> Result<(), E> {
        changes_of_tables(heap, &self.allocated, &self.freed, self.root, change)
    }

    /// Stores the old bytes again, but for those in `kept`.
    pub fn restore(&self, pool: &DirectPool, kept: &IntervalSet) {
        let mut parts = Vec::new();
        let mut put_back = |offset: u64, data: &[u8]| {
            parts.clear();
            kept.gaps(&(offset..offset + data.len() as u64), &mut parts);
            for part in &parts {
                let (from, to) = ((part.start - offset) as usize, (part.end - offset) as usize);
                pool.view().store(part.start, &data[from..to]);
            }
        };
        let mut start = 0;
        for &(offset, bytes) in &self.saved_ranges {
            put_back(offset, &self.saved[start..start + bytes]);
            start += bytes;
        }
        let kept = self.old.records.iter().map(|record| (record.at, record.bytes));
        for (at, bytes) in self.saved_records.iter().copied().chain(kept) {
            pool.stored_by(at, bytes, &mut put_back);
        }
    }

    /// Keeps the old bytes of ranges, also in the log. All memory is taken before anything is
    /// there.
    #[inline(never)]
    pub fn log_old(&mut self, pool: &DirectPool, ranges: &[Range<u64>]) -> Result<(), Error> {
        if ranges.is_empty() {
            return Ok(());
        }
        let short = ranges.iter().filter(|range| range.end - range.start < LONG_RANGE);
        self.save(pool, short).map_err(no_memory())?;
        let records = &mut self.records;
        records.begin(pool.record_limit()).map_err(no_memory())?;
        for range in ranges {
            records.store_from(pool.view(), range.start, range.end - range.start).map_err(no_memory())?;
        }
        records.finish();
        self.saved_records.try_reserve(records.len()).map_err(no_memory())?;
        let sequence = pool.append_undo(Writer { slot: self.slot, lane: self.lane, first: self.first }, records)?;
        if self.first == 0 {
            self.first = sequence;
        }
        let long = self.records.iter().filter(|record| record.long().is_some());
        self.saved_records.extend(long.map(|record| (record.at, record.bytes())));
        Ok(())
    }

    /// Nothing was asked of the transaction.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
            && self.allocated.is_empty()
            && self.freed.is_empty()
            && self.cancelled.is_empty()
            && self.root.is_none()
    }
}

/// What a commit changes of the heap's tables, given what it allocates and frees, and the root that
/// it sets.
#[inline]
fn changes_of_tables<E>(
    heap: &Heap,
    allocated: &[u64],
    freed: &[u64],
    root: Option<u64>,
    mut change: impl FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    allocated.iter().try_for_each(|&object| heap.allocation(object, &mut change))?;
    freed.iter().try_for_each(|&object| change(heap.removal(object)))?;
    root.map_or(Ok(()), |root| change(heap.root_change(root)))
}
