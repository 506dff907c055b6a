//! Stores to an ordinary file by calls instead of to its mapping.
//!
//! The system keeps a file in folios of up to 2 MiB. A store to a mapping makes all of its folio
//! dirty, and the next synchronisation writes all of it. A write marks the blocks that it changes,
//! so that the medium gets these alone, whatever folios the file lies in. The mapping shows what
//! was written at once: both are the system's page cache.
//!
//! The first write to a block that was only reserved changes the file system's own tables as well,
//! with a journal's commit for each synchronisation. A *piece* with such blocks is therefore
//! written whole when something shorter is stored to it for the first time.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::extents;
use super::space::GRANULE;
use super::unbuffered::Unbuffered;

/// Bytes that are written at once where blocks were only reserved: those that get their room
/// together, so that a piece has room when something is stored to it.
const PIECE: u64 = GRANULE;

/// The way to write a file.
pub(super) struct FileWrites {
    bytes: AtomicU64,
    /// Pieces without blocks that were never written; what says nothing of a large file's holes
    /// takes no memory. Whoever writes locks it for reading, so that whoever writes a piece whole,
    /// locking it for writing, takes back nothing.
    written: RwLock<Vec<bool>>,
    /// The program may store through the mapping at any time.
    by_pointer: AtomicBool,
    /// Where the log can go around the page cache.
    unbuffered: Option<Box<Unbuffered>>,
}

/// Whether a file of so many bytes may be written by calls. One beyond the process's limit of
/// file sizes (`RLIMIT_FSIZE`) may not: a write there is a signal, a store to the mapping is not.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(super) fn may_write(bytes: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is this function's own.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    known && bytes <= limit.rlim_cur
}

/// Elsewhere nobody says that a mapping and writes agree.
#[cfg(not(target_os = "linux"))]
pub(super) fn may_write(_: u64) -> bool {
    false
}

/// The pieces that a range of a file touches.
fn pieces(range: &Range<u64>) -> Range<usize> {
    (range.start / PIECE) as usize..range.end.div_ceil(PIECE) as usize
}

/// Which pieces of a file have none of these ranges, which rise.
fn written_pieces(unwritten: &[Range<u64>], bytes: u64) -> Vec<bool> {
    let count = bytes.div_ceil(PIECE) as usize;
    let mut written = vec![false; count];
    let mut known = 0;
    for range in unwritten {
        let between = known..(range.start / PIECE) as usize;
        if !between.is_empty() {
            written[between].fill(true);
        }
        known = range.end.div_ceil(PIECE) as usize;
    }
    written[known.min(count)..].fill(true);
    written
}

/// Which pieces of a file were written, or may have been.
fn known_pieces(file: &File, bytes: u64) -> Vec<bool> {
    match extents::unwritten(file, bytes) {
        Ok(unwritten) => written_pieces(&unwritten, bytes),
        // The file system does not tell: no block is known to be blank.
        Err(_) => vec![true; bytes.div_ceil(PIECE) as usize],
    }
}

impl FileWrites {
    /// `None` where stores must go to the mapping.
    pub fn new(file: &File, bytes: u64) -> Option<FileWrites> {
        if !may_write(bytes) {
            return None;
        }
        let (bytes, written) = (AtomicU64::new(bytes), RwLock::new(known_pieces(file, bytes)));
        Some(FileWrites {
            bytes,
            written,
            by_pointer: AtomicBool::new(false),
            unbuffered: Unbuffered::open(file).map(Box::new),
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The file has grown.
    pub fn grow(&self, file: &File, bytes: u64) {
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        let now = known_pieces(file, bytes);
        let former = written.len().min(now.len());
        written.extend_from_slice(&now[former..]);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether a store may make the file longer than another program has cut it.
    pub fn reaches_end(&self, offset: u64, bytes: usize) -> bool {
        pieces(&(offset..offset + bytes as u64)).end as u64 * PIECE >= self.bytes()
    }

    /// From now on the program may store through the mapping: nothing is written that was read.
    pub fn note_pointers(&self) {
        self.by_pointer.store(true, Ordering::Relaxed);
    }

    /// Writes bytes at an offset, and zeros behind them up to the next multiple of a page, around
    /// the page cache. `false`: not so, and they are to go there.
    pub fn append(&self, offset: u64, data: &[u8]) -> bool {
        let Some(unbuffered) = &self.unbuffered else { return false };
        let touched = pieces(&(offset..offset + data.len() as u64));
        // A piece that was written stays so: nobody waits for this write.
        let is_blank = self.written.read().unwrap_or_else(PoisonError::into_inner)[touched].contains(&false);
        if is_blank || self.by_pointer.load(Ordering::Relaxed) {
            return false;
        }
        unbuffered.append(offset, data).is_some()
    }

    /// Bytes up to an offset are in the page cache, and more are to be [appended](Self::append).
    pub fn expect_appends(&self, file: &File, end: u64) {
        self.unbuffered.iter().for_each(|unbuffered| unbuffered.remember(file, end));
    }

    /// Writes bytes at an offset. They are in the page cache when it returns; so is what it gives,
    /// which is to be synchronised together with them.
    pub fn write(&self, file: &File, offset: u64, data: &[u8]) -> io::Result<Range<u64>> {
        let range = offset..offset + data.len() as u64;
        self.unbuffered.iter().for_each(|unbuffered| unbuffered.forget(&range));
        let by_pointer = self.by_pointer.load(Ordering::Relaxed);
        let is_blank = |written: &[bool]| !by_pointer && written[pieces(&range)].contains(&false);
        let mut beside = 0..0;
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        if !is_blank(&written) {
            return file.write_all_at(data, offset).map(|()| beside);
        }
        drop(written);
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        if is_blank(&written) {
            let touched = pieces(&range);
            let whole = (range.start.div_ceil(PIECE) as usize)..(range.end / PIECE) as usize;
            if data.len() as u64 >= PIECE {
                // Blocks get written in any case: what is beside them would be more to write, and
                // saves nothing.
                written[whole].fill(true);
                return file.write_all_at(data, offset).map(|()| beside);
            }
            for piece in touched.clone().filter(|piece| !written[*piece]) {
                self.write_beside(file, piece as u64 * PIECE, &range)?;
            }
            beside = touched.start as u64 * PIECE..self.bytes().min(touched.end as u64 * PIECE);
            written[touched].fill(true);
        }
        file.write_all_at(data, offset).map(|()| beside)
    }

    /// Writes the pieces that lie in a range and were never written, as the zeros that they are;
    /// gives what was written. What fails is left to the write of what is to stand there.
    pub fn write_ahead(&self, file: &File, range: Range<u64>) -> Range<u64> {
        static ZEROS: [u8; PIECE as usize] = [0; PIECE as usize];
        let inner = range.start.div_ceil(PIECE) as usize..(range.end / PIECE) as usize;
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0..0;
        if self.by_pointer.load(Ordering::Relaxed) {
            return done;
        }
        for piece in inner.filter(|&piece| written.get(piece) == Some(&false)).collect::<Vec<_>>() {
            let start = piece as u64 * PIECE;
            if file.write_all_at(&ZEROS, start).is_err() {
                break;
            }
            written[piece] = true;
            done = if done.is_empty() { start..start + PIECE } else { done.start..start + PIECE };
        }
        done
    }

    /// Writes what of a piece lies in front of a range and behind it, as it is.
    fn write_beside(&self, file: &File, start: u64, range: &Range<u64>) -> io::Result<()> {
        let end = self.bytes().min(start + PIECE);
        for part in [start..range.start.min(end), range.end.max(start)..end] {
            if part.start < part.end {
                let mut bytes = vec![0; (part.end - part.start) as usize];
                file.read_exact_at(&mut bytes, part.start)?;
                file.write_all_at(&bytes, part.start)?;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use crate::memory::allocate;

    const BYTES: u64 = 4 * PIECE + 512;

    fn reserved() -> (File, FileWrites) {
        let file = tempfile::tempfile().unwrap();
        allocate(&file, BYTES).unwrap();
        // Blank whatever the file system says, which may be one that does not tell.
        let writes = FileWrites::new(&file, BYTES).expect("no limit of this process forbids it");
        writes.written.write().unwrap().fill(false);
        (file, writes)
    }

    #[test]
    fn a_piece_is_written_that_no_unwritten_range_touches() {
        let of = |unwritten: &[Range<u64>]| written_pieces(unwritten, BYTES);
        assert_eq!(of(&[]), [true; 5]);
        assert_eq!(of(&[0..1, 1..BYTES]), [false; 5]);
        assert_eq!(of(&[PIECE - 1..PIECE + 1, 3 * PIECE..3 * PIECE + 1]), [false, false, true, false, true]);
        assert_eq!(of(&[PIECE..2 * PIECE, 4 * PIECE..BYTES]), [true, false, true, true, false]);
    }

    #[test]
    fn a_piece_is_written_whole_once_and_a_short_one_at_the_end_too() {
        let (file, writes) = reserved();
        assert_eq!(writes.write(&file, PIECE + 8, &[1; 8]).unwrap(), PIECE..2 * PIECE);
        assert!(writes.write(&file, PIECE + 16, &[2; 8]).unwrap().is_empty());
        assert_eq!(writes.write(&file, 4 * PIECE - 4, &[3; 8]).unwrap(), 3 * PIECE..BYTES);
        let mut bytes = vec![0; BYTES as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let stored = |at: u64| bytes[at as usize];
        assert_eq!([8, 16, 24].map(|at| stored(PIECE + at)), [1, 2, 0]);
        assert_eq!([stored(4 * PIECE - 1), stored(4 * PIECE)], [3, 3]);
    }

    #[test]
    fn long_writes_leave_what_is_beside_them_alone() {
        let (file, writes) = reserved();
        let data = vec![5; 2 * PIECE as usize];
        assert!(writes.write(&file, PIECE + 512, &data).unwrap().is_empty());
        assert_eq!(*writes.written.read().unwrap(), [false, false, true, false, false]);
        assert_eq!(writes.write(&file, PIECE + 8, &[1; 8]).unwrap(), PIECE..2 * PIECE);
        let mut bytes = vec![0; PIECE as usize];
        file.read_exact_at(&mut bytes, PIECE).unwrap();
        assert_eq!(bytes[8..16], [1; 8]);
        assert!(bytes[16..512].iter().all(|&byte| byte == 0) && bytes[512..].iter().all(|&byte| byte == 5));
    }

    /// A piece that is written as it was read would take back what others write meanwhile.
    #[test]
    fn threads_that_write_to_one_blank_piece_lose_nothing() {
        for _ in 0..20 {
            let (file, writes) = reserved();
            std::thread::scope(|scope| {
                for thread in 0..4u64 {
                    let (file, writes) = (&file, &writes);
                    scope.spawn(move || {
                        for word in (thread..256).step_by(4) {
                            writes.write(file, word * 8, &(word + 1).to_le_bytes()).unwrap();
                        }
                    });
                }
            });
            let mut bytes = [0; 256 * 8];
            file.read_exact_at(&mut bytes, 0).unwrap();
            let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            assert!(words.eq(1..=256));
        }
    }

    #[test]
    fn what_is_written_ahead_is_whole_pieces_once() {
        let (file, writes) = reserved();
        writes.write(&file, 2 * PIECE, &[7; 8]).unwrap();
        assert_eq!(writes.write_ahead(&file, PIECE - 8..4 * PIECE + 8), PIECE..4 * PIECE);
        assert!(writes.write_ahead(&file, PIECE..4 * PIECE).is_empty());
        assert_eq!(*writes.written.read().unwrap(), [false, true, true, true, false]);
        let mut word = [0; 8];
        file.read_exact_at(&mut word, 2 * PIECE).unwrap();
        assert_eq!(word, [7; 8]);
        assert!(writes.write(&file, PIECE + 8, &[1; 8]).unwrap().is_empty());
    }

    #[test]
    fn where_the_program_stores_by_pointer_nothing_is_written_that_was_read() {
        let (file, writes) = reserved();
        writes.note_pointers();
        assert!(writes.write(&file, 8, &[1; 8]).unwrap().is_empty());
    }
}
