//! The tables of a pool: where pages are, what chunks are, which objects there are.

use nearpm_interface::media::{BITMAP_BYTES, CHUNK_BYTES, ChunkWord, HEAP_ROOT, PAGE_BYTES, PoolHead};
use nearpm_interface::seal;

use super::{Class, Found, Object, one_bit};
use crate::direct::recover;
use crate::error::Error;
use crate::heap::{BITMAP_WORDS, HeapLayout, bits_beyond, class_named};
use crate::memory::Medium;
use crate::pool::pages::Pages;
use crate::statistics::HeapState;

/// The tables, as a recovered pool has them.
pub(crate) struct Tables {
    pub layout: HeapLayout,
    pages: Pages,
    words: Vec<u64>,
    bitmaps: Vec<u64>,
    /// Offset of the root object.
    pub root: u64,
}

/// Bytes of the heap, wherever its pages are.
pub(crate) fn load(medium: &Medium, pages: &Pages, offset: u64, data: &mut [u8]) {
    for (place, part) in pages.pieces(offset, data.len() as u64) {
        medium.load(place, &mut data[part]);
    }
}

fn load_words(medium: &Medium, pages: &Pages, offset: u64, count: u64) -> Vec<u64> {
    let mut bytes = vec![0; count as usize * 8];
    load(medium, pages, offset, &mut bytes);
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
}

impl Tables {
    /// Reads them.
    ///
    /// # Errors
    /// A damaged page table: nothing behind it can be found.
    pub fn load(medium: &Medium, head: &PoolHead) -> Result<Tables, Error> {
        let pages = Pages::load(medium, *head)?;
        let layout = HeapLayout::of(head);
        let words = load_words(medium, &pages, layout.words, layout.chunks);
        let bitmaps = load_words(medium, &pages, layout.bitmap_word(0, 0), layout.chunks * BITMAP_WORDS as u64);
        let root = load_words(medium, &pages, head.heap() + HEAP_ROOT, 1)[0];
        Ok(Tables { layout, pages, words, bitmaps, root })
    }

    /// Reads bytes of the heap.
    pub fn read(&self, medium: &Medium, offset: u64, data: &mut [u8]) {
        load(medium, &self.pages, offset, data);
    }

    fn bitmap(&self, chunk: u32) -> &[u64; BITMAP_WORDS] {
        let start = chunk as usize * BITMAP_WORDS;
        self.bitmaps[start..start + BITMAP_WORDS].try_into().expect("a bitmap has so many words")
    }

    fn bits(&self, chunk: u32) -> u32 {
        self.bitmap(chunk).iter().map(|word| word.count_ones()).sum()
    }

    /// Something wrong with what is at an offset of the heap.
    fn found(&self, class: Class, offset: u64) -> Found {
        Found::new(class, self.pages.locate(offset, 1).0)
    }

    /// Everything that is wrong.
    pub fn examine(&self, medium: &Medium, head: &PoolHead) -> Vec<Found> {
        let mut found = Vec::new();
        let mut chunk = 0;
        while u64::from(chunk) < self.layout.chunks {
            chunk += self.examine_chunk(medium, head, chunk, &mut found);
        }
        let heap = self.layout.range();
        // The mechanisms let a program name any byte of an object.
        let holds_root = |object: &Object| (object.offset..object.offset + object.bytes).contains(&self.root);
        let sound = self.root == 0 || heap.contains(&self.root) && self.objects().any(|object| holds_root(&object));
        // Without its chunk the object is not seen.
        if !sound && found.is_empty() {
            found.push(self.found(Class::Root, head.heap() + HEAP_ROOT));
        }
        found
    }

    fn examine_chunk(&self, medium: &Medium, head: &PoolHead, chunk: u32, found: &mut Vec<Found>) -> u32 {
        let bitmap_at = |word| self.layout.bitmap_word(chunk, word);
        match self.layout.state(chunk, self.words[chunk as usize]) {
            Err(class) => {
                let one = self.found(class, self.layout.word(chunk));
                found.push(one.mend_word(self.mended_word(medium, head, chunk)));
            }
            Ok(ChunkWord::Run { object_bytes }) => {
                if let Some(word) = bits_beyond(class_named(object_bytes), self.bitmap(chunk)) {
                    let one = self.found(Class::BitmapBeyond, bitmap_at(word));
                    found.push(one.mend_word(self.without_bits_beyond(chunk, object_bytes, word)));
                }
            }
            Ok(ChunkWord::Free) => self.examine_stray(chunk, found),
            Ok(ChunkWord::Large { chunks }) => {
                self.examine_stray(chunk, found);
                if let Some(inner) = self.in_use_inside(chunk, chunks) {
                    found.push(self.found(Class::ChunkOverlap, self.layout.word(chunk)));
                    // What lies there is judged for itself.
                    return inner - chunk;
                }
                return chunks;
            }
            Ok(ChunkWord::Log { chunks }) => {
                let one = self.found(Class::SegmentLeft, self.layout.word(chunk));
                let empty = recover::segment(medium, head, self.layout.chunk(chunk))
                    .and_then(|segment| recover::scan(medium, &segment, 0))
                    .is_ok_and(|records| records.is_empty());
                found.push(one.mend_word(empty.then_some(0)));
                return chunks;
            }
        }
        1
    }

    /// Bits of a chunk that is no run. One bit alone is a damaged bit: to lose the word of a run takes three.
    fn examine_stray(&self, chunk: u32, found: &mut Vec<Found>) {
        if let Some(word) = self.bitmap(chunk).iter().position(|&word| word != 0) {
            let one = self.found(Class::BitmapStray, self.layout.bitmap_word(chunk, word));
            found.push(one.mend_word((self.bits(chunk) == 1).then_some(0)));
        }
    }

    /// The first chunk in use that an object of whole chunks goes over.
    fn in_use_inside(&self, chunk: u32, chunks: u32) -> Option<u32> {
        // Words of runs without objects may be left there, and all others are free.
        let in_use = |&inner: &u32| {
            let state = self.layout.state(inner, self.words[inner as usize]);
            matches!(state, Ok(ChunkWord::Large { .. } | ChunkWord::Log { .. })) || self.bits(inner) > 0
        };
        (chunk + 1..chunk + chunks).find(in_use)
    }

    /// A chunk's word with one bit changed, if only one such word goes with everything else.
    fn mended_word(&self, medium: &Medium, head: &PoolHead, chunk: u32) -> Option<u64> {
        one_bit::word(self.words[chunk as usize], |word| match self.layout.state(chunk, word) {
            Ok(ChunkWord::Run { object_bytes }) => bits_beyond(class_named(object_bytes), self.bitmap(chunk)).is_none(),
            Ok(ChunkWord::Free) => self.bits(chunk) == 0,
            Ok(ChunkWord::Large { chunks }) => self.bits(chunk) == 0 && self.in_use_inside(chunk, chunks).is_none(),
            Ok(ChunkWord::Log { .. }) => recover::segment(medium, head, self.layout.chunk(chunk)).is_ok(),
            Err(_) => false,
        })
    }

    /// A word of a bitmap without its bits behind the last object. `None` where the chunk may have been one of smaller objects,
    /// by one bit of its word.
    fn without_bits_beyond(&self, chunk: u32, object_bytes: u32, word: usize) -> Option<u64> {
        let smaller = |bit: u32| {
            let candidate = ChunkWord::Run { object_bytes: object_bytes ^ 1 << bit }.encode();
            match self.layout.state(chunk, candidate) {
                Ok(ChunkWord::Run { object_bytes }) => {
                    bits_beyond(class_named(object_bytes), self.bitmap(chunk)).is_none()
                }
                _ => false,
            }
        };
        let units = (CHUNK_BYTES as u32 / object_bytes).saturating_sub(word as u32 * 64);
        let kept = if units >= 64 { u64::MAX } else { (1 << units) - 1 };
        (!(0..32).any(smaller)).then(|| self.bitmap(chunk)[word] & kept)
    }

    /// What each chunk is, with its objects, as far as that is known.
    fn states(&self) -> impl Iterator<Item = (u32, ChunkWord)> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let chunk = next;
            let word = *self.words.get(chunk as usize)?;
            let state = self.layout.state(chunk, word).unwrap_or(ChunkWord::Free);
            next += match state {
                ChunkWord::Large { chunks } | ChunkWord::Log { chunks } => chunks,
                ChunkWord::Free | ChunkWord::Run { .. } => 1,
            };
            Some((chunk, state))
        })
    }

    /// The objects, rising.
    pub fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.states().flat_map(move |(chunk, state)| {
            let start = self.layout.chunk(chunk);
            let (bytes, units) = match state {
                ChunkWord::Run { object_bytes } => (u64::from(object_bytes), CHUNK_BYTES as u32 / object_bytes),
                ChunkWord::Large { chunks } => (u64::from(chunks) * CHUNK_BYTES, 1),
                ChunkWord::Free | ChunkWord::Log { .. } => (0, 0),
            };
            let is_large = matches!(state, ChunkWord::Large { .. });
            let has = move |unit: &u32| is_large || self.bitmap(chunk)[*unit as usize / 64] >> (unit % 64) & 1 == 1;
            (0..units).filter(has).map(move |unit| Object { offset: start + u64::from(unit) * bytes, bytes })
        })
    }

    /// The chunks that hold objects: each with its word and its bitmap.
    pub fn used_chunks(&self) -> impl Iterator<Item = (u32, ChunkWord, &[u64; BITMAP_WORDS])> + '_ {
        let used = |&(chunk, state): &(u32, ChunkWord)| match state {
            ChunkWord::Run { .. } => self.bits(chunk) > 0,
            ChunkWord::Large { .. } => true,
            ChunkWord::Free | ChunkWord::Log { .. } => false,
        };
        self.states().filter(used).map(|(chunk, state)| (chunk, state, self.bitmap(chunk)))
    }

    /// What the allocator would say.
    pub fn heap_state(&self) -> HeapState {
        HeapState::of(self.states().map(|(chunk, state)| (state, self.bits(chunk))))
    }
}

/// The chunk's word that `found` names, put right if that is possible.
pub(super) fn mend_chunk_word(medium: &Medium, head: &PoolHead, found: Found) -> Found {
    let Ok(tables) = Tables::load(medium, head) else { return found };
    let chunk = (found.finding.offset - tables.layout.words) / 8;
    let mended = tables.mended_word(medium, head, chunk as u32);
    found.mend_word(mended)
}

/// What is wrong with the page table.
pub(super) fn examine_pages(medium: &Medium, head: &PoolHead) -> Result<Vec<Found>, Error> {
    let (table, faults) = Pages::read(medium, head)?;
    let is_bad = |logical: u64| faults.iter().any(|&(other, class)| other == logical && class == Class::TableWord);
    let mut used = vec![false; (head.pages + head.spare) as usize];
    for (logical, &page) in table.iter().enumerate().filter(|&(logical, _)| !is_bad(logical as u64)) {
        used[page as usize] |= (logical as u64) < head.pages;
    }
    let mended = |logical: u64| {
        let word = medium.load_word(head.table() + 8 * logical);
        if head.spare == 0 {
            // Nothing was ever moved.
            return Some(0);
        }
        one_bit::word(word, |candidate| {
            let page = if candidate == 0 { Some(logical) } else { seal::open_word(candidate) };
            page.is_some_and(|page| used.get(page as usize) == Some(&false))
        })
    };
    Ok(faults
        .iter()
        .map(|&(logical, class)| {
            let one = Found::new(class, head.table() + 8 * logical);
            one.mend_word(if class == Class::TableWord { mended(logical) } else { None })
        })
        .collect())
}

const _: () = assert!(BITMAP_BYTES as usize == BITMAP_WORDS * 8 && PAGE_BYTES.is_multiple_of(8));
