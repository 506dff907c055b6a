//! The checksum convention: *body lines, then the head line*.
//!
//! Everything that is sealed consists of a head of 64 bytes, whose last four bytes are the
//! checksum, and a body of whole 64-byte lines (possibly none). The checksum is the CRC-32C of
//! the body followed by the first 60 bytes of the head. Hardware streams the body through a
//! 64-byte CRC cell and meets the head last, so that it can be written when the data has passed;
//! a reader runs body and whole head through the same cell and compares with [`RESIDUE`].

use crate::geometry::LINE;

/// Bytes of the head that the checksum covers; the checksum itself follows.
pub const HEAD_COVERED: usize = 60;

/// CRC-32C of anything followed by its own CRC-32C in little-endian order (the final inversion
/// included). A constant of the polynomial 0x1EDC6F41.
pub const RESIDUE: u32 = 0x4867_4BC7;

/// Checksum of `body` followed by the covered part of `head`.
///
/// # Panics
/// If `body` is not a whole number of lines.
pub fn checksum(body: &[u8], head: &[u8; LINE]) -> u32 {
    assert_eq!(body.len() % LINE, 0, "a sealed body is whole lines");
    // A command has no body.
    let of_body = if body.is_empty() { 0 } else { crc32c::crc32c(body) };
    crc32c::crc32c_append(of_body, &head[..HEAD_COVERED])
}

/// Writes the checksum of `body` and `head` into the last four bytes of `head`.
pub fn seal(body: &[u8], head: &mut [u8; LINE]) {
    let sum = checksum(body, head);
    head[HEAD_COVERED..].copy_from_slice(&sum.to_le_bytes());
}

/// Whether `head` carries the checksum of `body` and itself.
pub fn is_sealed(body: &[u8], head: &[u8; LINE]) -> bool {
    crc32c::crc32c_append(crc32c::crc32c(body), head) == RESIDUE
}

/// Whether a number can be sealed in a word: it has at most 48 bits.
pub fn is_identifier(id: u64) -> bool {
    id >> 48 == 0
}

/// An identifier of 48 bits with a 16-bit check, for words that are written by one 8-byte atomic
/// store: bits 47:0 the identifier, bits 63:48 the low half of the CRC-32C of its six bytes.
///
/// The word 0 is not valid: the check of identifier 0 is not zero.
pub fn seal_word(id: u64) -> u64 {
    assert!(is_identifier(id), "identifiers have 48 bits");
    let check = crc32c::crc32c(&id.to_le_bytes()[..6]) & 0xffff;
    id | (check as u64) << 48
}

/// The identifier of a sealed word, or `None` where the check does not hold.
pub fn open_word(word: u64) -> Option<u64> {
    let id = word & ((1 << 48) - 1);
    (seal_word(id) == word).then_some(id)
}

/// What each byte of 48 bits adds to the check of [`seal_bits`].
const CHECKS: [[u16; 256]; 6] = {
    /// The polynomial of CRC-32C, lowest coefficient in the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut checks = [[0; 256]; 6];
    let mut value = 0;
    while value < 256 {
        let mut crc = value as u32;
        // The last byte first: each one before it is shifted by eight bits more.
        let mut byte = 6;
        while byte > 0 {
            byte -= 1;
            let mut bit = 0;
            while bit < 8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
                bit += 1;
            }
            checks[byte][value] = crc as u16;
        }
        value += 1;
    }
    checks
};

/// 48 bits with a 16-bit check, for words of tables that start as zeros: as [`seal_word`], but that
/// the word 0 is sealed and holds no bit. Any two of these words differ in four bits at least, so
/// that one wrong bit is found and known, and two are found.
///
/// # Panics
/// If there are more bits.
pub fn seal_bits(bits: u64) -> u64 {
    assert!(is_identifier(bits), "a sealed word has 48 bits");
    bits | check_of_all(bits) << 48
}

/// The check of 48 bits.
#[inline]
fn check_of_all(bits: u64) -> u64 {
    let of = |byte: usize| CHECKS[byte][(bits >> (8 * byte) & 0xff) as usize];
    u64::from(of(0) ^ of(1) ^ of(2) ^ of(3) ^ of(4) ^ of(5))
}

/// What changes in a word of [`seal_bits`] when these bits of it change: the code is linear, and
/// most changes are of few bits.
#[inline]
fn check_of_few(mut bits: u64) -> u64 {
    let mut check = 0;
    while bits != 0 {
        let byte = bits.trailing_zeros() / 8;
        check ^= u64::from(CHECKS[byte as usize][(bits >> (8 * byte) & 0xff) as usize]);
        bits &= !(0xff << (8 * byte));
    }
    check << 48
}

/// The word that is sealed like this one, with other bits: `change` makes them of those that there
/// are. `None` where the word's check does not hold, or where there would be more than 48 bits.
#[inline]
pub fn change_bits(word: u64, change: impl FnOnce(u64) -> u64) -> Option<u64> {
    let bits = open_bits(word)?;
    let changed = bits ^ change(bits);
    is_identifier(changed).then(|| word ^ changed ^ check_of_few(changed))
}

/// The bits of such a word, or `None` where the check does not hold.
#[inline]
pub fn open_bits(word: u64) -> Option<u64> {
    let bits = word & ((1 << 48) - 1);
    (seal_bits(bits) == word).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The code is linear: the distance of two words is that of another one to zero. Words of less
    /// than four bits would be sums of up to three columns.
    #[test]
    fn words_of_bits_differ_in_four_bits_at_least() {
        let columns: Vec<u64> =
            (0..48).map(|bit| seal_bits(1 << bit) >> 48).chain((0..16).map(|bit| 1 << bit)).collect();
        let two = |n: usize| columns[..n].iter().enumerate().flat_map(|(i, a)| columns[..i].iter().map(move |b| a ^ b));
        for (at, &column) in columns.iter().enumerate() {
            assert!(column != 0 && !columns[..at].contains(&column) && two(at).all(|sum| sum != column));
        }
        assert_eq!(seal_bits(0), 0);
    }

    #[test]
    fn the_residue_is_a_constant_of_the_polynomial() {
        let mut head = [7; LINE];
        seal(&[], &mut head);
        assert_eq!(crc32c::crc32c(&head), RESIDUE);
    }

    #[test]
    fn the_zero_word_and_the_zero_head_are_not_sealed() {
        assert_eq!(open_word(0), None);
        assert!(!is_sealed(&[], &[0; LINE]));
    }

    proptest! {
        #[test]
        fn one_flipped_bit_breaks_the_seal(lines in 0usize..4, bit in 0usize..(4 * 512 + 512), fill: u8) {
            let mut body = vec![fill; lines * LINE];
            let mut head = [fill.wrapping_add(1); LINE];
            seal(&body, &mut head);
            prop_assert!(is_sealed(&body, &head));
            let bit = bit % ((lines + 1) * 512);
            if bit < body.len() * 8 { body[bit / 8] ^= 1 << (bit % 8); }
            else { let b = bit - body.len() * 8; head[b / 8] ^= 1 << (b % 8); }
            prop_assert!(!is_sealed(&body, &head));
        }

        #[test]
        fn words_of_bits_open_to_what_was_sealed(bits in 0u64..(1 << 48), other in 0u64..(1 << 48)) {
            prop_assert_eq!(open_bits(seal_bits(bits)), Some(bits));
            prop_assert_eq!(seal_bits(bits) ^ seal_bits(other), seal_bits(bits ^ other));
            prop_assert_eq!(seal_bits(bits) ^ seal_word(bits), seal_word(0));
            prop_assert_eq!(change_bits(seal_bits(bits), |_| other), Some(seal_bits(other)));
        }

        #[test]
        fn changed_words_are_sealed_and_damaged_ones_are_not_changed(bits in 0u64..(1 << 48), bit in 0u32..64, more in 48u32..64) {
            let word = seal_bits(bits);
            let mask = 1 << (bit % 48);
            prop_assert_eq!(change_bits(word, |bits| bits | mask), Some(seal_bits(bits | mask)));
            prop_assert_eq!(change_bits(word, |bits| bits & !mask), Some(seal_bits(bits & !mask)));
            prop_assert_eq!(change_bits(word, |bits| bits | 1 << more), None);
            prop_assert_eq!(change_bits(word ^ (1 << bit), |bits| bits), None);
        }

        #[test]
        fn words_open_to_what_was_sealed(id in 0u64..(1 << 48), bit in 0u32..64) {
            prop_assert_eq!(open_word(seal_word(id)), Some(id));
            prop_assert_eq!(open_word(seal_word(id) ^ (1 << bit)), None);
        }
    }
}
