//! The tables of a pool: where pages are, what chunks are, which objects there are.

use std::ops::Range;

use nearpm_interface::media::{BITMAP_BYTES, CHUNK_BYTES, ChunkWord, PAGE_BYTES, PoolHead};
use nearpm_interface::seal;

use super::{Class, Found, Object, one_bit};
use crate::error::Error;
use crate::heap::classes::{BITMAP_WORDS, bits_beyond, capacity_of};
use crate::heap::tables::{Bitmaps, HeapTables};
use crate::heap::{Form, HeapLayout};
use crate::memory::Medium;
use crate::pages::Pages;
use crate::recovery::segments;
use crate::statistics::HeapState;

/// The tables, as a recovered pool has them.
pub(crate) struct Tables {
    heap: HeapTables,
    pages: Pages,
    /// Offset of the root object; 0 also where its word is damaged.
    pub root: u64,
    root_word: u64,
}

/// Bytes of the heap, wherever its pages are.
pub(crate) fn load(medium: &Medium, pages: &Pages, offset: u64, data: &mut [u8]) {
    for (place, part) in pages.pieces(offset, data.len() as u64) {
        medium.load(place, &mut data[part]);
    }
}

impl Tables {
    /// Reads them.
    ///
    /// # Errors
    /// A damaged page table: nothing behind it can be found.
    pub fn load(medium: &Medium, head: &PoolHead) -> Result<Tables, Error> {
        let pages = Pages::load(medium, *head)?;
        let layout = HeapLayout::of(head);
        let data = |range| if pages.is_identity() { medium.backing().data(range) } else { vec![range] };
        let heap = HeapTables::load(layout, Bitmaps::All, data, |offset, bytes| {
            load(medium, &pages, offset, bytes);
            Ok(())
        })?;
        let mut root = [0; 8];
        load(medium, &pages, layout.root(), &mut root);
        let root_word = u64::from_le_bytes(root);
        Ok(Tables { heap, pages, root: layout.form.decode(root_word).unwrap_or(0), root_word })
    }

    /// Runs that have no objects: first chunk, and number.
    pub fn empty_runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let layout = &self.heap.layout;
        (0..layout.chunks as u32).filter(|&chunk| self.heap.bits(chunk) == 0).filter_map(|chunk| {
            match layout.state(chunk, self.heap.word(chunk)) {
                Ok(ChunkWord::Run { chunks, .. }) => Some((chunk, chunks)),
                _ => None,
            }
        })
    }

    /// Where the heap's parts are.
    pub fn layout(&self) -> &HeapLayout {
        &self.heap.layout
    }

    /// Reads bytes of the heap.
    pub fn read(&self, medium: &Medium, offset: u64, data: &mut [u8]) {
        load(medium, &self.pages, offset, data);
    }

    /// Something wrong with what is at an offset of the heap.
    fn found(&self, class: Class, offset: u64) -> Found {
        Found::new(class, self.pages.locate(offset, 1).0)
    }

    /// Everything that is wrong.
    pub fn examine(&self, medium: &Medium, head: &PoolHead) -> Vec<Found> {
        let mut found = Vec::new();
        let mut chunk = 0;
        while u64::from(chunk) < self.heap.layout.chunks {
            chunk += self.examine_chunk(medium, head, chunk, &mut found);
        }
        let (heap, form) = (self.heap.layout.range(), self.heap.layout.form);
        if form.decode(self.root_word).is_none() {
            let one = self.found(Class::RootWord, self.heap.layout.root());
            found.push(one.mend_word(one_bit::word(self.root_word, |word| form.decode(word).is_some())));
        }
        // The mechanisms let a program name any byte of an object.
        let holds_root = |object: &Object| (object.offset..object.offset + object.bytes).contains(&self.root);
        let sound = self.root == 0 || heap.contains(&self.root) && self.objects().any(|object| holds_root(&object));
        // Without its chunk the object is not seen.
        if !sound && found.is_empty() {
            found.push(self.found(Class::Root, self.heap.layout.root()));
        }
        found
    }

    fn examine_chunk(&self, medium: &Medium, head: &PoolHead, chunk: u32, found: &mut Vec<Found>) -> u32 {
        self.examine_words(medium, head, chunk, found);
        let bitmap_at = |word| self.heap.layout.word_of_bits(chunk, word);
        match self.heap.layout.state(chunk, self.heap.word(chunk)) {
            // Found above.
            Err(_) => {}
            Ok(ChunkWord::Run { object_bytes, chunks }) => {
                if let Some(word) = bits_beyond(capacity_of(object_bytes, chunks), self.heap.bitmap(chunk)) {
                    let one = self.found(Class::BitmapBeyond, bitmap_at(word));
                    found.push(one.mend_word(self.without_bits_beyond(chunk, object_bytes, word)));
                }
                if self.heap.bits(chunk) > 0 {
                    return self.examine_inner(medium, head, chunk..chunk + chunks, found);
                }
            }
            Ok(ChunkWord::Free) => self.examine_stray(chunk, found),
            Ok(ChunkWord::Large { chunks }) => {
                self.examine_stray(chunk, found);
                return self.examine_inner(medium, head, chunk..chunk + chunks, found);
            }
            Ok(ChunkWord::Tables { chunks }) => {
                self.examine_stray(chunk, found);
                (chunk + 1..chunk + chunks).for_each(|inner| self.examine_words(medium, head, inner, found));
                return chunks;
            }
            Ok(ChunkWord::Log { chunks }) => {
                let one = self.found(Class::SegmentLeft, self.heap.layout.word(chunk));
                let empty = segments::segment(medium, head, self.heap.layout.chunk(chunk))
                    .and_then(|segment| segments::scan(medium, &segment, 0))
                    .is_ok_and(|records| records.is_empty());
                found.push(one.mend_word(empty.then_some(0)));
                return chunks;
            }
        }
        1
    }

    /// What lies inside of an object or a run that has several chunks. Gives how many of them are
    /// judged by that.
    fn examine_inner(&self, medium: &Medium, head: &PoolHead, all: Range<u32>, found: &mut Vec<Found>) -> u32 {
        let chunks = all.end - all.start;
        if let Some(inner) = self.heap.in_use_inside(all.start, chunks) {
            found.push(self.found(Class::ChunkOverlap, self.heap.layout.word(all.start)));
            // What lies there is judged for itself.
            return inner - all.start;
        }
        (all.start + 1..all.end).for_each(|inner| self.examine_words(medium, head, inner, found));
        chunks
    }

    /// The words of a chunk, each by itself.
    fn examine_words(&self, medium: &Medium, head: &PoolHead, chunk: u32, found: &mut Vec<Found>) {
        let Some((class, at)) = self.heap.damaged_words(chunk) else { return };
        let one = self.found(class, at);
        let mended = match class {
            Class::BitmapWord => mended_sealed(medium, one.finding.offset),
            _ => self.mended_word(medium, head, chunk),
        };
        found.push(one.mend_word(mended));
    }

    /// Bits of a chunk that is no run. One bit alone is a damaged bit: to lose the word of a run
    /// takes three. In a sealed word somebody wrote it.
    fn examine_stray(&self, chunk: u32, found: &mut Vec<Found>) {
        if let Some(word) = self.heap.stray(chunk) {
            let one = self.found(Class::BitmapStray, self.heap.layout.word_of_bits(chunk, word));
            let single = self.heap.layout.form == Form::Plain && self.heap.bits(chunk) == 1;
            found.push(one.mend_word(single.then_some(0)));
        }
    }

    /// A chunk's word with one bit changed, if only one such word goes with everything else.
    fn mended_word(&self, medium: &Medium, head: &PoolHead, chunk: u32) -> Option<u64> {
        if self.heap.layout.form == Form::Sealed {
            return one_bit::word(self.heap.word(chunk), |word| self.heap.layout.state(chunk, word).is_ok());
        }
        one_bit::word(self.heap.word(chunk), |word| match self.heap.layout.state(chunk, word) {
            Ok(ChunkWord::Run { object_bytes, chunks }) => {
                bits_beyond(capacity_of(object_bytes, chunks), self.heap.bitmap(chunk)).is_none()
            }
            Ok(ChunkWord::Free) => self.heap.bits(chunk) == 0,
            Ok(ChunkWord::Large { chunks }) => {
                self.heap.bits(chunk) == 0 && self.heap.in_use_inside(chunk, chunks).is_none()
            }
            Ok(ChunkWord::Tables { .. }) => true,
            Ok(ChunkWord::Log { .. }) => segments::segment(medium, head, self.heap.layout.chunk(chunk)).is_ok(),
            Err(_) => false,
        })
    }

    /// A word of a bitmap without its bits behind the last object. `None` where the chunk may have
    /// been one of smaller objects, by one bit of its word.
    fn without_bits_beyond(&self, chunk: u32, object_bytes: u32, word: usize) -> Option<u64> {
        let smaller = |bit: u32| {
            let candidate = ChunkWord::Run { object_bytes: object_bytes ^ 1 << bit, chunks: 1 }.encode();
            match self.heap.layout.state(chunk, candidate) {
                Ok(ChunkWord::Run { object_bytes, chunks }) => {
                    bits_beyond(capacity_of(object_bytes, chunks), self.heap.bitmap(chunk)).is_none()
                }
                _ => false,
            }
        };
        let units = (CHUNK_BYTES as u32 / object_bytes).saturating_sub(word as u32 * 64);
        let kept = if units >= 64 { u64::MAX } else { (1 << units) - 1 };
        let known = self.heap.layout.form == Form::Plain && !(0..32).any(smaller);
        known.then(|| self.heap.bitmap(chunk)[word] & kept)
    }

    /// What each chunk is, with its objects, as far as that is known.
    fn states(&self) -> impl Iterator<Item = (u32, ChunkWord)> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let chunk = next;
            if u64::from(chunk) >= self.heap.layout.chunks {
                return None;
            }
            let word = self.heap.word(chunk);
            let state = self.heap.layout.state(chunk, word).unwrap_or(ChunkWord::Free);
            next += match state {
                ChunkWord::Large { chunks } | ChunkWord::Log { chunks } | ChunkWord::Tables { chunks } => chunks,
                ChunkWord::Run { chunks, .. } if self.heap.bits(chunk) > 0 => chunks,
                ChunkWord::Free | ChunkWord::Run { .. } => 1,
            };
            Some((chunk, state))
        })
    }

    /// The objects, rising.
    pub fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.states().flat_map(move |(chunk, state)| {
            let start = self.heap.layout.chunk(chunk);
            let (bytes, units) = match state {
                ChunkWord::Run { object_bytes, chunks } => (object_bytes.into(), capacity_of(object_bytes, chunks)),
                ChunkWord::Large { chunks } => (u64::from(chunks) * CHUNK_BYTES, 1),
                ChunkWord::Free | ChunkWord::Log { .. } | ChunkWord::Tables { .. } => (0, 0),
            };
            let is_large = matches!(state, ChunkWord::Large { .. });
            let has =
                move |unit: &u32| is_large || self.heap.bitmap(chunk)[*unit as usize / 64] >> (unit % 64) & 1 == 1;
            (0..units).filter(has).map(move |unit| Object { offset: start + u64::from(unit) * bytes, bytes })
        })
    }

    /// The chunks that hold objects: each with its word and its bitmap.
    pub fn used_chunks(&self) -> impl Iterator<Item = (u32, ChunkWord, &[u64; BITMAP_WORDS])> + '_ {
        let used = |&(chunk, state): &(u32, ChunkWord)| match state {
            ChunkWord::Run { .. } => self.heap.bits(chunk) > 0,
            ChunkWord::Large { .. } => true,
            ChunkWord::Free | ChunkWord::Log { .. } | ChunkWord::Tables { .. } => false,
        };
        self.states().filter(used).map(|(chunk, state)| (chunk, state, self.heap.bitmap(chunk)))
    }

    /// What the allocator would say.
    pub fn heap_state(&self) -> HeapState {
        let used = |chunk: u32, state: ChunkWord| match state {
            // Bits behind the last object are damage, and no objects.
            ChunkWord::Run { object_bytes, chunks } => self.heap.bits(chunk).min(capacity_of(object_bytes, chunks)),
            _ => 0,
        };
        HeapState::of(self.states().map(|(chunk, state)| (state, used(chunk, state))))
    }
}

/// The sealed word at an offset with one bit changed so that it holds.
pub(super) fn mended_sealed(medium: &Medium, offset: u64) -> Option<u64> {
    one_bit::word(medium.load_word(offset), |word| seal::open_bits(word).is_some())
}

/// The chunk's word that `found` names, put right if that is possible.
pub(super) fn mend_chunk_word(medium: &Medium, head: &PoolHead, found: Found) -> Found {
    let Ok(tables) = Tables::load(medium, head) else { return found };
    let Some(chunk) = tables.heap.layout.chunk_of_word(found.finding.offset) else { return found };
    let mended = tables.mended_word(medium, head, chunk);
    found.mend_word(mended)
}

/// What is wrong with the page table.
pub(super) fn examine_pages(medium: &Medium, head: &PoolHead) -> Result<Vec<Found>, Error> {
    if Pages::are_at_home(medium, head) {
        return Ok(Vec::new());
    }
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
