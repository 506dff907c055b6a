//! Room on the medium for a file with holes.
//!
//! A file that was created here has none. One that was copied, or made by another program, may have
//! some, and a store into one needs room that the medium may not have. So room is taken for what
//! comes into use, when an error can still be given.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nearpm_newfile::take_room;
use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::io::Errno;

/// Bytes that get their room together: those of a chunk of the heap.
pub(super) const GRANULE: u64 = nearpm_interface::media::CHUNK_BYTES;

/// Which parts of a file are known to have room on the medium.
pub(crate) struct Space {
    /// A bit for each granule.
    granules: Box<[AtomicU64]>,
    bytes: AtomicU64,
    /// Held by whoever takes room.
    taking: Mutex<()>,
}

impl Space {
    /// Of a file of so many bytes, which may become `most`; `None` where all of it has room.
    pub fn of(file: &File, bytes: u64, most: u64) -> Result<Option<Space>> {
        let blocks = file.metadata()?.blocks().saturating_mul(512) >= bytes;
        // Blocks that describe the file count as well, so that a few holes may be hidden by them;
        // but not on tmpfs, which goes through every page.
        let complete = blocks && (is_tmpfs(file) || take_room(file, 0..bytes).is_ok());
        let words = if complete { 0 } else { most.div_ceil(GRANULE * 64) };
        let granules = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok((!complete).then(|| Space { granules, bytes: AtomicU64::new(bytes), taking: Mutex::default() }))
    }

    /// The file has grown, and what has come has room.
    pub fn grow(&self, former: u64, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
        for granule in former.div_ceil(GRANULE)..bytes / GRANULE {
            self.granules[(granule / 64) as usize].fetch_or(1 << (granule % 64), Ordering::Release);
        }
    }

    fn missing(&self, range: &Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let all = range.start / GRANULE..range.end.div_ceil(GRANULE);
        all.filter(|at| self.granules[(at / 64) as usize].load(Ordering::Acquire) >> (at % 64) & 1 == 0)
    }

    /// Whether a range has room.
    #[inline]
    pub fn has(&self, range: &Range<u64>) -> bool {
        self.missing(range).next().is_none()
    }

    /// Takes room for a range.
    pub fn secure(&self, file: &File, range: &Range<u64>) -> Result<()> {
        if self.has(range) {
            return Ok(());
        }
        let _turn = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for granule in self.missing(range) {
            match runs.last_mut() {
                Some(last) if last.end == granule => last.end += 1,
                _ => runs.push(granule..granule + 1),
            }
        }
        for run in runs {
            take_room(file, run.start * GRANULE..(run.end * GRANULE).min(self.bytes.load(Ordering::Acquire)))?;
            for granule in run {
                self.granules[(granule / 64) as usize].fetch_or(1 << (granule % 64), Ordering::Release);
            }
        }
        Ok(())
    }
}

/// Whether a file lies in memory, on tmpfs.
pub(crate) fn is_tmpfs(file: &File) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC)
}

/// Where a file has data, as far as was asked. Holes that come later are not seen: they are read as
/// zeros.
#[derive(Default)]
pub(crate) struct Data(Mutex<Range<u64>>);

impl Data {
    /// The parts of a range of a file that may be other than zero.
    pub fn parts(&self, file: &File, range: Range<u64>) -> Vec<Range<u64>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            if !known.contains(&at) {
                match seek(file, SeekFrom::Data(at)) {
                    Ok(start) => *known = start..seek(file, SeekFrom::Hole(start)).unwrap_or(range.end),
                    Err(Errno::NXIO) => break,
                    // The file system does not tell.
                    Err(_) => *known = at..range.end,
                }
            }
            let part = known.start.max(at)..known.end.min(range.end);
            if part.is_empty() {
                break;
            }
            at = part.end;
            parts.push(part);
        }
        parts
    }
}

/// Whether an error says that the medium, or what the process may have of it, is full.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn data_is_told_between_holes_and_what_is_known_is_not_asked_again() {
        const PART: u64 = 1 << 20;
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * PART).unwrap();
        for part in [1, 2, 5] {
            file.write_all_at(&vec![1; PART as usize], part * PART).unwrap();
        }
        let told = Data::default().parts(&file, 0..8 * PART);
        // Not every file system tells, and holes may be told for data.
        let holds = |parts: &[Range<u64>], at: u64| parts.iter().any(|part| part.contains(&at));
        assert!([1, 2, 5].iter().all(|part| holds(&told, part * PART) && holds(&told, (part + 1) * PART - 1)));
        if holds(&told, 0) {
            return;
        }
        assert_eq!(told, [PART..3 * PART, 5 * PART..6 * PART]);
        let data = Data::default();
        let alone = |range: Range<u64>| assert_eq!(data.parts(&file, range.clone()), vec![range; 1]);
        alone(PART + 10..PART + 20);
        // The next question, which lies in what was found, is not one to the system.
        file.set_len(0).unwrap();
        alone(2 * PART..3 * PART);
        assert_eq!(data.parts(&file, 4 * PART..8 * PART), []);
    }
}
