//! The shim (`shim.c`), with slices in place of pointers, and errors in place of numbers.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::error::{Error, Result};
use crate::rma::memory::Memory;
use crate::rma::{GATHER_WORDS, Kind, Op, Place};

unsafe extern "C" {
    fn gvr_mpi_join(
        bytes: u64,
        rank: *mut c_int,
        ranks: *mut c_int,
        threads: *mut c_int,
        near: *mut c_int,
        base: *mut *mut c_void,
        all: *mut *mut c_void,
    ) -> c_int;
    fn gvr_mpi_leave() -> c_int;
    fn gvr_mpi_put(rank: c_int, at: u64, data: *const c_void, bytes: c_int) -> c_int;
    fn gvr_mpi_get(rank: c_int, at: u64, data: *mut c_void, bytes: c_int) -> c_int;
    fn gvr_mpi_begin_get(rank: c_int, at: u64, data: *mut c_void, bytes: c_int) -> c_int;
    fn gvr_mpi_flush_local(rank: c_int) -> c_int;
    fn gvr_mpi_accumulate(rank: c_int, at: u64, data: *const c_void, count: c_int, kind: c_int, op: c_int) -> c_int;
    fn gvr_mpi_words(rank: c_int, at: u64, words: *const u64, before: *mut u64, count: c_int, op: c_int) -> c_int;
    fn gvr_mpi_cas(rank: c_int, at: u64, expected: u64, new: u64, before: *mut u64) -> c_int;
    fn gvr_mpi_flush(rank: c_int) -> c_int;
    fn gvr_mpi_meet(words: *const u64, all: *mut u64, count: c_int) -> c_int;
    fn gvr_mpi_met(done: *mut c_int) -> c_int;
    fn gvr_mpi_progress() -> c_int;
    fn gvr_mpi_say(error: c_int, text: *mut c_char, room: c_int);
}

/// Bytes and words that one call moves: MPI counts by 32 bits.
const MOST: usize = 1 << 28;

/// Operations on words: numbers of the shim.
#[derive(Clone, Copy)]
pub(super) enum WordOp {
    Sum = 0,
    Or = 4,
    Read = 5,
}

fn done(what: &str, error: c_int) -> Result<()> {
    if error == 0 {
        return Ok(());
    }
    let mut text = [0; 512];
    // SAFETY: there is room for as many bytes, and the last one is a zero.
    unsafe { gvr_mpi_say(error, text.as_mut_ptr(), text.len() as c_int) };
    // SAFETY: the shim ends the text by a zero.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    Err(Error::System { what: format!("{what} by MPI"), source: std::io::Error::other(text.into_owned()) })
}

/// What a process is told when it has joined.
pub(super) struct Joined {
    pub rank: usize,
    pub ranks: usize,
    /// Several threads may call MPI at the same time.
    pub threads: bool,
    /// Ranks that can share memory with this one, itself among them.
    pub near: usize,
    /// This rank's window.
    pub base: *mut u8,
    /// The windows of all ranks, one behind the other, if all can share memory.
    pub all: Option<Memory>,
}

/// Once in a process; all ranks with as many bytes.
pub(super) fn join(bytes: u64) -> Result<Joined> {
    let (mut rank, mut ranks, mut threads, mut near) = (0, 0, 0, 0);
    let (mut base, mut all) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the pointers are those of variables.
    done("join the world", unsafe {
        gvr_mpi_join(bytes, &mut rank, &mut ranks, &mut threads, &mut near, &mut base, &mut all)
    })?;
    let (rank, ranks) = (rank as usize, ranks as usize);
    let all = if all.is_null() {
        None
    } else if (base as usize).checked_sub(all as usize) == Some(rank * bytes as usize) {
        // SAFETY: windows of whole pages that lie one behind the other, as was just seen of this
        // one and as MPI says of all. They are there until `leave`.
        Some(unsafe { Memory::new(all.cast(), ranks as u64 * bytes) })
    } else {
        let what = "shared windows of MPI that do not lie one behind the other: another MPI is needed";
        return Err(Error::option(what));
    };
    Ok(Joined { rank, ranks, threads: threads != 0, near: near as usize, base: base.cast(), all })
}

pub(super) fn leave() -> Result<()> {
    // SAFETY: called once, by the only owner of the window, when all ranks have come to their end.
    done("leave the world", unsafe { gvr_mpi_leave() })
}

pub(super) fn put(to: Place, data: &[u8]) -> Result<()> {
    for (at, piece) in (to.offset..).step_by(MOST).zip(data.chunks(MOST)) {
        // SAFETY: the caller has checked the place; the data is read before the call returns.
        done("put", unsafe { gvr_mpi_put(to.rank as c_int, at, piece.as_ptr().cast(), piece.len() as c_int) })?;
    }
    Ok(())
}

pub(super) fn get(from: Place, data: &mut [u8]) -> Result<()> {
    for (at, piece) in (from.offset..).step_by(MOST).zip(data.chunks_mut(MOST)) {
        // SAFETY: the caller has checked the place; the data has come when the call returns.
        done("get", unsafe { gvr_mpi_get(from.rank as c_int, at, piece.as_mut_ptr().cast(), piece.len() as c_int) })?;
    }
    Ok(())
}

/// # Safety
/// The bytes stay where they are, and nobody looks at them, until [`flush_local`].
pub(super) unsafe fn begin_get(from: Place, data: &mut [u8]) -> Result<()> {
    for (at, piece) in (from.offset..).step_by(MOST).zip(data.chunks_mut(MOST)) {
        let (rank, to) = (from.rank as c_int, piece.as_mut_ptr().cast());
        // SAFETY: by the caller.
        done("get", unsafe { gvr_mpi_begin_get(rank, at, to, piece.len() as c_int) })?;
    }
    Ok(())
}

pub(super) fn flush_local(rank: usize) -> Result<()> {
    // SAFETY: a call without pointers.
    done("wait for a get", unsafe { gvr_mpi_flush_local(rank as c_int) })
}

pub(super) fn accumulate(at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
    let ops = [Op::Sum, Op::Min, Op::Max, Op::Replace];
    let op = ops.iter().position(|known| *known == op).unwrap_or_default() as c_int;
    for (place, piece) in (at.offset..).step_by(MOST).zip(data.chunks(MOST)) {
        let count = (piece.len() / kind.bytes()) as c_int;
        let from = piece.as_ptr().cast();
        // SAFETY: as in `put`.
        done("accumulate", unsafe {
            gvr_mpi_accumulate(at.rank as c_int, place, from, count, kind as u32 as c_int, op)
        })?;
    }
    Ok(())
}

pub(super) fn words(at: Place, words: &[u64], before: &mut [u64], op: WordOp) -> Result<()> {
    assert_eq!(words.len(), before.len(), "as many words as there is room for");
    let pieces = words.chunks(MOST).zip(before.chunks_mut(MOST));
    for (place, (words, before)) in (at.offset..).step_by(8 * MOST).zip(pieces) {
        let (rank, count) = (at.rank as c_int, words.len() as c_int);
        // SAFETY: both are of that length, and are not looked at when the call has returned.
        done("change words", unsafe {
            gvr_mpi_words(rank, place, words.as_ptr(), before.as_mut_ptr(), count, op as c_int)
        })?;
    }
    Ok(())
}

pub(super) fn cas(at: Place, expected: u64, new: u64) -> Result<u64> {
    let mut before = 0;
    // SAFETY: the pointer is that of a variable.
    done("compare and swap", unsafe { gvr_mpi_cas(at.rank as c_int, at.offset, expected, new, &mut before) })?;
    Ok(before)
}

pub(super) fn flush(rank: usize) -> Result<()> {
    // SAFETY: a call without pointers.
    done("flush", unsafe { gvr_mpi_flush(rank as c_int) })
}

/// # Safety
/// `all` has room for the words of all ranks. Both stay where they are until [`met`] says that it
/// is done, and there is no other meeting.
pub(super) unsafe fn meet(words: &[u64; GATHER_WORDS], all: &mut [u64]) -> Result<()> {
    // SAFETY: by the caller.
    done("meet", unsafe { gvr_mpi_meet(words.as_ptr(), all.as_mut_ptr(), GATHER_WORDS as c_int) })
}

pub(super) fn met() -> Result<bool> {
    let mut flag = 0;
    // SAFETY: the pointer is that of a variable.
    done("meet", unsafe { gvr_mpi_met(&mut flag) })?;
    Ok(flag != 0)
}

pub(super) fn progress() -> Result<()> {
    // SAFETY: a call without pointers.
    done("make progress", unsafe { gvr_mpi_progress() })
}
