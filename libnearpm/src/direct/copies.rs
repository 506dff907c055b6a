//! Copies that are durable when they return: their bytes go home while the processor has them at
//! hand.

use std::ops::Range;

use nearpm_interface::media::lines_of;

use super::persist::next_piece;
use super::slot::slot;
use super::{DirectPool, Mode};
use crate::error::Error;

/// From so many bytes on zeros go around the cache.
const LONG_ZEROS: u64 = 512;

impl DirectPool {
    /// Bytes that are on their way at a time in [`DirectPool::copy_durable`]: they stay in the
    /// processor's nearest cache. With 8 KiB a copy of 64 KiB takes a seventh longer.
    pub const PIECE_BYTES: u64 = 1 << 10;

    /// Stores new bytes to a range and makes them durable, outside of transactions: what a copy and
    /// then [`DirectPool::persist_written`] do, in one pass and around the cache. `piece` gives the
    /// bytes of a part of the range, counted from its start; where it is told so, it stores them to
    /// the pool as well, as the program would.
    ///
    /// `false`: nothing was stored. These bytes go by the log, or by a call of the system, and it
    /// is the caller's to store and to persist them.
    ///
    /// # Errors
    /// As [`DirectPool::persist_words`]. Some of the bytes may be stored.
    pub fn copy_durable<'d>(
        &self,
        range: Range<u64>,
        mut piece: impl FnMut(Range<usize>, bool) -> &'d [u8],
    ) -> Result<bool, Error> {
        // The lint looks at what was stored when it is persisted: nothing is yet.
        if self.linter.is_some() {
            return Ok(false);
        }
        self.admit(std::slice::from_ref(&range))?;
        let (backing, in_place) = (self.medium.backing(), self.mode == Mode::InPlace);
        let goes_home = in_place || self.by_mechanism.is_none() && !self.are_logged(std::slice::from_ref(&range));
        if !goes_home || backing.drains_for_all() {
            return Ok(false);
        }
        let mut at = range.start;
        while at < range.end {
            let (bytes, whole) = next_piece(at..range.end, Self::PIECE_BYTES);
            let start = (at - range.start) as usize;
            // In place the program's stores are those to the medium, unless the bytes go around the
            // cache.
            let data = piece(start..start + bytes as usize, !in_place || !whole);
            // They may be of the pool, and zeros in the place of what it has lost: those do not go
            // home.
            self.alive().map_err(|error| self.poison(error))?;
            if whole {
                backing.stream(at, data);
            } else {
                if !in_place {
                    backing.store(at, data);
                }
                backing.write_back(at, bytes);
            }
            at += bytes;
        }
        {
            let mut shard = self.shards[slot()].lock();
            shard.outside_bytes += range.end - range.start;
            shard.tally.lines_written_back += lines_of(range.start, range.end - range.start);
            shard.tally.fences += 1;
        }
        backing.drain().map_err(|error| self.poison(error))?;
        Ok(true)
    }

    /// Stores zeros to a range of reserved space that are durable with the next drain of this
    /// thread, as of the transaction that publishes it: in place, around the cache, so that no line
    /// is written back. Whoever stores there before has to see to that himself.
    ///
    /// `false`: nothing was stored. The zeros are the caller's to store, and the commit's to make
    /// durable.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::ReadOnly`], [`Error::Forked`], [`Error::Poisoned`].
    pub fn zero_reserved(&self, range: Range<u64>) -> Result<bool, Error> {
        const ZEROS: [u8; DirectPool::PIECE_BYTES as usize] = [0; DirectPool::PIECE_BYTES as usize];
        let backing = self.medium.backing();
        // Where drains are calls they have to know what was stored.
        let goes_around = self.mode == Mode::InPlace
            && self.by_mechanism.is_none()
            && self.linter.is_none()
            && range.end - range.start >= LONG_ZEROS
            && !backing.drains_for_all();
        if !goes_around {
            return Ok(false);
        }
        self.admit(std::slice::from_ref(&range))?;
        let mut at = range.start;
        while at < range.end {
            let (bytes, whole) = next_piece(at..range.end, Self::PIECE_BYTES);
            let zeros = &ZEROS[..bytes as usize];
            if whole {
                backing.stream(at, zeros);
            } else {
                backing.store(at, zeros);
                backing.write_back(at, bytes);
            }
            at += bytes;
        }
        self.shards[slot()].lock().tally.lines_written_back += lines_of(range.start, range.end - range.start);
        Ok(true)
    }
}
