//! What is behind the lock of a pool.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::Allocator;
use crate::error::Error;
use crate::lane::LaneState;
use crate::mechanism::{Acknowledged, Context, Protocol};
use crate::statistics::count;
use crate::thread_lane::ThreadLane;

/// What is behind the lock of a pool.
pub(crate) struct Inner {
    pub cx: Context,
    pub protocol: Box<dyn Protocol>,
    pub allocator: Allocator,
    /// What the recovery found in each ring, by lane and member.
    pub lanes: Vec<Vec<LaneState>>,
    /// Logs of the thread numbers that have used the primitives.
    pub threads: BTreeMap<u16, ThreadLane>,
    /// Programs have stored behind transactions, so that lines may be dirty of which nobody knows.
    pub unflushed: bool,
    /// A rollback or a commit failed half-way: nothing goes on before a recovery.
    pub poisoned: bool,
    /// The pool was closed in order.
    pub closed: bool,
    /// Transactions may only read.
    pub read_only: bool,
}

impl Inner {
    /// Refuses changes of a pool that was opened for reading.
    #[inline]
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Lets the program use memory behind the transactions.
    pub fn share(&mut self) -> Result<(), Error> {
        let shared = self.protocol.share(&mut self.cx);
        self.poisoned |= shared.is_err();
        shared
    }

    /// Poisons the pool where a log has failed on the card: what its commands did only a recovery
    /// can tell.
    pub fn poison_after<T>(&mut self, result: &Result<T, Error>) {
        self.poisoned |= matches!(result, Err(Error::LogFailed { .. } | Error::StoresLost { .. }));
    }

    /// A transaction has committed.
    pub fn count_commit(&self, acknowledged: Acknowledged) {
        count(&self.cx.medium.counters.transactions, 1);
        if acknowledged == Acknowledged::All {
            self.acknowledge_all();
        }
    }

    /// A transaction was taken back.
    pub fn count_abort(&self) {
        count(&self.cx.medium.counters.aborts, 1);
    }

    /// Every transaction so far is durable.
    pub fn acknowledge_all(&self) {
        let counters = &self.cx.medium.counters;
        let all = counters.transactions.load(Ordering::Relaxed);
        counters.acknowledged.store(all, Ordering::Relaxed);
    }

    /// Makes every committed transaction durable, and makes sure that no log has failed of any
    /// thread.
    pub fn persist(&mut self) -> Result<(), Error> {
        let before = self.cx.lane.executor.verifications();
        self.protocol.persist(&mut self.cx)?;
        // A read-back on the way has told.
        let told = self.cx.lane.executor.verifications() > before;
        if told { Ok(()) } else { self.cx.lane.executor.verify(false) }
    }

    /// Leaves nothing to be done later, and makes sure that no log has failed of any thread.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.protocol.finish(&mut self.cx)?;
        let threads = self.threads.values_mut().map(ThreadLane::verify);
        threads.chain([self.cx.lane.executor.verify(true)]).collect()
    }
}
