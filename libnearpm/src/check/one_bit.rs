//! Finding the one bit that was damaged, by what checksums say.
//!
//! CRC-32C tells all errors of one bit apart, and no error of two or three bits looks like one (its
//! distance is 4 for all lengths here), so that what is put right here is what was there, unless
//! four bits or more are wrong. The check of a sealed word has 16 bits: only a change that is the
//! only possible one counts.

use nearpm_interface::geometry::LINE;
use nearpm_interface::record::RecordHead;
use nearpm_interface::seal;

/// The word with one bit changed, if exactly one such word is accepted.
pub(super) fn word(damaged: u64, accept: impl Fn(u64) -> bool) -> Option<u64> {
    let mut found = (0..64).map(|bit| damaged ^ 1 << bit).filter(|&candidate| accept(candidate));
    found.next().filter(|_| found.next().is_none())
}

/// The identifier's word with one bit changed, if exactly one such word holds and is accepted.
pub(super) fn sealed_word(damaged: u64, accept: impl Fn(u64) -> bool) -> Option<u64> {
    word(damaged, |candidate| seal::open_word(candidate).is_some_and(&accept))
}

/// A sealed line without body, with one bit changed so that it is sealed.
pub(super) fn sealed_line(damaged: &[u8; LINE]) -> Option<[u8; LINE]> {
    (0..LINE * 8).find_map(|bit| {
        let mut line = *damaged;
        line[bit / 8] ^= 1 << (bit % 8);
        seal::is_sealed(&[], &line).then_some(line)
    })
}

/// The record that starts in `damaged`, with one bit changed so that it holds.
pub(super) fn record(damaged: &[u8], nonce: u64) -> Option<Vec<u8>> {
    // Checksum and length stand outside of what the remainder of a known length tells.
    let lengths = [0].into_iter().chain((0..64).map(|bit| 1u64 << bit));
    for flip in lengths {
        let mut start = *damaged.first_chunk::<8>()?;
        start = (u64::from_le_bytes(start) ^ flip).to_le_bytes();
        let length = u32::from_le_bytes([start[4], start[5], start[6], start[7]]) as usize;
        if length < RecordHead::SIZE || !length.is_multiple_of(8) || length > damaged.len() {
            continue;
        }
        let mut record = damaged[..length].to_vec();
        record[..8].copy_from_slice(&start);
        if flip == 0 {
            let stored = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
            if let Some(bit) = wrong_bit(&record[4..], stored) {
                record[4 + bit / 8] ^= 1 << (bit % 8);
            }
        }
        if RecordHead::decode(&record, nonce).is_some() {
            return Some(record);
        }
    }
    None
}

/// The bit whose change makes the CRC-32C of `data` the stored one.
fn wrong_bit(data: &[u8], stored: u32) -> Option<usize> {
    /// The polynomial of CRC-32C, lowest coefficient in the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let wanted = crc32c::crc32c(data) ^ stored;
    // What a change of the last bit does to the sum; each bit before it is shifted once more.
    let mut effect = POLYNOMIAL;
    for bit in (0..data.len() * 8).rev() {
        if effect == wanted {
            return Some(bit);
        }
        effect = effect >> 1 ^ if effect & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    None
}

#[cfg(test)]
mod tests {
    use nearpm_interface::record::Kind;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_bit_is_found_wherever_it_is(data in prop::collection::vec(any::<u8>(), 0..50), bit: prop::sample::Index) {
            let mut whole = vec![0; RecordHead::SIZE];
            data.iter().for_each(|&byte| whole.extend_from_slice(&[byte; 8]));
            let length = whole.len() as u32;
            RecordHead { bytes: length, nonce: 7, kind: Kind::Commit as u32, ..RecordHead::default() }.seal(&mut whole);
            whole.resize(whole.len() + 64, 0xee);
            let mut damaged = whole.clone();
            let bit = bit.index(length as usize * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(record(&damaged, 7), Some(whole[..length as usize].to_vec()));
            let mut line = [data.len() as u8; LINE];
            seal::seal(&[], &mut line);
            let sound = line;
            line[bit % 64] ^= 1 << (bit % 8);
            prop_assert_eq!(sealed_line(&line), Some(sound));
        }

        #[test]
        fn words_are_put_right_or_left_alone(id in 0u64..1 << 48, bit in 0u32..64) {
            let sound = seal::seal_word(id);
            let found = sealed_word(sound ^ 1 << bit, |_| true);
            prop_assert!(found.is_none() || found == Some(sound));
        }
    }
}
