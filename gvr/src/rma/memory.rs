//! Memory that several ranks have mapped, and accesses to it.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64};

use nearpm::memory::words::{self, Neighbours};

/// Mapped memory. Every access is checked against its size.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    base: *mut u8,
    bytes: u64,
}

// SAFETY: all access is by atomic words, or by copies that keep to the rules of [`words`].
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// Whole pages that are mapped to be read and written as long as this or a copy of it is used,
    /// and are accessed by such alone.
    pub unsafe fn new(base: *mut u8, bytes: u64) -> Memory {
        Memory { base, bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn at(&self, offset: u64, bytes: usize, align: u64) -> *mut u8 {
        let fits = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes);
        assert!(fits && offset.is_multiple_of(align), "{bytes} bytes at {offset:#x} leave the memory of the ranks");
        // SAFETY: the range lies inside of the mapping.
        unsafe { self.base.add(offset as usize) }
    }

    #[inline]
    pub fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: aligned and mapped as long as `self`, and accessed atomically alone.
        unsafe { AtomicU64::from_ptr(self.at(offset, 8, 8).cast()) }
    }

    /// Neighbouring words.
    #[inline]
    pub fn words(&self, offset: u64, count: usize) -> &[AtomicU64] {
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(self.at(offset, 8 * count, 8).cast::<AtomicU64>(), count) }
    }

    #[inline]
    pub fn half(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: as in `word`. Where it is half of a word that is accessed as one, too, its
        // address alone is used: the kernel waits there (a futex), and no load or store of this
        // process is by halves.
        unsafe { AtomicU32::from_ptr(self.at(offset, 4, 4).cast()) }
    }

    #[inline]
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        // SAFETY: mapped, as it is whole pages; other ranks change it by atomic words or by copies
        // that are as good.
        unsafe { words::load(self.at(offset, data.len(), 1), data.as_mut_ptr(), data.len()) }
    }

    #[inline]
    pub fn store(&self, offset: u64, data: &[u8]) {
        // SAFETY: as in `load`.
        unsafe { words::store(self.at(offset, data.len(), 1), data, Neighbours::Busy) }
    }

    /// Copies between two places that do not overlap, the second of which nobody else accesses
    /// meanwhile.
    pub fn copy(&self, from: u64, to: u64, bytes: usize) {
        assert!(from.abs_diff(to) >= bytes as u64, "a copy of {bytes} bytes onto itself");
        // SAFETY: as in `load`; the destination lies outside of the source, and is this rank's
        // alone.
        unsafe { words::load(self.at(from, bytes, 1), self.at(to, bytes, 1), bytes) }
    }

    /// Zeroes bytes that nobody else accesses meanwhile.
    #[cfg(feature = "mpi")]
    pub fn clear(&self, offset: u64, bytes: u64) {
        // SAFETY: as in `load`, and no other rank's.
        unsafe { self.at(offset, bytes as usize, 1).write_bytes(0, bytes as usize) };
    }
}
