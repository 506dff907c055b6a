//! New objects that are written once: to their place, where the log would have them otherwise, and
//! later that place as well.
//!
//! Nobody refers to a new object before its commit, and its record holds its checksum: one
//! synchronisation makes both durable, and a recovery takes the record for torn where the bytes do
//! not match. See decision 24, and `known.rs` for when bytes at home may change.

use std::ops::Range;
use std::sync::atomic::Ordering;

use nearpm_interface::media::lines_of;

use super::DirectPool;
use super::records::{HomeSum, Records};
use super::slot::slot;
use super::state::WORD_BYTES;
use crate::error::Error;
use crate::planted::{Fault, planted};

/// Objects of at least so many bytes are written once, unless the options say otherwise: shorter
/// ones fill the blocks of the log better than blocks of their own. In tests they are short, so
/// that small pools have objects of both kinds.
pub(super) const LEAST: u64 = if cfg!(test) { 700 } else { 2048 };

/// Bytes that one checksum is of, at most.
const MOST: u64 = 1 << 30;

/// Bytes that are on their way from the view at once.
const PIECE: u64 = 64 << 10;

/// Checksums of an object of so many bytes.
fn sums_of(bytes: u64) -> u64 {
    bytes.div_ceil(MOST)
}

impl DirectPool {
    /// Bytes in records of the checksums of a new object of so many bytes.
    pub(super) fn bytes_of_sums(&self, bytes: u64) -> u64 {
        if self.writes_once { sums_of(bytes) * WORD_BYTES } else { 0 }
    }

    /// Whether a new object may be written to its place: no record that is not dead names bytes
    /// there, and the space was not freed by a record that a recovery may miss.
    pub(super) fn may_go_home(&self, range: &Range<u64>) -> bool {
        let is_free = || !self.writes_once || self.heap.freed_by(range) <= self.known.shown();
        !self.heap.may_be_logged(range) && (is_free() || planted(Fault::ReusesFreedSpace))
    }

    /// Whether bytes that replace others are better a new object.
    pub(super) fn prefers_new(&self, bytes: u64) -> bool {
        self.writes_once && bytes >= self.once_from && self.heap.has_plenty()
    }

    /// New objects that lie side by side, as one range: what a place has beyond its object is
    /// nobody's.
    fn joined(&self, ranges: &mut Vec<Range<u64>>) {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut count = 0;
        for at in 0..ranges.len() {
            let range = ranges[at].clone();
            match ranges[..count].last_mut() {
                Some(last) if self.heap.place_end(last.end - 1) == Some(range.start) => last.end = range.end,
                _ => {
                    ranges[count] = range;
                    count += 1;
                }
            }
        }
        ranges.truncate(count);
    }

    /// Writes new objects to their places, and adds their checksums. They are durable with the next
    /// drain.
    pub(super) fn write_once(&self, ranges: &mut Vec<Range<u64>>, sums: &mut Vec<HomeSum>) -> Result<(), Error> {
        if ranges.is_empty() {
            return Ok(());
        }
        self.joined(ranges);
        let count = ranges.iter().map(|range| sums_of(range.end - range.start)).sum::<u64>();
        sums.try_reserve(count as usize).map_err(Error::no_memory("the checksums of new objects"))?;
        if ranges.iter().any(|range| !self.may_go_home(range)) {
            self.truncate_beside(&self.truncation()?)?;
        }
        let mut piece = std::mem::take(&mut self.shards[slot()].lock().piece);
        let done = ranges.iter().try_for_each(|range| {
            let parts = (range.start..range.end).step_by(MOST as usize);
            parts.map(|at| at..range.end.min(at + MOST)).try_for_each(|part| {
                sums.push(self.copy_once(&part, &mut piece)?);
                Ok(())
            })
        });
        let mut shard = self.shards[slot()].lock();
        shard.piece = piece;
        let lines = ranges.iter().map(|range| lines_of(range.start, range.end - range.start));
        shard.tally.lines_written_back += lines.sum::<u64>();
        done
    }

    /// Copies bytes of the view home, and sums them up on the way.
    #[cfg_attr(test, track_caller)]
    fn copy_once(&self, range: &Range<u64>, piece: &mut Vec<u8>) -> Result<HomeSum, Error> {
        let (backing, mut sum, mut at) = (self.medium.backing(), 0, range.start);
        piece.clear();
        let most = PIECE.min(range.end - range.start) as usize;
        piece.try_reserve(most).map_err(Error::no_memory("what is written home"))?;
        while at < range.end {
            let bytes = PIECE.min(range.end - at);
            piece.clear();
            self.view().append(at, bytes as usize, piece);
            self.alive().map_err(|error| self.poison(error))?;
            sum = crc32c::crc32c_append(sum, piece);
            backing.store(at, piece);
            backing.write_back(at, bytes);
            at += bytes;
        }
        Ok((range.start, (range.end - range.start) as u32, sum))
    }

    /// Up to which number the records that are built may say that others are durable; 0 for nothing
    /// that is worth saying.
    pub(super) fn says_durable(&self, records: &Records) -> u64 {
        if !self.writes_once || records.is_empty() {
            return 0;
        }
        let durable = self.known.durable();
        if durable > self.applied.load(Ordering::Relaxed) { durable } else { 0 }
    }

    /// A commit has freed objects: their space serves others, at once or when a recovery is sure to
    /// know of the commit.
    pub(super) fn release_freed(&self, commit: u64, objects: &[u64]) {
        if !self.writes_once || planted(Fault::ReusesFreedSpace) {
            return objects.iter().for_each(|&object| self.heap.release(object));
        }
        if !objects.is_empty() {
            self.known.free(commit, objects.iter().copied());
        }
        self.release_ready();
    }

    /// Space serves others that need not wait any more.
    pub(super) fn release_ready(&self) {
        self.known.ready(|object| self.heap.release(object));
    }

    /// All freed space serves others: what comes there is logged, unless it has been shown by then
    /// that it is free.
    pub(super) fn release_early(&self) -> bool {
        self.writes_once && self.known.all_freed(|(record, object)| self.heap.release_early(object, record))
    }
}
