//! Writing the log around the page cache (`O_DIRECT`).
//!
//! A commit that is waited for writes few bytes and synchronises them. By way of the page cache the
//! system copies them, looks for dirty pages, maps them to blocks and marks them clean, which costs
//! more than half of its processor time for a commit. What is written here goes from a buffer of
//! this process to the medium; a synchronisation that follows has the medium's cache left to do.
//!
//! Whole blocks are written. What a block has in front of the bytes that are appended is kept from
//! the time before; what is behind them becomes zeros. Pages that show the blocks are dropped by
//! the system, so that loads from a mapping see what was written.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nearpm_interface::media::PAGE_BYTES;

/// Bytes that a write is a multiple of, and its place: no medium has longer sectors.
const BLOCK: usize = PAGE_BYTES as usize;

/// Longer appends are left to the page cache, where copies are the least of it.
const MOST_BYTES: usize = 256 << 10;

/// Logs that are appended to at a time: more than threads commit at once, mostly.
const TAILS: usize = 8;

/// Memory that begins at a multiple of [`BLOCK`].
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    /// `None` without memory.
    fn new(bytes: usize) -> Option<Aligned> {
        let mut room = Vec::new();
        room.try_reserve_exact(bytes + BLOCK).ok()?;
        room.resize(bytes + BLOCK, 0);
        let start = room.as_ptr().align_offset(BLOCK);
        Some(Aligned { bytes: room, start })
    }

    /// With room for so many bytes, of which the first block is as it was. `None` without memory.
    fn with_room(mut self, bytes: usize) -> Option<Aligned> {
        if self.bytes.len() < bytes + BLOCK {
            let mut more = Aligned::new(bytes)?;
            more.slice(BLOCK).copy_from_slice(self.slice(BLOCK));
            return Some(more);
        }
        Some(self)
    }

    fn slice(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + bytes]
    }
}

/// The last block of a log, and a buffer that begins with its bytes.
struct Tail {
    block: u64,
    buffer: Aligned,
}

/// A file that is open for writes around the page cache.
pub(super) struct Unbuffered {
    file: File,
    /// The system has refused none.
    usable: AtomicBool,
    /// The last to be written is the last one.
    tails: Mutex<Vec<Tail>>,
}

/// The block that an offset lies in.
fn block_of(offset: u64) -> u64 {
    offset / PAGE_BYTES * PAGE_BYTES
}

impl Unbuffered {
    /// `None` where the file system is not one of those whose pages and unbuffered writes agree.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub fn open(file: &File) -> Option<Unbuffered> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        /// `EXT4_SUPER_MAGIC` and `XFS_SUPER_MAGIC` of `linux/magic.h`.
        const AGREE: [u64; 2] = [0xef53, 0x5846_5342];
        if !AGREE.contains(&(rustix::fs::fstatfs(file).ok()?.f_type as u64)) {
            return None;
        }
        let mut again = File::options();
        again.write(true).custom_flags(libc::O_DIRECT);
        let file = again.open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(Unbuffered { file, usable: AtomicBool::new(true), tails: Mutex::default() })
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub fn open(_: &File) -> Option<Unbuffered> {
        None
    }

    fn tails(&self) -> MutexGuard<'_, Vec<Tail>> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes were written to the page cache: what is known of their blocks is out of date.
    pub fn forget(&self, range: &Range<u64>) {
        self.tails().retain(|tail| range.end <= tail.block || tail.block + PAGE_BYTES <= range.start);
    }

    /// The page cache has what was written up to an offset: the block that it lies in can be
    /// appended to.
    pub fn remember(&self, cached: &File, end: u64) {
        if end.is_multiple_of(PAGE_BYTES) || !self.usable.load(Ordering::Relaxed) {
            return;
        }
        let block = block_of(end);
        let Some(mut buffer) = Aligned::new(BLOCK) else { return };
        // Otherwise the next bytes go to the page cache as well.
        if cached.read_exact_at(buffer.slice(BLOCK), block).is_ok() {
            self.put(Tail { block, buffer });
        }
    }

    fn put(&self, tail: Tail) {
        let mut tails = self.tails();
        tails.retain(|other| other.block != tail.block);
        if tails.len() == TAILS {
            tails.remove(0);
        }
        tails.push(tail);
    }

    /// The block that bytes at an offset come to lie in: nothing of it is needed at its start.
    fn take(&self, offset: u64) -> Option<Tail> {
        let (block, mut tails) = (block_of(offset), self.tails());
        if let Some(at) = tails.iter().position(|tail| tail.block == block) {
            return Some(tails.remove(at));
        }
        let buffer = if offset.is_multiple_of(PAGE_BYTES) { Aligned::new(BLOCK) } else { None };
        buffer.map(|buffer| Tail { block, buffer })
    }

    /// Writes bytes, and zeros behind them to the end of their last block. `None`: not here, and
    /// they are to go to the page cache.
    pub fn append(&self, offset: u64, bytes: &[u8]) -> Option<()> {
        if bytes.is_empty() || bytes.len() > MOST_BYTES || !self.usable.load(Ordering::Relaxed) {
            return None;
        }
        let Tail { block, buffer } = self.take(offset)?;
        let start = (offset - block) as usize;
        let end = start + bytes.len();
        let whole = end.next_multiple_of(BLOCK);
        let mut buffer = buffer.with_room(whole)?;
        let all = buffer.slice(whole);
        all[start..end].copy_from_slice(bytes);
        all[end..].fill(0);
        // The medium wants other multiples, cannot do it at all, or has failed: then the page
        // cache's way says so.
        if self.file.write_all_at(all, block).is_err() {
            self.usable.store(false, Ordering::Relaxed);
            return None;
        }
        if end < whole {
            all.copy_within(whole - BLOCK.., 0);
            self.put(Tail { block: block + (whole - BLOCK) as u64, buffer });
        }
        Some(())
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    const BYTES: usize = 8 * BLOCK;

    /// A file of ones, which may be written around the page cache where its file system can.
    fn file() -> Option<(File, Unbuffered)> {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all_at(&[1; BYTES], 0).unwrap();
        let unbuffered = Unbuffered::open(&file);
        if unbuffered.is_none() {
            eprintln!("SKIPPED: /var/tmp lies on neither ext4 nor XFS");
        }
        unbuffered.map(|unbuffered| (file, unbuffered))
    }

    fn read(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_is_in_front_stays_and_what_is_behind_in_the_block_becomes_zeros() {
        let Some((file, unbuffered)) = file() else { return };
        assert!(unbuffered.append(64, &[2; 64]).is_none(), "nobody knows what is in front");
        assert_eq!(read(&file), [1; BYTES]);
        unbuffered.remember(&file, 64);
        let mut expected = vec![1; BYTES];
        for (at, bytes, with) in [(64, 64, 2), (128, 5000, 3), (5128, 2 * BLOCK, 4), (5128 + 2 * BLOCK, 64, 5)] {
            unbuffered.append(at as u64, &vec![with; bytes]).unwrap();
            expected[at..at + bytes].fill(with);
            expected[at + bytes..(at + bytes).next_multiple_of(BLOCK)].fill(0);
            assert_eq!(read(&file), expected);
        }
    }

    #[test]
    fn a_whole_block_needs_nothing_in_front() {
        let Some((file, unbuffered)) = file() else { return };
        unbuffered.append(PAGE_BYTES, &[2; BLOCK]).unwrap();
        unbuffered.append(2 * PAGE_BYTES, &[3; 64]).unwrap();
        let read = read(&file);
        assert_eq!([BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 64].map(|at| read[at]), [1, 2, 2, 3, 0]);
    }

    #[test]
    fn what_the_page_cache_got_meanwhile_is_not_taken_back() {
        let Some((file, unbuffered)) = file() else { return };
        unbuffered.append(0, &[2; 64]).unwrap();
        file.write_all_at(&[7; 8], 32).unwrap();
        unbuffered.forget(&(32..40));
        assert!(unbuffered.append(64, &[3; 64]).is_none());
        unbuffered.remember(&file, 64);
        unbuffered.append(64, &[3; 64]).unwrap();
        assert_eq!(read(&file)[..72], [[2; 32].as_slice(), &[7; 8], &[2; 24], &[3; 8]].concat());
        // What is beside a block says nothing of it.
        unbuffered.forget(&(PAGE_BYTES..2 * PAGE_BYTES));
        assert!(unbuffered.append(128, &[4; 8]).is_some());
    }

    #[test]
    fn a_mapping_shows_what_was_appended() {
        let Some((file, unbuffered)) = file() else { return };
        let map = memmap2::MmapOptions::new().len(BYTES).map_raw(&file).unwrap();
        #[allow(unsafe_code)]
        // SAFETY: the byte lies in the mapping.
        let load = |at: usize| unsafe { map.as_ptr().add(at).read_volatile() };
        assert_eq!(load(PAGE_BYTES as usize), 1);
        unbuffered.append(PAGE_BYTES, &[2; 64]).unwrap();
        assert_eq!([load(BLOCK), load(BLOCK + 63), load(BLOCK + 64), load(2 * BLOCK)], [2, 2, 0, 1]);
    }

    #[test]
    fn logs_beyond_those_that_are_remembered_go_to_the_page_cache() {
        let Some((_file, unbuffered)) = file() else { return };
        for log in 0..=TAILS as u64 {
            unbuffered.put(Tail { block: log * PAGE_BYTES, buffer: Aligned::new(BLOCK).unwrap() });
        }
        assert!(unbuffered.append(64, &[2; 64]).is_none());
        assert!(unbuffered.append(PAGE_BYTES + 64, &[2; 64]).is_some());
    }
}
