//! Ranks as processes that `mpiexec` has started, by the windows of MPI-3.
//!
//! A window is open (`MPI_Win_lock_all`) as long as the world. Words are accessed by MPI's atomics alone: reads are
//! `MPI_Get_accumulate(MPI_NO_OP)`, writes `MPI_Accumulate(MPI_REPLACE)`, as MPI does not say what plain puts and gets of words do that are
//! changed atomically. Ranks meet by one kind of nonblocking collective, which is tested, with sleeps in between, so that ranks
//! that wait leave the processor to others.
//!
//! Between ranks of one machine a window is shared memory. MPI takes all of it at once: give one that is no larger than is needed. Between
//! machines an operation waits until its target makes some call of MPI, unless MPI has a thread for that (MPICH:
//! `MPIR_CVAR_ASYNC_PROGRESS=1`, which costs a core).
//!
//! A second handle of a rank is for a thread beside its own: the server of arrays that are reached by messages, or the one that seals versions.
//! MPI has to allow several threads (`MPI_THREAD_MULTIPLE`), as MPICH and Open MPI do.
//!
//! A rank that leaves while others work tells each of them how many meetings it has come to: who waits for it in a later one gets
//! [`Error::DeadRank`]. Before MPI is ended all ranks come to as many meetings as any has begun, so that none stays open. A rank that is
//! killed ends the job: `mpiexec` ends the others.
//!
//! | file | holds |
//! |---|---|
//! | `shim.c`, `sys.rs` | MPI's calls: their constants are macros of C |
//! | `launch.rs` | starting ranks by `mpiexec` |

mod launch;
mod sys;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use nearpm::memory::words;

use super::{GATHER_WORDS, Get, Helper, Kind, Op, Place, Rma, Space};
use crate::error::{Error, Result};
pub use launch::{command, is_rank};
use sys::WordOp;

/// How long a pause is.
const PAUSE: Duration = Duration::from_micros(50);
/// Tests of a meeting before the first sleep.
const SPINS: u32 = 2000;
/// Looks at a word before the first sleep.
const LOOKS: u64 = 200;
/// Looks at a word before sleeps get longer: who waits is a server that nobody has asked for some ten milliseconds.
const PAUSES: u64 = LOOKS + 200;
/// How long they then are beside a pause. The aim: less than 2 % of a processor for such a server.
const LONG_PAUSE: Duration = Duration::from_millis(2);

/// Words of a meeting, which MPI reads and writes until it is over.
struct Meeting {
    mine: Box<[u64; GATHER_WORDS]>,
    all: Vec<u64>,
    open: bool,
}

/// A rank of a world that MPI connects. A process has one.
pub struct Mpi {
    rank: usize,
    ranks: usize,
    /// Bytes of a window that can be allocated.
    window: u64,
    /// Where these begin: before them each rank has a word for what it said when it left.
    first: u64,
    base: AtomicPtr<u8>,
    space: RefCell<Space>,
    meeting: RefCell<Meeting>,
    /// Meetings that were begun.
    meetings: Cell<u64>,
    /// Reads that have begun, by number.
    gets: RefCell<Vec<Option<Vec<u8>>>>,
    /// Buffers that can be used again.
    spare: RefCell<Vec<Vec<u8>>>,
    threads: Arc<Threads>,
    /// A second handle, whose end is not that of the rank.
    helper: bool,
}

/// The threads of a rank beside its own.
struct Threads {
    /// MPI allows them.
    allowed: bool,
    /// Second handles that there are.
    helpers: AtomicUsize,
    /// MPI is about to end.
    ending: AtomicBool,
}

impl Mpi {
    /// Joins the world that `mpiexec` has started, with a window of `window` bytes on each rank. All ranks call it, once.
    ///
    /// # Errors
    /// [`Error::System`] with what MPI says.
    pub fn join(window: u64) -> Result<Mpi> {
        let window = window.max(4096).next_multiple_of(4096);
        // As many ranks as there can be: how many there are is not known yet.
        let first = 8 * (1_u64 << 16);
        let sys::Joined { rank, ranks, threads, base } = sys::join(first + window)?;
        if ranks as u64 > first / 8 {
            return Err(Error::option(format!("{ranks} ranks are too many: start at most {}", first / 8)));
        }
        let meeting = Meeting { mine: Box::new([0; GATHER_WORDS]), all: vec![0; ranks * GATHER_WORDS], open: false };
        let mpi = Mpi {
            rank,
            ranks,
            window,
            first,
            base: AtomicPtr::new(base),
            space: RefCell::new(Space::new(window)),
            meeting: RefCell::new(meeting),
            meetings: Cell::new(0),
            gets: RefCell::default(),
            spare: RefCell::default(),
            threads: Arc::new(Threads { allowed: threads, helpers: 0.into(), ending: false.into() }),
            helper: false,
        };
        mpi.clear(0, first);
        mpi.barrier()?;
        Ok(mpi)
    }

    /// Where a place lies in the window of MPI.
    #[inline]
    fn at(&self, place: Place, bytes: usize) -> Place {
        let inside = place.offset.checked_add(bytes as u64).is_some_and(|end| end <= self.window);
        assert!(inside && place.rank < self.ranks, "{bytes} bytes at {place:?} leave the windows");
        place.plus(self.first)
    }

    fn base(&self) -> *mut u8 {
        self.base.load(Ordering::Relaxed)
    }

    /// Zeroes a part of this rank's window that nobody uses.
    #[allow(unsafe_code)]
    fn clear(&self, from: u64, bytes: u64) {
        assert!(from + bytes <= self.first + self.window);
        // SAFETY: inside of the window, and no rank accesses it: it was not given out, or was given back by all.
        unsafe { self.base().add(from as usize).write_bytes(0, bytes as usize) };
    }

    /// Begins a meeting in which this rank gives `words`.
    #[allow(unsafe_code)]
    fn begin_meeting(&self, words: &[u64]) -> Result<()> {
        let meeting = &mut *self.meeting.borrow_mut();
        meeting.mine[..words.len()].copy_from_slice(words);
        // SAFETY: boxed, of the right length, and not touched while `open`; one meeting at a time, as `end_meeting` comes first.
        unsafe { sys::meet(&meeting.mine, &mut meeting.all)? };
        meeting.open = true;
        self.meetings.set(self.meetings.get() + 1);
        Ok(())
    }

    /// Waits until all have come. `check` says whether to go on waiting.
    fn end_meeting(&self, check: impl Fn() -> Result<()>) -> Result<()> {
        let mut tests = 0_u32;
        while !sys::met()? {
            tests = tests.saturating_add(1);
            if tests.is_multiple_of(256) {
                check()?;
            }
            if tests < SPINS { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
        self.meeting.borrow_mut().open = false;
        Ok(())
    }

    fn meet(&self, words: &[u64]) -> Result<()> {
        if self.helper {
            return Err(Error::option("a second handle of a rank does not take part in meetings"));
        }
        if self.meeting.borrow().open {
            // It was given up as a rank was gone, which is as true now.
            return self.check_left(self.meetings.get());
        }
        self.begin_meeting(words)?;
        let number = self.meetings.get();
        self.end_meeting(|| self.check_left(number))
    }

    /// What each rank said when it left: its meetings plus 1, 0 for one that has not.
    fn left(&self) -> Result<Vec<u64>> {
        let mut left = vec![0; self.ranks];
        sys::words(Place { rank: self.rank, offset: 0 }, &vec![0; self.ranks], &mut left, WordOp::Read)?;
        Ok(left)
    }

    /// Whether all ranks have come to a meeting, or may still come.
    fn check_left(&self, meeting: u64) -> Result<()> {
        match self.left()?.iter().position(|said| (1..=meeting).contains(said)) {
            Some(rank) => Err(Error::DeadRank { rank, ranks: self.ranks }),
            None => Ok(()),
        }
    }

    /// Says that this rank leaves, waits for the others to say so, comes to what they wait for, and ends MPI.
    fn leave(&self) -> Result<()> {
        self.threads.ending.store(true, Ordering::Release);
        while self.threads.helpers.load(Ordering::Acquire) > 0 {
            sys::progress()?;
            std::thread::sleep(PAUSE);
        }
        let said = (self.meetings.get() + 1).to_ne_bytes();
        for rank in 0..self.ranks {
            sys::accumulate(Place { rank, offset: 8 * self.rank as u64 }, Kind::U64, Op::Replace, &said)?;
            sys::flush(rank)?;
        }
        let most = loop {
            let left = self.left()?;
            if left.iter().all(|said| *said != 0) {
                break left.into_iter().max().unwrap_or(1) - 1;
            }
            sys::progress()?;
            std::thread::sleep(PAUSE);
        };
        loop {
            if self.meeting.borrow().open {
                self.end_meeting(|| Ok(()))?;
            }
            if self.meetings.get() == most {
                return sys::leave();
            }
            self.begin_meeting(&[])?;
        }
    }
}

impl Rma for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let offset = self.space.borrow_mut().take(bytes)?;
        self.clear(self.first + offset, bytes);
        sys::flush(self.rank)?;
        // Nobody writes there before it is zero.
        self.barrier()?;
        Ok(offset)
    }

    fn free(&self, offset: u64, bytes: u64) -> Result<()> {
        self.barrier()?;
        self.space.borrow_mut().give_back(offset, bytes);
        Ok(())
    }

    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        sys::put(self.at(to, data.len()), data)
    }

    #[allow(unsafe_code)]
    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        let mut buffer = self.spare.borrow_mut().pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        // SAFETY: the buffer lies on the heap, and is not touched before it was waited for, in `end_get` or `drop_get`.
        unsafe { sys::begin_get(self.at(from, bytes), &mut buffer)? };
        let mut gets = self.gets.borrow_mut();
        let free = gets.iter().position(Option::is_none).unwrap_or_else(|| {
            gets.push(None);
            gets.len() - 1
        });
        gets[free] = Some(buffer);
        Ok(Get { from, bytes, number: free as u64, ready: 0 })
    }

    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        sys::flush_local(get.from.rank)?;
        if let Some(buffer) = self.gets.borrow_mut()[get.number as usize].take() {
            data.copy_from_slice(&buffer);
            self.spare.borrow_mut().push(buffer);
        }
        Ok(())
    }

    fn drop_get(&self, get: Get) -> Result<()> {
        sys::flush_local(get.from.rank)?;
        self.spare.borrow_mut().extend(self.gets.borrow_mut()[get.number as usize].take());
        Ok(())
    }

    fn get(&self, from: Place, data: &mut [u8]) -> Result<()> {
        sys::get(self.at(from, data.len()), data)
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        let mut before = [0];
        sys::words(self.at(at, 8), &[add], &mut before, WordOp::Sum)?;
        Ok(before[0])
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        sys::cas(self.at(at, 8), expected, new)
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        sys::words(self.at(at, 8 * bits.len()), bits, &mut before[..bits.len()], WordOp::Or)
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        // MPI takes as many words that it does not look at.
        let (given, at) = ([0; GATHER_WORDS], self.at(at, 8 * words.len()));
        let pieces = words.chunks_mut(GATHER_WORDS).enumerate();
        pieces.into_iter().try_for_each(|(piece, words)| {
            sys::words(at.plus((8 * GATHER_WORDS * piece) as u64), &given[..words.len()], words, WordOp::Read)
        })
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        sys::accumulate(self.at(at, 8 * words.len()), Kind::U64, Op::Replace, bytemuck::cast_slice(words))
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        sys::accumulate(self.at(at, data.len()), kind, op, data)
    }

    fn flush(&self, rank: usize) -> Result<()> {
        sys::flush(rank)
    }

    #[allow(unsafe_code)]
    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        // What others have put there before a meeting is seen, and so is the copy after the next.
        sys::flush(self.rank)?;
        let at = |offset| self.at(Place { rank: self.rank, offset }, bytes as usize).offset as usize;
        let (from, to) = (at(from), at(to));
        assert!(from.abs_diff(to) >= bytes as usize, "a copy of {bytes} bytes onto itself");
        // SAFETY: both lie inside of the window and do not overlap; other ranks access what is read by whole words, and not the copy.
        unsafe { words::load(self.base().add(from), self.base().add(to), bytes as usize) }
        sys::flush(self.rank)
    }

    fn barrier(&self) -> Result<()> {
        self.meet(&[])
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        if words.len() > GATHER_WORDS {
            return Err(Error::option(format!("a rank can hand {GATHER_WORDS} words to all, not {}", words.len())));
        }
        self.meet(words)?;
        let meeting = self.meeting.borrow();
        Ok(meeting.all.chunks_exact(GATHER_WORDS).flat_map(|of| of[..words.len()].iter().copied()).collect())
    }

    fn pause(&self) -> Result<()> {
        sys::progress()?;
        std::thread::sleep(PAUSE);
        if self.helper && self.threads.ending.load(Ordering::Acquire) {
            return Err(Error::DeadRank { rank: self.rank, ranks: self.ranks });
        }
        self.check_left(u64::MAX)
    }

    fn helper(&self) -> Result<Helper> {
        if !self.threads.allowed {
            let what = "MPI was started for one thread of each rank: start it by MPI_Init_thread(MPI_THREAD_MULTIPLE)";
            return Err(Error::option(what));
        }
        self.threads.helpers.fetch_add(1, Ordering::AcqRel);
        Ok(Box::new(Mpi {
            base: AtomicPtr::new(self.base()),
            space: RefCell::new(Space::new(0)),
            meeting: RefCell::new(Meeting { mine: Box::new([0; GATHER_WORDS]), all: Vec::new(), open: false }),
            meetings: Cell::new(0),
            gets: RefCell::default(),
            spare: RefCell::default(),
            threads: Arc::clone(&self.threads),
            helper: true,
            ..*self
        }))
    }

    fn wait_word(&self, offset: u64, was: u64) -> Result<u64> {
        let mut looks = 0_u64;
        loop {
            let now = self.load(Place { rank: self.rank, offset })?;
            if now != was {
                return Ok(now);
            }
            looks += 1;
            if looks < LOOKS {
                std::thread::yield_now();
                continue;
            }
            if looks > PAUSES {
                std::thread::sleep(LONG_PAUSE);
            }
            self.pause()?;
        }
    }

    fn patience(&self) -> u64 {
        10_000_000 / PAUSE.as_micros() as u64
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if self.helper {
            self.threads.helpers.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        // Nobody is left who could be told.
        let _ = self.leave();
    }
}
