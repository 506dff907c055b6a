//! Commits that a mechanism brings home: by undo or redo logs, by checkpoints or by shadow pages,
//! which the card makes where the pool is on one.
//!
//! With a working copy a commit is a set of ranges with their new bytes, known at once, and the
//! medium is touched only then. So every mechanism that a [`crate::Pool`] has
//! ([`crate::mechanism`]) can bring it home: the changes are a transaction of its own, which nobody
//! sees open, and whose new bytes go from the view to where they belong. Transactions are open in
//! any number, and only their ends wait for each other.
//!
//! Under undo logs commits go by several *lanes* at the same time, each with a log ring of its own:
//! a thread keeps to the lane that it got with its first commit. Transactions that change ranges
//! alone have nothing in common, because programs keep apart what they change at the same time.
//! What they do not know of, words of the heap's tables, and what is persisted outside of
//! transactions, others may change too: those commits go one behind the other
//! ([`ByMechanism::shared`]), each when the one before is ordered before everything that comes
//! later, so that no rollback takes a neighbour's bit with it. Under the other mechanisms, where
//! commits are asynchronous and where a drain is a call for everybody there is one lane: what
//! redo logs have not applied yet, and pages, are every transaction's.
//!
//! Exact bytes are written, never a line as the view has it: the rest of the line may hold what
//! another transaction has not committed.
//!
//! What the log ring has no room for goes by records instead, except over several cards, where it
//! is refused: a record, and the words that say which of them count, would have to lie on one.
//! Records and ring entries must not name the same bytes at the same time, because a recovery
//! carries the rings out first: so the mechanism is *settled* before (everything durable, nothing
//! left to apply, no page saved, none moved), and the records are home before the next commit. The
//! same holds for whatever else writes the medium past the mechanism (segments that are made or
//! given back): it has the [`Turn`], and has settled.
//!
//! Shadow paging moves pages of the medium, which nobody sees: the view has no part of the medium,
//! not even the pages of a file that it has not changed. All that writes the medium past the
//! mechanism finds every page at home, because it has settled.
//!
//! On a card a commit is posted with the turn and waited for without it ([`Together`]): also the
//! end of an epoch, and what the processor stores there.
//!
//! Order of locks: the gate of typed pools, the turn (lanes, rising), what is shared, the right to
//! truncate, shards ([`super::lock_order`]).

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_interface::geometry::MAP_ENTRIES;
use nearpm_interface::media::PoolHead;

use super::DirectPool;
use super::lock_order::{Held, Lock};
use super::slot::{Alone, SHARDS, slot};
use crate::error::Error;
use crate::heap::index::Change;
use crate::lane::{Lane, LaneState};
use crate::mechanism::{Batch, Context, Protocol, Together, hand_over, protocol};
use crate::memory::Medium;
use crate::options::{Durability, Mechanism, Options};
use crate::pool::set::Members;

/// Transactions of an epoch, where commits are asynchronous.
const EPOCH: u64 = 1024;

/// Lanes of a pool at most.
pub(super) const MOST_LANES: u16 = 16;

/// Those that are mapped into a card, which maps lanes of all its pools.
const MOST_ON_A_CARD: usize = MAP_ENTRIES / 2;

/// The mechanism of an open pool.
pub(super) struct ByMechanism {
    /// The first is open. The others open when there are as many threads.
    lanes: Box<[Alone<PoolLane>]>,
    /// Lane of each shard's threads, from 1; 0 where they have none yet.
    lane_of: Box<[AtomicU8]>,
    handed_out: Mutex<HandedOut>,
    /// Held by commits that change what other transactions may change at the same time, until they
    /// are ordered before everything later.
    shared: Mutex<()>,
    mechanism: Mechanism,
    /// What a recovery has found in the lanes, on each member.
    states: Box<[LaneState]>,
    /// The memory that all work on.
    medium: Arc<Medium>,
    /// Commits store home through the processor's cache, over a link: what they will store to is
    /// fetched ahead.
    fetches: bool,
}

/// A lane, which one commit has at a time.
#[derive(Default)]
struct PoolLane {
    inner: Mutex<Option<Inner>>,
    /// Waits for commits on a card.
    together: Together,
}

/// What became of the lanes.
struct HandedOut {
    /// Shards that have one.
    shards: usize,
    /// Lanes that are open.
    open: usize,
    /// As many may be.
    most: usize,
}

/// What a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Ranges that no other transaction changes before this one has ended.
    Own,
    /// Also what others may change.
    Shared,
}

/// How far a commit goes with the turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is durable.
    Durable,
    /// It is ordered ahead of everything later, and can be waited for without the turn.
    Posted,
    /// An epoch goes on that it is in.
    Open,
}

struct Inner {
    cx: Context,
    protocol: Box<dyn Protocol>,
    /// What the running commit changes; kept for its memory.
    batch: Batch,
}

/// A lane that a commit has.
type LaneGuard<'p> = Held<MutexGuard<'p, Option<Inner>>>;

/// Nobody else commits. The right to write the medium past the mechanism once it is settled.
pub(super) struct Turn<'p> {
    lanes: Vec<LaneGuard<'p>>,
    pool: &'p DirectPool,
}

/// Takes what a commit changes.
pub(super) struct Changes<'a> {
    batch: &'a mut Batch,
}

impl Inner {
    /// Brings changes home, all or none of them. Gives whether the log had room for them: if not,
    /// nothing has happened.
    ///
    /// # Errors
    /// [`Error::NoMemory`], and [`Error::TooLarge`] where the pool has no log of records: nothing
    /// has happened. All others poison the pool.
    fn commit(
        &mut self,
        pool: &DirectPool,
        mechanism: Mechanism,
        end: End,
        change: impl FnOnce(&mut Changes<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        self.batch.clear();
        let changed = change(&mut Changes { batch: &mut self.batch }).and_then(|()| self.batch.finish());
        let brought = changed.and_then(|()| self.protocol.bring(&mut self.cx, &mut self.batch, pool.view()));
        match brought {
            Ok(()) => {}
            Err(error @ (Error::TooLarge { .. } | Error::NoMemory { .. })) => {
                self.protocol.abort(&mut self.cx).map_err(|error| pool.poison(error))?;
                let goes_by_records = matches!(error, Error::TooLarge { .. }) && pool.has_log();
                return if goes_by_records { Ok(false) } else { Err(error) };
            }
            Err(error) => return Err(pool.poison(error)),
        }
        // What was written home is made of what the view had.
        pool.alive().map_err(|error| pool.poison(error))?;
        let durability = if end == End::Durable { Durability::Durable } else { Durability::Asynchronous };
        let mut committed = self.protocol.commit(&mut self.cx, durability).map(drop);
        if mechanism.has_epochs() {
            committed = committed.and_then(|()| match end {
                End::Durable => self.protocol.persist(&mut self.cx),
                End::Posted => self.protocol.post(&mut self.cx),
                End::Open => Ok(()),
            });
        }
        committed.and_then(|()| hand_over(mechanism, &self.cx)).map_err(|error| pool.poison(error))?;
        Ok(true)
    }
}

impl ByMechanism {
    /// Opens the log of a pool that was recovered: what it found in each lane is `states`.
    pub fn open(
        mechanism: Mechanism,
        options: &Options,
        (medium, head): (&Arc<Medium>, &PoolHead),
        members: &Members,
        states: &[LaneState],
    ) -> Result<ByMechanism, Error> {
        let beside_commands = members.for_commands(medium)?;
        let by = ByMechanism {
            lanes: (0..lanes_at_once(options, head, medium, members)).map(|_| Alone::default()).collect(),
            lane_of: (0..SHARDS).map(|_| AtomicU8::new(0)).collect(),
            handed_out: Mutex::new(HandedOut { shards: 0, open: 1, most: 1 }),
            shared: Mutex::default(),
            mechanism,
            states: states.into(),
            medium: medium.clone(),
            fetches: false,
        };
        if mechanism == Mechanism::Shadow {
            medium.backing().secure(std::iter::once(head.heap_end()..head.end()))?;
        }
        let lane = by.open_lane(0, options, head, &beside_commands, members)?;
        let has_commands = lane.executor.writes_around_the_cache();
        // Where the processor makes the copies all of it goes through the cache, and drains look
        // for what the card has lost.
        let medium = if has_commands { beside_commands } else { by.medium.clone() };
        let cx = Context { medium: medium.clone(), head: *head, pages: members.pages(&medium)?, lane };
        let first = Inner { cx, protocol: protocol(mechanism, EPOCH), batch: Batch::default() };
        let most = if has_commands { by.lanes.len().min(MOST_ON_A_CARD) } else { by.lanes.len() };
        *by.lanes[0].0.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
        let fetches = has_commands && matches!(mechanism, Mechanism::Undo | Mechanism::Checkpoint);
        Ok(ByMechanism { medium, fetches, handed_out: Mutex::new(HandedOut { shards: 0, open: 1, most }), ..by })
    }

    /// Opens a lane of the log.
    fn open_lane(
        &self,
        at: usize,
        options: &Options,
        head: &PoolHead,
        medium: &Medium,
        members: &Members,
    ) -> Result<Lane, Error> {
        let thread = head.lanes - 1 - at as u16;
        let ring = head.ring(thread);
        medium.backing().secure(std::iter::once(ring..ring + u64::from(head.ring_bytes)))?;
        let states = self.states.chunks(members.len()).nth(thread.into()).expect("each lane was recovered");
        members.open_lane(options.engine, medium, thread, states)
    }

    /// The number of this thread's lane.
    fn lane(&self, pool: &DirectPool) -> Result<usize, Error> {
        let of = &self.lane_of[slot()];
        match of.load(Ordering::Relaxed) {
            0 => {
                let at = self.hand_out(pool)?;
                of.store(at as u8 + 1, Ordering::Relaxed);
                Ok(at)
            }
            number => Ok(usize::from(number) - 1),
        }
    }

    /// A lane for a thread that has none: one that nobody has, or else one that others have too.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    #[cold]
    fn hand_out(&self, pool: &DirectPool) -> Result<usize, Error> {
        // Counts alone are behind it.
        let mut handed_out = self.medium.lock(&self.handed_out).unwrap_or_else(PoisonError::into_inner);
        let HandedOut { shards, open, most } = &mut *handed_out;
        if shards >= open && *open < *most {
            match self.open_further(pool, *open) {
                Ok(Some(inner)) => {
                    *self.lock(pool, *open)? = Some(inner);
                    *open += 1;
                }
                // The card's table is full, or the medium refuses a ring: the lanes that are open
                // serve all. If it has gone their commits say so.
                Ok(None) | Err(_) => *most = *open,
            }
        }
        *shards += 1;
        Ok((*shards - 1) % *open)
    }

    /// Opens one more lane; `None` if it would not be as the others are.
    fn open_further(&self, pool: &DirectPool, at: usize) -> Result<Option<Inner>, Error> {
        let with_commands = !Arc::ptr_eq(&self.medium, &pool.medium);
        let lane = self.open_lane(at, &pool.options, &pool.head, &self.medium, &pool.members)?;
        if lane.executor.writes_around_the_cache() != with_commands {
            return Ok(None);
        }
        let pages = pool.members.pages(&self.medium)?;
        let cx = Context { medium: self.medium.clone(), head: pool.head, pages, lane };
        Ok(Some(Inner { cx, protocol: protocol(self.mechanism, EPOCH), batch: Batch::default() }))
    }

    /// A transaction is about to change ranges, and its commit will store them home.
    pub fn first_touch(&self, ranges: &[Range<u64>]) {
        if self.fetches {
            ranges.iter().for_each(|range| self.medium.prefetch_parts(range));
        }
    }

    /// Brings changes home, and waits for what `durability` says. Where the log has no room for
    /// them nothing has happened, and the turn is the caller's.
    ///
    /// # Errors
    /// [`Error::NoMemory`], and [`Error::TooLarge`] where the pool has no log of records: nothing
    /// has happened. All others poison the pool.
    pub fn commit<'p>(
        &'p self,
        pool: &'p DirectPool,
        durability: Durability,
        what: What,
        change: impl FnOnce(&mut Changes<'_>) -> Result<(), Error>,
    ) -> Result<Option<Turn<'p>>, Error> {
        let at = self.lane(pool)?;
        let mut inner = self.lock(pool, at)?;
        let lane = &self.lanes[at].0;
        let alone = match what {
            What::Own => None,
            What::Shared if self.lanes.len() == 1 => None,
            What::Shared => Some(self.take(pool, Lock::Shared, &self.shared)?),
        };
        pool.refuse_poisoned()?;
        let of = inner.as_mut().expect("it was opened before it was handed out");
        let end = self.end_of(of, durability);
        if end == End::Posted && lane.together.all_acknowledged() {
            // Everything that was posted has been read back.
            of.protocol.acknowledged(&mut of.cx);
        }
        let unfinished = Unfinished(pool);
        let done = of.commit(pool, self.mechanism, end, change);
        std::mem::forget(unfinished);
        if !done? {
            drop((alone, inner));
            return self.turn(pool).map(Some);
        }
        let posted = if end == End::Posted { of.cx.lane.executor.posted() } else { None };
        let number = posted.map(|how| lane.together.posted(how));
        drop((alone, inner));
        match number {
            Some(number) if durability == Durability::Durable => {
                lane.together.wait(&self.medium, number).map_err(|error| pool.poison(error))?;
            }
            _ => {}
        }
        Ok(None)
    }

    /// What a commit does with the turn. Asynchronous ones share an epoch.
    fn end_of(&self, inner: &Inner, durability: Durability) -> End {
        match durability {
            Durability::Asynchronous if self.mechanism.has_epochs() => End::Open,
            _ if inner.cx.lane.executor.posts(&inner.cx.medium) => End::Posted,
            Durability::Asynchronous => End::Open,
            Durability::Durable => End::Durable,
        }
    }

    fn lock<'p>(&'p self, pool: &DirectPool, lane: usize) -> Result<LaneGuard<'p>, Error> {
        self.take(pool, Lock::Lane(lane), &self.lanes[lane].0.inner)
    }

    fn take<'p, T>(
        &self,
        pool: &DirectPool,
        lock: Lock,
        mutex: &'p Mutex<T>,
    ) -> Result<Held<MutexGuard<'p, T>>, Error> {
        Held::take(&pool.medium, lock, || self.medium.lock(mutex)).map_err(|_| pool.poison(Error::Poisoned))
    }

    /// Waits until nobody commits.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: a commit failed, or ended in a panic, and only a recovery can tell how
    /// far it came.
    pub fn turn<'p>(&'p self, pool: &'p DirectPool) -> Result<Turn<'p>, Error> {
        let lanes = (0..self.lanes.len()).map(|lane| self.lock(pool, lane)).collect::<Result<_, _>>()?;
        pool.refuse_poisoned()?;
        Ok(Turn { lanes, pool })
    }

    /// How many lanes nobody has.
    #[cfg(test)]
    pub fn free_lanes(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.0.inner.try_lock().is_ok()).count()
    }
}

/// A commit that is under way. One that ends in a panic may have left entries in its lane, which a
/// recovery takes back over what others commit meanwhile: they must not.
struct Unfinished<'p>(&'p DirectPool);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.poison(Error::Poisoned);
    }
}

/// Lanes by which commits go at the same time.
fn lanes_at_once(options: &Options, head: &PoolHead, medium: &Medium, members: &Members) -> u16 {
    // Over several cards the commits that wait for each other are those of one lane.
    let several = may_use_several_lanes(options) && !medium.backing().drains_for_all() && members.len() == 1;
    if several { head.lanes.min(MOST_LANES) } else { 1 }
}

/// Whether commits may go by several lanes, where the medium allows it.
pub(super) fn may_use_several_lanes(options: &Options) -> bool {
    options.mechanism == Some(Mechanism::Undo) && options.durability == Durability::Durable
}

impl Turn<'_> {
    fn each(&mut self, done: impl Fn(&mut Inner) -> Result<(), Error>) -> Result<(), Error> {
        let mut open = self.lanes.iter_mut().filter_map(|lane| lane.as_mut());
        open.try_for_each(done).map_err(|error| self.pool.poison(error))
    }

    /// Makes every commit durable.
    pub fn persist(&mut self) -> Result<(), Error> {
        self.each(|inner| inner.protocol.persist(&mut inner.cx))
    }

    /// Makes every commit durable and leaves nothing to the mechanism, so that the medium may be
    /// written past it while the turn lasts.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.each(|inner| {
            inner.protocol.finish(&mut inner.cx)?;
            inner.protocol.bring_home(&mut inner.cx)?;
            inner.protocol.share(&mut inner.cx)
        })
    }

    /// The pool is being closed: nothing is left to be done.
    pub fn close(&mut self) -> Result<(), Error> {
        self.each(|inner| {
            let executor = &mut inner.cx.lane.executor;
            executor.verify(true).and_then(|()| executor.close())
        })
    }
}

impl Changes<'_> {
    /// What a range held is of no account: the transaction has allocated it.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn fresh(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.batch.allocate(range)
    }

    /// Bytes of the view go home.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn store(&mut self, range: &Range<u64>) -> Result<(), Error> {
        self.batch.add(range.clone())
    }

    /// A change of the heap's tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a change that no word takes.
    #[inline]
    pub fn change(&mut self, change: Change) -> Result<(), Error> {
        self.batch.change(change)
    }
}
