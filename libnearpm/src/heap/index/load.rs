//! Building the index from a pool.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic;

use nearpm_interface::media::ChunkWord;

use super::super::sync::{AtomicU32, Mutex, Ordering};
use super::chunk::{holds, place};
use super::chunks::Chunks;
use super::list::List;
use super::{Free, Heap, Placement, lock};
use crate::error::Error;
use crate::heap::classes::{BITMAP_WORDS, capacity_of, class_named};
use crate::heap::tables::HeapTables;

impl Heap {
    /// Builds the index from the tables of a recovered pool, checking them. The pool may grow to
    /// `most` bytes while it is open; the log may always have `kept` chunks.
    pub fn build(tables: &HeapTables, kept: u64, most: u64, placement: Placement) -> Result<Heap, Error> {
        let layout = tables.layout;
        let (lowest, spread) = match placement {
            Placement::Apart(spread) => (false, spread),
            Placement::Lowest(spread) => (true, spread),
        };
        let list = || if lowest { List::Lowest(BTreeSet::new()) } else { List::Newest(Vec::new()) };
        let most = layout.grown_to(most).map_or(layout.chunks, |grown| grown.chunks);
        let mut heap = Heap {
            layout,
            end: atomic::AtomicU64::new(layout.range().end),
            chunks: Chunks::new(most as u32)?,
            partial: std::array::from_fn(|_| Mutex::new(list())),
            run_chunks: std::array::from_fn(|_| atomic::AtomicU32::new(0)),
            short_runs: lowest,
            free: Mutex::new(Free { spread, ..Free::default() }),
            kept,
            cuts: AtomicU32::new(1),
            settled: AtomicU32::new(1),
        };
        // Free chunks from here on.
        let (mut chunk, mut free) = (0, 0);
        loop {
            // A word of zero is that of a free chunk.
            chunk += tables.blank_from(chunk);
            if u64::from(chunk) == layout.chunks {
                break;
            }
            let (is_free, chunks) = heap.load_chunk(tables, chunk)?;
            chunk += chunks;
            if !is_free {
                heap.add_free(free..chunk - chunks);
                free = chunk;
            }
        }
        heap.add_free(free..chunk);
        Ok(heap)
    }

    pub(super) fn add_free(&self, chunks: Range<u32>) {
        if !chunks.is_empty() {
            lock(&self.free).spans.add(chunks.start, chunks.end - chunks.start);
        }
    }

    /// Reads what begins at a chunk; says whether that is free, and gives its number of chunks.
    fn load_chunk(&mut self, tables: &HeapTables, chunk: u32) -> Result<(bool, u32), Error> {
        let (decoded, chunks) = tables.sound(chunk)?;
        if decoded == ChunkWord::Free {
            return Ok((true, chunks));
        }
        let entry = &self.chunks[chunk];
        entry.word.store(decoded.encode(), Ordering::Relaxed);
        match decoded {
            ChunkWord::Run { object_bytes, chunks } if tables.bits(chunk) > 0 => {
                let (class, capacity) = (class_named(object_bytes), capacity_of(object_bytes, chunks));
                self.load_bits(chunk, tables.bitmap(chunk));
                self.mark(chunk, chunks, holds::RUN);
                entry.capacity.store(capacity, Ordering::Relaxed);
                self.run_chunks[class].fetch_add(chunks, Ordering::Relaxed);
                if tables.bits(chunk) < capacity {
                    entry.place.store(place::LISTED, Ordering::Relaxed);
                    lock(&self.partial[class]).push(chunk);
                } else {
                    entry.place.store(place::FULL, Ordering::Relaxed);
                }
            }
            ChunkWord::Large { chunks } => {
                entry.allocated.store(true, Ordering::Relaxed);
                self.mark(chunk, chunks, holds::OBJECT);
            }
            ChunkWord::Tables { .. } => {}
            _ => return Ok((true, chunks)),
        }
        Ok((false, chunks))
    }

    fn load_bits(&self, chunk: u32, bitmap: &[u64; BITMAP_WORDS]) {
        let entry = &self.chunks[chunk];
        let mut used = 0;
        for (at, &word) in bitmap.iter().enumerate().filter(|&(_, &word)| word != 0) {
            let bits = entry.bits();
            bits.taken[at].store(word, Ordering::Relaxed);
            bits.allocated[at].store(word, Ordering::Relaxed);
            used += word.count_ones();
        }
        entry.used.store(used, Ordering::Relaxed);
    }
}
