//! The tables of a heap, as a pool has them: reading them, and judging what they say.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::media::ChunkWord;

use crate::damage::Class;
use crate::error::Error;
use crate::heap::classes::{BITMAP_WORDS, bits_beyond, capacity_of};
use crate::heap::{HeapLayout, Part};

/// Which bitmaps are read; others count as blank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bitmaps {
    /// Each, so that bits are found where none may be.
    All,
    /// Those of runs: what an open needs, where each line is a load over a link.
    OfRuns,
}

/// Words that are read at once.
const PIECE_WORDS: usize = 8192;

/// Chunk words and bitmaps, as a pool has them. Those that are zero take no memory: that is given
/// when a word is written.
pub(crate) struct HeapTables {
    pub layout: HeapLayout,
    words: Box<[u64]>,
    /// For each chunk the number of its bitmap, from 1; 0: it is blank.
    places: Box<[u32]>,
    bitmaps: Vec<[u64; BITMAP_WORDS]>,
    /// Chunks with a damaged word in their bitmap, each with the first one. It counts as blank.
    damaged: BTreeMap<u32, usize>,
}

/// So many zeros. They take memory when one is written: the system gives pages of zeros, where a
/// loop that writes them would touch them all.
fn zeros<T: bytemuck::Zeroable>(count: usize) -> Result<Box<[T]>, Error> {
    let what = "the tables of the pool's heap";
    bytemuck::allocation::try_zeroed_slice_box(count).map_err(|()| Error::NoMemory { what })
}

impl HeapTables {
    /// Reads them by a function that loads bytes from an offset, as far as `data` says that a range
    /// of them may be other than zero.
    pub fn load(
        layout: HeapLayout,
        of: Bitmaps,
        data: impl Fn(Range<u64>) -> Vec<Range<u64>>,
        mut load: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut read = |mut offset, words: &mut [u64]| {
            for words in words.chunks_mut(PIECE_WORDS) {
                let mut bytes = zeros(words.len() * 8)?;
                load(offset, &mut bytes)?;
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                    *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                }
                offset += bytes.len() as u64;
            }
            Ok::<(), Error>(())
        };
        let chunks = layout.chunks as usize;
        let (words, places) = (zeros(chunks)?, zeros(chunks)?);
        let mut tables = HeapTables { layout, words, places, bitmaps: Vec::new(), damaged: BTreeMap::new() };
        for part in layout.parts() {
            for range in data(part.words_range()) {
                let chunks = part.chunks_in(&range, part.words, 8);
                read(part.word(chunks.start), &mut tables.words[chunks.start as usize..chunks.end as usize])?;
            }
        }
        let bitmap_bytes = layout.form.bitmap_bytes();
        let bitmap_words = (bitmap_bytes / 8) as usize;
        match of {
            Bitmaps::All => {
                let bitmaps_of_piece = PIECE_WORDS / bitmap_words;
                let mut words = zeros(bitmaps_of_piece * bitmap_words)?;
                let ranges = |part: &Part| data(part.bitmaps_range());
                for (part, range) in layout.parts().flat_map(|part| {
                    let ranges = ranges(&part);
                    ranges.into_iter().map(move |range| (part.clone(), range))
                }) {
                    let chunks = part.chunks_in(&range, part.bitmaps, bitmap_bytes);
                    for start in chunks.clone().step_by(bitmaps_of_piece) {
                        let count = bitmaps_of_piece.min((chunks.end - start) as usize);
                        let words = &mut words[..count * bitmap_words];
                        read(part.bitmap(start), words)?;
                        (start..)
                            .zip(words.chunks_exact(bitmap_words))
                            .try_for_each(|(chunk, bitmap)| tables.keep(chunk, bitmap))?;
                    }
                }
            }
            Bitmaps::OfRuns => {
                let mut bitmap = zeros(bitmap_words)?;
                for chunk in 0..layout.chunks as u32 {
                    if matches!(layout.form.decode_chunk(tables.word(chunk)), Some(ChunkWord::Run { .. })) {
                        read(layout.bitmap_word(chunk, 0), &mut bitmap)?;
                        tables.keep(chunk, &bitmap)?;
                    }
                }
            }
        }
        Ok(tables)
    }

    /// Keeps the bitmap that lies in the pool as these words.
    fn keep(&mut self, chunk: u32, words: &[u64]) -> Result<(), Error> {
        if words.iter().all(|&word| word == 0) {
            return Ok(());
        }
        let (bitmap, damaged) = self.layout.form.decode_bitmap(words);
        self.damaged.extend(damaged.map(|word| (chunk, word)));
        self.bitmaps.try_reserve(1).map_err(Error::no_memory("the tables of the pool's heap"))?;
        self.bitmaps.push(bitmap);
        self.places[chunk as usize] = self.bitmaps.len() as u32;
        Ok(())
    }

    /// Offset of the first damaged word of a chunk's bitmap.
    pub fn damaged(&self, chunk: u32) -> Option<u64> {
        self.damaged.get(&chunk).map(|&word| self.layout.bitmap_word(chunk, word))
    }

    /// The word of a chunk.
    pub fn word(&self, chunk: u32) -> u64 {
        self.words[chunk as usize]
    }

    /// How many chunks from one on have neither word nor bits: in a large pool that is most.
    pub fn blank_from(&self, chunk: u32) -> u32 {
        let from = chunk as usize;
        let tables = self.words[from..].iter().zip(&self.places[from..]);
        tables.take_while(|&(&word, &place)| word == 0 && place == 0).count() as u32
    }

    /// The bitmap of a chunk.
    pub fn bitmap(&self, chunk: u32) -> &[u64; BITMAP_WORDS] {
        const BLANK: &[u64; BITMAP_WORDS] = &[0; BITMAP_WORDS];
        match self.places[chunk as usize] {
            0 => BLANK,
            place => &self.bitmaps[place as usize - 1],
        }
    }

    /// Bits that are set in it.
    pub fn bits(&self, chunk: u32) -> u32 {
        if self.places[chunk as usize] == 0 {
            return 0;
        }
        self.bitmap(chunk).iter().map(|word| word.count_ones()).sum()
    }

    /// The first word of the bitmap of a chunk that is no run, and has bits all the same.
    pub fn stray(&self, chunk: u32) -> Option<usize> {
        if self.places[chunk as usize] == 0 {
            return None;
        }
        self.bitmap(chunk).iter().position(|&word| word != 0)
    }

    /// The first chunk in use that an object of whole chunks goes over.
    pub fn in_use_inside(&self, chunk: u32, chunks: u32) -> Option<u32> {
        // Words of runs without objects may be left there, and all others are free.
        let in_use = |&inner: &u32| {
            let state = self.layout.state(inner, self.word(inner));
            matches!(state, Ok(ChunkWord::Large { .. } | ChunkWord::Log { .. } | ChunkWord::Tables { .. }))
                || self.bits(inner) > 0
        };
        (chunk + 1..chunk + chunks).find(in_use)
    }

    /// What is wrong with the words of a chunk by themselves: class and offset.
    pub fn damaged_words(&self, chunk: u32) -> Option<(Class, u64)> {
        let word = self.layout.state(chunk, self.word(chunk)).err().map(|class| (class, self.layout.word(chunk)));
        word.or_else(|| Some((Class::BitmapWord, self.damaged(chunk)?)))
    }

    /// Refuses chunks inside of an object or a run that are in use by themselves.
    fn free_inside(&self, chunk: u32, chunks: u32) -> Result<(), Error> {
        if self.in_use_inside(chunk, chunks).is_some() {
            return Err(Class::ChunkOverlap.at(self.layout.word(chunk)));
        }
        // Nobody looks at them before what they belong to is freed, and then they must be sound.
        (chunk + 1..chunk + chunks).try_for_each(|inner| self.whole(inner))
    }

    /// Refuses a chunk whose words are damaged by themselves.
    fn whole(&self, chunk: u32) -> Result<(), Error> {
        self.damaged_words(chunk).map_or(Ok(()), |(class, at)| Err(class.at(at)))
    }

    /// What begins at a chunk, and its number of chunks. Of a pool that was recovered, so that
    /// there are no segments of a log.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for whatever an allocator must not build upon.
    pub fn sound(&self, chunk: u32) -> Result<(ChunkWord, u32), Error> {
        let here = self.layout.word(chunk);
        self.whole(chunk)?;
        let word = self.layout.state(chunk, self.word(chunk)).map_err(|class| class.at(here))?;
        let (chunks, bad) = match word {
            // Its other chunks are free like itself.
            ChunkWord::Run { .. } if self.bits(chunk) == 0 => (1, None),
            ChunkWord::Run { object_bytes, chunks } => {
                self.free_inside(chunk, chunks)?;
                let beyond = bits_beyond(capacity_of(object_bytes, chunks), self.bitmap(chunk));
                (chunks, beyond.map(|at| (Class::BitmapBeyond, at)))
            }
            ChunkWord::Free => (1, self.stray(chunk).map(|at| (Class::BitmapStray, at))),
            ChunkWord::Large { chunks } => {
                self.free_inside(chunk, chunks)?;
                (chunks, self.stray(chunk).map(|at| (Class::BitmapStray, at)))
            }
            ChunkWord::Tables { chunks } => (chunks, self.stray(chunk).map(|at| (Class::BitmapStray, at))),
            ChunkWord::Log { .. } => return Err(Class::SegmentLeft.at(here)),
        };
        match bad {
            Some((class, at)) => Err(class.at(self.layout.word_of_bits(chunk, at))),
            None => Ok((word, chunks)),
        }
    }
}
