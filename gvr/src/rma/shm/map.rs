//! The memory file that all ranks map, and accesses to it.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};
use nearpm::memory::words::{self, Neighbours};
use rustix::fs::FallocateFlags;

use crate::error::{Error, Result};

/// A mapped memory file. Every access is checked against its size.
pub(super) struct Map {
    memory: MmapRaw,
    file: OwnedFd,
}

// SAFETY: all access is by atomic words, or by copies that keep to the rules of [`words`].
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub fn create(bytes: u64) -> Result<Map> {
        let file = rustix::fs::memfd_create("nearpm-gvr", rustix::fs::MemfdFlags::empty())
            .map_err(Error::system("make a memory file for the ranks"))?;
        rustix::fs::ftruncate(&file, bytes).map_err(Error::system(format!("make a memory file of {bytes} bytes")))?;
        Map::open(file)
    }

    pub fn open(file: OwnedFd) -> Result<Map> {
        let memory = MmapOptions::new().map_raw(&file).map_err(Error::io("map the memory file of the ranks"))?;
        // A log goes from page to page. Where the system has no large pages for memory files, it is as right without.
        let _ = memory.advise(memmap2::Advice::HugePage);
        Ok(Map { memory, file })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Fetches the pages of a range. Where the system cannot, each comes when it is first written.
    pub fn populate(&self, offset: u64, bytes: u64) {
        let start = offset / 4096 * 4096;
        let end = (offset + bytes).next_multiple_of(4096).min(self.bytes());
        let _ = self.memory.advise_range(memmap2::Advice::PopulateWrite, start as usize, (end - start) as usize);
    }

    /// Gives memory back; what is read there next is zero.
    pub fn punch(&self, offset: u64, bytes: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes).map_err(Error::system("give memory of an array back"))
    }

    #[inline]
    fn at(&self, offset: u64, bytes: usize, align: u64) -> *mut u8 {
        let fits = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes());
        assert!(fits && offset.is_multiple_of(align), "{bytes} bytes at {offset:#x} leave the memory of the ranks");
        // SAFETY: the range lies inside of the mapping.
        unsafe { self.memory.as_mut_ptr().add(offset as usize) }
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
        // SAFETY: as in `word`; nothing accesses it as part of a word.
        unsafe { AtomicU32::from_ptr(self.at(offset, 4, 4).cast()) }
    }

    #[inline]
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        // SAFETY: mapped, since the file is whole pages; other ranks change it by atomic words or by copies that are as good.
        unsafe { words::load(self.at(offset, data.len(), 1), data.as_mut_ptr(), data.len()) }
    }

    #[inline]
    pub fn store(&self, offset: u64, data: &[u8]) {
        // SAFETY: as in `load`.
        unsafe { words::store(self.at(offset, data.len(), 1), data, Neighbours::Busy) }
    }

    /// Copies between two places that do not overlap, the second of which nobody else accesses meanwhile.
    pub fn copy(&self, from: u64, to: u64, bytes: usize) {
        assert!(from.abs_diff(to) >= bytes as u64, "a copy of {bytes} bytes onto itself");
        // SAFETY: as in `load`; the destination lies outside of the source, and is this rank's alone.
        unsafe { words::load(self.at(from, bytes, 1), self.at(to, bytes, 1), bytes) }
    }
}
