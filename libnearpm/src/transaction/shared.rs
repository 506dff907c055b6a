//! What transactions of a pool share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Inner;
use super::collected::Collected;
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::mechanism::{Number, Together, hand_over};
use crate::memory::Medium;
use crate::options::Mechanism;
use crate::process::Process;

/// A pool as its transactions see it: what is behind its lock, and what does not change.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    pub medium: Arc<Medium>,
    pub mechanism: Mechanism,
    /// Pools by offsets keep their size while they are open.
    pub layout: HeapLayout,
    pub read_only: bool,
    /// Who opened it.
    pub process: Process,
    /// Waits for commits on a card.
    together: Together,
    /// Empty; kept for the memory that transactions have collected in.
    spare: Mutex<Vec<Collected>>,
}

/// A commit that may have to be waited for: its number, and how many transactions had committed by
/// then.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    number: Number,
    transactions: u64,
}

impl Shared {
    pub fn new(inner: Inner, mechanism: Mechanism) -> Shared {
        Shared {
            medium: inner.cx.medium.clone(),
            mechanism,
            layout: inner.allocator.layout(),
            read_only: inner.read_only,
            process: Process::current(),
            together: Together::default(),
            spare: Mutex::default(),
            inner: Mutex::new(inner),
        }
    }

    /// Takes the lock, whatever has become of the pool.
    pub fn lock_anyway(&self) -> MutexGuard<'_, Inner> {
        // A panic in a transaction rolls it back before the lock is released, so the contents are
        // sound.
        self.medium.lock(&self.inner).unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Poisoned`].
    pub fn lock(&self) -> Result<MutexGuard<'_, Inner>, Error> {
        if !self.process.is_current() {
            return Err(Error::Forked);
        }
        let inner = self.lock_anyway();
        if inner.poisoned { Err(Error::Poisoned) } else { Ok(inner) }
    }

    /// Whether commits are posted, and waited for without the lock.
    ///
    /// Those over several cards are not: a commit waits for the members that it takes no part in,
    /// as long as they have commits that nobody has waited for
    /// ([`crate::executor::StripedExecutor`]), so that the next one would wait with the lock
    /// instead.
    pub fn posts(&self, inner: &Inner) -> bool {
        inner.cx.lane.executor.posts(&self.medium)
    }

    /// Tells the mechanism what was waited for, where commits are posted.
    pub fn tell_acknowledged(&self, inner: &mut Inner) {
        if self.together.all_acknowledged() {
            inner.protocol.acknowledged(&mut inner.cx);
        }
    }

    /// What to wait for so that everything is durable that has committed, where commits are posted.
    /// `posts_more` says that the caller has posted something.
    pub fn awaited(&self, inner: &Inner, posts_more: bool) -> Awaited {
        let how = if posts_more { inner.cx.lane.executor.posted() } else { None };
        let number = how.map_or_else(|| self.together.last(), |how| self.together.posted(how));
        Awaited { number, transactions: inner.cx.medium.counters.transactions.load(Ordering::Relaxed) }
    }

    /// Waits until it is durable, without the lock.
    ///
    /// # Errors
    /// Those of [`Together::wait`]. They poison the pool: only a recovery can tell what has
    /// happened.
    pub fn wait(&self, awaited: Awaited) -> Result<(), Error> {
        let waited = self.together.wait(&self.medium, awaited.number);
        if waited.is_err() {
            self.lock_anyway().poisoned = true;
            return waited;
        }
        self.medium.counters.acknowledged.fetch_max(awaited.transactions, Ordering::Relaxed);
        Ok(())
    }

    /// Makes every committed transaction durable, and makes sure that no log has failed of any
    /// thread. Where commits are posted the lock is not held while that is waited for.
    ///
    /// # Errors
    /// They poison the pool.
    pub fn persist(&self, mut inner: MutexGuard<'_, Inner>) -> Result<(), Error> {
        // An unwinding in the middle leaves the epoch half cut, as an error does.
        inner.poisoned = true;
        if self.posts(&inner) {
            let of = &mut *inner;
            of.protocol.post(&mut of.cx)?;
            if of.cx.lane.executor.posted().is_some() {
                let awaited = self.awaited(of, true);
                of.poisoned = false;
                drop(inner);
                return self.wait(awaited);
            }
        }
        inner.persist().and_then(|()| hand_over(self.mechanism, &inner.cx))?;
        inner.poisoned = false;
        inner.acknowledge_all();
        Ok(())
    }

    pub(super) fn take_spare(&self) -> Collected {
        self.medium.lock(&self.spare).unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give_spare(&self, mut spare: Collected) {
        spare.clear();
        self.medium.lock(&self.spare).unwrap_or_else(PoisonError::into_inner).push(spare);
    }
}
