//! What the index knows of a chunk.

use std::sync::{OnceLock, atomic};

use nearpm_interface::media::ChunkWord;

use super::super::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::heap::classes::BITMAP_WORDS;

/// Where a run is, as far as allocation goes.
pub(super) mod place {
    /// In an arena, or no run.
    pub const TAKEN: u8 = 0;
    /// In the list of its class.
    pub const LISTED: u8 = 1;
    /// Nowhere, because it had no room when its arena left it.
    pub const FULL: u8 = 2;
}

/// What bytes of a chunk belong to.
pub(super) mod holds {
    /// To nothing.
    pub const NOTHING: u8 = 0;
    /// To a run: it is as good as free while no object of it is taken.
    pub const RUN: u8 = 1;
    /// To an object of whole chunks.
    pub const OBJECT: u8 = 2;
    /// To a segment of the log.
    pub const LOG: u8 = 3;
    /// To a run that begins in front of it.
    pub const INNER: u8 = 4;
}

/// No word of a chunk begins like this.
const INSIDE: u64 = 0x49 << 56;

/// A bit for each object of a run.
#[derive(Default)]
pub(super) struct Bits {
    pub taken: [AtomicU64; BITMAP_WORDS],
    pub allocated: [AtomicU64; BITMAP_WORDS],
}

/// A chunk, as the index knows it. Alone on its cache line: neighbours are often those of other
/// threads.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Chunk {
    /// Encoded [`ChunkWord`]; of a free chunk whatever it was. Of a chunk inside of a run what
    /// [`Chunk::put_inside`] stores.
    pub word: AtomicU64,
    /// The word is not in the log yet: the next commit that allocates here writes it.
    pub unwritten: AtomicBool,
    /// What its bytes belong to: one of [`holds`].
    pub holds: AtomicU8,
    /// For a whole-chunk object: it is allocated.
    pub allocated: AtomicBool,
    pub place: AtomicU8,
    /// Words of `taken` below have no free bit, or had none a moment ago.
    pub hint: AtomicU8,
    /// Objects that a run has places for.
    pub capacity: atomic::AtomicU32,
    /// Taken objects.
    pub used: AtomicU32,
    /// Cut of the log after which a record last named bytes here.
    pub logged: AtomicU32,
    /// The same of records that a truncation has to write home.
    pub pending: AtomicU32,
    /// Newest record that freed bytes here which were given out before that was shown (`known.rs`).
    pub freed: AtomicU64,
    pub bits: OnceLock<Box<Bits>>,
}

impl Chunk {
    /// What the chunk is; one inside of a run is free by itself.
    #[inline]
    pub fn word(&self) -> ChunkWord {
        ChunkWord::of_encoded(self.word.load(Ordering::Relaxed)).unwrap_or(ChunkWord::Free)
    }

    /// From now on the chunk lies inside of a run that begins so many chunks in front of it.
    pub fn put_inside(&self, back: u32) {
        self.word.store(INSIDE | u64::from(back), Ordering::Relaxed);
    }

    /// The chunk does not belong to a run that begins in front of it.
    pub fn put_outside(&self) {
        if self.back() > 0 {
            self.word.store(ChunkWord::Free.encode(), Ordering::Relaxed);
        }
    }

    /// How many chunks in front of this one the run begins that it lies in; 0: in none.
    pub fn back(&self) -> u32 {
        let word = self.word.load(Ordering::Relaxed);
        if word & !u64::from(u32::MAX) == INSIDE { word as u32 } else { 0 }
    }

    pub fn bits(&self) -> &Bits {
        self.bits.get_or_init(Box::default)
    }

    /// Takes a free object, if there is one. Only the arena that has the chunk may.
    pub fn take(&self) -> Option<u32> {
        let bits = self.bits();
        let capacity = self.capacity.load(Ordering::Relaxed);
        for word in usize::from(self.hint.load(Ordering::Relaxed))..capacity.div_ceil(64) as usize {
            let free = bits.taken[word].load(Ordering::Relaxed).trailing_ones();
            let unit = word as u32 * 64 + free;
            if free < 64 && unit < capacity {
                bits.taken[word].fetch_or(1 << free, Ordering::SeqCst);
                self.hint.store(word as u8, Ordering::Relaxed);
                self.used.fetch_add(1, Ordering::Relaxed);
                return Some(unit);
            }
        }
        None
    }

    /// Places for objects that are not taken.
    pub fn room(&self) -> u32 {
        self.capacity.load(Ordering::Relaxed).saturating_sub(self.used.load(Ordering::Relaxed))
    }

    pub fn has_room(&self) -> bool {
        let capacity = self.capacity.load(Ordering::Relaxed);
        let has = |word: u32| {
            let units = (capacity - word * 64).min(64);
            self.bits().taken[word as usize].load(Ordering::SeqCst).trailing_ones() < units
        };
        (0..capacity.div_ceil(64)).any(has)
    }
}
