//! What of a transaction has changed. On a file bytes of the log cost more than a look at them:
//! what is as it was is not logged.
//!
//! A typed transaction keeps the old bytes of what it adds, for an abort. At its commit the words
//! that are as they were are left out: the pool has them already, at home or by an earlier record.
//! Two things make that right:
//!
//! - typed programs store by transactions alone. Where a program may store by pointer, what it has
//!   stored before it adds a range becomes durable with that range, and all of it is logged;
//! - what objects have is durable with them, up to the end of their places
//!   ([`DirectPool::bytes_with_place`]).

use std::collections::TryReserveError;
use std::ops::Range;

use nearpm_interface::media::PAGE_BYTES;

use super::records::{LONG_RANGE, Records};
use super::{DirectPool, Mode, Reservation};
use crate::interval::IntervalSet;
use crate::memory::View;
use crate::planted::{Fault, planted};

/// Bytes of a word, and of what stands in front of the bytes of an operation: what is shorter
/// between two changes costs no more than a second operation.
const WORD: u64 = 8;

/// How far apart changes lie at most that are logged as one, behind what is a record of its own:
/// its head, that of the next one, and the ends of their lines.
const HEADS: u64 = 256;

/// Bytes that are looked at together.
const PIECE: usize = 1024;

/// Bytes behind an object up to the end of its place that are worth a look at what is at home.
const WORTH_A_LOOK: u64 = 64;

/// A range whose old bytes are kept: offset in the pool, bytes, and where they begin in the buffer.
pub(super) type Saved = (u64, usize, usize);

/// Logs what has changed, in rising order.
struct Changes<'a> {
    records: &'a mut Records,
    view: &'a View,
    /// Not logged yet: more may follow.
    run: Range<u64>,
}

impl Changes<'_> {
    /// A range has changed; it lies behind those before.
    fn add(&mut self, range: Range<u64>) -> Result<(), TryReserveError> {
        let near = if self.run.end - self.run.start >= LONG_RANGE { HEADS } else { WORD };
        if !self.run.is_empty() && range.start - self.run.end <= near {
            self.run.end = range.end;
            return Ok(());
        }
        self.log()?;
        self.run = range;
        Ok(())
    }

    fn log(&mut self) -> Result<(), TryReserveError> {
        let run = std::mem::take(&mut self.run);
        if run.is_empty() { Ok(()) } else { self.records.store_from(self.view, run.start, run.end - run.start) }
    }

    /// Adds those words of a range that are not as they were.
    fn compare(&mut self, offset: u64, old: &[u8]) -> Result<(), TryReserveError> {
        let mut now = [0; PIECE];
        for (number, old) in old.chunks(PIECE).enumerate() {
            let start = offset + (number * PIECE) as u64;
            let now = &mut now[..old.len()];
            self.view.load(start, now);
            let mut at = 0;
            while at < old.len() {
                let next = old.len().min(at + (WORD - (start + at as u64) % WORD) as usize);
                if old[at..next] != now[at..next] {
                    self.add(start + at as u64..start + next as u64)?;
                }
                at = next;
            }
        }
        Ok(())
    }
}

/// Logs all of the ranges of a transaction whose old bytes are not kept, and of the others what has
/// changed.
pub(super) fn log_changed(
    records: &mut Records,
    view: &View,
    known: &IntervalSet,
    saved: &[u8],
    parts: &[Saved],
) -> Result<(), TryReserveError> {
    let mut parts = parts.iter().peekable();
    let mut changes = Changes { records, view, run: 0..0 };
    for range in known.iter() {
        let mut at = range.start;
        while let Some(&(offset, bytes, start)) = parts.next_if(|(offset, ..)| *offset < range.end) {
            // An addition that failed has left its old bytes, and a later one has the same.
            let end = range.end.min(offset + bytes as u64);
            if offset < at || end <= at {
                continue;
            }
            if at < offset {
                changes.add(at..offset)?;
            }
            changes.compare(offset, &saved[start..start + (end - offset) as usize])?;
            at = end;
        }
        if at < range.end {
            changes.add(at..range.end)?;
        }
        // What lies between two ranges is not the transaction's.
        changes.log()?;
    }
    Ok(())
}

/// The ranges whose old bytes are kept, by offset.
pub(super) fn by_offset(ranges: &[(u64, usize)], parts: &mut Vec<Saved>) -> Result<(), TryReserveError> {
    parts.clear();
    parts.try_reserve(ranges.len())?;
    let mut start = 0;
    for &(offset, bytes) in ranges {
        parts.push((offset, bytes, start));
        start += bytes;
    }
    parts.sort_unstable();
    Ok(())
}

impl DirectPool {
    /// Whether transactions log what has changed, if nobody stores by pointer.
    pub(super) fn logs_differences(&self) -> bool {
        self.mode == Mode::WorkingCopy && self.drain_is_a_call() && self.by_mechanism.is_none()
    }

    /// How many bytes of its place become durable with a new object of so many: all, unless those
    /// behind it are at home as they are here.
    pub(super) fn bytes_with_place(&self, place: &Reservation, bytes: u64) -> u64 {
        if planted(Fault::ForgetsWhatIsBehind) {
            return bytes;
        }
        let behind = place.offset + bytes..place.offset + place.bytes;
        if behind.end - behind.start >= WORTH_A_LOOK && self.is_home(&behind) { bytes } else { place.bytes }
    }

    /// Whether a range is at home as it is here, and will be.
    fn is_home(&self, range: &Range<u64>) -> bool {
        let (mut here, mut home) = ([0; PAGE_BYTES as usize], [0; PAGE_BYTES as usize]);
        !self.heap.may_be_logged(range)
            && range.clone().step_by(PAGE_BYTES as usize).all(|at| {
                let bytes = (range.end - at).min(PAGE_BYTES) as usize;
                self.view.load(at, &mut here[..bytes]);
                self.medium.load(at, &mut home[..bytes]);
                here[..bytes] == home[..bytes]
            })
    }
}
