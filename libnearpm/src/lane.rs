//! A lane: one log ring, its transaction identifiers, and who executes its commands.
//!
//! Invariants:
//! - slots and sequences are given out here, before anything is posted;
//! - a slot is given out again only after [`Lane::release`], which callers do when the words that make its
//!   entry worthless are durable;
//! - no slot behind the ring's extent is given out before the extent word covers it, so that a recovery reads no more of the
//!   ring than was ever used;
//! - identifiers rise and are never used twice, not even after an abort or a crash.

use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::Card;
use nearpm_interface::geometry::{LINE_U64, MAX_COMMAND_BYTES};
use nearpm_interface::media::{
    ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, MIN_RING_BYTES, PoolHead, RING_EPOCH, RING_EXTENT,
    RING_HEAD_BYTES, RING_REDO_APPLIED, RING_REDO_COMMITTED, entry_bytes, entry_sequence,
};
use nearpm_interface::seal;

use crate::error::Error;
use crate::executor::{CpuExecutor, Executor};
use crate::memory::Medium;
use crate::recovery::LaneState;
use crate::statistics::count;

/// Extent of a ring that is new or was recovered.
pub(crate) const INITIAL_EXTENT: u64 = MIN_RING_BYTES as u64;

/// One log entry that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Offset in the pool of its slot.
    pub slot: u64,
    /// Offset in the pool of what it logs.
    pub offset: u64,
    /// Bytes that it logs.
    pub length: u32,
    /// Its sequence.
    pub sequence: u64,
}

impl Entry {
    /// The head of this entry.
    pub fn head(&self, common: &EntryHead) -> EntryHead {
        EntryHead { sequence: self.sequence, offset: self.offset, length: self.length, ..*common }
    }
}

/// Log bytes of a range.
pub(crate) fn log_bytes(range: &Range<u64>) -> u64 {
    // A range above the longest command has several entries, which may share a line.
    let entries = (range.end - range.start).div_ceil(MAX_COMMAND_BYTES.into());
    let lines = range.end.next_multiple_of(LINE_U64) - range.start / LINE_U64 * LINE_U64;
    lines + (2 * entries).saturating_sub(1) * LINE_U64
}

/// A lane of an open pool.
pub(crate) struct Lane {
    pub thread: u16,
    pub pool: u32,
    /// Offset of the ring in the pool.
    ring: u64,
    /// Bytes of the ring that hold slots.
    capacity: u64,
    /// Slot bytes given out and given back since the start; places are modulo `capacity`.
    given: u64,
    back: u64,
    /// The last part of the ring that was skipped to go on at its start.
    skipped: Range<u64>,
    entries: u64,
    last_txid: u64,
    formatted: bool,
    /// Bytes of the ring that a recovery reads.
    extent: u64,
    pub executor: Box<dyn Executor>,
}

impl Lane {
    /// A lane of a recovered pool.
    pub fn new(head: &PoolHead, thread: u16, state: LaneState) -> Lane {
        let LaneState { last_txid, entries, formatted } = state;
        Lane {
            thread,
            pool: head.pool,
            ring: head.ring(thread),
            capacity: u64::from(head.ring_bytes) - RING_HEAD_BYTES,
            given: 0,
            back: 0,
            skipped: 0..0,
            entries,
            last_txid,
            formatted,
            extent: INITIAL_EXTENT,
            executor: Box::new(CpuExecutor::default()),
        }
    }

    /// Offset in the pool of the epoch word.
    pub fn epoch_word(&self) -> u64 {
        self.ring + RING_EPOCH
    }
    /// Offset in the pool of the redo commit word.
    pub fn committed_word(&self) -> u64 {
        self.ring + RING_REDO_COMMITTED
    }
    /// Offset in the pool of the redo applied word.
    pub fn applied_word(&self) -> u64 {
        self.ring + RING_REDO_APPLIED
    }
    /// Bytes for slots.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
    /// Bytes for slots that are in use, holes included.
    pub fn used(&self) -> u64 {
        self.given - self.back
    }

    /// Makes the ring usable: its words become valid, the epoch word last, whose validity says that
    /// the ring must be scanned.
    pub fn format(&mut self, medium: &Medium) -> Result<(), Error> {
        if !self.formatted {
            // Entries of a pool that was here before must not count in this one.
            medium.put_zeros(self.ring + RING_HEAD_BYTES, self.extent - RING_HEAD_BYTES);
            medium.put_word(self.ring + RING_EXTENT, seal::seal_word(self.extent));
            medium.put_word(self.committed_word(), seal::seal_word(0));
            medium.put_word(self.applied_word(), seal::seal_word(0));
            medium.fence()?;
            medium.put_word(self.epoch_word(), seal::seal_word(0));
            medium.drain()?;
            // From now on the card may write these lines: no copy of them may stay in the cache.
            medium.invalidate(self.ring, self.extent);
            medium.fence()?;
            self.formatted = true;
        }
        Ok(())
    }

    /// Lets a card execute the commands of this lane.
    pub fn use_card(&mut self, medium: &Medium, head: &PoolHead, card: Arc<Card>, base: u64) -> Result<(), Error> {
        self.format(medium)?;
        let executor = crate::executor::CardExecutor::map(card, head, base, self.thread, self.last_txid)?;
        match executor {
            Some(executor) => self.executor = Box::new(executor),
            None => count(&medium.counters.fallbacks, 1),
        }
        Ok(())
    }

    /// The next transaction identifier.
    pub fn next_txid(&mut self) -> u64 {
        self.last_txid += 1;
        self.last_txid
    }

    /// Reserves slots for `ranges` (offset and length in the pool), split at the longest command, and adds them to `reserved`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when they do not all fit; then none is reserved.
    pub fn reserve(
        &mut self,
        medium: &Medium,
        ranges: impl Iterator<Item = (u64, u64)> + Clone,
        reserved: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let (given, entries, before) = (self.given, self.entries, reserved.len());
        let mut needed = 0;
        self.go_back(ranges.clone().map(|(offset, length)| log_bytes(&(offset..offset + length))).sum());
        for (offset, length) in ranges {
            let mut at = offset;
            while at < offset + length {
                let piece = (offset + length - at).min(MAX_COMMAND_BYTES.into()) as u32;
                let bytes = entry_bytes(at, piece);
                needed += bytes;
                let Some(slot) = self.slot(bytes) else {
                    (self.given, self.entries, self.skipped) = (given, entries, 0..0);
                    reserved.truncate(before);
                    return Err(Error::TooLarge {
                        what: "the log ring",
                        needed: needed + self.used(),
                        available: self.capacity,
                        remedy: "PoolOptions::ring_bytes",
                    });
                };
                self.entries += 1;
                let sequence = entry_sequence(self.entries, slot);
                reserved.push(Entry { slot: self.ring + slot, offset: at, length: piece, sequence });
                at += u64::from(piece);
            }
        }
        let end = reserved[before..].iter().map(|e| e.slot + entry_bytes(e.offset, e.length) - self.ring).max();
        self.extend(medium, end.unwrap_or(0))
    }

    /// Goes on at the start of the ring where that has room for so many bytes: the less of the ring is used, the less a
    /// recovery has to read.
    fn go_back(&mut self, bytes: u64) {
        let (place, first) = (self.given % self.capacity, self.back % self.capacity);
        if bytes > 0 && self.given / self.capacity == self.back / self.capacity && bytes <= first {
            self.skipped = self.given..self.given + self.capacity - place;
            self.given = self.skipped.end;
        }
    }

    /// Makes the extent word cover slots, before anything is stored there.
    fn extend(&mut self, medium: &Medium, end: u64) -> Result<(), Error> {
        if end <= self.extent {
            return Ok(());
        }
        let former = self.extent;
        self.extent = end.max(2 * former).min(self.capacity + RING_HEAD_BYTES);
        // As in `format`.
        medium.put_zeros(self.ring + former, self.extent - former);
        medium.fence()?;
        medium.put_word(self.ring + RING_EXTENT, seal::seal_word(self.extent));
        medium.invalidate(self.ring + former, self.extent - former);
        medium.fence()
    }

    /// Takes `bytes` contiguous bytes of the ring and gives their place in it.
    fn slot(&mut self, bytes: u64) -> Option<u64> {
        let mut at = self.given;
        let place = at % self.capacity;
        if place + bytes > self.capacity {
            at += self.capacity - place;
        }
        if at + bytes - self.back > self.capacity {
            return None;
        }
        self.given = at + bytes;
        Some(RING_HEAD_BYTES + at % self.capacity)
    }

    /// A mark of what has been given out, for [`Lane::release`].
    pub fn mark(&self) -> u64 {
        self.given
    }

    /// Gives back everything that was given out before `mark`.
    pub fn release(&mut self, mark: u64) {
        // Nobody uses what was skipped.
        let mark = if self.skipped.contains(&mark) { self.skipped.end } else { mark };
        self.back = self.back.max(mark.min(self.given));
        if self.back == self.given {
            // From the start again: the same few lines stay in the cache.
            (self.given, self.back, self.skipped) = (0, 0, 0..0);
        }
    }

    /// What the heads of a transaction's entries have in common; [`Entry::head`] does the rest.
    pub fn entry_head(&self, kind: EntryKind, txid: u64) -> EntryHead {
        EntryHead {
            magic: ENTRY_MAGIC,
            kind: kind as u8,
            version: ENTRY_VERSION,
            thread: self.thread,
            txid,
            pool: self.pool,
            ..EntryHead::default()
        }
    }

    /// Logs the old contents of `entries`. On return stores to what they cover may follow.
    pub fn log(
        &mut self,
        medium: &Medium,
        kind: EntryKind,
        txid: u64,
        entries: &[Entry],
        dirty: bool,
    ) -> Result<(), Error> {
        count(&medium.counters.log_entries, entries.len() as u64);
        let bytes = entries.iter().map(|entry| entry_bytes(entry.offset, entry.length)).sum();
        count(&medium.counters.bytes_logged, bytes);
        let head = self.entry_head(kind, txid);
        self.executor.log(medium, entries, &head, dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, TestMemory};
    use proptest::prelude::*;

    fn lane(ring_bytes: u32) -> Lane {
        let head = PoolHead { pool: 1, ring_bytes, lanes: 1, ..PoolHead::default() };
        Lane::new(&head, 0, LaneState::default())
    }

    fn medium() -> Medium {
        Medium::new(Backing::Other(Box::new(TestMemory::new(1 << 21))))
    }

    #[test]
    fn a_full_ring_refuses_and_reserves_nothing() {
        let mut lane = lane(16384);
        let mut entries = Vec::new();
        lane.reserve(&medium(), [(1 << 20, 4096), (1 << 21, 4096)].into_iter(), &mut entries).unwrap();
        assert_eq!(entries.len(), 2);
        let used = lane.used();
        let error = lane.reserve(&medium(), [(0, 4096), (8192, 4096)].into_iter(), &mut entries).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert_eq!(entries.len(), 2);
        assert_eq!(lane.used(), used);
    }

    /// Redo logs follow each other, each with the one before still in use.
    #[test]
    fn logs_that_take_turns_stay_at_the_start_of_the_ring() {
        let mut lane = lane(1 << 20);
        for _ in 0..1000 {
            let (former, mut entries) = (lane.mark(), Vec::new());
            lane.reserve(&medium(), [(0, 500), (1000, 8)].into_iter(), &mut entries).unwrap();
            assert!(entries.iter().all(|e| e.slot < lane.ring + 4096), "{entries:?}");
            lane.release(former);
        }
    }

    #[test]
    fn long_ranges_are_split_at_the_longest_command() {
        let mut lane = lane(1 << 20);
        let mut entries = Vec::new();
        lane.reserve(&medium(), [(100, u64::from(MAX_COMMAND_BYTES) + 1)].into_iter(), &mut entries).unwrap();
        let lengths: Vec<u32> = entries.iter().map(|e| e.length).collect();
        assert_eq!(lengths, [MAX_COMMAND_BYTES, 1]);
        assert_eq!(entries[1].offset, 100 + u64::from(MAX_COMMAND_BYTES));
    }

    proptest! {
        #[test]
        fn live_slots_never_overlap(sizes in prop::collection::vec((1u64..6000, any::<bool>()), 1..200)) {
            let mut lane = lane(32768);
            let memory = TestMemory::new(1 << 16);
            let medium = Medium::new(Backing::Other(Box::new(memory.clone())));
            let mut live: Vec<(u64, Entry)> = Vec::new();
            let mut sequence = 0;
            for (length, release) in sizes {
                if release && !live.is_empty() {
                    let (mark, _) = live.remove(0);
                    lane.release(mark);
                }
                let mut entries = Vec::new();
                if lane.reserve(&medium, [(64, length)].into_iter(), &mut entries).is_ok() {
                    let entry = entries[0];
                    prop_assert!(entry.sequence > sequence, "sequences rise");
                    sequence = entry.sequence;
                    let range = entry.slot..entry.slot + entry_bytes(64, entry.length);
                    prop_assert!(range.start >= lane.ring + RING_HEAD_BYTES && range.end <= lane.ring + 32768);
                    let extent = &memory.durable()[(lane.ring + RING_EXTENT) as usize..][..8];
                    let extent = u64::from_le_bytes(extent.try_into().unwrap());
                    let extent = if extent == 0 { INITIAL_EXTENT } else { seal::open_word(extent).unwrap() };
                    prop_assert!(range.end <= lane.ring + extent, "a recovery sees every slot");
                    for (_, other) in &live {
                        let taken = other.slot..other.slot + entry_bytes(64, other.length);
                        prop_assert!(range.end <= taken.start || taken.end <= range.start);
                    }
                    live.push((lane.mark(), entry));
                } else {
                    prop_assert!(!live.is_empty() || length > 32000 - 4096);
                }
                if live.is_empty() { prop_assert_eq!(lane.used(), 0); }
            }
        }
    }
}
