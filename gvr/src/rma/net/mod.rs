//! Ranks in virtual time, with a model of a network: figures of more nodes than there are
//! processors.
//!
//! Ranks are threads of which one runs at a time: the one whose clock is the earliest. They do the
//! real protocol on real memory. What the model adds is the time of each operation, by a
//! [`Profile`]: processor time of the call, the sender's link, latency, the receiver's link,
//! atomics one at a time at their target, and the way back. What programs compute costs what they
//! say ([`Work`]); the library's own computing is free. A run is a function of its program and
//! profile: **its times are those of the model, and were measured nowhere**.
//!
//! | file | holds |
//! |---|---|
//! | `profile.rs` | parameters, by network, with their sources |
//! | `world.rs` | whose turn it is, and what is on its way |

mod profile;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;

use super::{Get, Helper, Kind, Op, Place, Rma, Work, too_many_helpers};
use crate::error::{Error, Result};
pub use profile::{NANO, Network, Picos, Profile};
use world::{Moves, Part, Shared, State};

/// Most ranks of a world.
pub const MOST_RANKS: usize = 64;

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// When the last rank ended.
    pub end: Picos,
    /// Messages between ranks.
    pub messages: u64,
}

/// Runs `body` once for each rank, with `bytes` bytes of window each, and gives what they returned,
/// by rank.
///
/// # Errors
/// [`Error::BadOption`] for no ranks or more than [`MOST_RANKS`].
pub fn run<T: Send>(
    ranks: usize,
    bytes: u64,
    profile: Profile,
    body: impl Fn(Net) -> T + Sync,
) -> Result<(Vec<T>, Ran)> {
    if ranks == 0 || ranks > MOST_RANKS {
        return Err(Error::option(format!("{ranks} ranks are not modelled: give 1 to {MOST_RANKS}")));
    }
    let shared = Arc::new(Shared::new(ranks, bytes, profile));
    let given = std::thread::scope(|scope| {
        let one = |rank| {
            let (shared, body) = (Arc::clone(&shared), &body);
            scope.spawn(move || body(Net { rank, agent: rank, part: shared.begin(rank), shared }))
        };
        let threads: Vec<_> = (0..ranks).map(one).collect();
        let end = |thread: std::thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(end).collect()
    });
    let state = shared.lock();
    let end = state.clocks[..ranks].iter().copied().max().unwrap_or(0);
    Ok((given, Ran { end, messages: state.messages }))
}

/// A rank of a world in virtual time, or its helper.
pub struct Net {
    rank: usize,
    agent: usize,
    shared: Arc<Shared>,
    #[expect(dead_code, reason = "its end is what tells the others")]
    part: Part,
}

impl Net {
    fn profile(&self) -> &Profile {
        &self.shared.profile
    }

    /// Something of this rank's own window: the time of the call, and of copying bytes.
    fn own<R>(&self, bytes: usize, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.shared.at_turn(self.agent);
        let given = act(&mut state);
        let cost = self.profile().own + self.profile().copy(bytes as u64);
        state.clocks[self.agent] += cost;
        let now = state.clocks[self.agent];
        state.wake(now + self.profile().wake);
        given
    }

    /// Sends a message of so many bytes, and gives when it has arrived.
    fn send(&self, state: &mut State, target: usize, bytes: usize) -> Picos {
        let profile = self.profile();
        state.clocks[self.agent] += profile.overhead;
        let leaves = state.clocks[self.agent].max(state.sends[self.rank]);
        state.sends[self.rank] = leaves + profile.gap.max(profile.bytes(bytes));
        let arrives = (leaves + profile.latency).max(state.receives[target]) + profile.bytes(bytes);
        state.receives[target] = arrives;
        state.messages += 1;
        arrives
    }

    /// The answer to something that was done at a time: when it is back.
    fn answer(&self, state: &mut State, target: usize, at: Picos, bytes: usize) -> Picos {
        let profile = self.profile();
        let leaves = at.max(state.sends[target]);
        state.sends[target] = leaves + profile.gap.max(profile.bytes(bytes));
        let back = (leaves + profile.latency).max(state.receives[self.rank]) + profile.bytes(bytes);
        state.receives[self.rank] = back;
        state.messages += 1;
        back
    }

    /// An operation that nobody waits for; `words` are those that it changes atomically.
    fn launch(&self, at: Place, bytes: usize, words: usize, moves: Moves) {
        let mut state = self.shared.at_turn(self.agent);
        if at.rank == self.rank {
            let profile = self.profile();
            let now = state.clocks[self.agent] + profile.own + profile.copy(bytes as u64);
            state.clocks[self.agent] = now;
            state.launch(now, at, moves);
            state.note_done(self.agent, at.rank, now);
            return;
        }
        let mut time = self.send(&mut state, at.rank, bytes);
        if words > 0 {
            time = time.max(state.atomics[at.rank]) + self.profile().atomics(words);
            state.atomics[at.rank] = time;
        }
        state.launch(time, at, moves);
        state.note_done(self.agent, at.rank, time + self.profile().latency);
    }

    /// An atomic operation on words, which is waited for.
    fn atomic<R>(&self, at: Place, words: usize, sent: usize, act: impl FnOnce(&mut State) -> R) -> R {
        if at.rank == self.rank {
            return self.own(8 * words, act);
        }
        let mut state = self.shared.at_turn(self.agent);
        let arrives = self.send(&mut state, at.rank, 8 * sent);
        let time = arrives.max(state.atomics[at.rank]) + self.profile().atomics(words);
        state.atomics[at.rank] = time;
        let mut state = self.shared.travel(state, self.agent, time);
        let given = act(&mut state);
        state.wake(time + self.profile().wake);
        let back = self.answer(&mut state, at.rank, time, 8 * words);
        state.clocks[self.agent] = back;
        given
    }

    fn words(at: Place, count: usize) -> impl Iterator<Item = Place> {
        (0..count as u64).map(move |word| at.plus(8 * word))
    }
}

impl Rma for Net {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.shared.lock().spaces[self.rank].take(bytes)
    }

    fn free(&self, offset: u64, bytes: u64) -> Result<()> {
        self.barrier()?;
        let mut state = self.shared.at_turn(self.agent);
        state.bytes(Place { rank: self.rank, offset }, bytes as usize).fill(0);
        state.spaces[self.rank].give_back(offset, bytes);
        drop(state);
        self.barrier()
    }

    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        self.launch(to, data.len(), 0, Moves::Write(data.to_vec()));
        Ok(())
    }

    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        let mut state = self.shared.at_turn(self.agent);
        let (time, back) = if from.rank == self.rank {
            let now = state.clocks[self.agent];
            (now, now + self.profile().own + self.profile().copy(bytes as u64))
        } else {
            let time = self.send(&mut state, from.rank, 0);
            (time, self.answer(&mut state, from.rank, time, bytes))
        };
        let number = state.launch(time, from, Moves::Read(bytes));
        Ok(Get { from, bytes, number, ready: back })
    }

    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        let mut state = self.shared.travel(self.shared.lock(), self.agent, get.ready);
        data.copy_from_slice(&state.take_read(get.number));
        Ok(())
    }

    fn drop_get(&self, get: Get) -> Result<()> {
        // Its bytes are not waited for, but its buffer is: MPI has no other way.
        drop(self.shared.travel(self.shared.lock(), self.agent, get.ready).take_read(get.number));
        Ok(())
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        Ok(self.atomic(at, 1, 1, |state| state.word(at, |word| std::mem::replace(word, word.wrapping_add(add)))))
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        let change = |word: &mut u64| {
            let before = *word;
            *word = if before == expected { new } else { before };
            before
        };
        Ok(self.atomic(at, 1, 2, |state| state.word(at, change)))
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        self.atomic(at, bits.len(), bits.len(), |state| {
            for ((place, bits), before) in Net::words(at, bits.len()).zip(bits).zip(before) {
                *before = state.word(place, |word| std::mem::replace(word, *word | bits));
            }
        });
        Ok(())
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        self.atomic(at, words.len(), 0, |state| {
            for (place, to) in Net::words(at, words.len()).zip(words) {
                *to = state.word(place, |word| *word);
            }
        });
        Ok(())
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.launch(at, bytes.len(), words.len(), Moves::Write(bytes));
        Ok(())
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        self.launch(at, data.len(), data.len() / kind.bytes(), Moves::Combine(kind, op, data.to_vec()));
        Ok(())
    }

    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.own(bytes as usize, |state| state.copy_within(self.rank, from, to, bytes));
        Ok(())
    }

    fn flush(&self, rank: usize) -> Result<()> {
        let state = self.shared.lock();
        let done = state.done(self.agent, rank);
        drop(self.shared.travel(state, self.agent, done));
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.shared.meet(self.rank, Vec::new()).map(drop)
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        let given = self.shared.meet(self.rank, words.iter().flat_map(|word| word.to_le_bytes()).collect())?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Ok(given.iter().flat_map(|bytes| bytes.chunks_exact(8).map(word)).collect())
    }

    fn pause(&self) -> Result<()> {
        let state = self.shared.lock();
        let until = state.clocks[self.agent] + 1000 * NANO;
        drop(self.shared.travel(state, self.agent, until));
        Ok(())
    }

    fn patience(&self) -> u64 {
        // Ten seconds of virtual time.
        10_000_000
    }

    fn now(&self) -> u64 {
        self.shared.lock().clocks[self.agent] / NANO
    }

    fn work(&self, work: Work) -> Result<()> {
        let mut state = self.shared.lock();
        let profile = *self.profile();
        match work {
            Work::Compute { nanoseconds } => state.clocks[self.agent] += nanoseconds * NANO,
            // What memory would have taken was charged by the copy.
            Work::StoreNow { bytes } => state.clocks[self.agent] += profile.copy(bytes) * (profile.storage - 1),
            Work::StoreLater { bytes, room } => {
                let now = state.clocks[self.agent];
                state.storage[self.rank] = state.storage[self.rank].max(now) + profile.copy(bytes) * profile.storage;
                let may_lie = profile.copy(room) * profile.storage;
                let until = state.storage[self.rank].saturating_sub(may_lie);
                state.clocks[self.agent] = now.max(until);
            }
        }
        Ok(())
    }

    fn wait_word(&self, offset: u64, was: u64) -> Result<u64> {
        self.shared.wait_word(self.agent, Place { rank: self.rank, offset }, was)
    }

    fn deliver(&self, to: Place, data: &[u8], mark: u64, bell: u64) -> Result<()> {
        self.launch(to, data.len(), 0, Moves::Deliver(data.to_vec(), [mark, bell]));
        Ok(())
    }

    fn helper(&self) -> Result<Helper> {
        let part = self.shared.appear(self.rank).ok_or_else(too_many_helpers)?;
        Ok(Box::new(Net { rank: self.rank, agent: part.agent, shared: Arc::clone(&self.shared), part }))
    }
}
