//! Which chunks the log names: bytes that go home without it must not be overwritten by what it still holds.

use std::ops::Range;

use nearpm_interface::media::CHUNK_BYTES;

use super::super::sync::{AtomicU32, Ordering};
use super::Heap;
use super::chunk::{Chunk, holds};

impl Heap {
    /// A record names these bytes; a `pending` one is to be written home by a truncation.
    #[inline]
    pub fn log(&self, offset: u64, bytes: u64, pending: bool) {
        if !self.range().contains(&offset) || bytes == 0 {
            return;
        }
        let now = self.cuts.load(Ordering::Relaxed);
        // Most were marked by the last commit: a store would take the line from threads that read it.
        let mark = |at: &AtomicU32| {
            if at.load(Ordering::Relaxed) != now {
                at.store(now, Ordering::Relaxed);
            }
        };
        for chunk in self.chunks_of(&(offset..offset + bytes)) {
            mark(&chunk.logged);
            if pending {
                mark(&chunk.pending);
            }
        }
    }

    /// From now on the bytes of chunks belong to something else.
    pub(super) fn mark(&self, chunk: u32, chunks: u32, to: u8) {
        for chunk in chunk..chunk + chunks {
            self.chunks[chunk].holds.store(to, Ordering::Relaxed);
        }
    }

    /// Whether all chunks in a range of the heap hold objects or reservations. Others may become part of the log at any time, and a store
    /// there would destroy it.
    pub fn holds_objects(&self, range: &Range<u64>) -> bool {
        self.chunks_of(range).all(|chunk| match chunk.holds.load(Ordering::Relaxed) {
            holds::RUN => chunk.used.load(Ordering::Relaxed) > 0,
            holds::OBJECT => true,
            _ => false,
        })
    }

    /// The chunks in a range of the heap.
    fn chunks_of(&self, range: &Range<u64>) -> impl Iterator<Item = &Chunk> {
        let first = (range.start - self.layout.first) / CHUNK_BYTES;
        let last = ((range.end - 1 - self.layout.first) / CHUNK_BYTES).min(self.layout.chunks - 1);
        (first as u32..=last as u32).map(|chunk| &self.chunks[chunk])
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

    /// A truncation has taken all records. The shards are locked.
    pub fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Records from before the last cut are home, and dead.
    pub fn settled(&self) {
        self.settled.store(self.cuts.load(Ordering::Relaxed), Ordering::Release);
    }
}
