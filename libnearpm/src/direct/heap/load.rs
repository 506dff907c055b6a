//! Building the index from a pool.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use nearpm_interface::media::{BITMAP_BYTES, ChunkWord, PoolHead};

use super::chunk::{Chunk, place};
use super::{Heap, lock};
use crate::check::Class;
use crate::error::Error;
use crate::heap::{BITMAP_WORDS, HeapLayout, bits_beyond, capacity, class_named};
use crate::memory::Backing;

impl Heap {
    /// Builds the index from a recovered pool, checking what it reads.
    pub fn load(backing: &Backing, head: &PoolHead, kept: u64) -> Result<Heap, Error> {
        let layout = HeapLayout::of(head);
        let mut heap = Heap {
            layout,
            chunks: (0..layout.chunks).map(|_| Chunk::default()).collect(),
            partial: Default::default(),
            spans: Mutex::default(),
            kept,
            cuts: AtomicU32::new(1),
            settled: AtomicU32::new(1),
        };
        let mut words = vec![0; layout.chunks as usize * 8];
        backing.load(layout.words, &mut words);
        let mut chunk = 0;
        while u64::from(chunk) < layout.chunks {
            let word = u64::from_le_bytes(words[chunk as usize * 8..][..8].try_into().expect("eight bytes"));
            chunk += heap.load_chunk(backing, chunk, word)?;
        }
        Ok(heap)
    }

    /// Reads what begins at a chunk; gives its number of chunks.
    fn load_chunk(&mut self, backing: &Backing, chunk: u32, word: u64) -> Result<u32, Error> {
        let refuse = |class: Class| class.at(self.layout.word(chunk));
        let decoded = self.layout.state(chunk, word).map_err(refuse)?;
        let entry = &self.chunks[chunk as usize];
        entry.word.store(word, Ordering::Relaxed);
        match decoded {
            ChunkWord::Free => lock(&self.spans).add(chunk, 1),
            ChunkWord::Run { object_bytes } => {
                let class = class_named(object_bytes);
                let used = self.load_bits(backing, chunk, class)?;
                match used {
                    0 => lock(&self.spans).add(chunk, 1),
                    _ if used < capacity(class) => {
                        entry.place.store(place::LISTED, Ordering::Relaxed);
                        lock(&self.partial[class]).push(chunk);
                    }
                    _ => entry.place.store(place::FULL, Ordering::Relaxed),
                }
            }
            ChunkWord::Large { chunks } => {
                entry.allocated.store(true, Ordering::Relaxed);
                return Ok(chunks);
            }
            ChunkWord::Log { .. } => return Err(refuse(Class::SegmentLeft)),
        }
        Ok(1)
    }

    fn load_bits(&self, backing: &Backing, chunk: u32, class: usize) -> Result<u32, Error> {
        let mut bytes = [0; BITMAP_BYTES as usize];
        backing.load(self.layout.bitmap_word(chunk, 0), &mut bytes);
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..][..8].try_into().expect("eight bytes"));
        let words: [u64; BITMAP_WORDS] = std::array::from_fn(word);
        if let Some(at) = bits_beyond(class, &words) {
            return Err(Class::BitmapBeyond.at(self.layout.bitmap_word(chunk, at)));
        }
        let mut used = 0;
        for (at, word) in words.into_iter().enumerate() {
            if word != 0 {
                let bits = self.chunks[chunk as usize].bits();
                bits.taken[at].store(word, Ordering::Relaxed);
                bits.allocated[at].store(word, Ordering::Relaxed);
                used += word.count_ones();
            }
        }
        self.chunks[chunk as usize].used.store(used, Ordering::Relaxed);
        Ok(used)
    }
}
