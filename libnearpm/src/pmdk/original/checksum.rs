//! The sum that PMDK puts into its structures: Fletcher's with two sums of 32 bits that wrap.
//! Libraries have the one that counts modulo 2^32 - 1.

fn add(sum: (u32, u32), word: u32) -> (u32, u32) {
    let low = sum.0.wrapping_add(word);
    (low, sum.1.wrapping_add(low))
}

fn sum(start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    words.fold(start, add)
}

fn joined((low, high): (u32, u32)) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The sum of bytes (`util_checksum_compute`): the eight at `own`, where it is kept, and all from
/// `skipped` on count as zeros. All three are multiples of four.
pub(super) fn fletcher64(bytes: &[u8], own: usize, skipped: usize) -> u64 {
    let mut counted = bytes.to_vec();
    counted[skipped..].fill(0);
    counted[own..own + 8].fill(0);
    joined(sum((0, 0), &counted))
}

/// A sum that goes on with more bytes (`util_checksum_seq`).
pub(super) fn go_on(so_far: u64, bytes: &[u8]) -> u64 {
    joined(sum((so_far as u32, (so_far >> 32) as u32), bytes))
}
