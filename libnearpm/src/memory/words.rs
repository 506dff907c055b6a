//! Copies from and to bytes that other threads may store to, by aligned words of 8 bytes.
//!
//! Every access is a relaxed atomic one of the whole word that holds the bytes, so that whatever a
//! program of safe code does on several threads is no data race, nor one of accesses of different
//! sizes. On the processor each is a plain move; only a store to part of a word that others may
//! store to at the same time is a compare-exchange.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a word.
pub const WORD: usize = 8;

/// From so many bytes on the processor's own copy is faster than one of words.
const LONG: usize = 512;

/// Who else may store to the neighbours of what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Nobody, by the rules of the caller. If somebody does, one of the stores may be lost.
    Quiet,
    /// Others: their stores are kept.
    Busy,
}

/// Loads the word at an address.
///
/// # Safety
/// `at` is a multiple of 8, and 8 bytes from it on are readable, and changed by atomic stores alone
/// while this runs.
#[inline(always)]
pub unsafe fn load_word(at: *const u8) -> u64 {
    // SAFETY: by the caller. An atomic load needs no more than a pointer that may be read.
    unsafe { AtomicU64::from_ptr(at.cast_mut().cast()).load(Relaxed) }
}

/// Stores the word at an address.
///
/// # Safety
/// As for [`load_word`], and the bytes may be written.
#[inline(always)]
pub unsafe fn store_word(at: *mut u8, word: u64) {
    // SAFETY: by the caller.
    unsafe { AtomicU64::from_ptr(at.cast()).store(word, Relaxed) }
}

/// Copies whole words out.
///
/// # Safety
/// As for [`load`]; `from` is a multiple of 8, and so is `bytes`.
unsafe fn load_long(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the instruction reads the source and writes the destination, which the caller vouches
    // for. Whatever it reads while others store, in pieces of whatever size, a sequence of loads of
    // the words would read too, each repeated as often as need be.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    for at in (0..bytes).step_by(WORD) {
        // SAFETY: by the caller.
        unsafe { to.add(at).cast::<u64>().write_unaligned(load_word(from.add(at))) };
    }
}

/// Copies `bytes` bytes out.
///
/// # Safety
/// All words that hold bytes of the source are readable, and changed by atomic stores alone while
/// this runs. `to` points to as many writable bytes outside of them.
#[inline]
pub unsafe fn load(from: *const u8, to: *mut u8, bytes: usize) {
    let lead = from as usize % WORD;
    let mut at = 0;
    // SAFETY: every word that is loaded holds bytes of the source, and what is written stays below
    // `bytes`.
    unsafe {
        if lead != 0 {
            at = bytes.min(WORD - lead);
            let word = load_word(from.sub(lead)).to_ne_bytes();
            std::ptr::copy_nonoverlapping(word.as_ptr().add(lead), to, at);
        }
        if bytes - at >= LONG {
            let whole = (bytes - at) / WORD * WORD;
            load_long(from.add(at), to.add(at), whole);
            at += whole;
        }
        while at + 8 * WORD <= bytes {
            for word in (at..at + 8 * WORD).step_by(WORD) {
                to.add(word).cast::<u64>().write_unaligned(load_word(from.add(word)));
            }
            at += 8 * WORD;
        }
        while at + WORD <= bytes {
            to.add(at).cast::<u64>().write_unaligned(load_word(from.add(at)));
            at += WORD;
        }
        if at < bytes {
            let word = load_word(from.add(at)).to_ne_bytes();
            std::ptr::copy_nonoverlapping(word.as_ptr(), to.add(at), bytes - at);
        }
    }
}

/// Copies bytes in.
///
/// # Safety
/// All words that hold bytes of the destination are writable, and read and written by atomic
/// accesses alone while this runs; none of them is in `data`.
#[inline]
pub unsafe fn store(to: *mut u8, data: &[u8], neighbours: Neighbours) {
    let lead = to as usize % WORD;
    let mut at = 0;
    // SAFETY: every word that is stored to holds bytes of the destination.
    unsafe {
        if lead != 0 {
            at = data.len().min(WORD - lead);
            store_part(to.sub(lead), lead, &data[..at], neighbours);
        }
        while at + WORD <= data.len() {
            store_word(to.add(at), data.as_ptr().add(at).cast::<u64>().read_unaligned());
            at += WORD;
        }
        if at < data.len() {
            store_part(to.add(at), 0, &data[at..], neighbours);
        }
    }
}

/// Stores bytes into the word at an address, from its byte `first` on.
///
/// # Safety
/// As for [`store_word`]; the bytes lie inside of the word.
#[inline]
pub unsafe fn store_part(at: *mut u8, first: usize, data: &[u8], neighbours: Neighbours) {
    let (mut mask, mut bits) = ([0; WORD], [0; WORD]);
    mask[first..first + data.len()].fill(0xff);
    bits[first..first + data.len()].copy_from_slice(data);
    // SAFETY: by the caller.
    unsafe { merge(at, u64::from_ne_bytes(mask), u64::from_ne_bytes(bits), neighbours) }
}

/// Stores those bits of the word at an address that the mask names.
///
/// # Safety
/// As for [`store_word`].
#[inline]
pub unsafe fn merge(at: *mut u8, mask: u64, bits: u64, neighbours: Neighbours) {
    // SAFETY: by the caller.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    let mut old = word.load(Relaxed);
    if neighbours == Neighbours::Quiet {
        return word.store(old & !mask | bits, Relaxed);
    }
    while let Err(now) = word.compare_exchange_weak(old, old & !mask | bits, Relaxed, Relaxed) {
        old = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(8))]
    struct Aligned<const N: usize>([u8; N]);

    #[test]
    fn long_ranges_go_in_and_out_whole() {
        let pattern: Vec<u8> = (0..2000u32).map(|at| ((at * at) >> 3) as u8).collect();
        for (start, bytes) in [(0, 2000), (3, 1990), (7, LONG + 1), (8, LONG), (1, LONG + 6), (5, LONG + 70)] {
            let mut memory = Aligned([0; 2048]);
            let mut out = vec![0; bytes];
            // SAFETY: the ranges lie in the arrays, which no other thread knows.
            unsafe {
                store(memory.0.as_mut_ptr().add(start), &pattern[..bytes], Neighbours::Quiet);
                load(memory.0.as_ptr().add(start), out.as_mut_ptr(), bytes);
            }
            assert_eq!(out, pattern[..bytes]);
            assert_eq!(memory.0[start..start + bytes], pattern[..bytes]);
        }
    }

    #[test]
    fn every_range_of_bytes_goes_in_and_out_alone() {
        let pattern: Vec<u8> = (100..164).collect();
        for neighbours in [Neighbours::Quiet, Neighbours::Busy] {
            for start in 0..24 {
                for bytes in 0..32 {
                    let mut memory = Aligned([7; 64]);
                    let mut out = [0; 32];
                    // SAFETY: the ranges lie in the array, which no other thread knows.
                    unsafe {
                        store(memory.0.as_mut_ptr().add(start), &pattern[..bytes], neighbours);
                        load(memory.0.as_ptr().add(start), out.as_mut_ptr(), bytes);
                    }
                    assert_eq!(out[..bytes], pattern[..bytes]);
                    assert!(out[bytes..].iter().all(|&b| b == 0));
                    let outside = (0..64).filter(|at| !(start..start + bytes).contains(at));
                    assert!(outside.into_iter().all(|at| memory.0[at] == 7), "{bytes} bytes at {start}");
                }
            }
        }
    }

    #[test]
    fn threads_that_store_to_parts_of_one_word_keep_each_others() {
        let mut memory = Aligned([0; 64]);
        let base = memory.0.as_mut_ptr() as usize;
        std::thread::scope(|scope| {
            for part in 0..2 {
                scope.spawn(move || {
                    for value in 0..=200u8 {
                        // SAFETY: both threads access the word by atomics alone, and it outlives
                        // them.
                        unsafe { store((base as *mut u8).add(part * 3), &[value; 3], Neighbours::Busy) };
                    }
                });
            }
        });
        assert_eq!(memory.0[..8], [200, 200, 200, 200, 200, 200, 0, 0]);
    }
}
