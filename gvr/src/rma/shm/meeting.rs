//! How ranks meet, and how they notice that one is gone.
//!
//! The head of the memory file:
//!
//! | offset | | |
//! |---|---|---|
//! | 64 | `u32` | ranks that have come to the barrier |
//! | 128 | `u32` | barriers so far: the futex |
//! | 192 | `u32` | the rank that was found dead, plus 1; 0 while all live |
//! | 256 | `u32` | ranks that sleep in a barrier |
//! | 4096 (1 + rank) | | what a rank tells the others: its process, its state, two rows of words for `allgather` |

use std::cell::{Cell, OnceCell};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::futex;

use super::map::Map;
use crate::error::{Error, Result};
use crate::rma::GATHER_WORDS;

/// How often a rank that waits looks whether the others live.
pub const CHECK: Duration = Duration::from_millis(100);
/// How long ranks wait for each other at the beginning.
pub const JOIN: Duration = Duration::from_secs(10);

/// More would not fit a rank's number and be of no use on one machine.
pub(super) const MOST_RANKS: usize = 4096;

const PAGE: u64 = 4096;
const ARRIVED: u64 = 64;
const GENERATION: u64 = 128;
const DEAD: u64 = 192;
const SLEEPERS: u64 = 256;
/// Looks at a barrier before a rank sleeps in it: some microseconds, less than falling asleep and
/// being woken takes.
const SPINS: u32 = 400;

/// In a rank's page.
const PROCESS: u64 = 0;
const STATE: u64 = 8;
const ROWS: u64 = 64;

const JOINED: u32 = 1;
const LEFT: u32 = 2;

/// Bytes of the file before the windows.
pub(super) fn head_bytes(ranks: usize) -> u64 {
    PAGE * (1 + ranks as u64)
}

fn page(rank: usize) -> u64 {
    PAGE * (1 + rank as u64)
}

/// Notes the process of a rank; others wait for it.
pub(super) fn note_process(map: &Map, rank: usize, process: u32) {
    map.half(page(rank) + PROCESS).store(process, Release);
}

/// Notes that a rank is gone, unless it left in order, and wakes those that wait.
pub(super) fn note_end(map: &Map, rank: usize) {
    if map.half(page(rank) + STATE).load(Acquire) != LEFT {
        note_dead(map, rank);
    }
}

fn note_dead(map: &Map, rank: usize) {
    // The first one stays: the others follow from it.
    let _ = map.half(DEAD).compare_exchange(0, rank as u32 + 1, AcqRel, Acquire);
    wake_all(map);
}

fn wake_all(map: &Map) {
    wake(map.half(GENERATION));
}

/// Wakes those who sleep at a word.
pub(super) fn wake(word: &AtomicU32) {
    // It fails for addresses that are not mapped alone.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

/// Sleeps while a word is `was`. Tells whether it was for as long as [`CHECK`]: the others are then
/// looked at.
pub(super) fn sleep(word: &AtomicU32, was: u32) -> bool {
    let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: CHECK.as_nanos() as i64 };
    // Whatever else it says, the caller looks again.
    futex::wait(word, futex::Flags::empty(), was, Some(&timeout)) == Err(rustix::io::Errno::TIMEDOUT)
}

/// A rank's part in meetings.
pub(super) struct Meeting {
    rank: usize,
    ranks: usize,
    /// Ranks are processes.
    processes: bool,
    /// Of the other ranks, by number.
    watches: OnceCell<Vec<Option<OwnedFd>>>,
    gathers: Cell<u64>,
}

impl Meeting {
    pub fn of_threads(rank: usize, ranks: usize) -> Meeting {
        Meeting { rank, ranks, processes: false, watches: OnceCell::new(), gathers: Cell::new(0) }
    }

    pub fn of_processes(rank: usize, ranks: usize) -> Meeting {
        Meeting { processes: true, ..Self::of_threads(rank, ranks) }
    }

    fn dead(&self, rank: usize) -> Error {
        Error::DeadRank { rank, ranks: self.ranks }
    }

    /// Begins to take part. Processes wait for each other.
    pub fn join(&self, map: &Map) -> Result<()> {
        map.half(page(self.rank) + STATE).store(JOINED, SeqCst);
        if !self.processes {
            return Ok(());
        }
        let deadline = Instant::now() + JOIN;
        for rank in 0..self.ranks {
            while map.half(page(rank) + PROCESS).load(Acquire) == 0 {
                if Instant::now() > deadline {
                    return Err(self.dead(rank));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let watch = |rank: usize| {
            let process = map.half(page(rank) + PROCESS).load(Acquire);
            let process = Pid::from_raw(process as i32).ok_or_else(|| self.dead(rank))?;
            match rustix::process::pidfd_open(process, PidfdFlags::empty()) {
                Ok(watch) => Ok(Some(watch)),
                Err(rustix::io::Errno::SRCH) => {
                    note_end(map, rank);
                    Err(self.dead(rank))
                }
                Err(errno) => Err(Error::system(format!("watch the process of rank {rank}"))(errno)),
            }
        };
        let watches = (0..self.ranks).map(|rank| if rank == self.rank { Ok(None) } else { watch(rank) });
        let _ = self.watches.set(watches.collect::<Result<_>>()?);
        self.barrier(map)
    }

    /// Takes part no more.
    pub fn leave(&self, map: &Map) {
        map.half(page(self.rank) + STATE).store(LEFT, SeqCst);
        wake_all(map);
    }

    /// Whether no rank has died.
    pub fn check_alive(&self, map: &Map) -> Result<()> {
        let dead = map.half(DEAD).load(Acquire);
        if dead != 0 {
            return Err(self.dead(dead as usize - 1));
        }
        for (rank, watch) in self.watches.get().into_iter().flatten().enumerate() {
            let Some(watch) = watch else { continue };
            let mut polled = [PollFd::new(watch, PollFlags::IN)];
            let ended = matches!(rustix::event::poll(&mut polled, Some(&rustix::time::Timespec::default())), Ok(1..));
            if ended && map.half(page(rank) + STATE).load(Acquire) != LEFT {
                note_dead(map, rank);
                return Err(self.dead(rank));
            }
        }
        Ok(())
    }

    /// Whether no rank has died, and this one has not left.
    pub fn check_here(&self, map: &Map) -> Result<()> {
        self.check_alive(map)?;
        if map.half(page(self.rank) + STATE).load(Acquire) == LEFT { Err(self.dead(self.rank)) } else { Ok(()) }
    }

    /// Whether all can still come to a meeting.
    pub fn check_complete(&self, map: &Map) -> Result<()> {
        self.check_alive(map)?;
        let Some(left) = (0..self.ranks).find(|&rank| map.half(page(rank) + STATE).load(Acquire) == LEFT) else {
            return Ok(());
        };
        // All others name the same one, though more will leave for it.
        note_dead(map, left);
        self.check_alive(map)
    }

    pub fn barrier(&self, map: &Map) -> Result<()> {
        if self.ranks == 1 {
            return Ok(());
        }
        if map.half(DEAD).load(Acquire) != 0 {
            return self.check_alive(map);
        }
        let generation = map.half(GENERATION);
        let before = generation.load(Acquire);
        if map.half(ARRIVED).fetch_add(1, AcqRel) as usize + 1 == self.ranks {
            map.half(ARRIVED).store(0, Relaxed);
            generation.store(before.wrapping_add(1), SeqCst);
            // Whoever comes to sleep from here on sees the new number.
            if map.half(SLEEPERS).load(SeqCst) > 0 {
                wake_all(map);
            }
            return Ok(());
        }
        for _ in 0..SPINS {
            if generation.load(Acquire) != before {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        while generation.load(Acquire) == before {
            let sleepers = map.half(SLEEPERS);
            sleepers.fetch_add(1, SeqCst);
            let long = sleep(generation, before);
            sleepers.fetch_sub(1, SeqCst);
            let due = long || map.half(DEAD).load(Acquire) != 0;
            if due && generation.load(Acquire) == before {
                self.check_complete(map)
                    .or_else(|gone| if generation.load(Acquire) == before { Err(gone) } else { Ok(()) })?;
            }
        }
        Ok(())
    }

    /// Each rank writes its words into one of two rows in turn: a row is written again only after a
    /// barrier which all come to when they have read it.
    pub fn allgather(&self, map: &Map, words: &[u64]) -> Result<Vec<u64>> {
        if words.len() > GATHER_WORDS {
            return Err(Error::option(format!("a rank can hand {GATHER_WORDS} words to all, not {}", words.len())));
        }
        let row = ROWS + self.gathers.get() % 2 * 8 * GATHER_WORDS as u64;
        self.gathers.set(self.gathers.get() + 1);
        for (to, word) in map.words(page(self.rank) + row, words.len()).iter().zip(words) {
            to.store(*word, Relaxed);
        }
        self.barrier(map)?;
        let of = |rank| map.words(page(rank) + row, words.len()).iter().map(|word| word.load(Relaxed));
        Ok((0..self.ranks).flat_map(of).collect())
    }
}
