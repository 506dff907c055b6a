//! Transactions of direct pools.

use std::ops::Range;

use super::by_mechanism::{ByMechanism, Changes, What};
use super::lint::Claims;
use super::state::{State, WORD_BYTES, no_memory, range_bytes};
use super::{DirectPool, Mode, Reservation};
use crate::blocks::Position;
use crate::error::{Error, Problem};
use crate::events::event;
use crate::interval::{IntervalSet, Overlap};

/// Objects of at least so many bytes may be written home at commit, behind no log: nobody refers to
/// them before. That takes a drain of its own.
const HOME_AT_ONCE: u64 = 512;

/// Where a drain is a call that waits for a device, new objects of so many bytes in all are logged
/// instead: one call is saved for bytes that are written twice. In tests they are few, so that
/// small pools have objects of both kinds.
pub(super) const LOGGED_NEW: u64 = if cfg!(test) { 1500 } else { 1 << 20 };

/// An open transaction: plain data without a borrow of its pool, so that it can live where C code
/// jumps over frames. Every call takes the pool that it was begun on. It must end by
/// [`Transaction::commit`] or [`Transaction::abort`]; one that is dropped instead leaves its
/// reservations taken until the pool is opened anew, and in place its log.
#[derive(Default)]
pub struct Transaction(Box<State>);

impl Transaction {
    /// Makes it ready for use, in a lane of a shard.
    pub(crate) fn start(&mut self, pool: &DirectPool, slot: usize, lane: usize) {
        self.0.start(pool, slot, lane);
    }

    /// The program stores by transactions alone: the commit may leave out what is as it was.
    pub(super) fn log_differences(&mut self, pool: &DirectPool) {
        self.0.differences = pool.logs_differences();
    }

    /// What the lint knows it by.
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(&*self.0) as usize
    }

    /// Bytes that its commit's records may have.
    #[cfg(test)]
    pub(super) fn room(&self) -> u64 {
        self.0.room
    }

    pub(super) fn state(&self) -> &State {
        &self.0
    }

    pub(super) fn state_mut(&mut self) -> &mut State {
        &mut self.0
    }

    fn claims(&self) -> Claims<'_> {
        Claims { known: &self.0.known, fresh: &self.0.fresh, home: &self.0.home }
    }

    /// The program is about to change a range. Parts that were added before, or that this
    /// transaction allocated, cost nothing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; what the medium refuses; [`Error::Full`] when there is no room for
    /// its log. The transaction goes on as it was.
    #[inline]
    pub fn add(&mut self, pool: &DirectPool, range: Range<u64>) -> Result<(), Error> {
        let state = &*self.0;
        if !range.is_empty() {
            match state.known.overlap(&range) {
                Overlap::All => return Ok(()),
                Overlap::Nothing(position) if !state.fresh.overlaps(&range) => {
                    return self.add_new(pool, range, position);
                }
                _ if state.fresh.covers(&range) => return Ok(()),
                _ => {}
            }
        }
        self.add_parts(pool, std::slice::from_ref(&range))
    }

    /// Adds a range of which the transaction has nothing yet. It will be at a position of what is
    /// known.
    fn add_new(&mut self, pool: &DirectPool, range: Range<u64>, position: Position) -> Result<(), Error> {
        self.check_process(pool)?;
        pool.check(&range)?;
        let ranges = std::slice::from_ref(&range);
        if pool.is_watched() {
            pool.tell(self.key(), ranges);
        }
        if self.logs_old(pool, &range) && self.log_old_bytes(pool, &range)? {
            return Ok(());
        }
        self.0.known.try_reserve().map_err(no_memory())?;
        self.0.take_room(pool, range_bytes(&range))?;
        self.snapshot(pool, ranges)?;
        self.0.known.insert_at(position, range);
        Ok(())
    }

    /// As [`Transaction::add`] for several ranges, which share their fence.
    pub fn add_all(&mut self, pool: &DirectPool, ranges: &[Range<u64>]) -> Result<(), Error> {
        match ranges {
            [range] => self.add(pool, range.clone()),
            _ => self.add_parts(pool, ranges),
        }
    }

    /// Adds what the transaction does not have yet of some ranges.
    fn add_parts(&mut self, pool: &DirectPool, ranges: &[Range<u64>]) -> Result<(), Error> {
        self.check_process(pool)?;
        let mut gaps = std::mem::take(&mut self.0.gaps);
        gaps.clear();
        for range in ranges {
            pool.check(range)?;
            if !self.0.fresh.covers(range) {
                self.0.known.try_gaps(range, &mut gaps).map_err(no_memory())?;
            }
        }
        if pool.is_watched() {
            pool.tell(self.key(), &gaps);
        }
        let mut logged = Ok(());
        gaps.retain(|gap| {
            let done = logged.is_ok() && self.logs_old(pool, gap) && {
                let done = self.log_old_bytes(pool, gap);
                done.unwrap_or_else(|error| {
                    logged = Err(error);
                    false
                })
            };
            !done
        });
        let room = logged.and_then(|()| self.0.take_room(pool, gaps.iter().map(range_bytes).sum()));
        let added = room.and_then(|()| self.snapshot(pool, &gaps));
        let added = added.and_then(|()| self.0.know(&gaps).map_err(no_memory()));
        self.0.gaps = gaps;
        added
    }

    /// Whether all of a range was added, or belongs to objects that this transaction allocated.
    #[inline]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        self.0.known.covers(range) || self.0.fresh.covers(range)
    }

    /// Adds to `parts` what [`Transaction::covers`] denies of a range.
    pub fn uncovered(&self, range: &Range<u64>, parts: &mut Vec<Range<u64>>) {
        let mut unknown = Vec::new();
        self.0.known.gaps(range, &mut unknown);
        unknown.iter().for_each(|part| self.0.fresh.gaps(part, parts));
    }

    /// Keeps old bytes, in place also in the log.
    #[inline]
    fn snapshot(&mut self, pool: &DirectPool, gaps: &[Range<u64>]) -> Result<(), Error> {
        let state = &mut *self.0;
        let (bytes, ranges) = (state.saved.len(), state.saved_ranges.len());
        let kept = match pool.mode() {
            Mode::InPlace => state.log_old(pool, gaps),
            _ => state.save(pool, gaps.iter()).map_err(no_memory()),
        };
        if kept.is_err() {
            state.saved.truncate(bytes);
            state.saved_ranges.truncate(ranges);
        }
        kept
    }

    /// As [`Transaction::add`], but an abort or a crash need not restore the range: it becomes
    /// durable at commit, and that is all.
    pub fn add_without_snapshot(&mut self, pool: &DirectPool, range: Range<u64>) -> Result<(), Error> {
        pool.check(&range)?;
        if !self.covers(&range) {
            self.0.known.try_reserve().map_err(no_memory())?;
            self.0.take_room(pool, range_bytes(&range))?;
            if pool.is_watched() {
                pool.keep(&range);
            }
            self.0.known.insert(range);
        }
        Ok(())
    }

    /// Allocates: an object from the commit on. The bytes that were asked for become durable at
    /// commit.
    pub fn alloc(&mut self, pool: &DirectPool, bytes: u64) -> Result<Reservation, Error> {
        let reservation = pool.reserve(bytes)?;
        let bytes = if self.0.differences { pool.bytes_with_place(&reservation, bytes) } else { bytes };
        self.make_room(pool, Reservation { bytes, ..reservation }, true).inspect_err(|_| pool.cancel(reservation))?;
        self.adopt(reservation.offset, bytes, true);
        Ok(reservation)
    }

    /// Makes room for one object more, so that [`Transaction::publish`] of it needs no memory, and
    /// the commit finds room in the log.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::Full`], what the medium refuses: the transaction goes on as it
    /// was.
    #[inline]
    pub fn make_room(&mut self, pool: &DirectPool, reservation: Reservation, contents: bool) -> Result<(), Error> {
        let logged = contents && !self.goes_home(reservation.bytes);
        let state = &mut *self.0;
        let home = || pool.bytes_of_sums(reservation.bytes);
        let bytes = if logged { range_bytes(&(0..reservation.bytes)) } else { home() };
        match state.take_room(pool, bytes + 2 * WORD_BYTES) {
            Err(Error::Full { .. } | Error::Pool { problem: Problem::NoSpace { .. }, .. })
                if logged && reservation.bytes >= HOME_AT_ONCE =>
            {
                // The log has no room for it: neither this one nor others are logged from here on.
                state.new_room = 0;
                state.take_room(pool, home() + 2 * WORD_BYTES)?;
            }
            taken => taken?,
        }
        let room = state.allocated.try_reserve(1).and_then(|()| state.home.try_reserve(1));
        let room = room.and_then(|()| state.known.try_reserve()).and_then(|()| state.fresh.try_reserve());
        room.map_err(no_memory())
    }

    /// Turns a reservation into an object at commit. Its bytes become durable at commit if
    /// `contents`, else the program has made them durable.
    pub fn publish(&mut self, reservation: Reservation, contents: bool) {
        self.adopt(reservation.offset, reservation.bytes, contents);
    }

    /// Whether the contents of a new object go home without the log. Once it is so for some number
    /// of bytes, it stays so in this transaction.
    #[inline]
    fn goes_home(&self, bytes: u64) -> bool {
        bytes >= HOME_AT_ONCE && (bytes >= self.0.once_from || bytes > self.0.new_room)
    }

    fn adopt(&mut self, offset: u64, bytes: u64, contents: bool) {
        let logged = contents && !self.goes_home(bytes);
        let state = &mut *self.0;
        state.allocated.push(offset);
        let range = offset..offset + bytes;
        if logged {
            if bytes >= HOME_AT_ONCE {
                state.new_room -= bytes;
            }
            state.known.insert(range);
        } else {
            state.fresh.insert(range.clone());
            if contents {
                state.home.push(range);
            }
        }
    }

    /// Frees an object at commit, also one that this transaction allocated.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] leaves everything as it was.
    pub fn free(&mut self, pool: &DirectPool, object: u64) -> Result<(), Error> {
        let state = &mut *self.0;
        state.freed.try_reserve(1).and_then(|()| state.cancelled.try_reserve(1)).map_err(no_memory())?;
        state.take_room(pool, WORD_BYTES)?;
        if let Some(at) = self.0.allocated.iter().rposition(|&o| o == object) {
            self.0.allocated.swap_remove(at);
            self.0.home.retain(|range| range.start != object);
            self.0.cancelled.push(object);
            return Ok(());
        }
        pool.heap_index().claim(object)?;
        self.0.freed.push(object);
        Ok(())
    }

    /// Makes an object the root, at commit; 0 for none.
    pub fn set_root(&mut self, object: u64) {
        self.0.root = Some(object);
    }

    /// Commits. After an error everything has been taken back, unless the error says that the pool
    /// is poisoned.
    pub fn commit(mut self, pool: &DirectPool) -> Result<(), Error> {
        self.check_process(pool)?;
        if let Some(linter) = &pool.linter {
            linter.commit(pool, self.key(), &self.claims());
        }
        if !self.0.is_empty() {
            match self.write(pool) {
                Ok(last) => self.settle(pool, last),
                Err(error) => {
                    self.abort(pool)?;
                    return Err(error);
                }
            }
        }
        event!(trace, allocated = self.0.allocated.len(), freed = self.0.freed.len(), "transaction committed");
        let acknowledged = u64::from(pool.acknowledges_at_once());
        self.end(pool, |tally| {
            tally.transactions += 1;
            tally.acknowledged += acknowledged;
        });
        Ok(())
    }

    /// Makes everything durable, up to the commit record, whose number it gives; 0 if there is
    /// none.
    fn write(&mut self, pool: &DirectPool) -> Result<u64, Error> {
        let state = &mut *self.0;
        let root = state.root.unwrap_or_else(|| pool.root());
        if root != 0 && (state.freed.contains(&root) || state.cancelled.contains(&root)) {
            // Nobody could open the pool any more.
            return Err(Error::abort("the transaction frees the root, and makes no other object the root"));
        }
        match &pool.by_mechanism {
            Some(by) => self.write_by_mechanism(pool, by),
            None => self.write_by_records(pool),
        }
    }

    /// Brings everything home by the pool's mechanism; by records where that has no room.
    fn write_by_mechanism(&mut self, pool: &DirectPool, by: &ByMechanism) -> Result<u64, Error> {
        let (state, heap) = (&*self.0, pool.heap_index());
        let change = |changes: &mut Changes<'_>| {
            for &object in &state.allocated {
                let bytes = heap.usable_bytes(object).expect("the transaction has it");
                changes.fresh(object..object + bytes)?;
            }
            state.home.iter().cloned().chain(state.known.iter()).try_for_each(|range| changes.store(&range))?;
            state.change_tables(heap, |change| changes.change(change))
        };
        let what = if state.changes_tables() { What::Shared } else { What::Own };
        let Some(mut turn) = by.commit(pool, pool.options.durability, what, change)? else { return Ok(0) };
        turn.settle()?;
        let last = self.write_by_records(pool)?;
        pool.bring_home().map(|()| last)
    }

    fn write_by_records(&mut self, pool: &DirectPool) -> Result<u64, Error> {
        let state = &mut *self.0;
        if pool.mode() == Mode::WorkingCopy {
            state.log_what_must_be(pool);
        }
        if pool.writes_once {
            pool.write_once(&mut state.home, &mut state.sums)?;
        } else {
            state.home.iter().try_for_each(|range| pool.write_home(range))?;
        }
        // What the commit record does not hold is durable before it.
        if pool.mode() == Mode::InPlace && !(state.known.is_empty() && state.home.is_empty()) {
            pool.write_back_and_drain(state.known.iter())?;
        } else if !state.home.is_empty() && !pool.writes_once {
            pool.write_back_and_drain(std::iter::empty())?;
        }
        state.build(pool).map_err(no_memory())?;
        if state.records.is_empty() && state.first == 0 && state.old.records.is_empty() {
            return Ok(0);
        }
        state.records.finish();
        let writer = state.writer();
        if !state.old.records.is_empty() {
            // What the records name was left there when they were built.
            return pool.append_over_old(writer, &mut state.records, &state.old, &state.gaps);
        }
        let at_home = state.records.has_long() && pool.make_homeable(state.known.iter())?;
        pool.append_commit(writer, &mut state.records, state.known.iter(), at_home)
    }

    /// The commit is in the log: the index follows.
    fn settle(&mut self, pool: &DirectPool, last: u64) {
        let (state, heap) = (&mut *self.0, pool.heap_index());
        for &object in &state.allocated {
            heap.allocated(object);
        }
        state.cancelled.iter().for_each(|&object| heap.release(object));
        pool.release_freed(last, &state.freed);
        if let Some(root) = state.root {
            pool.note_root(root);
        }
    }

    /// Takes everything back: ranges get their bytes of when they were added.
    pub fn abort(self, pool: &DirectPool) -> Result<(), Error> {
        self.abort_except(pool, &[])
    }

    /// As [`Transaction::abort`], but bytes in `keep` stay as they are: locks that threads wait
    /// for, inside of ranges that were added.
    pub fn abort_except(mut self, pool: &DirectPool, keep: &[Range<u64>]) -> Result<(), Error> {
        self.check_process(pool)?;
        let mut kept = IntervalSet::default();
        keep.iter().for_each(|range| kept.insert(range.clone()));
        let state = &mut *self.0;
        // In place a pool that something failed on, or that has lost bytes, is left to the next
        // open: its log restores what is durable, and the old bytes here may be zeros in the place
        // of what could not be read.
        if pool.mode() == Mode::WorkingCopy || pool.refuse_poisoned().and_then(|()| pool.alive()).is_ok() {
            state.restore(pool, &kept);
        }
        // Old bytes that were in the log may have been lost there.
        let mut done = if state.old.records.is_empty() { Ok(()) } else { pool.alive() };
        if done.is_ok() && state.first != 0 {
            // The log must not take the ranges back once more, over what later transactions make of
            // them.
            done = state.records.begin(pool.record_limit()).map_err(no_memory());
            state.records.finish();
            done = done
                .and_then(|()| pool.write_back_and_drain(state.known.iter()))
                .and_then(|()| pool.append_commit(state.writer(), &mut state.records, std::iter::empty(), false))
                .map(drop);
        }
        for &object in state.allocated.iter().chain(&state.cancelled) {
            pool.heap_index().release(object);
        }
        for &object in &state.freed {
            pool.heap_index().allocated(object);
        }
        if let Some(linter) = &pool.linter {
            linter.abort(pool, self.key(), &self.claims());
        }
        event!(trace, "transaction taken back");
        self.end(pool, |tally| tally.aborts += 1);
        done.map_err(|error| pool.poison(error))
    }

    /// A transaction that was begun before a fork is the parent's, log and all: its end in the
    /// child changes nothing.
    fn check_process(&self, pool: &DirectPool) -> Result<(), Error> {
        if pool.belongs_here() { Ok(()) } else { Err(Error::Forked) }
    }

    fn end(self, pool: &DirectPool, count: impl FnOnce(&mut crate::Statistics)) {
        let (writer, promised) = (self.0.writer(), self.0.promised);
        pool.end(writer, promised, self, count);
    }
}
