//! Ranks as processes, or as threads, over one memory file.
//!
//! A rank that waits sleeps in a futex. One that dies is noticed by the others within [`CHECK`]:
//! the system tells of the end of a process by its pidfd, and a thread says so itself when its
//! handle goes.
//!
//! | file | holds |
//! |---|---|
//! | `map.rs` | the memory file |
//! | `meeting.rs` | joining, barriers, and who is still there |
//! | `launch.rs` | starting ranks as processes |

mod launch;
mod map;
mod meeting;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::windows::Windows;
use super::{Get, Helper, Kind, Op, Place, Rma, Space};
use crate::error::{Error, Result};
pub use launch::{Launched, launch, launch_all, launched};
use map::Map;
use meeting::Meeting;
pub use meeting::{CHECK, JOIN};

/// Looks at a word before its reader sleeps: about a microsecond.
const SPINS: u32 = 100;
/// How long a pause is.
const PAUSE: Duration = Duration::from_micros(50);

/// A rank of a world on one machine.
pub struct Shm {
    map: Arc<Map>,
    meeting: Meeting,
    rank: usize,
    ranks: usize,
    windows: Windows,
    space: RefCell<Space>,
    pauses: Cell<u32>,
    /// A second handle, whose end is not that of the rank.
    helper: bool,
}

impl Shm {
    /// A world of threads: one handle for each rank, to be moved to its thread.
    ///
    /// # Errors
    /// [`Error::System`] where the system has no memory for it; [`Error::BadOption`] for no ranks.
    pub fn threads(ranks: usize, window: u64) -> Result<Vec<Shm>> {
        let (map, window) = Self::create(ranks, window)?;
        let map = Arc::new(map);
        (0..ranks)
            .map(|rank| Shm::new(Arc::clone(&map), rank, ranks, window, Meeting::of_threads(rank, ranks)))
            .collect()
    }

    /// The memory of a world, and the size of its windows: that wanted, in whole pages.
    fn create(ranks: usize, window: u64) -> Result<(Map, u64)> {
        if ranks == 0 || ranks > meeting::MOST_RANKS {
            return Err(Error::option(format!("{ranks} ranks make no world: give 1 to {}", meeting::MOST_RANKS)));
        }
        let window = window.max(4096).next_multiple_of(4096);
        let windows = window.checked_mul(ranks as u64).and_then(|bytes| bytes.checked_add(meeting::head_bytes(ranks)));
        let bytes = windows.ok_or_else(|| Error::option(format!("{ranks} windows of {window} bytes are too much")))?;
        Ok((Map::create(bytes)?, window))
    }

    fn new(map: Arc<Map>, rank: usize, ranks: usize, window: u64, meeting: Meeting) -> Result<Shm> {
        meeting.join(&map)?;
        let windows = Windows::new(**map, meeting::head_bytes(ranks), window, window, ranks);
        let space = RefCell::new(Space::new(window));
        Ok(Shm { map, meeting, rank, ranks, windows, space, pauses: Cell::new(0), helper: false })
    }
}

impl Rma for Shm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.space.borrow_mut().take(bytes)
    }

    fn expect(&self, offset: u64, bytes: u64) {
        self.map.populate(self.windows.at(Place { rank: self.rank, offset }, bytes as usize), bytes);
    }

    fn free(&self, offset: u64, bytes: u64) -> Result<()> {
        self.barrier()?;
        self.map
            .punch(self.windows.at(Place { rank: self.rank, offset }, bytes as usize), bytes.next_multiple_of(4096))?;
        self.barrier()?;
        self.space.borrow_mut().give_back(offset, bytes);
        Ok(())
    }

    #[inline]
    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        self.windows.put(to, data);
        Ok(())
    }

    #[inline]
    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        // It may read at any moment until its end, so it does so then, into the caller's buffer.
        Ok(Get { from, bytes, number: 0, ready: 0 })
    }

    #[inline]
    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        self.windows.get(get.from, data);
        Ok(())
    }

    fn drop_get(&self, _get: Get) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        Ok(self.windows.fetch_add(at, add))
    }

    #[inline]
    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        Ok(self.windows.cas(at, expected, new))
    }

    #[inline]
    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        self.windows.bor_many(at, bits, before);
        Ok(())
    }

    #[inline]
    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        self.windows.load_many(at, words);
        Ok(())
    }

    #[inline]
    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        self.windows.replace_many(at, words);
        Ok(())
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        self.windows.accumulate(at, kind, op, data);
        Ok(())
    }

    #[inline]
    fn flush(&self, _rank: usize) -> Result<()> {
        self.windows.flush();
        Ok(())
    }

    #[inline]
    fn order(&self, _rank: usize) -> Result<()> {
        self.windows.order();
        Ok(())
    }

    #[inline]
    fn reads_ahead(&self) -> bool {
        false
    }

    fn get_words(&self, from: Place, to: &[AtomicU64]) -> Result<()> {
        self.windows.get_words(from, to);
        Ok(())
    }

    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.windows.copy(self.rank, from, to, bytes);
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.meeting.barrier(&self.map)
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        self.meeting.allgather(&self.map, words)
    }

    fn pause(&self) -> Result<()> {
        std::thread::sleep(PAUSE);
        self.pauses.set(self.pauses.get() + 1);
        // The system is asked about every rank: not each time.
        if self.pauses.get().is_multiple_of(64) { self.meeting.check_alive(&self.map) } else { Ok(()) }
    }

    fn patience(&self) -> u64 {
        // Ten seconds, and somewhat more, since a sleep takes longer than it is told to.
        10_000_000 / PAUSE.as_micros() as u64
    }

    fn helper(&self) -> Result<Helper> {
        Ok(Box::new(Shm {
            map: Arc::clone(&self.map),
            meeting: Meeting::of_threads(self.rank, self.ranks),
            space: RefCell::new(Space::new(0)),
            pauses: Cell::new(0),
            helper: true,
            ..*self
        }))
    }

    fn deliver(&self, to: Place, data: &[u8], mark: u64, bell: u64) -> Result<()> {
        self.windows.put(to, data);
        self.windows.fetch_add(Place { offset: mark, ..to }, 1);
        let bell = self.windows.at(Place { offset: bell, ..to }, 8);
        self.map.word(bell).fetch_add(1, Ordering::AcqRel);
        meeting::wake(self.map.half(bell));
        Ok(())
    }

    fn wait_word(&self, offset: u64, was: u64) -> Result<u64> {
        let at = self.windows.at(Place { rank: self.rank, offset }, 8);
        for _ in 0..SPINS {
            let now = self.map.word(at).load(Ordering::Acquire);
            if now != was {
                return Ok(now);
            }
            std::hint::spin_loop();
        }
        loop {
            let now = self.map.word(at).load(Ordering::Acquire);
            if now != was {
                return Ok(now);
            }
            if meeting::sleep(self.map.half(at), was as u32) {
                // Without its rank a helper has nothing to do, and who asks a rank that has left
                // waits in vain.
                if self.helper { self.meeting.check_here(&self.map) } else { self.meeting.check_complete(&self.map) }?;
            }
        }
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        if !self.helper {
            self.meeting.leave(&self.map);
        }
    }
}

#[cfg(test)]
mod tests;
