//! A log ring: which slots are given out.

use std::ops::Range;

use nearpm_interface::geometry::MAX_COMMAND_BYTES;
use nearpm_interface::media::{PoolHead, RING_EXTENT, RING_HEAD_BYTES, entry_bytes, entry_sequence};
use nearpm_interface::seal;

use super::{INITIAL_EXTENT, LaneState};
use crate::error::Error;
use crate::executor::Entry;
use crate::memory::Medium;
use crate::stripes::Piece;

/// The ring of a lane on one member of a pool.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// Identifier of the pool that it lies in.
    pool: u32,
    /// Offset in that pool.
    pub start: u64,
    /// Bytes that hold slots.
    pub capacity: u64,
    /// Slot bytes given out and given back since the start; places are modulo `capacity`.
    given: u64,
    back: u64,
    /// The last part that was skipped to go on at the start.
    skipped: Range<u64>,
    entries: u64,
    /// End of the slots that were given out, in the ring.
    reach: u64,
    pub formatted: bool,
    /// Bytes of the ring that a recovery reads.
    pub extent: u64,
}

/// How far slots and sequences of a ring were given out, for [`Ring::take_back`].
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    given: u64,
    entries: u64,
    reach: u64,
}

impl Ring {
    pub fn new(head: &PoolHead, thread: u16, state: LaneState) -> Ring {
        Ring {
            pool: head.pool,
            start: head.ring(thread),
            capacity: u64::from(head.ring_bytes) - RING_HEAD_BYTES,
            given: 0,
            back: 0,
            skipped: 0..0,
            entries: state.entries,
            reach: 0,
            formatted: state.formatted,
            extent: INITIAL_EXTENT,
        }
    }

    /// Bytes that are in use, holes included.
    pub fn used(&self) -> u64 {
        self.given - self.back
    }

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

    /// Whether there may be room at the start of the ring in front of what is in use.
    pub fn may_go_back(&self) -> bool {
        !self.back.is_multiple_of(self.capacity)
    }

    /// Goes on at the start of the ring where that has room for so many bytes: the less of the ring
    /// is used, the less a recovery has to read.
    pub fn go_back(&mut self, bytes: u64) {
        let (place, first) = (self.given % self.capacity, self.back % self.capacity);
        if bytes > 0 && self.given / self.capacity == self.back / self.capacity && bytes <= first {
            self.skipped = self.given..self.given + self.capacity - place;
            self.given = self.skipped.end;
        }
    }

    /// Takes slots for a piece, split at the longest command.
    ///
    /// # Errors
    /// Bytes that were in use and did not fit, when they do not all fit.
    pub fn take(&mut self, piece: &Piece, reserved: &mut Vec<Entry>) -> Result<(), u64> {
        let mut at = piece.offset;
        while at < piece.offset + piece.bytes {
            let length = (piece.offset + piece.bytes - at).min(MAX_COMMAND_BYTES.into()) as u32;
            let bytes = entry_bytes(at, length);
            let slot = self.slot(bytes).ok_or(self.used() + bytes)?;
            self.entries += 1;
            let sequence = entry_sequence(self.entries, slot);
            let slot = self.start + slot;
            reserved.push(Entry { member: piece.member, pool: self.pool, slot, offset: at, length, sequence });
            at += u64::from(length);
        }
        Ok(())
    }

    pub fn cursor(&self) -> Cursor {
        Cursor { given: self.given, entries: self.entries, reach: self.reach }
    }

    /// Takes back what was given out since then.
    pub fn take_back(&mut self, cursor: Cursor) {
        (self.given, self.entries, self.reach) = (cursor.given, cursor.entries, cursor.reach);
        self.skipped = 0..0;
    }

    /// Takes `bytes` contiguous bytes and gives their place in the ring.
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
        let slot = RING_HEAD_BYTES + at % self.capacity;
        self.reach = self.reach.max(slot + bytes);
        Some(slot)
    }

    /// Makes the extent word cover every slot that was given out, before anything is stored there.
    pub fn cover(&mut self, medium: &Medium) -> Result<(), Error> {
        self.extend(medium, self.reach)
    }

    /// Makes the extent word cover slots up to `end`, before anything is stored there.
    pub fn extend(&mut self, medium: &Medium, end: u64) -> Result<(), Error> {
        if end <= self.extent {
            return Ok(());
        }
        let former = self.extent;
        self.extent = end.max(2 * former).min(self.capacity + RING_HEAD_BYTES);
        // Entries of a pool that was here before must not count in this one.
        medium.put_zeros(self.start + former, self.extent - former);
        medium.fence()?;
        medium.put_word(self.start + RING_EXTENT, seal::seal_word(self.extent));
        medium.invalidate(self.start + former, self.extent - former);
        medium.fence()
    }
}
