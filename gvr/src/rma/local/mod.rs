//! Ranks as threads of this process, one running at a time, in an order that a seed decides.
//!
//! Between two operations of one rank any other may run. What a rank has not flushed happens at any
//! moment, in any order, in pieces of 8-byte words: as much disorder as the rules of one-sided
//! access allow. At any step one rank, or all, can be stopped. A run is a function of its
//! [`Schedule`]: the same one gives the same steps.
//!
//! | file | holds |
//! |---|---|
//! | `scheduler.rs` | whose turn it is, what ranks wait for, stops |
//! | `memory.rs` | windows, and operations that are on their way |

mod memory;
mod scheduler;

use std::sync::Arc;

use super::{Get, Helper, Kind, Op, Place, Rma, too_many_helpers};
use crate::error::{Error, Result};
use memory::{Flight, Moves};
use scheduler::Shared;

/// What is stopped, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All ranks, as by a power cut.
    All {
        /// Step of the whole run, from 1.
        step: u64,
    },
    /// One rank.
    One {
        /// The rank.
        rank: usize,
        /// Step of the whole run, from 1.
        step: u64,
    },
}

/// Everything that decides a run.
#[derive(Clone, Default)]
pub struct Schedule {
    /// Seed of the order.
    pub seed: u64,
    /// What is stopped.
    pub stop: Option<Stop>,
    /// Called once when all are stopped, while nothing else runs: what memory holds now is what is
    /// left.
    pub at_stop: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Set by others, it stops all ranks at their next step.
    pub halt: Option<Arc<std::sync::atomic::AtomicBool>>,
}

impl Schedule {
    /// A run of its own for each seed, without stops.
    pub fn of_seed(seed: u64) -> Schedule {
        Schedule { seed, ..Schedule::default() }
    }
}

/// What a run did, beside what its ranks gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Steps of all ranks.
    pub steps: u64,
}

/// Runs `body` once for each rank, with `bytes` bytes of window each, and gives what they returned,
/// by rank.
pub fn run<T: Send>(ranks: usize, bytes: u64, schedule: &Schedule, body: impl Fn(Local) -> T + Sync) -> (Vec<T>, Ran) {
    let shared = Arc::new(Shared::new(ranks, bytes, schedule));
    let given = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let (shared, body) = (Arc::clone(&shared), &body);
                scope.spawn(move || {
                    let _turn = shared.begin(rank);
                    body(Local { agent: rank, rank, shared: Arc::clone(&shared), part: None })
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    shared.wait_for_helpers();
    (given, Ran { steps: shared.steps() })
}

/// A rank of a simulated world, or its helper.
pub struct Local {
    shared: Arc<Shared>,
    rank: usize,
    /// The rank, or, for a helper, all ranks and it.
    agent: usize,
    #[expect(dead_code, reason = "a helper's end is what tells the others")]
    part: Option<scheduler::Part<Arc<Shared>>>,
}

impl Local {
    fn flight(&self, at: Place, moves: Moves) -> Result<u64> {
        self.shared.step(self.agent, |state| state.memory.launch(Flight::new(self.agent, at, moves)))
    }

    /// Each word by itself: others may come in between.
    fn words(&self, at: Place, count: usize, mut each: impl FnMut(usize, &mut u64)) -> Result<()> {
        for index in 0..count {
            let place = at.plus(8 * index as u64);
            let change = |state: &mut scheduler::State| state.memory.word(place, |word| each(index, word));
            if index == 0 {
                self.shared.step(self.agent, change)?;
            } else {
                self.shared.maybe_step(self.agent, change)?;
            }
        }
        Ok(())
    }
}

impl Rma for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks()
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.shared.step(self.agent, |state| state.spaces[self.rank].take(bytes))?
    }

    fn free(&self, offset: u64, bytes: u64) -> Result<()> {
        self.shared.step(self.agent, |state| {
            state.memory.zero(self.rank, offset, bytes);
            state.spaces[self.rank].give_back(offset, bytes);
        })
    }

    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        self.flight(to, Moves::Write(data.to_vec())).map(drop)
    }

    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        let number = self.flight(from, Moves::Read(vec![0; bytes]))?;
        Ok(Get { from, bytes, number, ready: 0 })
    }

    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        self.shared.step(self.agent, |state| data.copy_from_slice(&state.memory.land_read(get.number)))
    }

    fn drop_get(&self, get: Get) -> Result<()> {
        self.shared.step(self.agent, |state| drop(state.memory.land_read(get.number)))
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        let mut before = 0;
        self.words(at, 1, |_, word| {
            before = *word;
            *word = word.wrapping_add(add);
        })?;
        Ok(before)
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        let mut before = 0;
        self.words(at, 1, |_, word| {
            before = *word;
            if before == expected {
                *word = new;
            }
        })?;
        Ok(before)
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        self.words(at, bits.len(), |index, word| {
            before[index] = *word;
            *word |= bits[index];
        })
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        self.words(at, words.len(), |index, word| words[index] = *word)
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        self.flight(at, Moves::Write(words.iter().flat_map(|word| word.to_le_bytes()).collect())).map(drop)
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        self.flight(at, Moves::Combine(kind, op, data.to_vec())).map(drop)
    }

    fn flush(&self, rank: usize) -> Result<()> {
        self.shared.step(self.agent, |state| state.land_all(self.agent, rank))
    }

    fn barrier(&self) -> Result<()> {
        self.shared.meet(self.rank, Vec::new()).map(drop)
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        let given = self.shared.meet(self.rank, words.iter().flat_map(|word| word.to_le_bytes()).collect())?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Ok(given.iter().flat_map(|bytes| bytes.chunks_exact(8).map(word)).collect())
    }

    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        let mine = if root == self.rank { std::mem::take(data) } else { Vec::new() };
        data.clone_from(&self.shared.meet(self.rank, mine)?[root]);
        Ok(())
    }

    fn pause(&self) -> Result<()> {
        let dead = self.shared.step(self.agent, |state| state.dead())?;
        dead.map_or(Ok(()), |rank| Err(Error::DeadRank { rank, ranks: self.ranks() }))
    }

    fn patience(&self) -> u64 {
        10_000
    }

    fn helper(&self) -> Result<Helper> {
        let part = Shared::appear(&self.shared, self.rank);
        let part = part.ok_or_else(too_many_helpers)?;
        Ok(Box::new(Local { shared: Arc::clone(&self.shared), rank: self.rank, agent: part.agent, part: Some(part) }))
    }
}

#[cfg(test)]
mod tests;
