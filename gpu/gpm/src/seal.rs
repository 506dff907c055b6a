//! Seals of log entries and digests of checkpoints, as kernels compute them.

/// The seal of an entry: `gpm_seal` of `nearpm_gpm.cuh`, which says what it tells apart.
pub fn seal_of(payload: &[u32], generation: u32) -> u32 {
    let mut h = payload.iter().fold(0x9e37_79b9 ^ payload.len() as u32, |h, &word| {
        let h = (h ^ word).wrapping_mul(0x85eb_ca6b);
        h ^ h >> 13
    });
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^= h >> 16;
    h ^= generation.wrapping_mul(0x9e37_79b1);
    if h == 0 { u32::MAX } else { h }
}

/// What bytes add to a digest of which `place` words of 8 bytes went before: `digest_of` of
/// `gpm.cu`. Bytes that are missing to a whole word count as zeros.
pub fn digest_of(bytes: &[u8], place: u64) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.zip(place..).fold(0, |sum, (word, place)| {
        let mut h = (word ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h ^= h >> 29;
        sum.wrapping_add(h.wrapping_mul(0x94d0_49bb_1331_11eb))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What an earlier generation left whole is refused for certain, but where zero stands in
        /// for another seal.
        #[test]
        fn generations_have_seals_of_their_own(payload in prop::collection::vec(any::<u32>(), 1..8), a: u32, b: u32) {
            prop_assume!(a != b && seal_of(&payload, a) != u32::MAX && seal_of(&payload, b) != u32::MAX);
            prop_assert_ne!(seal_of(&payload, a), seal_of(&payload, b));
        }

        /// An entry that misses one word is refused for certain.
        #[test]
        fn one_wrong_word_breaks_the_seal(payload in prop::collection::vec(any::<u32>(), 1..8), at: prop::sample::Index, wrong: u32) {
            let mut torn = payload.clone();
            let at = at.index(payload.len());
            prop_assume!(torn[at] != wrong && seal_of(&payload, 1) != u32::MAX);
            torn[at] = wrong;
            prop_assert_ne!(seal_of(&payload, 1), seal_of(&torn, 1));
        }

        #[test]
        fn digests_of_parts_add_up(bytes in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index) {
            let middle = at.index(bytes.len() + 1) / 8 * 8;
            let (left, right) = bytes.split_at(middle);
            let sum = digest_of(left, 0).wrapping_add(digest_of(right, middle as u64 / 8));
            prop_assert_eq!(digest_of(&bytes, 0), sum);
        }
    }

    #[test]
    fn zero_is_no_seal() {
        assert!((0..100_000).all(|generation| seal_of(&[0, 0, 0], generation) != 0));
    }
}
