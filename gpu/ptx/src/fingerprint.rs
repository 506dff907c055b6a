//! A fingerprint of 128 bits of what would be too large to keep.

/// Takes words in, and has a fingerprint of all that it took: two products of 64 bits a word, each
/// folded, as hash functions for tables do it. Nobody chooses what is taken in to make two agree.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint([u64; 2]);

const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Fingerprint {
    pub fn new() -> Self {
        Self([0x2545_f491_4f6c_dd1d, 0x8cb9_2ba7_2f3d_8dd7])
    }

    pub fn word(&mut self, word: u64) {
        let [a, b] = &mut self.0;
        *a = fold(*a ^ word, FACTORS[0]).wrapping_add(word.rotate_left(23));
        *b = fold(*b ^ word, FACTORS[1]).wrapping_add(word.rotate_left(41));
    }

    /// Their number, and they.
    pub fn words(&mut self, words: impl ExactSizeIterator<Item = u64>) {
        self.word(words.len() as u64);
        words.for_each(|word| self.word(word));
    }

    /// Their number, and they.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.word(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    pub fn finish(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn bytes_that_differ_anywhere_have_another_fingerprint() {
        let of = |bytes: &[u8]| {
            let mut fingerprint = Fingerprint::new();
            fingerprint.bytes(bytes);
            fingerprint.finish()
        };
        let mut seen = HashSet::new();
        for len in 0..40 {
            let zeros = vec![0; len];
            assert!(seen.insert(of(&zeros)), "{len} zeros");
            for bit in 0..8 * len {
                let mut bytes = zeros.clone();
                bytes[bit / 8] |= 1 << (bit % 8);
                assert!(seen.insert(of(&bytes)), "bit {bit} of {len} bytes");
            }
        }
        // Either half of it tells them apart, too.
        let halves: HashSet<u64> = seen.iter().flat_map(|&all| [all as u64, (all >> 64) as u64]).collect();
        assert_eq!(halves.len(), 2 * seen.len());
    }
}
