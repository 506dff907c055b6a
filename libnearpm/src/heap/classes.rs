//! Sizes of objects, and how long the runs are that hold them.

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{BITMAP_BYTES, CHUNK_BYTES, PAGE_BYTES, PoolHead, SPAN_VERSION, UNIT_BYTES};

/// Sizes of objects in runs. A multiple of 64 goes into a class that is one, so that it gets whole
/// lines; a multiple of 4096 gets whole pages. Powers of two are there once more with 16 bytes, for
/// those whose object has a header of its own.
pub(crate) const CLASSES: [u32; 68] = [
    16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 320, 352, 384, 448, 512, 528, 576,
    640, 768, 896, 1024, 1040, 1152, 1280, 1536, 1792, 2048, 2064, 2304, 2688, 3200, 3584, 4096, 4112, 4608, 5440,
    6144, 7168, 8192, 8208, 9216, 10240, 11264, 12288, 14336, 16400, 18432, 20480, 24576, 28672, 32784, 36864, 40960,
    45056, 53248, 57344, 65552, 73728, 90112, 131_088, 262_160,
];

/// Those that pools have whose runs are single chunks, before [`SPAN_VERSION`].
const SINGLE: [u32; 30] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792,
    2048, 2304, 2688, 3200, 4096, 5440, 8192,
];

/// Words of a bitmap in memory, of 64 bits each.
pub(crate) const BITMAP_WORDS: usize = BITMAP_BYTES as usize / 8;
/// Most objects of a run: those that a bitmap has bits for.
const MOST_OBJECTS: u32 = (BITMAP_BYTES * 8) as u32;
/// Most chunks of a run.
const MOST_CHUNKS: u32 = 65;
/// A run is as long as it takes to waste at most one part of so many.
const WASTE_SHARE: u32 = 64;

/// Sizes up to here are found in a table.
const TABLE_BYTES: u64 = CHUNK_BYTES / 2;
const TABLE_UNITS: usize = (TABLE_BYTES / UNIT_BYTES) as usize;
/// The first class that is not.
const FIRST_LARGE: usize = ALL[TABLE_UNITS] as usize + 1;
/// For each number of units the class.
type Table = [u8; TABLE_UNITS + 1];

/// The smallest class of `sizes` that holds so many bytes, as whole lines or pages where they are.
const fn search(sizes: &[u32], bytes: u64) -> Option<usize> {
    let lines = bytes.is_multiple_of(LINE_U64);
    let pages = bytes.is_multiple_of(PAGE_BYTES);
    let mut at = 0;
    while at < sizes.len() {
        let size = sizes[at] as u64;
        if size >= bytes && (!lines || size.is_multiple_of(LINE_U64)) && (!pages || size.is_multiple_of(PAGE_BYTES)) {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn table(sizes: &[u32]) -> Table {
    let mut table = [0; TABLE_UNITS + 1];
    let mut units = 0;
    while units <= TABLE_UNITS {
        let Some(at) = search(sizes, units as u64 * UNIT_BYTES) else { panic!("a size has no class") };
        let Some(class) = search(&CLASSES, sizes[at] as u64) else { panic!("a size is no class") };
        table[units] = class as u8;
        units += 1;
    }
    table
}

const ALL: Table = table(&CLASSES);
static OF_ALL: Table = ALL;
static OF_SINGLE: Table = table(&SINGLE);

/// Which classes a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Classes {
    /// Those of runs that have one chunk.
    Single,
    /// All of them, in runs of one or more chunks.
    Spans,
}

impl Classes {
    /// Those of a pool.
    pub fn of(head: &PoolHead) -> Classes {
        if head.version == SPAN_VERSION { Classes::Spans } else { Classes::Single }
    }

    /// The class for a size, `None` where the object gets whole chunks.
    #[inline]
    pub fn class_of(self, bytes: u64) -> Option<usize> {
        let table = match self {
            Classes::Single => &OF_SINGLE,
            Classes::Spans => &OF_ALL,
        };
        match table.get(bytes.div_ceil(UNIT_BYTES) as usize) {
            Some(&class) => Some(class.into()),
            None => self.class_of_large(bytes),
        }
    }

    #[cold]
    fn class_of_large(self, bytes: u64) -> Option<usize> {
        let class = FIRST_LARGE + search(CLASSES.split_at(FIRST_LARGE).1, bytes).filter(|_| self == Classes::Spans)?;
        (u64::from(CLASSES[class]) < bytes.next_multiple_of(CHUNK_BYTES)).then_some(class)
    }

    /// Whether a run may be like that.
    pub fn has(self, object_bytes: u32, chunks: u32) -> bool {
        match self {
            Classes::Single => chunks == 1 && SINGLE.contains(&object_bytes),
            Classes::Spans => {
                CLASSES.binary_search(&object_bytes).is_ok()
                    && chunks <= MOST_CHUNKS
                    && (1..=MOST_OBJECTS).contains(&capacity_of(object_bytes, chunks))
            }
        }
    }

    /// Chunks of a new run of a class that has so many so far. A run grows with its class, so that
    /// what is rare takes little.
    pub fn chunks_of_run(self, class: usize, so_far: u32) -> u32 {
        let (least, best) = LENGTHS[class];
        match self {
            Classes::Single => 1,
            Classes::Spans => trimmed(CLASSES[class], u32::from(best).min(so_far).max(least.into())),
        }
    }
}

/// The shortest run of a class, and the one that wastes little.
static LENGTHS: [(u8, u8); CLASSES.len()] = {
    let mut lengths = [(0, 0); CLASSES.len()];
    let mut class = 0;
    while class < CLASSES.len() {
        lengths[class] = (least_chunks(CLASSES[class]) as u8, best_chunks(CLASSES[class]) as u8);
        class += 1;
    }
    lengths
};

const fn least_chunks(size: u32) -> u32 {
    size.div_ceil(CHUNK_BYTES as u32)
}

const fn best_chunks(size: u32) -> u32 {
    let least = least_chunks(size);
    let (mut best, mut best_waste) = (least, u32::MAX);
    let mut chunks = least;
    while chunks <= MOST_CHUNKS && capacity_of(size, chunks) <= MOST_OBJECTS {
        let bytes = chunks * CHUNK_BYTES as u32;
        // As a share of what it would be of the longest run, in whole numbers.
        let waste = (bytes - capacity_of(size, chunks) * size) * 4096 / chunks;
        if waste < best_waste {
            (best, best_waste) = (chunks, waste);
        }
        if best_waste <= CHUNK_BYTES as u32 * 4096 / WASTE_SHARE {
            break;
        }
        chunks += 1;
    }
    best
}

/// The fewest chunks that hold as many objects as these.
fn trimmed(size: u32, chunks: u32) -> u32 {
    (capacity_of(size, chunks) * size).div_ceil(CHUNK_BYTES as u32)
}

/// Objects of a size in so many chunks.
#[inline]
pub(crate) const fn capacity_of(object_bytes: u32, chunks: u32) -> u32 {
    chunks * CHUNK_BYTES as u32 / object_bytes
}

/// The class of a size that a chunk's word may name.
#[inline]
pub(crate) fn class_named(object_bytes: u32) -> usize {
    let units = object_bytes as usize / UNIT_BYTES as usize;
    let class = match OF_ALL.get(units) {
        Some(&class) => class.into(),
        None => large_class_named(object_bytes),
    };
    debug_assert_eq!(CLASSES.get(class), Some(&object_bytes), "the word was found sound");
    class
}

#[cold]
fn large_class_named(object_bytes: u32) -> usize {
    CLASSES.partition_point(|&size| size < object_bytes)
}

/// The first word of a run's bitmap that has a bit behind the last object.
pub(crate) fn bits_beyond(objects: u32, bitmap: &[u64; BITMAP_WORDS]) -> Option<usize> {
    let beyond = |(at, &word): (usize, &u64)| {
        let units = objects.saturating_sub(at as u32 * 64);
        units < 64 && word >> units != 0
    };
    bitmap.iter().enumerate().position(beyond)
}

const _: () = {
    let mut i = 0;
    while i < CLASSES.len() {
        assert!((CLASSES[i] as u64).is_multiple_of(UNIT_BYTES));
        assert!(i == 0 || CLASSES[i] > CLASSES[i - 1]);
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_alignment_and_waste_little() {
        for classes in [Classes::Single, Classes::Spans] {
            for bytes in 1..=20 * CHUNK_BYTES {
                let Some(class) = classes.class_of(bytes) else {
                    assert!(bytes > 8192);
                    continue;
                };
                let class = u64::from(CLASSES[class]);
                assert!(class >= bytes);
                assert!(bytes % 64 != 0 || class % 64 == 0);
                assert!(bytes % 4096 != 0 || class % 4096 == 0);
                assert!(class <= bytes + bytes / 2 + 48, "{bytes} bytes waste too much in {class}");
                assert!(bytes <= 8192 || class < bytes.next_multiple_of(CHUNK_BYTES), "{bytes}: {class}");
            }
        }
        for (class, &bytes) in CLASSES.iter().enumerate() {
            assert_eq!(class_named(bytes), class);
            assert_eq!(Classes::Spans.class_of(bytes.into()), Some(class), "a size of a class is in that class");
        }
    }

    #[test]
    fn runs_grow_with_their_class_and_waste_one_part_of_32_at_most() {
        for (class, &size) in CLASSES.iter().enumerate() {
            let (mut so_far, mut last) = (0, 0);
            for _ in 0..12 {
                let chunks = Classes::Spans.chunks_of_run(class, so_far);
                assert!(Classes::Spans.has(size, chunks), "{size}: {chunks} chunks");
                assert!(chunks <= so_far.max(least_chunks(size)), "{size}: {chunks} chunks behind {so_far}");
                (so_far, last) = (so_far + chunks, chunks);
            }
            let waste = last * CHUNK_BYTES as u32 - capacity_of(size, last) * size;
            assert!(waste * 32 <= last * CHUNK_BYTES as u32, "{size}: {waste} bytes of {last} chunks");
            assert_eq!(Classes::Single.chunks_of_run(class, so_far), 1);
        }
    }
}
