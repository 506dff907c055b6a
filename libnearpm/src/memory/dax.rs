//! Mappings with synchronous page faults.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

/// A shared mapping with MAP_SYNC: metadata of the file system is durable before a page can be
/// written.
pub struct DaxMap {
    pointer: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread, and all access goes through raw copies.
unsafe impl Send for DaxMap {}
// SAFETY: as above.
unsafe impl Sync for DaxMap {}

impl DaxMap {
    /// Maps the file, or `None` where the file system does not grant it.
    pub fn new(file: &File, bytes: usize) -> Option<DaxMap> {
        // SAFETY: a new mapping at an address that the system chooses overlaps nothing.
        let pointer = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
                file.as_raw_fd(),
                0,
            )
        };
        (pointer != libc::MAP_FAILED).then_some(DaxMap { pointer: pointer.cast(), bytes })
    }

    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

impl Drop for DaxMap {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nothing refers to it any more.
        unsafe { libc::munmap(self.pointer.cast(), self.bytes) };
    }
}
