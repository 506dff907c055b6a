//! Building the index from a pool.

use nearpm_interface::media::{ChunkWord, PoolHead};

use super::super::sync::{AtomicU32, Mutex, Ordering};
use super::chunk::{Chunk, holds, place};
use super::{Heap, lock};
use crate::error::Error;
use crate::heap::{BITMAP_WORDS, Bitmaps, HeapLayout, HeapTables, capacity, class_named};
use crate::memory::Backing;

/// So many chunks.
fn blank_chunks(count: u64) -> Result<Box<[Chunk]>, Error> {
    let mut chunks = Vec::new();
    chunks.try_reserve_exact(count as usize).map_err(Error::no_memory("the index of the pool's heap"))?;
    chunks.resize_with(count as usize, Chunk::default);
    Ok(chunks.into_boxed_slice())
}

impl Heap {
    /// Builds the index from a recovered pool, checking what it reads.
    pub fn load(backing: &Backing, head: &PoolHead, kept: u64) -> Result<Heap, Error> {
        let layout = HeapLayout::of(head);
        let mut heap = Heap {
            layout,
            chunks: blank_chunks(layout.chunks)?,
            partial: Default::default(),
            free: Mutex::default(),
            kept,
            cuts: AtomicU32::new(1),
            settled: AtomicU32::new(1),
        };
        let tables = HeapTables::load(layout, Bitmaps::All, |offset, bytes| {
            backing.load(offset, bytes);
            Ok(())
        })?;
        let mut chunk = 0;
        while u64::from(chunk) < layout.chunks {
            chunk += heap.load_chunk(&tables, chunk)?;
        }
        Ok(heap)
    }

    /// Reads what begins at a chunk; gives its number of chunks.
    fn load_chunk(&mut self, tables: &HeapTables, chunk: u32) -> Result<u32, Error> {
        let (decoded, chunks) = tables.sound(chunk)?;
        let entry = &self.chunks[chunk as usize];
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
            _ => lock(&self.free).spans.add(chunk, 1),
        }
        Ok(chunks)
    }

    fn load_bits(&self, chunk: u32, bitmap: &[u64; BITMAP_WORDS]) {
        let entry = &self.chunks[chunk as usize];
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
