//! A lane: one log ring on each member of the pool, its transaction identifiers, and who executes
//! its commands.
//!
//! Invariants:
//! - slots and sequences are given out here, before anything is posted;
//! - a slot is given out again only after [`Lane::release`], which callers do when the words that
//!   make its entry worthless are durable;
//! - no slot behind the ring's extent is given out before the extent word covers it, so that a
//!   recovery reads no more of the ring than was ever used;
//! - identifiers rise and are never used twice, not even after an abort or a crash; all members
//!   count the same ones.

use std::ops::Range;
use std::sync::Arc;

use nearpm_interface::geometry::{LINE_U64, MAX_COMMAND_BYTES, MAX_DEVICES};
use nearpm_interface::media::{
    ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, MIN_RING_BYTES, PoolHead, RING_EPOCH, RING_EXTENT,
    RING_HEAD_BYTES, RING_REDO_APPLIED, RING_REDO_COMMITTED, entry_bytes, entry_data,
};
use nearpm_interface::seal;

use crate::error::Error;
use crate::executor::{Entry, Executor};
use crate::memory::{Medium, Work};
use crate::planted::{Fault, planted};
use crate::statistics::count;
use crate::stripes::{Mask, Stripes};

mod ring;

use ring::{Cursor, Ring};

/// Extent of a ring that is new or was recovered.
pub(crate) const INITIAL_EXTENT: u64 = MIN_RING_BYTES as u64;

/// What a lane's ring has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneState {
    /// Highest identifier.
    pub last_txid: u64,
    /// Highest count of a sequence.
    pub entries: u64,
    /// The ring was used before.
    pub formatted: bool,
}

/// Log bytes of a range on one member.
fn log_bytes(range: &Range<u64>) -> u64 {
    // A range above the longest command has several entries, which may share a line.
    let entries = (range.end - range.start).div_ceil(MAX_COMMAND_BYTES.into());
    let lines = range.end.next_multiple_of(LINE_U64) - range.start / LINE_U64 * LINE_U64;
    lines + (2 * entries).saturating_sub(1) * LINE_U64
}

/// Log bytes, by member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogBytes([u64; MAX_DEVICES]);

/// How far the rings of a lane were given out at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark([u64; MAX_DEVICES]);

/// A lane of an open pool.
pub(crate) struct Lane {
    pub thread: u16,
    rings: Vec<Ring>,
    stripes: Stripes,
    /// The members of a striped pool; of another one the caller has the medium.
    media: Arc<[Medium]>,
    last_txid: u64,
    /// An entry that is being made; kept for its memory.
    entry: Vec<u8>,
    pub executor: Box<dyn Executor>,
}

impl Lane {
    /// A lane of a recovered pool whose members have these heads.
    pub fn new(
        heads: &[PoolHead],
        stripes: Stripes,
        media: Arc<[Medium]>,
        thread: u16,
        states: &[LaneState],
        executor: Box<dyn Executor>,
    ) -> Lane {
        let rings = heads.iter().zip(states).map(|(head, state)| Ring::new(head, thread, *state)).collect();
        let last_txid = states.iter().map(|state| state.last_txid).max().unwrap_or(0);
        Lane { thread, rings, stripes, media, last_txid, entry: Vec::new(), executor }
    }

    /// A lane of an ordinary pool, executed by the processor.
    #[cfg(test)]
    fn single(head: &PoolHead, thread: u16) -> Lane {
        let executor = Box::new(crate::executor::CpuExecutor::default());
        Lane::new(&[*head], Stripes::of(head), Arc::new([]), thread, &[LaneState::default()], executor)
    }

    /// The last transaction identifier that was given out.
    pub fn last_txid(&self) -> u64 {
        self.last_txid
    }

    /// Offset of the epoch word, in each member.
    pub fn epoch_word(&self) -> u64 {
        self.rings[0].start + RING_EPOCH
    }
    /// Offset of the redo commit word, in each member.
    pub fn committed_word(&self) -> u64 {
        self.rings[0].start + RING_REDO_COMMITTED
    }
    /// Offset of the redo applied word, in each member.
    pub fn applied_word(&self) -> u64 {
        self.rings[0].start + RING_REDO_APPLIED
    }
    /// Bytes for slots on each member.
    pub fn capacity(&self) -> u64 {
        self.rings[0].capacity
    }
    /// Bytes for slots that are in use, holes included, on the member that has most.
    pub fn used(&self) -> u64 {
        self.rings.iter().map(Ring::used).max().unwrap_or(0)
    }

    /// Adds what a range needs in the logs.
    pub fn add_log_bytes(&self, sum: &mut LogBytes, range: &Range<u64>) {
        for (piece, _) in self.stripes.pieces(range.start, range.end - range.start) {
            sum.0[piece.member] += log_bytes(&(piece.offset..piece.offset + piece.bytes));
        }
    }

    /// Refuses what no ring can ever hold.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn check_room(&self, sum: &LogBytes) -> Result<(), Error> {
        let needed = sum.0.into_iter().max().unwrap_or(0);
        if needed > self.capacity() { Err(self.too_large(needed)) } else { Ok(()) }
    }

    fn too_large(&self, needed: u64) -> Error {
        let (what, remedy) = ("the log ring", "Options::ring_bytes");
        Error::TooLarge { what, needed, available: self.capacity(), remedy }
    }

    /// Makes the rings usable: their words become valid, the epoch word last, whose validity says
    /// that the ring must be scanned.
    pub fn format(&mut self, medium: &Medium) -> Result<(), Error> {
        for (ring, medium) in self.rings.iter_mut().zip(media(&self.media, medium)) {
            if ring.formatted {
                continue;
            }
            // Entries of a pool that was here before must not count in this one.
            medium.put_zeros(ring.start + RING_HEAD_BYTES, ring.extent - RING_HEAD_BYTES);
            medium.put_word(ring.start + RING_EXTENT, seal::seal_word(ring.extent));
            medium.put_word(ring.start + RING_REDO_COMMITTED, seal::seal_word(0));
            medium.put_word(ring.start + RING_REDO_APPLIED, seal::seal_word(0));
            medium.fence()?;
            medium.put_word(ring.start + RING_EPOCH, seal::seal_word(0));
            medium.drain()?;
            // From now on the card may write these lines: no copy of them may stay in the cache.
            medium.invalidate(ring.start, ring.extent);
            medium.fence()?;
            ring.formatted = true;
        }
        Ok(())
    }

    /// The next transaction identifier.
    pub fn next_txid(&mut self) -> u64 {
        self.last_txid += 1;
        self.last_txid
    }

    /// Reserves slots for `ranges` (offset and length in the whole), split at stripes and at the
    /// longest command, and adds them to `reserved`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when they do not all fit; then none is reserved.
    pub fn reserve(
        &mut self,
        medium: &Medium,
        ranges: impl Iterator<Item = (u64, u64)> + Clone,
        reserved: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let before = reserved.len();
        let mut former = [Cursor::default(); MAX_DEVICES];
        self.rings.iter().zip(&mut former).for_each(|(ring, former)| *former = ring.cursor());
        if self.rings.iter().any(Ring::may_go_back) {
            let mut sum = LogBytes::default();
            ranges.clone().for_each(|(offset, length)| self.add_log_bytes(&mut sum, &(offset..offset + length)));
            self.rings.iter_mut().zip(sum.0).for_each(|(ring, bytes)| ring.go_back(bytes));
        }
        for (offset, length) in ranges {
            for (piece, _) in self.stripes.pieces(offset, length) {
                if let Err(needed) = self.rings[piece.member].take(&piece, reserved) {
                    self.rings.iter_mut().zip(former).for_each(|(ring, former)| ring.take_back(former));
                    reserved.truncate(before);
                    return Err(self.too_large(needed));
                }
            }
        }
        self.rings.iter_mut().zip(media(&self.media, medium)).try_for_each(|(ring, medium)| ring.cover(medium))
    }

    /// Makes so many bytes of each ring usable now, or all of it, instead of when they are first
    /// given out.
    pub fn extend(&mut self, medium: &Medium, bytes: u64) -> Result<(), Error> {
        for (ring, medium) in self.rings.iter_mut().zip(media(&self.media, medium)) {
            ring.extend(medium, bytes.min(ring.capacity) + RING_HEAD_BYTES)?;
        }
        Ok(())
    }

    /// A mark of what has been given out, for [`Lane::release`].
    pub fn mark(&self) -> Mark {
        let mut mark = Mark([0; MAX_DEVICES]);
        self.rings.iter().zip(&mut mark.0).for_each(|(ring, mark)| *mark = ring.mark());
        mark
    }

    /// Gives back everything that was given out before `mark`.
    pub fn release(&mut self, mark: Mark) {
        self.rings.iter_mut().zip(mark.0).for_each(|(ring, mark)| ring.release(mark));
    }

    /// Gives back what was given out before `mark` on the members that have one of these entries.
    pub fn release_of(&mut self, entries: &[Entry], mark: Mark) {
        if planted(Fault::FreesSlotsOfOthers) {
            return self.release(mark);
        }
        let members: Mask = entries.iter().map(|entry| entry.member).collect();
        members.iter().for_each(|member| self.rings[member].release(mark.0[member]));
    }

    /// What the heads of a transaction's entries have in common; [`Entry::head`] does the rest.
    pub fn entry_head(&self, kind: EntryKind, txid: u64) -> EntryHead {
        EntryHead {
            magic: ENTRY_MAGIC,
            kind: kind as u8,
            version: ENTRY_VERSION,
            thread: self.thread,
            txid,
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

    /// Loads a part of what an entry has logged, whoever made it; `part` is in bytes from its
    /// first. Its log has been verified.
    pub fn logged(&mut self, medium: &Medium, entry: &Entry, part: Range<u64>) -> Result<Vec<u8>, Error> {
        self.executor.barrier(medium)?;
        let medium = &media(&self.media, medium)[entry.member];
        let place = entry.slot + entry_data(entry.offset) + part.start;
        let mut old = vec![0; (part.end - part.start) as usize];
        // Slots are written behind the processor's cache. In this order: a line that was dropped
        // before the commands are in the link may come back.
        medium.invalidate(place, old.len() as u64);
        medium.fence()?;
        medium.load_checked(place, &mut old)?;
        Ok(old)
    }

    /// Sends entries with new values, one after the other in `values`; a barrier makes them
    /// durable.
    pub fn log_new(&mut self, medium: &Medium, txid: u64, entries: &[Entry], values: &[u8]) {
        let common = self.entry_head(EntryKind::Redo, txid);
        let (mut at, mut logged) = (0, 0);
        for entry in entries {
            let value = &values[at..at + entry.length as usize];
            entry.head(&common).encode_into(&mut self.entry, |data| data.copy_from_slice(value));
            logged += self.entry.len() as u64;
            medium.charge(Work::Checksum(self.entry.len() as u64));
            media(&self.media, medium)[entry.member].stream(entry.slot, &self.entry);
            at += entry.length as usize;
        }
        count(&medium.counters.log_entries, entries.len() as u64);
        count(&medium.counters.bytes_logged, logged);
    }
}

/// The medium of each member.
fn media<'a>(media: &'a [Medium], whole: &'a Medium) -> &'a [Medium] {
    if media.is_empty() { std::slice::from_ref(whole) } else { media }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, TestMemory};
    use proptest::prelude::*;

    fn lane(ring_bytes: u32) -> Lane {
        let head = PoolHead { pool: 1, ring_bytes, lanes: 1, ..PoolHead::default() };
        Lane::single(&head, 0)
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
            assert!(entries.iter().all(|e| e.slot < lane.rings[0].start + 4096), "{entries:?}");
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
            let mut live: Vec<(Mark, Entry)> = Vec::new();
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
                    prop_assert!(range.start >= lane.rings[0].start + RING_HEAD_BYTES && range.end <= lane.rings[0].start + 32768);
                    let extent = &memory.durable()[(lane.rings[0].start + RING_EXTENT) as usize..][..8];
                    let extent = u64::from_le_bytes(extent.try_into().unwrap());
                    let extent = if extent == 0 { INITIAL_EXTENT } else { seal::open_word(extent).unwrap() };
                    prop_assert!(range.end <= lane.rings[0].start + extent, "a recovery sees every slot");
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
