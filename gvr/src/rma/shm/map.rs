//! The memory file that all ranks map.

#![allow(unsafe_code)]

use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;

use crate::error::{Error, Result};
use crate::rma::memory::Memory;

/// A mapped memory file.
pub(super) struct Map {
    mapping: MmapRaw,
    memory: Memory,
    file: OwnedFd,
}

impl Map {
    pub fn create(bytes: u64) -> Result<Map> {
        let file = rustix::fs::memfd_create("nearpm-gvr", rustix::fs::MemfdFlags::empty())
            .map_err(Error::system("make a memory file for the ranks"))?;
        rustix::fs::ftruncate(&file, bytes).map_err(Error::system(format!("make a memory file of {bytes} bytes")))?;
        Map::open(file)
    }

    pub fn open(file: OwnedFd) -> Result<Map> {
        let mapping = MmapOptions::new().map_raw(&file).map_err(Error::io("map the memory file of the ranks"))?;
        // A log goes from page to page. Where the system has no large pages for memory files, it is
        // as right without.
        let _ = mapping.advise(memmap2::Advice::HugePage);
        // SAFETY: the file is whole pages, and whoever uses the memory has the map.
        let memory = unsafe { Memory::new(mapping.as_mut_ptr(), mapping.len() as u64) };
        Ok(Map { mapping, memory, file })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Fetches the pages of a range. Where the system cannot, each comes when it is first written.
    pub fn populate(&self, offset: u64, bytes: u64) {
        let start = offset / 4096 * 4096;
        let end = (offset + bytes).next_multiple_of(4096).min(self.bytes());
        let _ = self.mapping.advise_range(memmap2::Advice::PopulateWrite, start as usize, (end - start) as usize);
    }

    /// Gives memory back; what is read there next is zero.
    pub fn punch(&self, offset: u64, bytes: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes).map_err(Error::system("give memory of an array back"))
    }
}

impl Deref for Map {
    type Target = Memory;

    #[inline]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}
