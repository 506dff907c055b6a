//! A file that is mapped into the process.
//!
//! The unsafe code of the library's memory access is here and nowhere else: raw copies into and
//! out of a mapping, cache-line instructions, and the system calls that no safe crate covers.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use nearpm_interface::geometry::LINE_U64;

use super::{Memory, check_range};
use crate::error::Error;

/// What a pool on an ordinary file survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Survives {
    /// A crash of the process: the page cache holds what was stored, and nothing is flushed. A power
    /// cut or a crash of the operating system may corrupt the pool.
    ProcessCrash,
    /// A power cut. On a file of a DAX file system that costs cache-line write-backs and fences; on an ordinary file each
    /// fence is an `msync`.
    #[default]
    PowerCut,
    /// A power cut, if the caller is right that the file lies in persistent memory although the system does not
    /// say so: cache-line write-backs and fences, no `msync`. For emulated persistent memory and for measurements.
    AsPersistentMemory,
}

/// How stores become durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// They do not need to.
    Never,
    /// Cache-line write-back and fence.
    Lines,
    /// `msync` of what was written back since the last fence.
    Sync,
}

/// The mapping itself.
enum Map {
    Ordinary(MmapRaw),
    #[cfg(target_os = "linux")]
    Dax(dax::DaxMap),
}

/// A mapped file.
pub struct MappedMemory {
    map: Map,
    bytes: u64,
    flush: Flush,
    /// Range that was written back and not yet synchronised; empty where start is above end.
    pending_start: AtomicU64,
    pending_end: AtomicU64,
    /// Kept open: it holds the lock on the pool.
    _file: File,
    path: PathBuf,
}

impl MappedMemory {
    /// Maps all of a file, which must not be empty and must be open for reading and writing.
    ///
    /// The file must keep its size while it is mapped: the pool's lock on it tells other users of this library.
    pub fn map(file: File, path: &Path, survives: Survives) -> Result<MappedMemory, Error> {
        let context = |what: &str| format!("{what} {}", path.display());
        let bytes = file.metadata().map_err(|e| Error::system(context("read the size of"), e))?.len();
        let (map, flush) = match Self::map_dax(&file, bytes) {
            Some(map) => (map, if survives == Survives::ProcessCrash { Flush::Never } else { Flush::Lines }),
            None => {
                let map = MmapRaw::map_raw(&file).map_err(|e| Error::system(context("map"), e))?;
                let flush = match survives {
                    Survives::ProcessCrash => Flush::Never,
                    Survives::PowerCut => Flush::Sync,
                    Survives::AsPersistentMemory if cache::SUPPORTED => Flush::Lines,
                    Survives::AsPersistentMemory => Flush::Sync,
                };
                (Map::Ordinary(map), flush)
            }
        };
        Ok(MappedMemory {
            map,
            bytes,
            flush,
            pending_start: AtomicU64::new(u64::MAX),
            pending_end: AtomicU64::new(0),
            _file: file,
            path: path.to_owned(),
        })
    }

    /// A mapping whose page faults are synchronous, which only DAX file systems grant.
    #[cfg(target_os = "linux")]
    fn map_dax(file: &File, bytes: u64) -> Option<Map> {
        if !cache::SUPPORTED {
            return None;
        }
        dax::DaxMap::new(file, bytes as usize).map(Map::Dax)
    }

    #[cfg(not(target_os = "linux"))]
    fn map_dax(_: &File, _: u64) -> Option<Map> {
        None
    }

    /// Whether the file lies in persistent memory by the word of the operating system (DAX).
    pub fn is_dax(&self) -> bool {
        !matches!(self.map, Map::Ordinary(_))
    }

    fn pointer(&self) -> *mut u8 {
        match &self.map {
            Map::Ordinary(map) => map.as_mut_ptr(),
            #[cfg(target_os = "linux")]
            Map::Dax(map) => map.pointer(),
        }
    }

    fn synchronise(&self, start: u64, end: u64) -> Result<(), Error> {
        let Map::Ordinary(map) = &self.map else { return Ok(()) };
        map.flush_range(start as usize, (end - start) as usize)
            .map_err(|e| Error::system(format!("write {} to its medium", self.path.display()), e))
    }
}

impl Memory for MappedMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.bytes, offset, data.len() as u64);
        // SAFETY: the range lies in the mapping, which lives as long as `self`; `data` is a distinct
        // allocation, because no reference into the mapping is ever made.
        unsafe {
            let from = self.pointer().add(offset as usize);
            if data.len() == 8 && from.cast::<u64>().is_aligned() {
                data.copy_from_slice(&from.cast::<u64>().read_volatile().to_ne_bytes());
            } else {
                std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), data.len());
            }
        }
    }

    #[inline]
    fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.bytes, offset, data.len() as u64);
        // SAFETY: as for `load`. An aligned word is one volatile store, which the processor does not tear.
        unsafe {
            let to = self.pointer().add(offset as usize);
            match <[u8; 8]>::try_from(data) {
                Ok(word) if to.cast::<u64>().is_aligned() => to.cast::<u64>().write_volatile(u64::from_ne_bytes(word)),
                _ => std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()),
            }
        }
    }

    #[inline]
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
        if bytes == 0 {
            return;
        }
        match self.flush {
            Flush::Never => {}
            Flush::Lines => {
                let first = offset / LINE_U64 * LINE_U64;
                let mut line = first;
                while line < offset + bytes {
                    // SAFETY: the line begins inside the mapping, which is page aligned, so all of it is mapped.
                    unsafe { cache::write_back(self.pointer().add(line as usize)) };
                    line += LINE_U64;
                }
            }
            Flush::Sync => {
                self.pending_start.fetch_min(offset, Ordering::Relaxed);
                self.pending_end.fetch_max(offset + bytes, Ordering::Relaxed);
            }
        }
    }

    /// On an ordinary file that is to survive power cuts: one `msync` over everything from the
    /// first to the last line that was written back since the last fence.
    fn fence(&self) -> Result<(), Error> {
        match self.flush {
            // The compiler may not move stores of the program across either.
            Flush::Never => std::sync::atomic::fence(Ordering::Release),
            Flush::Lines => cache::fence(),
            Flush::Sync => {
                let start = self.pending_start.swap(u64::MAX, Ordering::Relaxed);
                let end = self.pending_end.swap(0, Ordering::Relaxed);
                if start < end {
                    self.synchronise(start, end).inspect_err(|_| {
                        self.pending_start.fetch_min(start, Ordering::Relaxed);
                        self.pending_end.fetch_max(end, Ordering::Relaxed);
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The processor's caches are coherent with a mapped file: there is nothing to drop.
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
    }

    fn address(&self) -> Option<*mut u8> {
        Some(self.pointer())
    }
}

/// Makes a file `bytes` long and reserves all of them on its medium. A failure may leave part of it reserved.
pub(crate) fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| std::io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call touches no memory.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

/// Bytes that are free on the medium of a file; `None` where the file system has no such limit.
#[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
pub(crate) fn free_bytes(file: &File) -> std::io::Result<Option<u64>> {
    let mut medium = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the descriptor is open, and the structure, of which zeros are a value, is this function's own.
    let medium = unsafe {
        if libc::fstatvfs(file.as_raw_fd(), medium.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        medium.assume_init()
    };
    Ok((medium.f_blocks != 0).then(|| (medium.f_bfree as u64).saturating_mul(medium.f_frsize as u64)))
}

/// Cache-line instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod cache {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid_count, _mm_clflush, _mm_sfence};
    use std::sync::LazyLock;

    /// Whether write-back by line is possible here.
    pub const SUPPORTED: bool = true;

    #[derive(Clone, Copy)]
    enum Instruction {
        Clwb,
        ClflushOpt,
        Clflush,
    }

    /// Intel SDM volume 2, CPUID leaf 7: EBX bit 24 is CLWB, bit 23 CLFLUSHOPT. CLFLUSH is in every x86-64.
    static BEST: LazyLock<Instruction> = LazyLock::new(|| {
        let features = __cpuid_count(7, 0).ebx;
        if features >> 24 & 1 == 1 {
            Instruction::Clwb
        } else if features >> 23 & 1 == 1 {
            Instruction::ClflushOpt
        } else {
            Instruction::Clflush
        }
    });

    /// Starts the write-back of a line.
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn write_back(line: *mut u8) {
        // SAFETY: the instructions read the address only; that it is mapped is the caller's duty,
        // and that the processor has them was asked.
        unsafe {
            match *BEST {
                Instruction::Clwb => asm!("clwb [{0}]", in(reg) line, options(nostack, preserves_flags)),
                Instruction::ClflushOpt => asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags)),
                Instruction::Clflush => _mm_clflush(line),
            }
        }
    }

    /// Earlier stores and write-backs become durable before later ones.
    #[inline]
    pub fn fence() {
        // SAFETY: SFENCE is in every x86-64 and touches no memory.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_sfence();
        }
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Elsewhere durability comes from `msync` alone.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod cache {
    pub const SUPPORTED: bool = false;

    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn write_back(_: *mut u8) {
        unreachable!("lines are written back only where that is supported");
    }
    pub fn fence() {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Mappings with synchronous page faults.
#[cfg(target_os = "linux")]
mod dax {
    use super::{AsRawFd, File};

    /// A shared mapping with MAP_SYNC: metadata of the file system is durable before a page can be written.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_in_the_file_in_each_way_to_survive() {
        let folder = tempfile::tempdir().unwrap();
        for survives in [Survives::ProcessCrash, Survives::PowerCut, Survives::AsPersistentMemory] {
            let path = folder.path().join(format!("{survives:?}"));
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            file.set_len(8192).unwrap();
            let memory = MappedMemory::map(file, &path, survives).unwrap();
            memory.store(4090, b"over a page");
            memory.store(16, &7u64.to_le_bytes());
            memory.write_back(4090, 11);
            memory.drain().unwrap();
            let mut read = [0; 11];
            memory.load(4090, &mut read);
            assert_eq!(&read, b"over a page");
            drop(memory);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(&bytes[4090..4101], b"over a page");
            assert_eq!(bytes[16], 7);
        }
    }

    #[test]
    #[should_panic(expected = "leaves a memory")]
    fn a_range_beyond_the_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        MappedMemory::map(file, &path, Survives::ProcessCrash).unwrap().store(u64::MAX - 3, &[0; 8]);
    }
}
