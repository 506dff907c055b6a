//! Pools: files, card memory, or any [`crate::memory::Memory`].

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};

use nearpm_interface::media::PoolHead;

use crate::error::{Error, Problem};
use crate::inside::Inside;
use crate::mechanism::{Context, protocol};
use crate::options::{Durability, Mechanism, Options};
use crate::recovery::Recovery;
use crate::statistics::{Counters, HeapState, Statistics};
use crate::thread_lane::ThreadLane;
use crate::transaction::{Allocator, Inner, OffsetTx, Shared};

pub(crate) mod backup;
mod directory;
pub(crate) mod file;
pub(crate) mod format;
pub(crate) mod grow;
pub(crate) mod on_card;
mod open;
pub(crate) mod set;
mod set_on_cards;
#[cfg(test)]
pub(crate) mod striped_tests;
mod waiting;

pub use directory::CardPool;
use directory::check_name;
pub use on_card::list;
pub use open::remove;
pub(crate) use open::{Opening, PoolType, Put, create, create_in, open, open_in};
use set::Members;

/// Where a pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(PathBuf),
    /// `card:NAME/POOL`: a pool on a card that was registered with [`crate::cards::register`].
    /// `card:A+B/POOL` is striped over several.
    Card {
        /// Name of the card, or names joined by `+`.
        card: String,
        /// Name of the pool, 1 to 32 bytes.
        pool: String,
    },
}

impl Location {
    /// Reads `card:NAME/POOL`, or else a path.
    pub fn parse(text: &str) -> Result<Location, Error> {
        let Some(rest) = text.strip_prefix("card:") else {
            return Ok(Location::File(PathBuf::from(text)));
        };
        let rule = "a pool on a card is named card:NAME/POOL";
        let (card, pool) = rest.split_once('/').ok_or_else(|| Problem::BadName { rule }.at(text))?;
        check_name(pool).map_err(|p| p.at(text))?;
        Ok(Location::Card { card: card.to_owned(), pool: pool.to_owned() })
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Location::File(path) => write!(f, "{}", path.display()),
            Location::Card { card, pool } => write!(f, "card:{card}/{pool}"),
        }
    }
}

/// An open pool. Dropping it persists and closes it, and keeps errors to itself.
pub struct Pool {
    shared: Shared,
    /// Marks the thread that has the lock; 0 for none.
    owner: AtomicUsize,
    counters: Arc<Counters>,
    head: PoolHead,
    recovery: Recovery,
    options: Options,
    location: String,
    /// Dropped last: the pool must not be opened again before it is closed.
    members: Members,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("location", &self.location).field("head", &self.head).finish_non_exhaustive()
    }
}

/// A number that no other running thread has.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

/// Takes the mark of a thread away when it leaves the pool, also by a panic.
struct Owner<'p>(&'p AtomicUsize);

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What is behind the lock, for one thread.
pub(crate) struct Locked<'p> {
    /// Dropped first: the next thread may mark itself as soon as it has the lock.
    owner: Owner<'p>,
    inner: MutexGuard<'p, Inner>,
}

impl Deref for Locked<'_> {
    type Target = Inner;
    #[inline]
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

/// The mechanism that options ask for.
fn mechanism(options: &Options) -> Mechanism {
    options.mechanism.unwrap_or_default()
}

impl PoolType for Pool {
    const BY_OFFSETS: bool = true;

    fn layout(options: &Options, bytes: u64, _: bool) -> Result<PoolHead, Problem> {
        format::layout(options, bytes)
    }

    fn start(Opening { request, medium, mut members, location }: Opening<'_>) -> Result<Pool, Error> {
        let options = request.options;
        // Metadata that contradicts itself is a property of the pool: name it.
        let named = |error: Error| match error {
            Error::Corrupt { what, offset } => Problem::Corrupt { what, offset }.at(location),
            other => other,
        };
        let head = *members.stripes.whole();
        request.with_medium(&medium, &head).check(location)?;
        if !options.read_only {
            // A store to the mapping never finds the medium full.
            medium.backing().secure(std::iter::once(0..medium.bytes()))?;
        }
        members.drop_left_lines(&medium)?;
        let (recovery, lanes, pages) = members.recover(&medium, location).map_err(named)?;
        let thread = head.lanes - 1;
        members.synchronise(options, &medium)?;
        let lane = members.open_lane(options.engine, &medium, thread, &lanes[usize::from(thread)])?;
        let counters = medium.counters.clone();
        let mut cx = Context { medium: Arc::new(medium), head, pages, lane };
        let mut protocol = protocol(mechanism(options), options.epoch_ops);
        let allocator = Allocator::load(&mut cx, &mut *protocol).map_err(named)?;
        let threads = BTreeMap::new();
        let inner = Inner {
            cx,
            protocol,
            allocator,
            lanes,
            threads,
            unflushed: false,
            poisoned: false,
            closed: false,
            read_only: options.read_only,
        };
        Ok(Pool {
            shared: Shared::new(inner, mechanism(options)),
            owner: AtomicUsize::new(0),
            counters,
            head,
            recovery,
            options: options.clone(),
            location: location.to_owned(),
            members,
        })
    }

    fn put_head(&self, head: PoolHead) -> Result<(), Error> {
        let mut inner = self.lock()?;
        let put = format::put_head(&inner.cx.medium, head);
        inner.poisoned |= put.is_err();
        put.map(drop)
    }
}

impl Pool {
    pub(crate) fn lock(&self) -> Result<Locked<'_>, Error> {
        if !self.shared.process.is_current() {
            return Err(Error::Forked);
        }
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) == me || (self.options.concurrent && Inside::is(&self.shared)) {
            return Err(Error::Nested);
        }
        let inner = self.shared.lock_anyway();
        self.owner.store(me, Ordering::Relaxed);
        let owner = Owner(&self.owner);
        if inner.poisoned { Err(Error::Poisoned) } else { Ok(Locked { owner, inner }) }
    }

    /// What the transactions share, for tests that have several open in one thread.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Runs a transaction: all of `body` happens or nothing. It is rolled back when `body` returns
    /// an error or panics, and committed otherwise, with the durability of [`Options::durability`].
    ///
    /// Under checkpointing and shadow paging success means that the transaction happened, and that
    /// it is acknowledged with its epoch: see [`Pool::cut`].
    ///
    /// One transaction runs at a time, and a second thread waits; with [`Options::concurrent`] any
    /// number of threads may be in theirs, and only their ends wait for each other.
    ///
    /// # Errors
    /// That of `body`; [`Error::Nested`] for any call of the pool in a transaction of the same
    /// thread; [`Error::TooLarge`] where log or spare pages have no room, and nothing has happened;
    /// [`Error::Poisoned`], and what the medium refuses.
    pub fn tx<T>(&self, body: impl FnOnce(&mut OffsetTx<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.tx_with(self.options.durability, body)
    }

    /// The same with a durability of its own.
    pub fn tx_with<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut OffsetTx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.options.concurrent {
            return self.tx_beside(durability, body);
        }
        let mut inner = self.lock()?;
        let mut tx = OffsetTx::exclusive(&mut inner);
        let done = body(&mut tx);
        tx.end(done, durability)
    }

    /// Runs a transaction beside those of other threads.
    fn tx_beside<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut OffsetTx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if !self.shared.process.is_current() {
            return Err(Error::Forked);
        }
        let _inside = Inside::enter(&self.shared)?;
        let mut tx = OffsetTx::buffered(&self.shared);
        let done = body(&mut tx);
        tx.end(done, durability)
    }

    /// Acknowledges every transaction so far: makes asynchronous commits durable, and cuts the
    /// epoch.
    ///
    /// # Errors
    /// [`Error::LogFailed`] where the card has failed in a log of the pool, of whatever thread:
    /// nothing is acknowledged.
    pub fn persist(&self) -> Result<(), Error> {
        let Locked { owner, mut inner } = self.lock()?;
        if self.options.concurrent {
            drop(owner);
            return self.shared.persist(inner);
        }
        // An unwinding in the middle leaves the epoch half cut, as an error does.
        inner.poisoned = true;
        let result = inner.persist();
        inner.poisoned = result.is_err();
        result?;
        inner.acknowledge_all();
        Ok(())
    }

    /// Cuts the epoch (checkpoint and shadow paging); elsewhere the same as [`Pool::persist`].
    pub fn cut(&self) -> Result<(), Error> {
        self.persist()
    }

    /// Makes so many bytes of the log usable now (more than the log has: all of it), on each member
    /// of a striped pool. Otherwise the log grows when a transaction needs more of it than any
    /// before since the pool was opened, and that transaction waits while the part is zeroed. After
    /// a crash the recovery reads what was made usable.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; or the memory has gone.
    pub fn reserve_log(&self, bytes: u64) -> Result<(), Error> {
        let mut inner = self.lock()?;
        inner.check_writable()?;
        let Context { medium, lane, .. } = &mut inner.cx;
        let extended = lane.extend(medium, bytes);
        inner.poisoned |= extended.is_err();
        extended
    }

    /// Offset of the root, 0 where none was set.
    pub fn root(&self) -> Result<u64, Error> {
        self.tx(|tx| tx.root())
    }

    /// Persists and closes.
    ///
    /// # Errors
    /// What was not acknowledged before may be lost then; the pool is recovered when it is opened.
    /// [`Error::LogFailed`] where the card has failed in a log of the pool since the last call that
    /// acknowledged something: every command is waited for.
    pub fn close(self) -> Result<(), Error> {
        self.shut()
    }

    fn shut(&self) -> Result<(), Error> {
        // In a child of `fork` the pool is its parent's, and a thread of that may have held the
        // lock.
        if !self.shared.process.is_current() {
            return Ok(());
        }
        let inner = &mut *self.shared.lock_anyway();
        if std::mem::replace(&mut inner.closed, true) {
            return Ok(());
        }
        // While the stack unwinds nobody knows how far the protocol got; what was acknowledged is
        // durable without it.
        let unfinished = inner.poisoned || std::thread::panicking();
        let finished = if unfinished { Err(Error::Poisoned) } else { inner.finish() };
        let mut closed = inner.cx.lane.executor.close();
        for thread in inner.threads.values_mut() {
            closed = closed.and(thread.close(&inner.cx.medium));
        }
        finished?;
        inner.acknowledge_all();
        closed?;
        if !inner.unflushed {
            self.members.note_closed(&inner.cx.medium);
        }
        Ok(())
    }

    /// Compares the allocator's index with the pool, and checks the pool's own structures: as the
    /// transactions have left them that have committed.
    pub fn check(&self) -> Result<(), Error> {
        let inner = &mut *self.lock()?;
        inner.allocator.check(&mut inner.cx, &mut *inner.protocol)
    }

    /// Allocated objects: offset and usable bytes, rising. Those of transactions that are open are
    /// none yet, and what these free is allocated still.
    pub fn objects(&self) -> Result<Vec<(u64, u64)>, Error> {
        Ok(self.lock()?.allocator.objects())
    }

    /// Free bytes of the heap, in all pieces together: those that a transaction could allocate now.
    /// What open transactions have allocated is not free, nor is what they free.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        Ok(self.lock()?.allocator.free_bytes())
    }

    /// The state of the allocator. What open transactions have allocated counts as objects.
    pub fn heap_state(&self) -> Result<HeapState, Error> {
        Ok(self.lock()?.allocator.state())
    }

    /// Thread numbers below this have a log for the primitives: all lanes but the last, which is
    /// for transactions.
    pub fn thread_lanes(&self) -> u16 {
        self.head.lanes - 1
    }

    pub(crate) fn open_thread(&self, inner: &Inner, thread: u16) -> Result<ThreadLane, Error> {
        let states = &inner.lanes[usize::from(thread)];
        self.members.open_lane(self.options.engine, &inner.cx.medium, thread, states).map(ThreadLane::new)
    }

    /// Counters since the pool was opened.
    pub fn statistics(&self) -> Statistics {
        self.counters.snapshot()
    }

    /// What the recovery at open found and did.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Whether the pool has several members.
    pub(crate) fn is_striped(&self) -> bool {
        self.members.stripes.members() > 1
    }

    /// Identifier of the pool, unique on a card.
    pub fn id(&self) -> u32 {
        self.head.pool
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        self.head.bytes
    }

    /// Where the pool is.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Mechanism that it was opened with.
    pub fn mechanism(&self) -> Mechanism {
        mechanism(&self.options)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.shut();
    }
}
