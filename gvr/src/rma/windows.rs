//! One-sided operations where the windows of all ranks lie in memory that each has mapped: by the
//! processor's loads and stores.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::memory::Memory;
use super::{Kind, Op, Place};

/// Windows that lie in equal steps, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    memory: Memory,
    /// Where that of rank 0 begins.
    first: u64,
    /// From one to the next.
    step: u64,
    /// Bytes of each.
    window: u64,
    ranks: usize,
}

impl Windows {
    pub fn new(memory: Memory, first: u64, step: u64, window: u64, ranks: usize) -> Windows {
        Windows { memory, first, step, window, ranks }
    }

    /// Where a place of a window lies in the memory.
    #[inline]
    pub fn at(&self, place: Place, bytes: usize) -> u64 {
        let inside = place.offset.checked_add(bytes as u64).is_some_and(|end| end <= self.window);
        assert!(inside && place.rank < self.ranks, "{bytes} bytes at {place:?} leave the windows");
        self.first + place.rank as u64 * self.step + place.offset
    }

    #[inline]
    pub fn word(&self, at: Place) -> &AtomicU64 {
        self.memory.word(self.at(at, 8))
    }

    #[inline]
    pub fn words(&self, at: Place, count: usize) -> &[AtomicU64] {
        self.memory.words(self.at(at, 8 * count), count)
    }

    #[inline]
    pub fn put(&self, to: Place, data: &[u8]) {
        self.memory.store(self.at(to, data.len()), data);
    }

    #[inline]
    pub fn get(&self, from: Place, data: &mut [u8]) {
        self.memory.load(self.at(from, data.len()), data);
    }

    #[inline]
    pub fn fetch_add(&self, at: Place, add: u64) -> u64 {
        self.word(at).fetch_add(add, Ordering::AcqRel)
    }

    #[inline]
    pub fn cas(&self, at: Place, expected: u64, new: u64) -> u64 {
        let swapped = self.word(at).compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        swapped.unwrap_or_else(|now| now)
    }

    #[inline]
    pub fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) {
        for ((word, bits), before) in self.words(at, bits.len()).iter().zip(bits).zip(before) {
            *before = word.fetch_or(*bits, Ordering::AcqRel);
        }
    }

    #[inline]
    pub fn load_many(&self, at: Place, words: &mut [u64]) {
        for (word, to) in self.words(at, words.len()).iter().zip(words) {
            *to = word.load(Ordering::Acquire);
        }
    }

    #[inline]
    pub fn replace_many(&self, at: Place, words: &[u64]) {
        for (word, new) in self.words(at, words.len()).iter().zip(words) {
            word.store(*new, Ordering::Release);
        }
    }

    pub fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) {
        let start = self.at(at, data.len());
        for (element, at) in kind.elements(data).zip((start..).step_by(kind.bytes())) {
            self.combine_at(at, kind, op, element);
        }
    }

    fn combine_at(&self, at: u64, kind: Kind, op: Op, element: u64) {
        let (word, byte) = (self.memory.word(at / 8 * 8), (at % 8) as usize);
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let new = kind.insert(old, byte, kind.combine(op, kind.extract(old, byte), element));
            match word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    #[inline]
    pub fn flush(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub fn order(&self) {
        fence(Ordering::Release);
    }

    pub fn get_words(&self, from: Place, to: &[AtomicU64]) {
        let from = self.words(from, to.len());
        to.iter().zip(from).for_each(|(to, from)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
    }

    /// Copies inside of a rank's own window.
    pub fn copy(&self, rank: usize, from: u64, to: u64, bytes: u64) {
        let place = |offset| self.at(Place { rank, offset }, bytes as usize);
        self.memory.copy(place(from), place(to), bytes as usize);
    }

    /// Zeroes a part of a rank's own window that nobody uses.
    #[cfg(feature = "mpi")]
    pub fn clear(&self, rank: usize, offset: u64, bytes: u64) {
        self.memory.clear(self.at(Place { rank, offset }, bytes as usize), bytes);
    }
}
