//! What a medium holds, and a hash of it by which images that were seen are known.

use std::sync::Arc;

/// Hash of a word at its place. The hash of an image is that of all its words, joined by exclusive
/// or, so that a changed word changes it in no time. From the finaliser of SplitMix64 (Steele, Lea,
/// Flood, OOPSLA 2014).
pub fn mix(index: usize, value: u64) -> u64 {
    let mut z = value ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hash of all words.
pub fn hash(words: &[u64]) -> u64 {
    words.iter().enumerate().fold(0, |sum, (index, &word)| sum ^ mix(index, word))
}

/// An image: that of another one, with some words changed.
#[derive(Clone, Debug, Default)]
pub struct Image {
    base: Arc<Vec<u64>>,
    changes: Vec<(usize, u64)>,
}

impl Image {
    /// An image of these words.
    pub fn new(base: Vec<u64>) -> Image {
        Image { base: Arc::new(base), changes: Vec::new() }
    }

    /// The image with more words changed.
    pub fn with(&self, changes: &[(usize, u64)]) -> Image {
        let changes = self.changes.iter().chain(changes).copied().collect();
        Image { base: self.base.clone(), changes }
    }

    /// All its words.
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::clone(&self.base);
        self.changes.iter().for_each(|&(index, value)| words[index] = value);
        words
    }
}
