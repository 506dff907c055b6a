//! The store as a processor has it, and batches for it.

use super::WAYS;

/// The store as a processor has it: the oracle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    set_bits: u32,
    pairs: Vec<(u64, u64)>,
}

/// The hash of a key: `mix` of `kvs.cu`.
pub(crate) fn mix(key: u64) -> u64 {
    let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

impl Model {
    /// An empty store.
    pub fn new(set_bits: u32) -> Model {
        Model { set_bits, pairs: vec![(0, 0); WAYS << set_bits] }
    }

    fn set_of(&self, key: u64) -> usize {
        if self.set_bits == 0 { 0 } else { (mix(key) >> (64 - self.set_bits)) as usize }
    }

    /// Sets pairs in their order.
    pub fn apply(&mut self, pairs: &[(u64, u64)]) {
        for &(key, value) in pairs {
            let start = WAYS * self.set_of(key);
            let set = &mut self.pairs[start..start + WAYS];
            let own = set.iter().position(|pair| pair.0 == key);
            let free = || set.iter().position(|pair| pair.0 == 0);
            let way = own.or_else(free).unwrap_or(mix(key) as u32 as usize % WAYS);
            set[way] = (key, value);
        }
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        let start = WAYS * self.set_of(key);
        self.pairs[start..start + WAYS].iter().find(|pair| pair.0 == key).map(|pair| pair.1)
    }

    /// Whether a table in PM is this, byte by byte.
    pub fn equals(&self, table: &[u8]) -> bool {
        let (words, rest) = table.as_chunks::<8>();
        let pairs = self.pairs.iter().flat_map(|&(key, value)| [key, value]);
        rest.is_empty() && pairs.eq(words.iter().map(|&word| u64::from_le_bytes(word)))
    }
}

/// A batch of `count` SETs that depends on nothing but the seed: keys below `range`, so that a
/// small range has duplicates.
pub fn batch_of(seed: u64, count: usize, range: u64) -> Vec<(u64, u64)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(state)
    };
    (0..count).map(|_| (1 + next() % range, next() | 1)).collect()
}
