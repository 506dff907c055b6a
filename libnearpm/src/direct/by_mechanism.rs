//! Commits that a mechanism brings home: by undo or redo logs, by checkpoints or by shadow pages,
//! which the card makes where the pool is on one.
//!
//! With a working copy a commit is a set of ranges with their new bytes, known at once, and the
//! medium is touched only then. So every mechanism that a [`crate::Pool`] has
//! ([`crate::mechanism`]) can bring it home: the changes are the writes of a transaction of its
//! own, which nobody sees open. One commit is on its way at a time; transactions are open in any
//! number, and only their ends wait for each other.
//!
//! Exact bytes are written, never a line as the view has it: the rest of the line may hold what
//! another transaction has not committed.
//!
//! What the log ring has no room for goes by records instead. Records and ring entries must not
//! name the same bytes at the same time, because a recovery carries the rings out first: so the
//! mechanism is *settled* before (everything durable, nothing left to apply, no page saved, none
//! moved), and the records are home before the next commit. The same holds for whatever else writes
//! the medium past the mechanism (segments that are made or given back): it has the [`Turn`], and
//! has settled.
//!
//! Shadow paging moves pages of the medium, which nobody sees: the view has no part of the medium,
//! not even the pages of a file that it has not changed. All that writes the medium past the
//! mechanism finds every page at home, because it has settled.
//!
//! On a card a commit is posted with the turn and waited for without it ([`super::together`]).
//!
//! Order of locks: the gate of typed pools, the turn, the right to truncate, shards.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use nearpm_interface::media::PoolHead;

use super::DirectPool;
use super::together::Together;
use crate::error::Error;
use crate::heap::index::Change;
use crate::lane::LaneState;
use crate::mechanism::{Context, Protocol, change_tables, prefetch_parts, protocol};
use crate::memory::{Medium, View};
use crate::options::{Durability, Mechanism, Options};
use crate::pages::Pages;
use crate::pool::set::Members;

/// Transactions of an epoch, where commits are asynchronous.
const EPOCH: u64 = 1024;

/// Bytes that are on their way from the view at once.
const PIECE: u64 = 64 << 10;

/// The mechanism of an open pool.
pub(super) struct ByMechanism {
    inner: Mutex<Inner>,
    mechanism: Mechanism,
    /// Waits for commits on a card.
    together: Together,
    /// The memory that both work on.
    medium: Arc<Medium>,
    /// Commits store home through the processor's cache, over a link: what they will store to is
    /// fetched ahead.
    fetches: bool,
}

struct Inner {
    cx: Context,
    protocol: Box<dyn Protocol>,
    /// Bytes on their way; kept for their memory.
    piece: Vec<u8>,
}

/// The right to commit, and to write the medium past the mechanism once it is settled.
pub(super) struct Turn<'p> {
    inner: MutexGuard<'p, Inner>,
    pool: &'p DirectPool,
    mechanism: Mechanism,
}

/// Takes what a commit changes.
pub(super) struct Changes<'a> {
    inner: &'a mut Inner,
    view: &'a View,
}

impl Inner {
    /// Whether the processor applies logs, and a fence is that of one processor.
    fn stores_by_this_processor(&self) -> bool {
        !self.cx.lane.executor.writes_around_the_cache() && !self.cx.medium.backing().drains_for_all()
    }
}

impl ByMechanism {
    /// Opens the log of a pool that was recovered: what it found in each lane is `lanes`.
    pub fn open(
        mechanism: Mechanism,
        options: &Options,
        (medium, head): (&Arc<Medium>, &PoolHead),
        members: &Members,
        lanes: &[LaneState],
    ) -> Result<ByMechanism, Error> {
        let pages = Pages::load(medium, *head)?;
        let thread = head.lanes - 1;
        let ring = head.ring(thread);
        medium.backing().secure(std::iter::once(ring..ring + u64::from(head.ring_bytes)))?;
        if mechanism == Mechanism::Shadow {
            medium.backing().secure(std::iter::once(head.heap_end()..head.end()))?;
        }
        let beside_commands = members.for_commands(medium)?;
        let lane = members.open_lane(options.engine, &beside_commands, thread, &lanes[usize::from(thread)..][..1])?;
        let has_commands = lane.executor.writes_around_the_cache();
        // Where the processor makes the copies all of it goes through the cache, and drains look
        // for what the card has lost.
        let medium = if has_commands { beside_commands } else { medium.clone() };
        let fetches = has_commands && matches!(mechanism, Mechanism::Undo | Mechanism::Checkpoint);
        let cx = Context { medium: medium.clone(), head: *head, pages, lane };
        let inner = Inner { cx, protocol: protocol(mechanism, EPOCH), piece: Vec::new() };
        Ok(ByMechanism { inner: Mutex::new(inner), mechanism, together: Together::default(), medium, fetches })
    }

    /// A transaction is about to change ranges, and its commit will store them home.
    pub fn first_touch(&self, ranges: &[Range<u64>]) {
        if self.fetches {
            ranges.iter().for_each(|range| prefetch_parts(&self.medium, range));
        }
    }

    /// Brings changes home, and waits for what `durability` says. Where the log has no room for
    /// them nothing has happened, and the turn is the caller's.
    ///
    /// # Errors
    /// As [`Turn::commit`].
    pub fn commit<'p>(
        &'p self,
        pool: &'p DirectPool,
        durability: Durability,
        change: impl FnOnce(&mut Changes<'_>) -> Result<(), Error>,
    ) -> Result<Option<Turn<'p>>, Error> {
        let mut turn = self.turn(pool)?;
        let shares = turn.shares_waits();
        if shares && self.together.all_acknowledged() {
            turn.acknowledged();
        }
        let posted = if shares { Durability::Asynchronous } else { durability };
        if !turn.commit(posted, change)? {
            return Ok(Some(turn));
        }
        let posted = if shares { turn.inner.cx.lane.executor.posted() } else { None };
        let number = posted.map(|how| self.together.posted(how));
        drop(turn);
        match number {
            Some(number) if durability == Durability::Durable => {
                self.together.wait(&self.medium, number).map_err(|error| pool.poison(error))?;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: a commit failed, or ended in a panic, and only a recovery can tell how
    /// far it came.
    pub fn turn<'p>(&'p self, pool: &'p DirectPool) -> Result<Turn<'p>, Error> {
        let inner = self.inner.lock().map_err(|_| pool.poison(Error::Poisoned))?;
        pool.refuse_poisoned()?;
        Ok(Turn { inner, pool, mechanism: self.mechanism })
    }
}

impl Turn<'_> {
    /// Whether a commit may be posted now and waited for later. The end of an epoch waits by
    /// itself.
    fn shares_waits(&self) -> bool {
        !self.mechanism.has_epochs() && self.inner.cx.lane.executor.posts()
    }

    /// Whether values of a log, or words that name pages and these pages, are stored behind a
    /// commit's last fence.
    fn stores_behind_commits(&self) -> bool {
        matches!(self.mechanism, Mechanism::Redo | Mechanism::Shadow)
    }

    /// Everything that was posted has been read back.
    fn acknowledged(&mut self) {
        let inner = &mut *self.inner;
        inner.protocol.acknowledged(&mut inner.cx);
    }

    /// Brings changes home, all or none of them. Gives whether the log had room for them: if not,
    /// nothing has happened.
    ///
    /// # Errors
    /// [`Error::NoMemory`]: nothing has happened. All others poison the pool.
    pub fn commit(
        &mut self,
        durability: Durability,
        change: impl FnOnce(&mut Changes<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let stores_behind = self.stores_behind_commits();
        let (inner, pool) = (&mut *self.inner, self.pool);
        let changed = change(&mut Changes { inner, view: pool.view() });
        let prepared = changed.and_then(|()| inner.protocol.prepare(&mut inner.cx));
        match prepared {
            Ok(()) => {}
            Err(error @ (Error::TooLarge { .. } | Error::NoMemory { .. })) => {
                inner.protocol.abort(&mut inner.cx).map_err(|error| pool.poison(error))?;
                return if matches!(error, Error::TooLarge { .. }) { Ok(false) } else { Err(error) };
            }
            Err(error) => return Err(pool.poison(error)),
        }
        // What was written home is made of what the view had.
        pool.alive().map_err(|error| pool.poison(error))?;
        let mut committed = inner.protocol.commit(&mut inner.cx, durability).map(drop);
        if self.mechanism.has_epochs() && durability == Durability::Durable {
            committed = committed.and_then(|()| inner.protocol.persist(&mut inner.cx));
        }
        if stores_behind && inner.stores_by_this_processor() {
            // It has been written back by this processor, and the next turn may be on another one.
            // Where handing over is a locked instruction that is waited for all the same; the
            // medium's contract, which tests hold, promises no more than a processor's own fence.
            committed = committed.and_then(|()| inner.cx.medium.fence());
        }
        committed.map_err(|error| pool.poison(error))?;
        Ok(true)
    }

    /// Makes every commit durable.
    pub fn persist(&mut self) -> Result<(), Error> {
        let inner = &mut *self.inner;
        inner.protocol.persist(&mut inner.cx).map_err(|error| self.pool.poison(error))
    }

    /// Makes every commit durable and leaves nothing to the mechanism, so that the medium may be
    /// written past it while the turn lasts.
    pub fn settle(&mut self) -> Result<(), Error> {
        let inner = &mut *self.inner;
        let finished = inner.protocol.finish(&mut inner.cx);
        let at_home = finished.and_then(|()| inner.protocol.bring_home(&mut inner.cx));
        let settled = at_home.and_then(|()| inner.protocol.share(&mut inner.cx));
        settled.map_err(|error| self.pool.poison(error))
    }

    /// The pool is being closed: nothing is left to be done.
    pub fn close(&mut self) -> Result<(), Error> {
        let executor = &mut self.inner.cx.lane.executor;
        executor.verify(true).and_then(|()| executor.close()).map_err(|error| self.pool.poison(error))
    }
}

impl Changes<'_> {
    /// What a range held is of no account: the transaction has allocated it.
    pub fn fresh(&mut self, range: Range<u64>) {
        let Inner { cx, protocol, .. } = &mut *self.inner;
        protocol.fresh(cx, range.start, range.end - range.start);
    }

    /// Bytes of the view go home.
    pub fn store(&mut self, range: &Range<u64>) -> Result<(), Error> {
        let Inner { cx, protocol, piece } = &mut *self.inner;
        let mut at = range.start;
        while at < range.end {
            let bytes = PIECE.min(range.end - at);
            piece.clear();
            piece.try_reserve(bytes as usize).map_err(Error::no_memory("what a commit writes"))?;
            self.view.append(at, bytes as usize, piece);
            protocol.write(cx, at, piece)?;
            at += bytes;
        }
        Ok(())
    }

    /// A change of the heap's tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a word that is damaged.
    pub fn change(&mut self, change: Change) -> Result<(), Error> {
        let Inner { cx, protocol, .. } = &mut *self.inner;
        change_tables(&mut **protocol, cx, change)
    }
}
