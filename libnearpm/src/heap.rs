//! How the heap of a pool is divided: classes of objects, tables, chunks.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{
    BITMAP_BYTES, CHUNK_BYTES, ChunkWord, HEAP_CHUNK_WORDS, HEAP_ROOT, PAGE_BYTES, PoolHead, SEALED_BITMAP_BYTES,
    SEALED_BITS, SEALED_VERSION, UNIT_BYTES,
};
use nearpm_interface::seal;

use crate::damage::Class;
use crate::error::Error;

/// Sizes of objects in runs. A multiple of 64 goes into a class that is one, so that it gets whole lines; 4096 and 8192
/// get whole pages.
pub(crate) const CLASSES: [u32; 30] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792,
    2048, 2304, 2688, 3200, 4096, 5440, 8192,
];

/// Words of a bitmap in memory, of 64 bits each.
pub(crate) const BITMAP_WORDS: usize = BITMAP_BYTES as usize / 8;

/// The smallest class for a size, `None` where the object needs whole chunks.
pub(crate) fn class_of(bytes: u64) -> Option<usize> {
    const UNITS: usize = (CHUNK_BYTES / 2 / UNIT_BYTES) as usize;
    const TABLE: [u8; UNITS + 1] = {
        let mut table = [0; UNITS + 1];
        let mut units = 0;
        while units <= UNITS {
            table[units] = search(units as u64 * UNIT_BYTES);
            units += 1;
        }
        table
    };
    let units = bytes.div_ceil(UNIT_BYTES);
    (units <= UNITS as u64).then(|| TABLE[units as usize].into())
}

/// The smallest class for a multiple of [`UNIT_BYTES`] that some class holds.
const fn search(bytes: u64) -> u8 {
    let lines = bytes.is_multiple_of(LINE_U64);
    let pages = bytes.is_multiple_of(PAGE_BYTES);
    let mut class = 0;
    loop {
        let size = CLASSES[class] as u64;
        if size >= bytes && (!lines || size.is_multiple_of(LINE_U64)) && (!pages || size.is_multiple_of(PAGE_BYTES)) {
            return class as u8;
        }
        class += 1;
    }
}

/// The class of a size that a chunk's word may name.
pub(crate) fn class_named(object_bytes: u32) -> usize {
    let class = class_of(object_bytes.into()).filter(|&class| CLASSES[class] == object_bytes);
    class.expect("the word was found sound")
}

/// Objects of a class in a chunk.
pub(crate) fn capacity(class: usize) -> u32 {
    CHUNK_BYTES as u32 / CLASSES[class]
}

/// The first word of a run's bitmap that has a bit behind the last object.
pub(crate) fn bits_beyond(class: usize, bitmap: &[u64; BITMAP_WORDS]) -> Option<usize> {
    let beyond = |(at, &word): (usize, &u64)| {
        let units = capacity(class).saturating_sub(at as u32 * 64);
        units < 64 && word >> units != 0
    };
    bitmap.iter().enumerate().position(beyond)
}

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
        if head.version == SEALED_VERSION { Form::Sealed } else { Form::Plain }
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
    fn decode_bitmap(self, words: &[u64]) -> ([u64; BITMAP_WORDS], Option<usize>) {
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
    pub words: u64,
    bitmaps: u64,
    /// Offset of the first chunk.
    pub first: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// How the tables are written.
    pub form: Form,
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
        HeapLayout { words, bitmaps, first: head.heap() + overhead(chunks), chunks, form }
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
    pub fn word(&self, chunk: u32) -> u64 {
        self.words + 8 * u64::from(chunk)
    }

    /// What the word of a chunk says.
    pub fn state(&self, chunk: u32, word: u64) -> Result<ChunkWord, Class> {
        let state = self.form.decode_chunk(word).ok_or(Class::ChunkWord)?;
        let fits = |chunks: u32| u64::from(chunk) + u64::from(chunks) <= self.chunks;
        match state {
            ChunkWord::Run { object_bytes } if !CLASSES.contains(&object_bytes) => Err(Class::ChunkSize),
            ChunkWord::Large { chunks } if !fits(chunks) => Err(Class::ChunkSpan),
            ChunkWord::Log { chunks } if !fits(chunks) => Err(Class::ChunkWord),
            _ => Ok(state),
        }
    }

    /// Offset of a word of a chunk's bitmap.
    pub fn bitmap_word(&self, chunk: u32, word: usize) -> u64 {
        self.bitmaps + u64::from(chunk) * self.form.bitmap_bytes() + 8 * word as u64
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

const _: () = {
    let mut i = 0;
    while i < CLASSES.len() {
        assert!((CLASSES[i] as u64).is_multiple_of(UNIT_BYTES) && CLASSES[i] as u64 <= CHUNK_BYTES / 2);
        assert!(i == 0 || CLASSES[i] > CLASSES[i - 1]);
        i += 1;
    }
};

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

/// Chunk words and bitmaps, as a pool has them. Those that are zero take no memory: that is given when a word is written.
pub(crate) struct HeapTables {
    pub layout: HeapLayout,
    words: Box<[u64]>,
    /// For each chunk the number of its bitmap, from 1; 0: it is blank.
    places: Box<[u32]>,
    bitmaps: Vec<[u64; BITMAP_WORDS]>,
    /// Chunks with a damaged word in their bitmap, each with the first one. It counts as blank.
    damaged: BTreeMap<u32, usize>,
}

/// So many zeros. They take memory when one is written: the system gives pages of zeros, where a loop that writes them would touch them all.
fn zeros<T: bytemuck::Zeroable>(count: usize) -> Result<Box<[T]>, Error> {
    let what = "the tables of the pool's heap";
    bytemuck::allocation::try_zeroed_slice_box(count).map_err(|()| Error::NoMemory { what })
}

impl HeapTables {
    /// Reads them by a function that loads bytes from an offset, as far as `data` says that a range of them may be other than zero.
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
        for part in data(layout.words..layout.words + 8 * layout.chunks) {
            let first = (part.start - layout.words) / 8;
            let last = (part.end - layout.words).div_ceil(8);
            read(layout.words + 8 * first, &mut tables.words[first as usize..last as usize])?;
        }
        let bitmap_bytes = layout.form.bitmap_bytes();
        let bitmap_words = (bitmap_bytes / 8) as usize;
        match of {
            Bitmaps::All => {
                let bitmaps_of_piece = PIECE_WORDS / bitmap_words;
                let mut words = zeros(bitmaps_of_piece * bitmap_words)?;
                for part in data(layout.bitmaps..layout.bitmaps + bitmap_bytes * layout.chunks) {
                    let first = (part.start - layout.bitmaps) / bitmap_bytes;
                    let last = (part.end - layout.bitmaps).div_ceil(bitmap_bytes);
                    for start in (first..last).step_by(bitmaps_of_piece) {
                        let count = bitmaps_of_piece.min((last - start) as usize);
                        let words = &mut words[..count * bitmap_words];
                        read(layout.bitmap_word(start as u32, 0), words)?;
                        (start as u32..)
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
            matches!(state, Ok(ChunkWord::Large { .. } | ChunkWord::Log { .. })) || self.bits(inner) > 0
        };
        (chunk + 1..chunk + chunks).find(in_use)
    }

    /// What is wrong with the words of a chunk by themselves: class and offset.
    pub fn damaged_words(&self, chunk: u32) -> Option<(Class, u64)> {
        let word = self.layout.state(chunk, self.word(chunk)).err().map(|class| (class, self.layout.word(chunk)));
        word.or_else(|| Some((Class::BitmapWord, self.damaged(chunk)?)))
    }

    /// What begins at a chunk, and its number of chunks. Of a pool that was recovered, so that there are no segments of a log.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for whatever an allocator must not build upon.
    pub fn sound(&self, chunk: u32) -> Result<(ChunkWord, u32), Error> {
        let here = self.layout.word(chunk);
        let whole = |chunk| self.damaged_words(chunk).map_or(Ok(()), |(class, at)| Err(class.at(at)));
        whole(chunk)?;
        let word = self.layout.state(chunk, self.word(chunk)).map_err(|class| class.at(here))?;
        let (chunks, bad) = match word {
            ChunkWord::Run { object_bytes } => {
                let beyond = bits_beyond(class_named(object_bytes), self.bitmap(chunk));
                (1, beyond.map(|at| (Class::BitmapBeyond, at)))
            }
            ChunkWord::Free => (1, self.stray(chunk).map(|at| (Class::BitmapStray, at))),
            ChunkWord::Large { chunks } => {
                if self.in_use_inside(chunk, chunks).is_some() {
                    return Err(Class::ChunkOverlap.at(here));
                }
                // Nobody looks at them before the object is freed, and then they must be sound.
                (chunk + 1..chunk + chunks).try_for_each(whole)?;
                (chunks, self.stray(chunk).map(|at| (Class::BitmapStray, at)))
            }
            ChunkWord::Log { .. } => return Err(Class::SegmentLeft.at(here)),
        };
        match bad {
            Some((class, at)) => Err(class.at(self.layout.word_of_bits(chunk, at))),
            None => Ok((word, chunks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_alignment() {
        for bytes in 1..=CHUNK_BYTES {
            let Some(class) = class_of(bytes) else {
                assert!(bytes > 8192 || bytes % 4096 == 0);
                continue;
            };
            let class = u64::from(CLASSES[class]);
            assert!(class >= bytes);
            assert!(bytes % 64 != 0 || class % 64 == 0);
            assert!(bytes % 4096 != 0 || class % 4096 == 0);
            assert!(class <= bytes + bytes / 2 + 48, "{bytes} bytes waste too much in {class}");
        }
        for (class, &bytes) in CLASSES.iter().enumerate() {
            assert_eq!(class_of(bytes.into()), Some(class), "a size of a class is in that class");
        }
    }

    #[test]
    fn the_heap_holds_its_own_tables() {
        for (pages, version) in [(8, 1), (16, 1), (16, 3), (100, 1), (1000, 3), (100_000, 1), (100_000, 3)] {
            let head = PoolHead { ring_bytes: 16384, lanes: 1, pages, version, ..PoolHead::default() };
            let layout = HeapLayout::of(&head);
            assert!(layout.bitmaps >= layout.words + layout.chunks * 8);
            assert!(layout.first >= layout.bitmaps + layout.chunks * layout.form.bitmap_bytes());
            assert!(layout.range().end <= head.heap_end());
            assert_eq!(layout.first % PAGE_BYTES, 0);
        }
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
