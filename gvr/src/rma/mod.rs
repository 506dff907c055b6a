//! One-sided access to the memory of other ranks.
//!
//! Every rank exposes a *window* of bytes. Its peers read and change it without its help. The rules
//! are those of MPI-3 windows, which all backends keep, and of which callers may use no more:
//!
//! | call | done when it returns | order |
//! |---|---|---|
//! | `put`, `replace_many`, `accumulate` | at the next `flush` of the target | none among themselves, in pieces of aligned 8-byte words |
//! | `begin_get` | at its `end_get` | none: what it reads is of some moment in between, word by word |
//! | `fetch_add`, `cas`, `bor_many`, `load_many` | yes | each word is atomic against all atomics |
//! | `barrier`, `allgather`, `broadcast` | yes | all ranks call them in the same order |
//!
//! | backend | ranks are | for |
//! |---|---|---|
//! | [`local`] | threads under a seeded scheduler that reorders what was not flushed, and stops ranks | tests |
//! | [`shm`] | processes, or threads, over one memory file | work on one machine, CI |
//! | [`net`] | threads in virtual time, with a model of a network | figures of up to 64 nodes |
//! | [`counted`] | those of any other | counts of operations |
//! | `mpi` (feature `mpi`) | processes that `mpiexec` has started | several machines |

pub mod counted;
pub mod local;
mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod net;
mod number;
pub mod shm;
mod windows;

pub use number::{Kind, Op};

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Helpers that a rank can have in simulations.
const HELPERS: usize = 4;

/// Words that one `allgather` can carry from each rank.
pub const GATHER_WORDS: usize = 64;

/// A place in a rank's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: usize,
    /// Bytes from the beginning of its window.
    pub offset: u64,
}

impl Place {
    /// A place some bytes further on.
    pub fn plus(self, bytes: u64) -> Place {
        Place { rank: self.rank, offset: self.offset + bytes }
    }
}

/// A read that has begun.
#[must_use = "a read that is not ended keeps its place"]
#[derive(Debug)]
pub struct Get {
    /// Where it reads.
    pub from: Place,
    /// Bytes.
    pub bytes: usize,
    /// Number by which the backend knows it.
    pub number: u64,
    /// In virtual time: when its bytes are there.
    pub ready: u64,
}

/// Work beside one-sided operations. A backend in virtual time has to be told of it; others take
/// the time that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A program computes.
    Compute {
        /// For so long.
        nanoseconds: u64,
    },
    /// Bytes of an old version go to where old versions are stored, and the program waits for it.
    StoreNow {
        /// How many.
        bytes: u64,
    },
    /// They go there in the background; the program waits only while more than `room` bytes have
    /// not gone.
    StoreLater {
        /// How many.
        bytes: u64,
        /// Bytes that may lie in memory until then.
        room: u64,
    },
}

/// A second handle of a rank, for a thread beside the rank's own. It does not take part in
/// meetings.
pub type Helper = Box<dyn Rma + Send>;

/// One-sided operations, and what ranks do together. Offsets of words are multiples of 8. A handle
/// belongs to one thread.
///
/// # Errors
/// All calls: [`Error::DeadRank`] where another rank is needed that is gone; [`Error::Stopped`] in
/// simulations.
pub trait Rma {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;
    /// Ranks of the world.
    fn ranks(&self) -> usize;
    /// Takes zeroed bytes of every rank's window, at the same offset on each. All ranks call it in
    /// the same order with the same size.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    fn alloc(&self, bytes: u64) -> Result<u64>;
    /// Is told that bytes of this rank's own window will soon be written: memory that comes page by
    /// page can be fetched at once.
    fn expect(&self, _offset: u64, _bytes: u64) {}
    /// Gives bytes back that [`Rma::alloc`] gave. All ranks call it, when none uses them.
    fn free(&self, offset: u64, bytes: u64) -> Result<()>;
    /// Writes bytes.
    fn put(&self, to: Place, data: &[u8]) -> Result<()>;
    /// Begins to read bytes.
    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get>;
    /// Waits for a read. `data` has as many bytes as were asked for.
    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()>;
    /// Gives up a read.
    fn drop_get(&self, get: Get) -> Result<()>;
    /// Adds to a word and gives what it was.
    fn fetch_add(&self, at: Place, add: u64) -> Result<u64>;
    /// Stores `new` if the word is `expected`, and gives what it was.
    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64>;
    /// Sets bits of neighbouring words and gives what these were.
    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()>;
    /// Reads neighbouring words, each atomically.
    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()>;
    /// Writes neighbouring words, each atomically.
    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()>;
    /// Combines elements with those at a place, each atomically. `data` holds whole elements of
    /// `kind`, and the place is a multiple of their size.
    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()>;
    /// Copies bytes of this rank's own window to another place of it, from one offset to the other;
    /// done at the next flush.
    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        let place = |offset| Place { rank: self.rank(), offset };
        let mut buffer = vec![0; bytes as usize];
        self.get(place(from), &mut buffer)?;
        self.put(place(to), &buffer)
    }
    /// Reads bytes into words, which others may look at meanwhile.
    fn get_words(&self, from: Place, to: &[AtomicU64]) -> Result<()> {
        get_into_words(to, |bytes| self.get(from, bytes))
    }
    /// Waits until everything that this rank did to another is done there.
    fn flush(&self, rank: usize) -> Result<()>;
    /// Sees to it that what this rank did to another is seen there before what it does to it later,
    /// and without another call. Cheaper than [`Rma::flush`] where stores are seen in their order.
    fn order(&self, rank: usize) -> Result<()> {
        self.flush(rank)
    }
    /// Whether a read that was begun goes on while others are made.
    fn reads_ahead(&self) -> bool {
        true
    }
    /// Waits until all ranks have come here.
    fn barrier(&self) -> Result<()>;
    /// Hands every rank the words of all ranks, one after the other: up to [`GATHER_WORDS`] of
    /// each.
    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>>;
    /// Hands bytes of one rank to all.
    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        let bytes = self.allgather(&[data.len() as u64])?[root] as usize;
        data.resize(bytes, 0);
        for piece in data.chunks_mut(8 * GATHER_WORDS) {
            let mut words = [0_u64; GATHER_WORDS];
            bytemuck::cast_slice_mut(&mut words)[..piece.len()].copy_from_slice(piece);
            let all = self.allgather(&words)?;
            let mine: &[u8] = bytemuck::cast_slice(&all[root * GATHER_WORDS..][..GATHER_WORDS]);
            piece.copy_from_slice(&mine[..piece.len()]);
        }
        Ok(())
    }
    /// Waits a little for another rank to go on, without using the processor.
    ///
    /// # Errors
    /// [`Error::DeadRank`] if any rank has died.
    fn pause(&self) -> Result<()>;
    /// How long somebody may wait for another rank's step, in calls of [`Rma::pause`].
    fn patience(&self) -> u64;
    /// A second handle of this rank.
    ///
    /// # Errors
    /// [`Error::BadOption`] where the backend gives none.
    fn helper(&self) -> Result<Helper> {
        Err(Error::option("ranks of this backend have one thread each, and a server needs another: take Access::Rma"))
    }
    /// Sends a message: writes bytes; when they are there, adds 1 to the word at `mark` of the same
    /// window, and then to that at `bell`, for which somebody waits.
    fn deliver(&self, to: Place, data: &[u8], mark: u64, bell: u64) -> Result<()> {
        self.put(to, data)?;
        self.flush(to.rank)?;
        self.fetch_add(Place { offset: mark, ..to }, 1)?;
        self.fetch_add(Place { offset: bell, ..to }, 1).map(drop)
    }
    /// Waits until the word at `offset` of this rank's window is not `was`, and gives it.
    fn wait_word(&self, offset: u64, was: u64) -> Result<u64> {
        loop {
            let now = self.load(Place { rank: self.rank(), offset })?;
            if now != was {
                return Ok(now);
            }
            self.pause()?;
        }
    }
    /// The time, in nanoseconds since some moment: the machine's, or, in virtual time, this rank's.
    fn now(&self) -> u64 {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
    }
    /// Is told of other work.
    fn work(&self, _: Work) -> Result<()> {
        Ok(())
    }

    /// Reads bytes, and waits for them.
    fn get(&self, from: Place, data: &mut [u8]) -> Result<()> {
        let get = self.begin_get(from, data.len())?;
        self.end_get(get, data)
    }

    /// As [`Rma::load`], of a word that nobody changes meanwhile: a rank may read its own without
    /// the care that a change needs.
    fn load_still(&self, at: Place) -> Result<u64> {
        self.load(at)
    }

    /// Reads one word.
    fn load(&self, at: Place) -> Result<u64> {
        let mut word = [0];
        self.load_many(at, &mut word)?;
        Ok(word[0])
    }

    /// Adds up what each rank gives, and gives the sum to all.
    fn allreduce(&self, op: Reduce, word: u64) -> Result<u64> {
        let all = self.allgather(&[word])?;
        Ok(match op {
            Reduce::Sum => all.iter().fold(0, |sum, word| sum.wrapping_add(*word)),
            Reduce::Min => all.into_iter().min().unwrap_or(word),
            Reduce::Max => all.into_iter().max().unwrap_or(word),
        })
    }
}

/// Stores into words what `get` brings.
fn get_into_words(to: &[AtomicU64], get: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
    let mut words = vec![0_u64; to.len()];
    get(bytemuck::cast_slice_mut(&mut words))?;
    to.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
    Ok(())
}

fn too_many_helpers() -> Error {
    Error::option(format!("a simulated rank has {HELPERS} helpers at most: give back an array that has one"))
}

/// How [`Rma::allreduce`] combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The sum, modulo 2^64.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// Space of the windows that arrays take and give back: first fit, the same on every rank, as all
/// ask for the same in the same order.
#[derive(Debug)]
pub(crate) struct Space {
    /// Free ranges, rising, none beside another.
    free: Vec<(u64, u64)>,
}

impl Space {
    const ALIGN: u64 = 4096;

    pub fn new(bytes: u64) -> Space {
        Space { free: vec![(0, bytes / Self::ALIGN * Self::ALIGN)] }
    }

    pub fn take(&mut self, bytes: u64) -> Result<u64> {
        let bytes = bytes.next_multiple_of(Self::ALIGN);
        let Some(at) = self.free.iter().position(|&(_, length)| length >= bytes) else {
            let free = self.free.iter().map(|&(_, length)| length).max().unwrap_or(0);
            return Err(Error::NoMemory { needed: bytes, free });
        };
        let (start, length) = self.free[at];
        if length == bytes {
            self.free.remove(at);
        } else {
            self.free[at] = (start + bytes, length - bytes);
        }
        Ok(start)
    }

    pub fn give_back(&mut self, offset: u64, bytes: u64) {
        let bytes = bytes.next_multiple_of(Self::ALIGN);
        let at = self.free.partition_point(|&(start, _)| start < offset);
        self.free.insert(at, (offset, bytes));
        self.free.dedup_by(|next, before| {
            let beside = before.0 + before.1 == next.0;
            if beside {
                before.1 += next.1;
            }
            beside
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_that_is_given_back_is_whole_again() {
        let mut space = Space::new(1 << 20);
        let taken: Vec<u64> = (0..4).map(|_| space.take(5000).unwrap()).collect();
        for at in [2, 0, 3, 1] {
            space.give_back(taken[at], 5000);
        }
        assert_eq!(space.free, [(0, 1 << 20)]);
        assert!(matches!(space.take((1 << 20) + 1), Err(Error::NoMemory { free: 0x10_0000, .. })));
    }
}
