//! How the heap of a pool is divided: tables, chunks, zones.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{
    BITMAP_BYTES, CHUNK_BYTES, ChunkWord, HEAP_CHUNK_WORDS, HEAP_ROOT, PAGE_BYTES, PoolHead, SEALED_BITMAP_BYTES,
    SEALED_BITS, SEALED_VERSION, SPAN_VERSION, first_zone, zone_bitmaps, zone_tables,
};
use nearpm_interface::seal;

use crate::damage::Class;
use crate::heap::classes::{BITMAP_WORDS, Classes};

/// How the words of the heap's tables are written: root, chunk words, bitmaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are: a wrong bit may look like another object.
    Plain,
    /// With checks, so that a wrong bit is found and known.
    Sealed,
}

impl Form {
    /// That of a pool.
    pub fn of(head: &PoolHead) -> Form {
        if matches!(head.version, SEALED_VERSION | SPAN_VERSION) { Form::Sealed } else { Form::Plain }
    }

    /// Objects that a word of a bitmap has bits for.
    fn bits(self) -> u32 {
        match self {
            Form::Plain => u64::BITS,
            Form::Sealed => SEALED_BITS as u32,
        }
    }

    /// Bytes of the bitmap of a chunk.
    pub fn bitmap_bytes(self) -> u64 {
        match self {
            Form::Plain => BITMAP_BYTES,
            Form::Sealed => SEALED_BITMAP_BYTES,
        }
    }

    /// The word for bits, or for the offset of the root.
    pub fn encode(self, bits: u64) -> u64 {
        match self {
            Form::Plain => bits,
            Form::Sealed => seal::seal_bits(bits),
        }
    }

    /// A word with bits set and cleared; `None` for a damaged word, and for bits that no word has.
    pub fn change(self, word: u64, set: u64, clear: u64) -> Option<u64> {
        let changed = |bits| (bits | set) & !clear;
        match self {
            Form::Plain => Some(changed(word)),
            Form::Sealed => seal::change_bits(word, changed),
        }
    }

    /// What [`Form::encode`] made a word of; `None` for a damaged word.
    pub fn decode(self, word: u64) -> Option<u64> {
        match self {
            Form::Plain => Some(word),
            Form::Sealed => seal::open_bits(word),
        }
    }

    /// The word of a chunk.
    pub fn encode_chunk(self, word: ChunkWord) -> u64 {
        match self {
            Form::Plain => word.encode(),
            Form::Sealed => word.seal(),
        }
    }

    /// What a word says of its chunk; `None` for one that no library writes.
    pub fn decode_chunk(self, word: u64) -> Option<ChunkWord> {
        match self {
            Form::Plain => ChunkWord::decode(word),
            Form::Sealed => ChunkWord::open(word),
        }
    }

    /// The bitmap of a chunk as it lies in the pool.
    pub fn encode_bitmap(self, bitmap: &[u64; BITMAP_WORDS]) -> Vec<u8> {
        let width = self.bits();
        let has = |unit: u32| bitmap.get(unit as usize / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1);
        let words = 0..(self.bitmap_bytes() / 8) as u32;
        let bits =
            words.map(|word| (0..width).filter(|bit| has(word * width + bit)).fold(0, |bits, bit| bits | 1 << bit));
        bits.flat_map(|bits| self.encode(bits).to_le_bytes()).collect()
    }

    /// The bits of a bitmap that lies in the pool as these words, and its first damaged word.
    pub fn decode_bitmap(self, words: &[u64]) -> ([u64; BITMAP_WORDS], Option<usize>) {
        let mut bitmap = [0; BITMAP_WORDS];
        if self == Form::Plain {
            bitmap.copy_from_slice(words);
            return (bitmap, None);
        }
        let mut damaged = None;
        for (at, &word) in words.iter().enumerate().filter(|&(_, &word)| word != 0) {
            let mut bits = self.decode(word).unwrap_or(0);
            let first = at as u32 * self.bits();
            while bits != 0 {
                let unit = (first + bits.trailing_zeros()) as usize;
                match bitmap.get_mut(unit / 64) {
                    Some(to) => *to |= 1 << (unit % 64),
                    None => damaged = damaged.or(Some(at)),
                }
                bits &= bits - 1;
            }
            if self.decode(word).is_none() {
                damaged = damaged.or(Some(at));
            }
        }
        (bitmap, damaged)
    }
}

/// Parts of the heap, as offsets in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapLayout {
    words: u64,
    bitmaps: u64,
    /// Offset of the first chunk.
    pub first: u64,
    /// Chunks of which the tables lie in front of the first one: those that there were when the
    /// pool was made.
    base: u32,
    /// Number of all chunks.
    pub chunks: u64,
    /// How the tables are written.
    pub form: Form,
    /// Which sizes objects have.
    pub classes: Classes,
}

impl HeapLayout {
    /// The layout for a pool.
    pub fn of(head: &PoolHead) -> HeapLayout {
        let form = Form::of(head);
        let bytes = head.pages * PAGE_BYTES;
        let overhead = |chunks: u64| {
            ((HEAP_CHUNK_WORDS + chunks * 8).next_multiple_of(LINE_U64) + chunks * form.bitmap_bytes())
                .next_multiple_of(PAGE_BYTES)
        };
        // No more than have room beside their own words and bitmaps.
        let mut chunks = bytes / (CHUNK_BYTES + 8 + form.bitmap_bytes());
        while chunks > 0 && overhead(chunks) + chunks * CHUNK_BYTES > bytes {
            chunks -= 1;
        }
        let words = head.heap() + HEAP_CHUNK_WORDS;
        let bitmaps = head.heap() + (HEAP_CHUNK_WORDS + chunks * 8).next_multiple_of(LINE_U64);
        let first = head.heap() + overhead(chunks);
        let base = chunks as u32;
        let grown = head.grown().saturating_sub(first) / CHUNK_BYTES;
        let chunks = if head.grown() == 0 { chunks } else { grown.max(chunks) };
        HeapLayout { words, bitmaps, first, base, chunks, form, classes: Classes::of(head) }
    }

    /// Offsets that programs may use.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + self.chunks * CHUNK_BYTES
    }

    /// Offset of a chunk.
    pub fn chunk(&self, chunk: u32) -> u64 {
        self.first + u64::from(chunk) * CHUNK_BYTES
    }

    /// The chunks that begin in a stripe of the heap, of so many bytes.
    pub fn chunks_of(&self, stripe: u64, bytes: u64) -> Range<u32> {
        let from = |offset: u64| {
            (offset + self.heap()).saturating_sub(self.first).div_ceil(CHUNK_BYTES).min(self.chunks) as u32
        };
        from(stripe * bytes)..from((stripe + 1) * bytes)
    }

    /// Where the heap starts.
    fn heap(&self) -> u64 {
        self.words - HEAP_CHUNK_WORDS
    }

    /// Offset of the root's word.
    pub fn root(&self) -> u64 {
        self.heap() + HEAP_ROOT
    }

    /// Offset of a chunk's word.
    #[inline]
    pub fn word(&self, chunk: u32) -> u64 {
        if chunk < self.base { self.words + 8 * u64::from(chunk) } else { self.zone(chunk).word(chunk) }
    }

    /// The zone of a chunk that came by growth.
    #[cold]
    fn zone(&self, chunk: u32) -> Part {
        let (base, unit) = (u64::from(self.base), u64::from(first_zone(self.base)));
        let doublings = ((u64::from(chunk) - base) / unit + 1).ilog2();
        let (start, chunks) = (base + unit * ((1 << doublings) - 1), unit << doublings);
        let end = (start + chunks).min(self.chunks.max(u64::from(chunk) + 1));
        let words = self.chunk(start as u32);
        Part {
            chunks: start as u32..end as u32,
            tables: zone_tables(chunks) as u32,
            words,
            bitmaps: words + zone_bitmaps(chunks),
            bitmap_bytes: self.form.bitmap_bytes(),
        }
    }

    /// The parts of the tables, rising: those that the pool was made with, and those of its zones.
    pub fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let layout = *self;
        let bitmap_bytes = self.form.bitmap_bytes();
        let base = Part { chunks: 0..self.base, tables: 0, words: self.words, bitmaps: self.bitmaps, bitmap_bytes };
        let behind = move |chunk: u32| (u64::from(chunk) < layout.chunks).then(|| layout.zone(chunk));
        let zones = std::iter::successors(behind(self.base), move |zone| behind(zone.chunks.end));
        std::iter::once(base).chain(zones)
    }

    /// The same with another number of chunks.
    pub fn with_chunks(self, chunks: u64) -> HeapLayout {
        HeapLayout { chunks, ..self }
    }

    /// Chunks that there were when the pool was made.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Where the words and bitmaps of chunks lie.
    pub fn tables_of(&self, chunks: Range<u32>) -> impl Iterator<Item = Range<u64>> + use<> {
        self.parts().flat_map(move |part| {
            let of = chunks.start.max(part.chunks.start)..chunks.end.min(part.chunks.end);
            let parts = (!of.is_empty()).then(|| {
                let words = part.word(of.start)..part.word(of.end - 1) + 8;
                [words, part.bitmap(of.start)..part.bitmap(of.end - 1) + part.bitmap_bytes]
            });
            parts.into_iter().flatten()
        })
    }

    /// Whether a zone begins with a chunk.
    pub fn begins_zone(&self, chunk: u32) -> bool {
        chunk >= self.base && self.zone(chunk).chunks.start == chunk
    }

    /// The chunk whose word is at an offset.
    pub fn chunk_of_word(&self, offset: u64) -> Option<u32> {
        let has = |part: &Part| (part.words..part.words + 8 * part.count()).contains(&offset);
        self.parts().find(has).map(|part| part.chunks.start + ((offset - part.words) / 8) as u32)
    }

    /// The layout with so many more bytes up to an offset, of which whole chunks count; `None`
    /// where that are too few.
    pub fn grown_to(&self, end: u64) -> Option<HeapLayout> {
        let chunks = end.checked_sub(self.first)? / CHUNK_BYTES;
        if chunks <= u64::from(self.base) || chunks > u64::from(u32::MAX) {
            return None;
        }
        // A zone needs room for more than its tables.
        let last = self.zone(chunks as u32 - 1);
        let into_zone = chunks - u64::from(last.chunks.start);
        let chunks = if into_zone <= u64::from(last.tables) { chunks - into_zone } else { chunks };
        (chunks > self.chunks).then_some(HeapLayout { chunks, ..*self })
    }

    /// Offset of the end of the least growth.
    pub fn least_growth(&self) -> u64 {
        let next = self.chunks as u32;
        let zone = self.zone(next);
        let tables = if zone.chunks.start == next { zone.tables } else { 0 };
        self.range().end + (u64::from(tables) + 1) * CHUNK_BYTES
    }

    /// The zones that there are beyond those of another layout: those that a growth makes.
    pub fn zones_since(&self, former: &HeapLayout) -> impl Iterator<Item = Part> + use<> {
        let chunks = former.chunks;
        let base = u64::from(former.base);
        self.parts().filter(move |part| u64::from(part.chunks.start) >= chunks.max(base))
    }

    /// The word of a zone's first chunk.
    pub fn tables_word(&self, zone: &Part) -> u64 {
        self.form.encode_chunk(ChunkWord::Tables { chunks: zone.tables })
    }

    /// What the word of a chunk says.
    pub fn state(&self, chunk: u32, word: u64) -> Result<ChunkWord, Class> {
        let state = self.form.decode_chunk(word).ok_or(Class::ChunkWord)?;
        let fits = |chunks: u32| u64::from(chunk) + u64::from(chunks) <= self.chunks;
        match state {
            ChunkWord::Run { object_bytes, chunks } if !self.classes.has(object_bytes, chunks) => Err(Class::ChunkSize),
            ChunkWord::Large { chunks } | ChunkWord::Run { chunks, .. } if !fits(chunks) => Err(Class::ChunkSpan),
            ChunkWord::Log { chunks } if !fits(chunks) => Err(Class::ChunkWord),
            ChunkWord::Tables { chunks } if !self.begins_zone(chunk) || chunks != self.zone(chunk).tables => {
                Err(Class::ChunkWord)
            }
            ChunkWord::Tables { .. } => Ok(state),
            _ if self.begins_zone(chunk) => Err(Class::ChunkWord),
            _ => Ok(state),
        }
    }

    /// Offset of a word of a chunk's bitmap.
    #[inline]
    pub fn bitmap_word(&self, chunk: u32, word: usize) -> u64 {
        if chunk < self.base {
            return self.bitmaps + u64::from(chunk) * self.form.bitmap_bytes() + 8 * word as u64;
        }
        self.zone(chunk).bitmap(chunk) + 8 * word as u64
    }

    /// The bit for an object of a run: offset of its word, and the bit in it.
    pub fn bit(&self, chunk: u32, unit: u32) -> (u64, u64) {
        let bits = self.form.bits();
        (self.bitmap_word(chunk, (unit / bits) as usize), 1 << (unit % bits))
    }

    /// Offset of the word for the first object that a word of a bitmap in memory has a bit for.
    pub fn word_of_bits(&self, chunk: u32, word: usize) -> u64 {
        self.bit(chunk, word as u32 * 64).0
    }
}

/// Part of the tables: the words and bitmaps of neighbouring chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub chunks: Range<u32>,
    /// Chunks of a zone that are its tables.
    pub tables: u32,
    /// Offset of the first chunk's word.
    pub words: u64,
    pub bitmaps: u64,
    bitmap_bytes: u64,
}

impl Part {
    /// Chunks.
    pub fn count(&self) -> u64 {
        u64::from(self.chunks.end - self.chunks.start)
    }

    fn at(&self, chunk: u32) -> u64 {
        u64::from(chunk - self.chunks.start)
    }

    pub fn word(&self, chunk: u32) -> u64 {
        self.words + 8 * self.at(chunk)
    }

    pub fn bitmap(&self, chunk: u32) -> u64 {
        self.bitmaps + self.bitmap_bytes * self.at(chunk)
    }

    /// Where the words lie.
    pub fn words_range(&self) -> Range<u64> {
        self.words..self.words + 8 * self.count()
    }

    /// Where the bitmaps lie.
    pub fn bitmaps_range(&self) -> Range<u64> {
        self.bitmaps..self.bitmaps + self.bitmap_bytes * self.count()
    }

    /// The chunks of which a range has words or bitmaps, of so many bytes each.
    pub fn chunks_in(&self, range: &Range<u64>, from: u64, bytes: u64) -> Range<u32> {
        let first = self.chunks.start + ((range.start - from) / bytes) as u32;
        first..self.chunks.start + (range.end - from).div_ceil(bytes) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_holds_its_own_tables() {
        for (pages, version) in
            [(8, 1), (16, 1), (16, 3), (100, 1), (1000, 3), (100_000, 1), (100_000, 3), (100_000, 4)]
        {
            let head = PoolHead { ring_bytes: 16384, lanes: 1, pages, version, ..PoolHead::default() };
            let layout = HeapLayout::of(&head);
            assert_eq!(u64::from(layout.base), layout.chunks);
            assert!(layout.bitmaps >= layout.words + layout.chunks * 8);
            assert!(layout.first >= layout.bitmaps + layout.chunks * layout.form.bitmap_bytes());
            assert!(layout.range().end <= head.heap_end());
            assert_eq!(layout.first % PAGE_BYTES, 0);
        }
    }

    #[test]
    fn zones_follow_the_last_chunk_and_hold_their_tables() {
        let made = PoolHead { ring_bytes: 16384, lanes: 1, pages: 100, version: 4, ..PoolHead::default() };
        let base = HeapLayout::of(&made);
        assert!((0..=4).all(|more| base.grown_to(base.range().end + more * CHUNK_BYTES).is_none()));
        assert_eq!(base.least_growth(), base.range().end + 5 * CHUNK_BYTES);
        let end = base.range().end + (256 + 512 + 1024 + 70) * CHUNK_BYTES;
        let grown = HeapLayout::of(&made.with_grown(end));
        assert_eq!(Some(grown), base.grown_to(end + 100));
        let zones: Vec<Part> = grown.zones_since(&base).collect();
        assert!(
            zones.iter().map(Part::count).eq([256, 512, 1024, 70])
                && zones.iter().map(|zone| zone.tables).eq([4, 7, 13, 25])
        );
        let further = grown.grown_to(grown.least_growth()).unwrap();
        assert_eq!((further.zones_since(&grown).count(), further.chunks), (0, grown.chunks + 1));
        let mut words = Vec::new();
        for part in grown.parts() {
            words.extend(part.chunks.clone().map(|chunk| grown.word(chunk)));
            assert!(part.words_range().end <= part.bitmaps);
            let zone = grown.begins_zone(part.chunks.start);
            let room = if zone { grown.chunk(part.chunks.start + part.tables) } else { grown.first };
            assert!(part.bitmaps_range().end <= room);
        }
        assert_eq!(words.len() as u64, grown.chunks);
        (0..).zip(words).for_each(|(chunk, word)| assert_eq!(grown.chunk_of_word(word), Some(chunk)));
    }

    #[test]
    fn bitmaps_come_back_from_both_forms() {
        let mut bitmap = [0; BITMAP_WORDS];
        for unit in (0..1024).step_by(7) {
            bitmap[unit / 64] |= 1 << (unit % 64);
        }
        for form in [Form::Plain, Form::Sealed] {
            let bytes = form.encode_bitmap(&bitmap);
            assert_eq!(bytes.len() as u64, form.bitmap_bytes());
            let words: Vec<u64> =
                bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
            assert_eq!(form.decode_bitmap(&words), (bitmap, None));
        }
    }
}
