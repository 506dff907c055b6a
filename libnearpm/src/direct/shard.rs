//! What a thread has for itself, so that it waits for no other.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lock_order::{Held, Lock};
use super::log::Lane;
use super::records::Records;
use super::transaction::Transaction;
use crate::Statistics;
use crate::heap::index::Arena;
use crate::memory::Medium;

/// Lanes, an arena and buffers. Alone on its cache lines.
#[repr(align(128))]
pub(crate) struct Shard {
    state: Mutex<ShardState>,
    /// Whether the medium's threads may go on by turns, which is asked for at each lock.
    by_turns: bool,
    /// What its holder uses.
    medium: Arc<Medium>,
}

/// The contents of a [`Shard`].
#[derive(Default)]
pub(crate) struct ShardState {
    /// The first is for commits of working copies.
    pub lanes: Vec<Lane>,
    pub arena: Arena,
    /// For what is written outside of transactions.
    pub records: Records,
    /// Bytes on their way home.
    pub piece: Vec<u8>,
    /// Transactions that have ended, with the memory of their buffers.
    pub spare: Vec<Transaction>,
    pub tally: Statistics,
    /// Bytes that became durable outside of transactions.
    pub outside_bytes: u64,
    /// Persists that went by the log, since a truncation was made because of them.
    pub logged_persists: u32,
}

/// A shard that a thread has locked.
pub(crate) type ShardGuard<'s> = Held<MutexGuard<'s, ShardState>>;

impl ShardState {
    /// Takes a lane, `from` this one on, for a transaction alone.
    pub fn take_lane(&mut self, from: usize) -> usize {
        let free = (from..self.lanes.len()).find(|&lane| !self.lanes[lane].busy);
        let lane = free.unwrap_or_else(|| {
            let next = self.lanes.len().max(from);
            self.lanes.resize_with(next + 1, Lane::default);
            next
        });
        self.lanes[lane].busy = true;
        lane
    }
}

impl Shard {
    /// One of a pool in this memory.
    pub fn new(medium: Arc<Medium>) -> Shard {
        Shard { state: Mutex::default(), by_turns: medium.is_behind_a_link(), medium }
    }

    /// Waits for the shard. Nothing inside is left half done by a panic.
    #[inline]
    pub fn lock(&self) -> ShardGuard<'_> {
        let take = || {
            if self.by_turns {
                return Ok::<_, Infallible>(self.lock_by_turns());
            }
            Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let Ok(held) = Held::take(&self.medium, Lock::Shard(std::ptr::from_ref(self).addr()), take);
        held
    }

    #[cold]
    #[inline(never)]
    fn lock_by_turns(&self) -> MutexGuard<'_, ShardState> {
        self.medium.lock(&self.state).unwrap_or_else(PoisonError::into_inner)
    }
}
