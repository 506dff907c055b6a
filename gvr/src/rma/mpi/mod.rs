//! Ranks as processes that `mpiexec` has started, by the windows of MPI-3.
//!
//! A window is open (`MPI_Win_lock_all`) as long as the world. Words are accessed by MPI's atomics
//! alone: reads are `MPI_Get_accumulate(MPI_NO_OP)`, writes `MPI_Accumulate(MPI_REPLACE)`, as MPI
//! does not say what plain puts and gets of words do that are changed atomically. Ranks meet by one
//! kind of nonblocking collective, which is tested, with sleeps in between, so that ranks that wait
//! leave the processor to others.
//!
//! Where all ranks can share memory, as those of one machine, windows are reached by loads and
//! stores, and no operation is MPI's. MPI's own need the target there, too: Debian's MPICH carries
//! each out when its target next calls MPI, so that a put waits for as long as the target computes
//! or sleeps. MPI takes a window's memory at once: give one that is no larger than is needed.
//!
//! Between machines each rank has a thread that calls MPI for nothing but that, where the
//! processors of the machine are twice as many as its ranks and MPI has none of its own (MPICH:
//! `MPIR_CVAR_ASYNC_PROGRESS`). It keeps a processor busy. Without it an operation waits until its
//! target comes to a meeting or makes an operation.
//!
//! A second handle of a rank is for a thread beside its own: the server of arrays that are reached
//! by messages, or the one that seals versions. MPI has to allow several threads
//! (`MPI_THREAD_MULTIPLE`), as MPICH and Open MPI do.
//!
//! A rank that leaves while others work tells each of them how many meetings it has come to: who
//! waits for it in a later one gets [`Error::DeadRank`]. Before MPI is ended all ranks come to as
//! many meetings as any has begun, so that none stays open. A rank that is killed ends the job:
//! `mpiexec` ends the others.
//!
//! | file | holds |
//! |---|---|
//! | `shim.c`, `sys.rs` | MPI's calls: their constants are macros of C |
//! | `launch.rs` | starting ranks by `mpiexec` |

mod launch;
mod sys;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nearpm::memory::words;

use super::windows::Windows;
use super::{GATHER_WORDS, Get, Helper, Kind, Op, Place, Rma, Space, get_into_words};
use crate::error::{Error, Result};
pub use launch::{command, is_rank};
use sys::WordOp;

/// How long a pause is.
const PAUSE: Duration = Duration::from_micros(50);
/// Tests of a meeting before the first sleep.
const SPINS: u32 = 2000;
/// Looks at a word before the first sleep.
const LOOKS: u64 = 200;
/// Looks at a word before sleeps get longer: who waits is a server that nobody has asked for some
/// ten milliseconds.
const PAUSES: u64 = LOOKS + 200;
/// How long they then are beside a pause. The aim: less than 2 % of a processor for such a server.
const LONG_PAUSE: Duration = Duration::from_millis(2);

/// Names whether MPICH has a thread for progress.
const PROGRESS_OF_MPICH: &str = "MPIR_CVAR_ASYNC_PROGRESS";
/// Names whether a rank has one of ours: `always` or `never`; where it is not set, where it has a
/// processor to spare and MPICH has none.
const PROGRESS_OF_OURS: &str = "NEARPM_GVR_PROGRESS";
/// Between two calls of a thread for progress: the rank's own calls have their turns.
const PROGRESS: Duration = Duration::from_nanos(500);

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
    /// The windows of MPI, where all ranks can share memory.
    windows: Option<Windows>,
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

impl Threads {
    /// Starts one that lets MPI work on what others want of this rank, whatever its own thread
    /// does. It ends before MPI does.
    fn start_progress(self: &Arc<Threads>) -> Result<()> {
        self.helpers.fetch_add(1, Ordering::AcqRel);
        let threads = Arc::clone(self);
        let work = move || {
            // An error ends it: the rank's own calls get one, too.
            while !threads.ending.load(Ordering::Acquire) && sys::progress().is_ok() {
                let called = Instant::now();
                while called.elapsed() < PROGRESS {
                    std::hint::spin_loop();
                }
            }
            threads.helpers.fetch_sub(1, Ordering::AcqRel);
        };
        let started = std::thread::Builder::new().name("gvr-progress".into()).spawn(work);
        started.map(drop).map_err(|error| {
            self.helpers.fetch_sub(1, Ordering::AcqRel);
            Error::io("start a thread for MPI's progress")(error)
        })
    }
}

/// Whether each of `near` ranks of a machine of `machine` processors has two, where this one may
/// run on `allowed` of them: launchers give each rank its own, or all to all.
fn has_two_each(allowed: usize, machine: usize, near: usize) -> bool {
    allowed >= if allowed < machine { 2 } else { 2 * near }
}

/// Whether a rank is to have a thread for progress, with `near` ranks on its machine.
fn wants_progress(near: usize) -> Result<bool> {
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match said(PROGRESS_OF_OURS).as_deref() {
        Some("always") => return Ok(true),
        Some("never") => return Ok(false),
        Some(other) => return Err(Error::option(format!("{PROGRESS_OF_OURS} is {other:?}: always or never"))),
        None => {}
    }
    let is_off = |value: String| ["0", "no", "off", "false"].contains(&value.to_ascii_lowercase().as_str());
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    let listed = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let machine = listed.lines().filter(|line| line.starts_with("processor")).count();
    Ok(said(PROGRESS_OF_MPICH).is_none_or(is_off) && has_two_each(allowed, machine, near))
}

impl Mpi {
    /// Joins the world that `mpiexec` has started, with a window of `window` bytes on each rank.
    /// All ranks call it, once.
    ///
    /// # Errors
    /// [`Error::System`] with what MPI says.
    pub fn join(window: u64) -> Result<Mpi> {
        let window = window.max(4096).next_multiple_of(4096);
        // As many ranks as there can be: how many there are is not known yet.
        let first = 8 * (1_u64 << 16);
        let sys::Joined { rank, ranks, threads, near, base, all } = sys::join(first + window)?;
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
            windows: all.map(|memory| Windows::new(memory, 0, first + window, first + window, ranks)),
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
        if mpi.windows.is_none() && threads && wants_progress(near)? {
            mpi.threads.start_progress()?;
        }
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
        if let Some(windows) = &self.windows {
            return windows.clear(self.rank, from, bytes);
        }
        assert!(from + bytes <= self.first + self.window);
        // SAFETY: inside of the window, and no rank accesses it: it was not given out, or was given
        // back by all.
        unsafe { self.base().add(from as usize).write_bytes(0, bytes as usize) };
    }

    /// Begins a meeting in which this rank gives `words`.
    #[allow(unsafe_code)]
    fn begin_meeting(&self, words: &[u64]) -> Result<()> {
        let meeting = &mut *self.meeting.borrow_mut();
        meeting.mine[..words.len()].copy_from_slice(words);
        // SAFETY: boxed, of the right length, and not touched while `open`; one meeting at a time,
        // as `end_meeting` comes first.
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
        self.read_words(Place { rank: self.rank, offset: 0 }, &mut left)?;
        Ok(left)
    }

    /// Reads words at a place of MPI's windows.
    fn read_words(&self, at: Place, words: &mut [u64]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.load_many(at, words);
            return Ok(());
        }
        // MPI takes as many words that it does not look at.
        let given = [0; GATHER_WORDS];
        words.chunks_mut(GATHER_WORDS).enumerate().try_for_each(|(piece, words)| {
            sys::words(at.plus((8 * GATHER_WORDS * piece) as u64), &given[..words.len()], words, WordOp::Read)
        })
    }

    /// Writes words at a place of MPI's windows.
    fn write_words(&self, at: Place, words: &[u64]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.replace_many(at, words);
            return Ok(());
        }
        sys::accumulate(at, Kind::U64, Op::Replace, bytemuck::cast_slice(words))
    }

    /// Whether all ranks have come to a meeting, or may still come.
    fn check_left(&self, meeting: u64) -> Result<()> {
        match self.left()?.iter().position(|said| (1..=meeting).contains(said)) {
            Some(rank) => Err(Error::DeadRank { rank, ranks: self.ranks }),
            None => Ok(()),
        }
    }

    /// Says that this rank leaves, waits for the others to say so, comes to what they wait for, and
    /// ends MPI.
    fn leave(&self) -> Result<()> {
        self.threads.ending.store(true, Ordering::Release);
        while self.threads.helpers.load(Ordering::Acquire) > 0 {
            sys::progress()?;
            std::thread::sleep(PAUSE);
        }
        for rank in 0..self.ranks {
            self.write_words(Place { rank, offset: 8 * self.rank as u64 }, &[self.meetings.get() + 1])?;
            self.flush(rank)?;
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
        self.flush(self.rank)?;
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
        if let Some(windows) = &self.windows {
            windows.put(self.at(to, data.len()), data);
            return Ok(());
        }
        sys::put(self.at(to, data.len()), data)
    }

    #[allow(unsafe_code)]
    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        if self.windows.is_some() {
            // It may read at any moment until its end, so it does so then, into the caller's
            // buffer.
            return Ok(Get { from, bytes, number: 0, ready: 0 });
        }
        let mut buffer = self.spare.borrow_mut().pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        // SAFETY: the buffer lies on the heap, and is not touched before it was waited for, in
        // `end_get` or `drop_get`.
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
        if let Some(windows) = &self.windows {
            windows.get(self.at(get.from, data.len()), data);
            return Ok(());
        }
        sys::flush_local(get.from.rank)?;
        if let Some(buffer) = self.gets.borrow_mut()[get.number as usize].take() {
            data.copy_from_slice(&buffer);
            self.spare.borrow_mut().push(buffer);
        }
        Ok(())
    }

    fn drop_get(&self, get: Get) -> Result<()> {
        if self.windows.is_some() {
            return Ok(());
        }
        sys::flush_local(get.from.rank)?;
        self.spare.borrow_mut().extend(self.gets.borrow_mut()[get.number as usize].take());
        Ok(())
    }

    fn get(&self, from: Place, data: &mut [u8]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.get(self.at(from, data.len()), data);
            return Ok(());
        }
        sys::get(self.at(from, data.len()), data)
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        if let Some(windows) = &self.windows {
            return Ok(windows.fetch_add(self.at(at, 8), add));
        }
        let mut before = [0];
        sys::words(self.at(at, 8), &[add], &mut before, WordOp::Sum)?;
        Ok(before[0])
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        if let Some(windows) = &self.windows {
            return Ok(windows.cas(self.at(at, 8), expected, new));
        }
        sys::cas(self.at(at, 8), expected, new)
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.bor_many(self.at(at, 8 * bits.len()), bits, before);
            return Ok(());
        }
        sys::words(self.at(at, 8 * bits.len()), bits, &mut before[..bits.len()], WordOp::Or)
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        self.read_words(self.at(at, 8 * words.len()), words)
    }

    #[allow(unsafe_code)]
    fn load_still(&self, at: Place) -> Result<u64> {
        if at.rank != self.rank || self.windows.is_some() {
            return self.load(at);
        }
        let at = self.at(at, 8).offset as usize;
        assert!(at.is_multiple_of(8), "a word at {at:#x}");
        // SAFETY: inside of this rank's window, which begins at a page. What was written there is
        // done, as it was flushed or a meeting lies between, and nobody writes there now.
        Ok(unsafe { words::load_word(self.base().add(at)) })
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        self.write_words(self.at(at, 8 * words.len()), words)
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.accumulate(self.at(at, data.len()), kind, op, data);
            return Ok(());
        }
        sys::accumulate(self.at(at, data.len()), kind, op, data)
    }

    fn flush(&self, rank: usize) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.flush();
            return Ok(());
        }
        sys::flush(rank)
    }

    fn order(&self, rank: usize) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.order();
            return Ok(());
        }
        self.flush(rank)
    }

    fn reads_ahead(&self) -> bool {
        self.windows.is_none()
    }

    fn get_words(&self, from: Place, to: &[AtomicU64]) -> Result<()> {
        if let Some(windows) = &self.windows {
            windows.get_words(self.at(from, 8 * to.len()), to);
            return Ok(());
        }
        get_into_words(to, |bytes| self.get(from, bytes))
    }

    #[allow(unsafe_code)]
    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        let at = |offset| self.at(Place { rank: self.rank, offset }, bytes as usize).offset;
        let (from, to) = (at(from), at(to));
        if let Some(windows) = &self.windows {
            windows.copy(self.rank, from, to, bytes);
            return Ok(());
        }
        // What others have put there before a meeting is seen, and so is the copy after the next.
        sys::flush(self.rank)?;
        assert!(from.abs_diff(to) >= bytes, "a copy of {bytes} bytes onto itself");
        let (from, to) = (from as usize, to as usize);
        // SAFETY: both lie inside of the window and do not overlap; other ranks access what is read
        // by whole words, and not the copy.
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

#[cfg(test)]
mod tests {
    use super::has_two_each;

    #[test]
    fn ranks_share_a_machine_or_have_processors_of_their_own() {
        assert!(has_two_each(16, 16, 8) && !has_two_each(16, 16, 9));
        assert!(has_two_each(2, 16, 8) && !has_two_each(1, 16, 8));
        // Where the machine does not say what it has.
        assert!(!has_two_each(2, 0, 2) && has_two_each(4, 0, 2));
    }
}
