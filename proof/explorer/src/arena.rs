//! Bytes that programs may also reach by pointer.

use std::sync::atomic::{AtomicU64, Ordering};

/// Alignment of the first byte.
const PAGE_WORDS: usize = 512;

/// Memory in words of 8 bytes, the unit that neither processor nor medium tears.
pub struct Arena {
    words: Box<[AtomicU64]>,
    /// The first word that begins a page.
    first: usize,
    len: usize,
}

impl Arena {
    /// Zeroed memory of so many words.
    pub fn new(len: usize) -> Arena {
        let words: Box<[AtomicU64]> = (0..len + PAGE_WORDS).map(|_| AtomicU64::new(0)).collect();
        let first = words.as_ptr().align_offset(PAGE_WORDS * 8);
        assert!(first < PAGE_WORDS, "words have addresses");
        Arena { words, first, len }
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        &self.words[self.first..self.first + self.len]
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len as u64 * 8
    }

    /// Address of the first byte.
    pub fn address(&self) -> *mut u8 {
        self.words[self.first].as_ptr().cast()
    }

    /// Loads a word.
    pub fn word(&self, index: usize) -> u64 {
        self.words()[index].load(Ordering::Relaxed)
    }

    /// Stores a word.
    pub fn set_word(&self, index: usize, value: u64) {
        self.words()[index].store(value, Ordering::Relaxed);
    }

    /// Makes it hold what an image holds.
    pub fn fill(&self, image: &[u64]) {
        for (word, value) in self.words().iter().zip(image) {
            word.store(*value, Ordering::Relaxed);
        }
    }

    /// Everything in it.
    pub fn image(&self) -> Vec<u64> {
        self.words().iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// Copies bytes out.
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        let words = self.words();
        let (at, skip) = (offset as usize / 8, offset as usize % 8);
        let (head, rest) = data.split_at_mut(if skip == 0 { 0 } else { data.len().min(8 - skip) });
        if !head.is_empty() {
            head.copy_from_slice(&self.word(at).to_le_bytes()[skip..skip + head.len()]);
        }
        let at = at + usize::from(skip > 0);
        let (whole, tail) = rest.as_chunks_mut::<8>();
        for (bytes, word) in whole.iter_mut().zip(&words[at.min(words.len())..]) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&self.word(at + whole.len()).to_le_bytes()[..tail.len()]);
        }
    }

    /// Copies bytes in.
    pub fn store(&self, offset: u64, data: &[u8]) {
        for part in parts(offset, data) {
            let old = self.word(part.word);
            self.set_word(part.word, old & !part.mask | part.value);
        }
    }
}

/// What a store does to one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Index of the word.
    pub word: usize,
    /// Bits that are stored.
    pub mask: u64,
    /// Their values; zeros elsewhere.
    pub value: u64,
}

/// A store, word by word.
pub fn parts(offset: u64, data: &[u8]) -> impl Iterator<Item = Part> {
    let (start, end) = (offset as usize, offset as usize + data.len());
    let words = if data.is_empty() { 0..0 } else { start / 8..end.div_ceil(8) };
    words.map(move |word| {
        let (from, to) = ((word * 8).max(start), (word * 8 + 8).min(end));
        let (mut value, mut mask) = ([0; 8], [0; 8]);
        value[from - word * 8..to - word * 8].copy_from_slice(&data[from - start..to - start]);
        mask[from - word * 8..to - word * 8].fill(0xff);
        Part { word, mask: u64::from_le_bytes(mask), value: u64::from_le_bytes(value) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_any_offset() {
        let arena = Arena::new(8);
        assert_eq!(arena.address() as usize % 4096, 0);
        for (offset, length) in [(0, 8), (3, 2), (5, 20), (8, 16), (63, 1), (7, 0)] {
            arena.fill(&[0xeeee_eeee_eeee_eeee; 8]);
            let data: Vec<u8> = (1..=length).collect();
            arena.store(offset, &data);
            let mut all = [0; 64];
            arena.load(0, &mut all);
            let mut expected = [0xee; 64];
            expected[offset as usize..][..data.len()].copy_from_slice(&data);
            assert_eq!(all, expected);
            let mut some = vec![0; data.len()];
            arena.load(offset, &mut some);
            assert_eq!(some, data);
        }
    }
}
