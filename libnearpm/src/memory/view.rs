//! What the program sees of a direct pool, and stores to.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;
#[cfg(not(miri))]
use memmap2::MmapOptions;

use super::check_range;
use super::guard::Guard;
use super::words::{self, Neighbours};
use crate::error::Error;

/// Bytes that the program reaches by pointer. The library reads and writes them by copies alone, of
/// atomic words ([`words`]), as typed objects are. That no plain store of a C program goes to a
/// range meanwhile that the program has named is the program's duty, as with every store that it
/// makes itself.
pub(crate) struct View {
    base: *mut u8,
    /// What may be used; the mapping may have more, for when its file grows.
    bytes: AtomicU64,
    /// Watches over pages of a file. Dropped before the mapping.
    guard: Option<Guard>,
    /// Private pages of this process, unless the view is persistent memory itself.
    map: Option<MmapMut>,
}

/// Aligned as memory is that is mapped.
#[cfg(miri)]
#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Page(#[allow(dead_code, reason = "only its size counts")] [u8; 4096]);

// SAFETY: the memory belongs to no thread, and all access goes through raw copies.
unsafe impl Send for View {}
// SAFETY: as above; who may touch which bytes when is agreed by the program.
unsafe impl Sync for View {}

impl View {
    /// Persistent memory itself.
    ///
    /// The memory must outlive the view: a pool drops its view first.
    pub fn in_place(base: *mut u8, bytes: u64) -> View {
        View { base, bytes: AtomicU64::new(bytes), guard: None, map: None }
    }

    /// Pages of this process.
    #[cfg(not(miri))]
    fn of_map(mut map: MmapMut) -> View {
        View { base: map.as_mut_ptr(), bytes: AtomicU64::new(map.len() as u64), guard: None, map: Some(map) }
    }

    /// Private pages of the first `bytes` bytes of a file.
    pub fn of_file(mut map: MmapMut, bytes: u64, guard: Guard) -> View {
        View { base: map.as_mut_ptr(), bytes: AtomicU64::new(bytes), guard: Some(guard), map: Some(map) }
    }

    /// Whether nothing was lost.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.guard.as_ref().is_none_or(Guard::is_whole)
    }

    /// Whether everything that was loaded was there.
    ///
    /// # Errors
    /// As [`Guard::check`].
    #[inline]
    pub fn alive(&self) -> Result<(), Error> {
        self.guard.as_ref().map_or(Ok(()), Guard::check)
    }

    /// Zeroed pages of this process.
    #[cfg(miri)]
    pub fn anonymous(bytes: u64) -> Result<View, Error> {
        // The interpreter maps no memory. What is leaked here lives no shorter than what a test
        // does with it.
        let pages = vec![Page([0; 4096]); (bytes as usize).div_ceil(4096)];
        Ok(View {
            base: Box::leak(pages.into_boxed_slice()).as_mut_ptr().cast(),
            bytes: AtomicU64::new(bytes),
            guard: None,
            map: None,
        })
    }

    /// Zeroed pages of this process.
    #[cfg(not(miri))]
    pub fn anonymous(bytes: u64) -> Result<View, Error> {
        let map = MmapOptions::new().len(bytes as usize).no_reserve_swap().map_anon();
        Ok(View::of_map(map.map_err(|e| Error::system("take memory for a working copy", e))?))
    }

    /// Its length.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Its file has grown.
    pub fn grow(&self, bytes: u64) {
        self.guard.iter().for_each(|guard| guard.grow(bytes));
        self.bytes.fetch_max(bytes, Ordering::Release);
    }

    /// Address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Copies bytes out.
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.bytes(), offset, data.len() as u64);
        // SAFETY: the range lies in the view, which is whole pages; `data` is another allocation.
        unsafe { words::load(self.base.add(offset as usize), data.as_mut_ptr(), data.len()) }
    }

    /// Appends bytes to a buffer.
    #[inline(always)]
    pub fn append(&self, offset: u64, bytes: usize, buffer: &mut Vec<u8>) {
        check_range(self.bytes(), offset, bytes as u64);
        buffer.reserve(bytes);
        // SAFETY: the range lies in the view; the buffer has room for it, and its length covers
        // only what was copied.
        unsafe {
            let (from, end) = (self.base.add(offset as usize), buffer.as_mut_ptr().add(buffer.len()));
            // What most transactions change, a word or the two of an identifier, is as many moves.
            let is_aligned = (from as usize).is_multiple_of(words::WORD);
            if is_aligned && (bytes == words::WORD || bytes == 2 * words::WORD) {
                for at in (0..bytes).step_by(words::WORD) {
                    end.add(at).cast::<u64>().write_unaligned(words::load_word(from.add(at)));
                }
            } else {
                words::load(from, end, bytes);
            }
            buffer.set_len(buffer.len() + bytes);
        }
    }

    /// Copies bytes in. An aligned word is one store, which the processor does not tear.
    pub fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.bytes(), offset, data.len() as u64);
        // SAFETY: as for `load`.
        unsafe { words::store(self.base.add(offset as usize), data, Neighbours::Busy) }
    }

    /// Takes the right to store away from everybody.
    pub fn freeze(&self) -> Result<(), Error> {
        // SAFETY: the range is this mapping, of which nothing but raw copies is made; a store to it
        // from now on ends the process, which the callers of this promise not to do.
        let done = unsafe { libc::mprotect(self.base.cast(), self.bytes() as usize, libc::PROT_READ) };
        let error = std::io::Error::last_os_error;
        if done == 0 { Ok(()) } else { Err(Error::system("protect the pages of a pool that is only read", error())) }
    }

    /// Gives private pages their memory before they are stored to: one call instead of a page fault
    /// for each. What fails is left to the page faults.
    pub fn populate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
        #[cfg(target_os = "linux")]
        if self.map.is_some() {
            // SAFETY: the range lies in this mapping; the call changes no byte of it.
            unsafe { libc::madvise(self.base.add(offset as usize).cast(), bytes as usize, libc::MADV_POPULATE_WRITE) };
        }
    }
}
