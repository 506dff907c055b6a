//! Which chunks the log names: bytes that go home without it must not be overwritten by what it
//! still holds.

use std::ops::Range;

use nearpm_interface::media::CHUNK_BYTES;

use super::super::sync::{AtomicU32, Ordering};
use super::Heap;
use super::chunk::{Chunk, holds};

impl Heap {
    /// Records name these bytes; where `true` comes with them, a truncation is to write them home.
    #[inline]
    pub fn log(&self, ranges: impl Iterator<Item = (Range<u64>, bool)>) {
        let (heap, now) = (self.range(), self.cuts.load(Ordering::Relaxed));
        // Most were marked by the last commit: a store would take the line from threads that read
        // it.
        let mark = |at: &AtomicU32| {
            if at.load(Ordering::Relaxed) != now {
                at.store(now, Ordering::Relaxed);
            }
        };
        // What was marked last: the ranges of a transaction often lie side by side.
        let mut marked = (u32::MAX, false);
        for (range, pending) in ranges {
            if range.is_empty() || !heap.contains(&range.start) {
                continue;
            }
            let numbers = self.numbers_of(&range);
            let (mut number, last) = (numbers.start, numbers.end - 1);
            if (number, pending) == marked && number == last {
                continue;
            }
            loop {
                let chunk = &self.chunks[number];
                mark(&chunk.logged);
                if pending {
                    mark(&chunk.pending);
                }
                if number == last {
                    break;
                }
                number += 1;
            }
            marked = (last, pending);
        }
    }

    /// From now on the bytes of chunks belong to something else.
    pub(super) fn mark(&self, chunk: u32, chunks: u32, to: u8) {
        for at in 0..chunks {
            let entry = &self.chunks[chunk + at];
            let inside = to == holds::RUN && at > 0;
            // The other chunks of a run know where it begins, before anybody looks for its objects
            // there.
            if inside {
                entry.put_inside(at)
            } else {
                entry.put_outside()
            }
            entry.holds.store(if inside { holds::INNER } else { to }, Ordering::Relaxed);
        }
    }

    /// Whether all chunks in a range of the heap hold objects or reservations. Others may become
    /// part of the log at any time, and a store there would destroy it.
    #[inline]
    pub fn holds_objects(&self, range: &Range<u64>) -> bool {
        let mut numbers = self.numbers_of(range);
        // Mostly there is one.
        self.holds_object(numbers.start) && (numbers.len() == 1 || numbers.all(|chunk| self.holds_object(chunk)))
    }

    #[inline]
    fn holds_object(&self, number: u32) -> bool {
        // Where none was ever in use there is no object.
        let Ok(chunk) = self.chunks.look(number) else { return false };
        // Mostly it is that.
        let holds = chunk.holds.load(Ordering::Relaxed);
        if holds == holds::RUN {
            return chunk.used.load(Ordering::Relaxed) > 0;
        }
        holds == holds::OBJECT || holds == holds::INNER && self.holds_inside(number, chunk)
    }

    /// The same for a chunk that belongs to a run which begins in front of it.
    #[cold]
    fn holds_inside(&self, number: u32, chunk: &Chunk) -> bool {
        let first = &self.chunks[number - chunk.back()];
        first.holds.load(Ordering::Relaxed) == holds::RUN && first.used.load(Ordering::Relaxed) > 0
    }

    /// The chunks in a range of the heap, which is not empty: their numbers.
    #[inline]
    fn numbers_of(&self, range: &Range<u64>) -> Range<u32> {
        let heap = self.range();
        let first = (range.start - heap.start) / CHUNK_BYTES;
        let last = (range.end.min(heap.end) - 1 - heap.start) / CHUNK_BYTES;
        first as u32..last as u32 + 1
    }

    /// The chunks in a range of the heap, which is not empty.
    #[inline]
    fn chunks_of(&self, range: &Range<u64>) -> impl Iterator<Item = &Chunk> {
        self.numbers_of(range).map(|chunk| &self.chunks[chunk])
    }

    /// Whether a record that is not dead may name bytes of the chunks in a range of the heap.
    pub fn may_be_logged(&self, range: &Range<u64>) -> bool {
        let settled = self.settled.load(Ordering::Acquire);
        self.chunks_of(range).any(|chunk| chunk.logged.load(Ordering::Relaxed) >= settled)
    }

    /// Whether a truncation may still write bytes home in the chunks of a range of the heap.
    pub fn may_be_pending(&self, range: &Range<u64>) -> bool {
        let settled = self.settled.load(Ordering::Acquire);
        self.chunks_of(range).any(|chunk| chunk.pending.load(Ordering::Relaxed) >= settled)
    }

    /// The newest record that freed bytes in the chunks of a range of the heap, of those for which
    /// nobody waited; 0 for none.
    pub fn freed_by(&self, range: &Range<u64>) -> u64 {
        self.chunks_of(range).map(|chunk| chunk.freed.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Gives space back that a record has freed, although a new object must not be written there
    /// yet.
    pub fn release_early(&self, offset: u64, record: u64) {
        if let Some(bytes) = self.usable_bytes(offset) {
            self.chunks_of(&(offset..offset + bytes)).for_each(|chunk| {
                chunk.freed.fetch_max(record, Ordering::Relaxed);
            });
        }
        self.release(offset);
    }

    /// A truncation has taken all records. The shards are locked.
    pub fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Records from before the last cut are home, and dead.
    pub fn settled(&self) {
        self.settled.store(self.cuts.load(Ordering::Relaxed), Ordering::Release);
    }
}
