//! A file that is mapped into the process.
//!
//! The unsafe code of the library's memory access is here and nowhere else: raw copies into and
//! out of a mapping, cache-line instructions, and the system calls that no safe crate covers.

#![allow(unsafe_code)]

use std::collections::TryReserveError;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use nearpm_driver::cache;
use nearpm_interface::geometry::{LINE, LINE_U64};
#[cfg(all(target_os = "linux", not(miri)))]
use nearpm_interface::media::PAGE_BYTES;

#[cfg(target_os = "linux")]
use super::dax;
use super::guard::Guard;
use super::space::{self, Data, Space};
use super::synchronising::Synchronising;
use super::view::View;
use super::writes::{self, FileWrites};
use super::{Memory, check_range, persistence_domain};
use crate::error::{Error, Problem};

/// What a pool on an ordinary file survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Survives {
    /// A crash of the process: the page cache holds what was stored, and nothing is flushed. A
    /// power cut or a crash of the operating system may corrupt the pool.
    ProcessCrash,
    /// A power cut. On a file of a DAX file system that costs cache-line write-backs and fences; on
    /// an ordinary file each fence is an `msync`.
    #[default]
    PowerCut,
    /// A power cut, if the caller is right that the file lies in persistent memory although the
    /// system does not say so: cache-line write-backs and fences, no `msync`. For emulated
    /// persistent memory and for measurements.
    AsPersistentMemory,
    /// As [`Survives::AsPersistentMemory`], where the power supply saves the processors' caches as
    /// well (eADR): fences alone. On a DAX file system that is found out without being told.
    AsPersistentCaches,
}

/// How stores to a mapped file become durable: what follows of [`Survives`] on the file system that
/// the file lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flush {
    /// They do not need to.
    Never,
    /// A fence: the caches are persistent.
    Order,
    /// Cache-line write-back and fence.
    Lines,
    /// `msync` of what was written back since the last fence.
    Sync,
}

impl Flush {
    /// What makes stores durable, for people.
    pub fn name(self) -> &'static str {
        match self {
            Flush::Never => "nothing, for a crash of the process alone",
            Flush::Order => "fences",
            Flush::Lines => "cache-line write-backs and fences",
            Flush::Sync => "msync",
        }
    }
}

/// The mapping itself.
enum Map {
    Ordinary(MmapRaw),
    #[cfg(target_os = "linux")]
    Dax(dax::DaxMap),
}

impl Map {
    fn pointer(&self) -> *mut u8 {
        match self {
            Map::Ordinary(map) => map.as_mut_ptr(),
            #[cfg(target_os = "linux")]
            Map::Dax(map) => map.pointer(),
        }
    }
}

/// A mapped file.
pub struct MappedMemory {
    /// Dropped before the mapping.
    guard: Guard,
    map: Map,
    /// Those of the file; the mapping may have more, for when it grows.
    bytes: AtomicU64,
    most: u64,
    flush: Flush,
    /// Where stores are calls, not stores to the mapping.
    writes: Option<FileWrites>,
    synchronising: Synchronising,
    /// Where the file has room on its medium, unless that is everywhere.
    space: Option<Space>,
    data: Data,
    /// Kept open: it holds the lock on the pool.
    file: File,
    path: PathBuf,
}

impl MappedMemory {
    /// Maps all of a file, which must not be empty and must be open for reading and writing.
    ///
    /// The file should keep its size while it is mapped: the pool's lock on it tells other users of
    /// this library. If it does not, or if its medium has no room for a hole, what is loaded from
    /// there is zeros and what is stored is lost, and fences fail from then on.
    pub fn map(file: File, path: &Path, survives: Survives) -> Result<MappedMemory, Error> {
        Self::map_up_to(file, path, survives, 0)
    }

    /// The same for a file that may grow to `most` bytes while it is mapped ([`Memory::grow`]):
    /// addresses stay.
    pub fn map_up_to(file: File, path: &Path, survives: Survives, most: u64) -> Result<MappedMemory, Error> {
        let context = |what: &str| format!("{what} {}", path.display());
        let bytes = file.metadata().map_err(|e| Error::system(context("read the size of"), e))?.len();
        let most = most.max(bytes);
        let (map, flush) = match Self::map_dax(&file, most) {
            Some(map) => {
                let flush = match survives {
                    Survives::ProcessCrash => Flush::Never,
                    Survives::AsPersistentCaches => Flush::Order,
                    _ if persistence_domain::includes_caches() => Flush::Order,
                    Survives::PowerCut | Survives::AsPersistentMemory => Flush::Lines,
                };
                (map, flush)
            }
            None => {
                let length = usize::try_from(most).map_err(|_| Problem::NoSpace { needed: most }.at(path.display()))?;
                let map = MmapOptions::new().len(length).no_reserve_swap().map_raw(&file);
                let map = map.map_err(|e| Error::system(context("map"), e))?;
                let flush = match survives {
                    Survives::ProcessCrash => Flush::Never,
                    Survives::PowerCut => Flush::Sync,
                    Survives::AsPersistentMemory if cache::SUPPORTED => Flush::Lines,
                    Survives::AsPersistentCaches if cache::SUPPORTED => Flush::Order,
                    Survives::AsPersistentMemory | Survives::AsPersistentCaches => Flush::Sync,
                };
                (Map::Ordinary(map), flush)
            }
        };
        let space = Space::of(&file, bytes, most).map_err(|e| Error::system(context("look for holes in"), e))?;
        let guard = Guard::new(&file, path, map.pointer(), bytes, false)?;
        let writes = if flush == Flush::Sync { FileWrites::new(&file, bytes) } else { None };
        let synchronising = Synchronising::new(&file, most, flush == Flush::Sync);
        let bytes = AtomicU64::new(bytes);
        let (data, path) = (Data::default(), path.to_owned());
        Ok(MappedMemory { guard, map, bytes, most, flush, writes, synchronising, space, data, file, path })
    }

    /// Takes room on the medium for a range, where the file has holes.
    ///
    /// # Errors
    /// [`Problem::NoSpace`]; what the system refuses.
    pub fn secure(&self, range: &Range<u64>) -> Result<(), Error> {
        let Some(space) = &self.space else { return Ok(()) };
        space.secure(&self.file, range).map_err(|error| match space::is_full(&error) {
            true => Problem::NoSpace { needed: range.end - range.start }.at(self.path.display()),
            false => Error::system(format!("reserve room for {}", self.path.display()), error),
        })
    }

    /// Whether nothing was lost.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.guard.is_whole()
    }

    /// Whether every byte has room on the medium.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.space.is_none()
    }

    /// The parts of a range that may be other than zero.
    pub(crate) fn data(&self, range: Range<u64>) -> Vec<Range<u64>> {
        // A file without holes is asked where it has room that was never written, which tmpfs does
        // not tell, and takes long not to tell.
        if self.is_complete() && space::is_tmpfs(&self.file) {
            return vec![range];
        }
        self.data.parts(&self.file, range)
    }

    /// Whether a range may be accessed through the mapping.
    #[inline]
    fn is_secure(&self, offset: u64, bytes: usize) -> bool {
        self.space.as_ref().is_none_or(|space| space.has(&(offset..offset + bytes as u64)))
    }

    /// Loads by a call, which takes no room for holes.
    #[cold]
    fn load_beside(&self, offset: u64, data: &mut [u8]) {
        if self.file.read_exact_at(data, offset).is_err() {
            data.fill(0);
            if self.guard.check_size().is_ok() {
                self.guard.lose_unread();
            }
        }
    }

    /// Takes room for a store; without it the store is left out, and fences fail.
    #[cold]
    fn secure_store(&self, offset: u64, bytes: usize) -> bool {
        let secured = self.secure(&(offset..offset + bytes as u64));
        if secured.is_err() {
            self.guard.lose_for_room();
        }
        secured.is_ok()
    }

    /// Notes what the next drain is to synchronise. Apart, so that write-backs by instructions save
    /// no registers for its lock.
    #[inline(never)]
    fn write_back_by_call(&self, offset: u64, bytes: u64) {
        self.synchronising.add(offset, offset + bytes);
    }

    /// As [`Memory::stream`] of lines that the view has at the same place; `false` where stores do
    /// not go to the mapping, or find no room.
    pub(super) fn stream_from(&self, view: &View, offset: u64, bytes: u64) -> bool {
        check_range(self.bytes(), offset, bytes);
        check_range(view.bytes(), offset, bytes);
        assert!(offset.is_multiple_of(LINE_U64) && bytes.is_multiple_of(LINE_U64), "whole lines are streamed");
        if !matches!(self.flush, Flush::Lines | Flush::Order) || !self.is_secure(offset, bytes as usize) {
            return false;
        }
        // SAFETY: the ranges lie in two mappings, whose starts are page aligned; a view is changed
        // by atomic stores, or those of the program, which answers for them.
        unsafe {
            cache::stream_from(self.pointer().add(offset as usize), view.base().add(offset as usize), bytes as usize)
        };
        true
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

    /// How stores to it become durable.
    pub fn flush(&self) -> Flush {
        self.flush
    }

    /// Maps every page at once, so that no access waits for a page fault. Where durability is
    /// `msync`'s, for loads alone: the system protects a page against stores whenever it has
    /// written it, so that the first store behind each `msync` faults anyway. What fails is left to
    /// the page faults.
    pub fn populate(&self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let advice = if self.flush == Flush::Sync { libc::MADV_POPULATE_READ } else { libc::MADV_POPULATE_WRITE };
            // SAFETY: the range is this mapping; the call changes no byte of it.
            unsafe { libc::madvise(self.pointer().cast(), self.bytes() as usize, advice) };
        }
    }

    /// Maps the pages of a range that will be stored to, as [`MappedMemory::populate`] does all.
    fn populate_ahead(&self, offset: u64, bytes: u64) {
        // A page fault takes room of its medium, too, but nobody has asked for that yet.
        if self.flush == Flush::Sync || !self.is_secure(offset, bytes as usize) {
            return;
        }
        // SAFETY: the range lies in this mapping.
        unsafe { populate_pages(self.pointer().add(offset as usize), bytes as usize) };
    }

    /// Takes pages out of this process that the system holds in any case: the next access maps them
    /// again. Their bytes stay.
    pub fn let_pages_go(&self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if matches!(self.map, Map::Ordinary(_)) {
            // SAFETY: the range is this mapping, which is one of a file and shared, so that the
            // call changes no byte of it.
            unsafe { libc::madvise(self.pointer().cast(), self.bytes() as usize, libc::MADV_DONTNEED) };
        }
    }

    /// A private mapping of the same file: it shows what the file holds, and what is stored to it
    /// stays in this process.
    pub(crate) fn private_view(&self) -> Result<View, Error> {
        private_view_up_to(&self.file, &self.path, self.bytes(), self.most)
    }

    /// Whether the file lies in persistent memory by the word of the operating system (DAX).
    pub fn is_dax(&self) -> bool {
        !matches!(self.map, Map::Ordinary(_))
    }

    fn pointer(&self) -> *mut u8 {
        self.map.pointer()
    }

    /// Whether calls may store to a range.
    fn may_write(&self, writes: &FileWrites, offset: u64, bytes: usize) -> bool {
        // It may be made of zeros in the place of what could not be read. Fences fail from then on.
        // Written to its end, a file that another program cut short would have its size again.
        self.guard.check().is_ok() && !(writes.reaches_end(offset, bytes) && self.guard.check_size().is_err())
    }

    /// Stores by a call. A store has nobody to tell of a failure: the next fence does.
    fn write(&self, writes: &FileWrites, offset: u64, data: &[u8]) {
        if !self.may_write(writes, offset, data.len()) {
            return;
        }
        match writes.write(&self.file, offset, data) {
            Ok(beside) if beside.is_empty() => {}
            Ok(beside) => self.synchronising.add(beside.start, beside.end),
            Err(error) => self.synchronising.fail(&error),
        }
    }

    fn synchronise(&self) -> Result<(), Error> {
        let Map::Ordinary(map) = &self.map else { return Ok(()) };
        self.synchronising
            .synchronise(map)
            .map_err(|e| Error::system(format!("write {} to its medium", self.path.display()), e))?;
        // Behind it: what was cut off before is not on the medium, and no error of the call tells.
        self.guard.check_size()
    }
}

/// Has room for so many bytes more in a buffer, and gives what it grows by its pages at once where
/// that is long: one call instead of a page fault for each as it fills.
pub(crate) fn reserve_populated(buffer: &mut Vec<u8>, more: usize) -> Result<(), TryReserveError> {
    /// Fewer bytes are in pages that are there, or soon touched.
    const LEAST: usize = 64 << 10;
    let before = buffer.capacity();
    buffer.try_reserve(more)?;
    if buffer.capacity() != before && buffer.capacity() >= LEAST {
        let spare = buffer.spare_capacity_mut();
        // SAFETY: the bytes are this buffer's own.
        unsafe { populate_pages(spare.as_mut_ptr().cast(), spare.len()) };
    }
    Ok(())
}

/// Maps the pages that bytes lie in, for stores. What fails is left to the page faults.
///
/// # Safety
/// The bytes are mapped.
unsafe fn populate_pages(start: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let before = start as usize % PAGE_BYTES as usize;
        // SAFETY: the call changes no byte, and what else lies in the first and last page is mapped
        // as the bytes are.
        unsafe { libc::madvise(start.sub(before).cast(), before + bytes, libc::MADV_POPULATE_WRITE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes);
}

impl Memory for MappedMemory {
    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn grow(&self, bytes: u64) -> Result<(), Error> {
        let former = self.bytes();
        if bytes <= former {
            return Ok(());
        }
        let refuse = |problem: Problem| problem.at(self.path.display());
        if bytes > self.most {
            return Err(refuse(Problem::BadOption { what: "it was not opened to grow so far (Options::growth)" }));
        }
        if self.writes.is_some() && !writes::may_write(bytes) {
            return Err(refuse(Problem::NoSpace { needed: bytes - former }));
        }
        super::extend(&self.path, &self.file, former, bytes)?;
        self.writes.iter().for_each(|writes| writes.grow(&self.file, bytes));
        self.space.iter().for_each(|space| space.grow(former, bytes));
        self.guard.grow(bytes);
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.bytes(), offset, data.len() as u64);
        if !self.is_secure(offset, data.len()) {
            return self.load_beside(offset, data);
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self`; `data` is a
        // distinct allocation, because no reference into the mapping is ever made.
        unsafe {
            let from = self.pointer().add(offset as usize);
            if data.len() == 8 && from.cast::<u64>().is_aligned() {
                data.copy_from_slice(&from.cast::<u64>().read_volatile().to_ne_bytes());
            } else {
                std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), data.len());
            }
        }
    }

    // Of one word it is a few instructions, which a call would double.
    #[inline(always)]
    fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.bytes(), offset, data.len() as u64);
        if !self.is_secure(offset, data.len()) && !self.secure_store(offset, data.len()) {
            return;
        }
        if let Some(writes) = &self.writes {
            return self.write(writes, offset, data);
        }
        // SAFETY: as for `load`. An aligned word is one volatile store, which the processor does
        // not tear.
        unsafe {
            let to = self.pointer().add(offset as usize);
            match <[u8; 8]>::try_from(data) {
                Ok(word) if to.cast::<u64>().is_aligned() => to.cast::<u64>().write_volatile(u64::from_ne_bytes(word)),
                _ => std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()),
            }
        }
    }

    fn write_ahead(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
        let Some(writes) = &self.writes else { return self.populate_ahead(offset, bytes) };
        if writes.reaches_end(offset, bytes as usize) || self.guard.check().is_err() {
            return;
        }
        let written = writes.write_ahead(&self.file, offset..offset + bytes);
        if !written.is_empty() {
            self.synchronising.add(written.start, written.end);
        }
    }

    #[inline]
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
        if bytes == 0 {
            return;
        }
        match self.flush {
            Flush::Never | Flush::Order => {}
            Flush::Lines => {
                let first = offset / LINE_U64 * LINE_U64;
                let count = (offset + bytes).div_ceil(LINE_U64) - first / LINE_U64;
                // SAFETY: the lines begin inside the mapping, which is page aligned, so all of them
                // are mapped.
                unsafe { cache::write_back_lines(self.pointer().add(first as usize), count as usize) };
            }
            Flush::Sync => self.write_back_by_call(offset, bytes),
        }
    }

    fn stream(&self, offset: u64, lines: &[u8]) {
        if !matches!(self.flush, Flush::Lines | Flush::Order) {
            self.store(offset, lines);
            return self.write_back(offset, lines.len() as u64);
        }
        check_range(self.bytes(), offset, lines.len() as u64);
        assert!(offset.is_multiple_of(LINE_U64) && lines.len().is_multiple_of(LINE), "whole lines are streamed");
        if !self.is_secure(offset, lines.len()) && !self.secure_store(offset, lines.len()) {
            return;
        }
        // SAFETY: the range lies in the mapping, whose start is page aligned, so that it is whole
        // lines of it.
        unsafe { cache::stream(self.pointer().add(offset as usize), lines) };
    }

    /// What else awaits the drain would wait for its own write behind this one, so that both go to
    /// the page cache then.
    fn append(&self, offset: u64, lines: &[u8]) {
        let Some(writes) = &self.writes else { return self.stream(offset, lines) };
        check_range(self.bytes(), offset, lines.len() as u64);
        let end = offset + lines.len() as u64;
        if self.is_secure(offset, lines.len())
            && self.synchronising.is_idle()
            && self.may_write(writes, offset, lines.len())
            && writes.append(offset, lines)
        {
            return self.write_back(offset, lines.len() as u64);
        }
        self.stream(offset, lines);
        writes.expect_appends(&self.file, end);
    }

    /// On an ordinary file that is to survive power cuts: one `msync` over everything from the
    /// first to the last line that was written back since the last fence.
    fn fence(&self) -> Result<(), Error> {
        match self.flush {
            // The compiler may not move stores of the program across either.
            Flush::Never => std::sync::atomic::fence(Ordering::Release),
            Flush::Lines | Flush::Order => cache::fence(),
            Flush::Sync => self.synchronise()?,
        }
        self.alive()
    }

    /// Whether everything that was loaded and stored was there.
    #[inline]
    fn alive(&self) -> Result<(), Error> {
        self.guard.check()
    }

    fn drains_for_all(&self) -> bool {
        self.flush == Flush::Sync
    }

    fn keeps_order(&self) -> bool {
        self.flush != Flush::Sync
    }

    /// The processor's caches are coherent with a mapped file: there is nothing to drop.
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn address(&self) -> Option<*mut u8> {
        if let Some(writes) = &self.writes {
            writes.note_pointers();
        }
        Some(self.pointer())
    }
}

/// A private mapping of the first `bytes` bytes of a file that is locked. Memory is taken for what
/// is stored to alone.
pub(crate) fn private_view(file: &File, path: &Path, bytes: u64) -> Result<View, Error> {
    private_view_up_to(file, path, bytes, bytes)
}

/// The same of a file that may grow to `most` bytes.
fn private_view_up_to(file: &File, path: &Path, bytes: u64, most: u64) -> Result<View, Error> {
    let length = usize::try_from(most).map_err(|_| Problem::NoSpace { needed: most }.at(path.display()))?;
    // SAFETY: the pool's lock keeps other users of this library away from the file; bytes that
    // others change under the mapping would be seen as other values, and nothing refers to them but
    // by raw copies.
    let map = unsafe { MmapOptions::new().len(length).no_reserve_swap().map_copy(file) };
    let mut map = map.map_err(|e| Error::system(format!("map a working copy of {}", path.display()), e))?;
    let guard = Guard::new(file, path, map.as_mut_ptr(), bytes, true)?;
    Ok(View::of_file(map, bytes, guard))
}

/// Makes a file `bytes` long and reserves all of them on its medium. A failure may leave part of it
/// reserved.
pub(crate) fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    allocate_range(file, 0..bytes)
}

/// The same for a part at its end, so that what is in front of that is left as it is.
pub(crate) fn allocate_range(file: &File, range: Range<u64>) -> std::io::Result<()> {
    let number = |of| libc::off_t::try_from(of).map_err(|_| std::io::Error::from_raw_os_error(libc::EFBIG));
    let (start, length) = (number(range.start)?, number(range.end - range.start)?);
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call touches no memory.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), start, length) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

/// Bytes that are free on the medium of a file; `None` where the file system has no such limit.
#[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
pub(crate) fn free_bytes(file: &File) -> std::io::Result<Option<u64>> {
    let mut medium = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the descriptor is open, and the structure, of which zeros are a value, is this
    // function's own.
    let medium = unsafe {
        if libc::fstatvfs(file.as_raw_fd(), medium.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        medium.assume_init()
    };
    Ok((medium.f_blocks != 0).then(|| (medium.f_bfree as u64).saturating_mul(medium.f_frsize as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_in_the_file_in_each_way_to_survive() {
        let folder = tempfile::tempdir().unwrap();
        use Survives::{AsPersistentCaches, AsPersistentMemory, PowerCut, ProcessCrash};
        for survives in [ProcessCrash, PowerCut, AsPersistentMemory, AsPersistentCaches] {
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
    fn how_stores_become_durable_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let flush = |survives| {
            let path = folder.path().join(format!("{survives:?}"));
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            file.set_len(4096).unwrap();
            let memory = MappedMemory::map(file, &path, survives).unwrap();
            (memory.flush(), memory.is_dax())
        };
        assert_eq!(flush(Survives::ProcessCrash).0, Flush::Never);
        // On a DAX file system nothing is left to `msync`.
        let (flush, is_dax) = flush(Survives::PowerCut);
        assert_eq!(flush == Flush::Sync, !is_dax);
    }

    #[test]
    fn pages_that_are_let_go_keep_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(3 * 4096).unwrap();
        let memory = MappedMemory::map(file, &path, Survives::ProcessCrash).unwrap();
        memory.store(4090, b"over a page");
        memory.let_pages_go();
        let mut read = [0; 11];
        memory.load(4090, &mut read);
        assert_eq!(&read, b"over a page");
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn pages_that_are_let_go_are_fetched_again() {
        const PAGES: u64 = 4096;
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let path = folder.path().join("m");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        allocate(&file, PAGES * 4096).unwrap();
        let memory = MappedMemory::map(file, &path, Survives::AsPersistentMemory).unwrap();
        let faults_of_loads = || {
            let (before, mut byte) = (faults(), [0]);
            (0..PAGES).for_each(|page| memory.load(page * 4096, &mut byte));
            faults() - before
        };
        memory.populate();
        let kept = faults_of_loads();
        memory.let_pages_go();
        let let_go = faults_of_loads();
        // A system may map several pages at a fault.
        assert!(let_go >= 8 && kept < let_go / 4, "{let_go} page faults behind letting go, {kept} before");
    }

    /// Page faults of this thread that needed no medium.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn faults() -> libc::c_long {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the structure, of which zeros are a value, is this function's own.
        let usage = unsafe {
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
            usage.assume_init()
        };
        usage.ru_minflt
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn stores_to_populated_memory_meet_no_page_faults() {
        const PAGES: u64 = 4096;
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let faults_of_stores = |name: &str, populated: bool| {
            let path = folder.path().join(name);
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            allocate(&file, PAGES * 4096).unwrap();
            let memory = MappedMemory::map(file, &path, Survives::AsPersistentMemory).unwrap();
            if populated {
                memory.populate();
            }
            let before = faults();
            (0..PAGES).for_each(|page| memory.store(page * 4096, &[1]));
            faults() - before
        };
        // A system may map several pages at a fault.
        let (without, with) = (faults_of_stores("without", false), faults_of_stores("with", true));
        assert!(without >= 8 && with < without / 4, "{with} page faults where it was populated, else {without}");
    }

    /// Neither in the log nor in the memory for copies of its records, which is that of the
    /// process.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn commits_of_a_populated_pool_meet_hardly_a_page_fault() {
        use crate::direct::tests::store::poke;
        use crate::direct::{DirectPool, Mode};
        use crate::options::Options;

        const COMMITS: usize = 1000;
        const BYTES: u64 = 1024;
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        for mode in [Mode::WorkingCopy, Mode::InPlace] {
            let options = Options::new().mode(mode).survives(Survives::AsPersistentMemory).prefault(true);
            let path = folder.path().join(mode.name());
            let pool = DirectPool::create(path.to_str().unwrap(), 64 << 20, &options).unwrap();
            let mut tx = pool.begin().unwrap();
            let object = tx.alloc(&pool, BYTES).unwrap().offset;
            poke(&pool, object, &[1; BYTES as usize]);
            tx.commit(&pool).unwrap();
            let before = faults();
            for number in 0..COMMITS {
                let mut tx = pool.begin().unwrap();
                tx.add(&pool, object..object + BYTES).unwrap();
                poke(&pool, object, &[number as u8; BYTES as usize]);
                tx.commit(&pool).unwrap();
            }
            let met = faults() - before;
            // The records have so many pages, and their copies as many again.
            let pages = (COMMITS as u64 * BYTES / PAGE_BYTES) as libc::c_long;
            assert!(met < pages / 8, "{mode:?}: {met} page faults, of {pages} pages of the log");
        }
    }

    /// Of a file's mapping, and of memory of the process.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn stores_to_pages_that_were_made_ready_meet_no_page_faults() {
        const PAGES: usize = 256;
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let path = folder.path().join("m");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        allocate(&file, 2 * PAGES as u64 * PAGE_BYTES).unwrap();
        let memory = MappedMemory::map(file, &path, Survives::AsPersistentMemory).unwrap();
        let faults_of_stores = |pages: Range<u64>| {
            let before = faults();
            pages.for_each(|page| memory.store(page * PAGE_BYTES, &[1]));
            faults() - before
        };
        memory.write_ahead(100, PAGES as u64 * PAGE_BYTES - 100);
        let ready = faults_of_stores(0..PAGES as u64);
        let other = faults_of_stores(PAGES as u64..2 * PAGES as u64);
        // A system may map several pages at a fault.
        assert!(other >= 8 && ready < other / 4, "{ready} page faults where it was made ready, else {other}");

        let faults_of_filling = |mut buffer: Vec<u8>| {
            let before = faults();
            buffer.resize(buffer.capacity(), 1);
            faults() - before
        };
        // Longer than what the allocator has at hand.
        let bytes = PAGES * PAGE_BYTES as usize;
        let mut populated = Vec::new();
        reserve_populated(&mut populated, bytes).unwrap();
        let (ready, other) = (faults_of_filling(populated), faults_of_filling(Vec::with_capacity(bytes)));
        assert!(ready < 8, "{ready} page faults where it was made ready, else {other}");
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        let memory = MappedMemory::map(file, &path, Survives::ProcessCrash).unwrap();
        memory.store(4088, &[1; 8]);
        for offset in [4089, 4096, u64::MAX - 3] {
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| memory.store(offset, &[0; 8])));
            let why = *refused.unwrap_err().downcast::<String>().unwrap();
            assert!(why.contains("leaves a memory"), "{offset}: {why}");
        }
    }
}
