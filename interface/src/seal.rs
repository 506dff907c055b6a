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
    crc32c::crc32c_append(crc32c::crc32c(body), &head[..HEAD_COVERED])
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn words_open_to_what_was_sealed(id in 0u64..(1 << 48), bit in 0u32..64) {
            prop_assert_eq!(open_word(seal_word(id)), Some(id));
            prop_assert_eq!(open_word(seal_word(id) ^ (1 << bit)), None);
        }
    }
}
