//! An aligned word of 8 bytes with the stores to it that pend.

/// One pending store to one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub sequence: u64,
    pub thread: u64,
    pub step: u64,
    pub line: u32,
    /// Bytes of the word that it writes, one bit a byte.
    pub bytes: u8,
    pub value: u64,
}

/// A word with pending stores.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// What has persisted.
    pub durable: u64,
    /// The oldest; most words have no other.
    pub oldest: Store,
    pub later: Vec<Store>,
}

/// The bits of a word's bytes.
pub(crate) fn byte_mask(bytes: u8) -> u64 {
    (0..8).filter(|i| bytes >> i & 1 == 1).fold(0, |mask, i| mask | 0xff << (8 * i))
}

impl Store {
    pub fn apply(&self, word: u64) -> u64 {
        let mask = byte_mask(self.bytes);
        word & !mask | self.value & mask
    }
}

impl Word {
    /// The stores, oldest first.
    pub fn stores(&self) -> impl DoubleEndedIterator<Item = &Store> {
        std::iter::once(&self.oldest).chain(&self.later)
    }

    /// Leaves just the stores that are not `chosen`; None where none is left.
    pub fn keep_others(&self, chosen: &[bool]) -> Option<Word> {
        let mut rest = self.stores().zip(chosen).filter(|(_, chosen)| !**chosen).map(|(store, _)| *store);
        let oldest = rest.next()?;
        Some(Word { durable: self.image(chosen), oldest, later: rest.collect() })
    }

    /// The stores that have to have persisted when those of `chosen` have (bit or index true): the
    /// earlier ones to the same bytes, and theirs.
    pub fn close(&self, chosen: &mut [bool]) {
        let mut bytes = 0;
        let (first, rest) = chosen.split_first_mut().expect("a word has a store");
        let later = self.later.iter().zip(rest).rev();
        for (store, chosen) in later.chain([(&self.oldest, first)]) {
            if *chosen || store.bytes & bytes != 0 {
                *chosen = true;
                bytes |= store.bytes;
            }
        }
    }

    /// Takes out of `chosen` what would need a store that is not chosen.
    pub fn drop_unsupported(&self, chosen: &mut [bool]) {
        let mut missing = 0;
        for (store, chosen) in self.stores().zip(chosen) {
            *chosen &= store.bytes & missing == 0;
            if !*chosen {
                missing |= store.bytes;
            }
        }
    }

    /// The word's content when just `chosen`, which is closed, have persisted.
    pub fn image(&self, chosen: &[bool]) -> u64 {
        let stores = self.stores().zip(chosen).filter(|(_, chosen)| **chosen);
        stores.fold(self.durable, |word, (store, _)| store.apply(word))
    }
}
