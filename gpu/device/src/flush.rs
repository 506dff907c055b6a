//! Stores of the processor, made durable: the CPU half of GPM, and what CPU-assisted persistence
//! does after a copy.

use std::arch::x86_64::{_mm_clflush, _mm_sfence};
use std::sync::LazyLock;

/// Bytes of a line of the processor's caches.
const LINE: usize = 64;

/// Writes the lines of `bytes` back to memory, and waits for it. It matters on persistent memory;
/// on tmpfs it costs the same.
pub fn persist(bytes: &[u8]) {
    write_back(bytes);
    // SAFETY: every x86-64 processor has it.
    unsafe { _mm_sfence() };
}

fn write_back(bytes: &[u8]) {
    if bytes.is_empty() {
        // Their address is none of a line.
        return;
    }
    static CLWB: LazyLock<bool> = LazyLock::new(has_clwb);
    let start = bytes.as_ptr().addr() / LINE * LINE;
    let end = bytes.as_ptr().addr() + bytes.len();
    for line in (start..end).step_by(LINE) {
        let line = bytes.as_ptr().with_addr(line);
        if *CLWB {
            // SAFETY: the instruction reads and writes no register, and the line holds bytes of the
            // slice, so it is mapped.
            unsafe { std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) };
        } else {
            // SAFETY: the line holds bytes of the slice, so it is mapped.
            unsafe { _mm_clflush(line) };
        }
    }
}

/// The same by several threads, each for a part.
pub fn persist_with_threads(bytes: &[u8], threads: usize) {
    let part = bytes.len().div_ceil(threads.max(1)).next_multiple_of(LINE).max(LINE);
    if threads <= 1 || bytes.len() <= part {
        return persist(bytes);
    }
    std::thread::scope(|scope| {
        bytes.chunks(part).for_each(|part| {
            scope.spawn(move || persist(part));
        });
    });
}

/// Writes the lines back that hold the bytes at some offsets, and waits for all of them at once.
///
/// # Panics
/// An offset that lies outside.
pub fn persist_scattered(bytes: &[u8], offsets: impl Iterator<Item = usize>) {
    offsets.for_each(|offset| write_back(&bytes[offset..=offset]));
    // SAFETY: every x86-64 processor has it.
    unsafe { _mm_sfence() };
}

/// Stores pieces of `bytes` bytes, which lie in `from` in the order of their numbers in `pieces`,
/// to their places in `to`, and writes them back: by several threads, each of which has a part of
/// `to`.
///
/// # Panics
/// A piece that lies outside.
pub fn store_pieces(to: &mut [u8], pieces: &[u32], bytes: usize, from: &[u8], threads: usize) {
    let part = (to.len() / bytes).div_ceil(threads.max(1)).max(1);
    let mut by_part = vec![Vec::new(); (to.len() / bytes).div_ceil(part)];
    for (slot, &piece) in pieces.iter().enumerate() {
        by_part[piece as usize / part].push((slot, piece as usize % part));
    }
    std::thread::scope(|scope| {
        for (to, pieces) in to.chunks_mut(part * bytes).zip(by_part) {
            scope.spawn(move || {
                for (slot, piece) in pieces {
                    let place = &mut to[piece * bytes..(piece + 1) * bytes];
                    place.copy_from_slice(&from[slot * bytes..(slot + 1) * bytes]);
                    write_back(place);
                }
                // SAFETY: every x86-64 processor has it.
                unsafe { _mm_sfence() };
            });
        }
    });
}

/// CPUID leaf 7: bit 24 of EBX.
fn has_clwb() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 24 & 1 == 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_stay_what_they_are() {
        let bytes: Vec<u8> = (0..100_003u32).map(|i| i as u8).collect();
        for threads in [0, 1, 3, 16, 100_000] {
            super::persist_with_threads(&bytes[5..], threads);
        }
        super::persist(&[]);
        for threads in [1, 2, 7, 100] {
            let mut to = vec![0; 12 * 64];
            let from: Vec<u8> = [3, 11, 0].iter().flat_map(|&piece: &u8| [piece + 1; 64]).collect();
            super::store_pieces(&mut to, &[3, 11, 0], 64, &from, threads);
            let expected = |piece| if [0, 3, 11].contains(&piece) { piece as u8 + 1 } else { 0 };
            assert!(to.chunks(64).enumerate().all(|(piece, bytes)| bytes.iter().all(|&byte| byte == expected(piece))));
        }
        assert!(bytes.iter().zip(0u32..).all(|(&byte, i)| byte == i as u8));
    }
}
