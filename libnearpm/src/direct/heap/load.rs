//! Building the index from a pool.

use std::ops::Range;

use nearpm_interface::media::{ChunkWord, PoolHead};

use super::super::sync::{AtomicU32, Mutex, Ordering};
use super::chunk::{holds, place};
use super::chunks::Chunks;
use super::{Heap, lock};
use crate::error::Error;
use crate::heap::{BITMAP_WORDS, Bitmaps, HeapLayout, HeapTables, capacity, class_named};
use crate::memory::Backing;

impl Heap {
    /// Builds the index from a recovered pool, checking what it reads.
    pub fn load(backing: &Backing, head: &PoolHead, kept: u64) -> Result<Heap, Error> {
        let layout = HeapLayout::of(head);
        let mut heap = Heap {
            layout,
            chunks: Chunks::new(layout.chunks as u32)?,
            partial: Default::default(),
            free: Mutex::default(),
            kept,
            cuts: AtomicU32::new(1),
            settled: AtomicU32::new(1),
        };
        let tables = HeapTables::load(
            layout,
            Bitmaps::All,
            |range| backing.data(range),
            |offset, bytes| {
                backing.load(offset, bytes);
                Ok(())
            },
        )?;
        // Free chunks from here on.
        let (mut chunk, mut free) = (0, 0);
        loop {
            // A word of zero is that of a free chunk.
            chunk += tables.blank_from(chunk);
            if u64::from(chunk) == layout.chunks {
                break;
            }
            let (is_free, chunks) = heap.load_chunk(&tables, chunk)?;
            chunk += chunks;
            if !is_free {
                heap.add_free(free..chunk - chunks);
                free = chunk;
            }
        }
        heap.add_free(free..chunk);
        Ok(heap)
    }

    fn add_free(&self, chunks: Range<u32>) {
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
            ChunkWord::Run { object_bytes } if tables.bits(chunk) > 0 => {
                let class = class_named(object_bytes);
                self.load_bits(chunk, tables.bitmap(chunk));
                self.mark(chunk, 1, holds::RUN);
                if tables.bits(chunk) < capacity(class) {
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
