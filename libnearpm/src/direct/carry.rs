//! Carrying home what a truncation has taken, with the help of threads that wait for its end.
//!
//! Who finds no room in the log waits for the thread that truncates it, and where many threads
//! append they all do. So records go home in batches, and of a batch in parts, of which those who
//! wait take some.
//!
//! Invariants:
//! - a part is some of the pool's pages, and whoever has it goes through all records of the batch
//!   in the order of their numbers: bytes that several records name are written in that order;
//! - batches follow each other: none begins before every part of the one before is done;
//! - a part is done when a fence of the thread that has carried it is: the drain behind the last
//!   batch is one thread's.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use super::log::{Pending, Source};
use crate::error::Error;
use crate::memory::Medium;
use crate::recovery::home::Home;

/// Records of a batch, for each part of it.
const BATCH: usize = 512;

/// Parts of a batch at most.
const MOST_PARTS: u64 = 16;

/// Records whose lines are fetched ahead of the one that goes home, for each part.
const FETCHED_AHEAD: usize = 8;

/// Records that a truncation has taken.
#[derive(Default)]
pub(super) struct Taken {
    /// By shard and lane.
    pub lanes: Vec<(usize, usize, Pending)>,
    /// Numbers of records, rising, and where they are: lane of the cut, index there.
    pub order: Vec<(u64, usize, usize)>,
    /// Bytes of the longest one that is in the log alone.
    pub longest: usize,
}

impl Taken {
    /// Where the bytes of a record are.
    #[inline(always)]
    fn source(&self, &(_, lane, at): &(u64, usize, usize)) -> Source<'_> {
        self.lanes[lane].2.source(at)
    }
}

/// What a truncation carries home, and who helps.
#[derive(Default)]
pub(super) struct Carry {
    taken: RwLock<Taken>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A truncation goes on.
    is_active: bool,
    /// Threads that wait for its end.
    waiting: u64,
    batch: Range<usize>,
    /// Parts of the batch, and how many are taken and done.
    parts: u64,
    begun: u64,
    done: u64,
    failed: Option<Error>,
    /// Parts that others have carried.
    #[cfg(test)]
    helped: u64,
}

/// A part that somebody carries. It ends also by a panic.
struct Part<'c> {
    carry: &'c Carry,
    batch: Range<usize>,
    number: u64,
    parts: u64,
    outcome: Result<(), Error>,
}

impl State {
    /// Takes a part, if there is one.
    fn take<'c>(&mut self, carry: &'c Carry) -> Option<Part<'c>> {
        (self.begun < self.parts).then(|| {
            self.begun += 1;
            let (number, outcome) = (self.begun - 1, Err(Error::Poisoned));
            Part { carry, batch: self.batch.clone(), number, parts: self.parts, outcome }
        })
    }
}

impl Part<'_> {
    /// Carries it home.
    fn go(mut self, medium: &Medium, long: &mut Vec<u8>) {
        let taken = self.carry.taken.read().unwrap_or_else(PoisonError::into_inner);
        let mut home = Home::new(medium);
        let carried = carry(medium, &mut home, &taken, self.batch.clone(), (self.number, self.parts), long);
        drop(taken);
        home.finish();
        self.outcome = carried.and_then(|()| medium.fence());
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut state = self.carry.lock();
        state.done += 1;
        if let Err(error) = std::mem::replace(&mut self.outcome, Ok(())) {
            state.failed = Some(error);
        }
        drop(state);
        self.carry.changed.notify_all();
    }
}

/// Carries a part of some records home; that is finished later.
fn carry(
    medium: &Medium,
    home: &mut Home<'_>,
    taken: &Taken,
    batch: Range<usize>,
    (number, parts): (u64, u64),
    long: &mut Vec<u8>,
) -> Result<(), Error> {
    let is_in_it = |page: u64| page % parts == number;
    let order = &taken.order;
    if parts == 1 && !home.fetches() {
        return order[batch].iter().try_for_each(|entry| home.apply_record(record(medium, taken, entry, long)?));
    }
    let fetch = |home: &Home<'_>, at| {
        if home.fetches()
            && let Some(Source::Bytes(record)) = order.get(at).map(|entry| taken.source(entry))
        {
            home.fetch_for(record, is_in_it);
        }
    };
    let ahead = FETCHED_AHEAD * parts as usize;
    (batch.start..batch.start + ahead).for_each(|at| fetch(home, at));
    for at in batch {
        fetch(home, at + ahead);
        let record = record(medium, taken, &order[at], long)?;
        if parts == 1 { home.apply_record(record)? } else { home.apply_part(record, is_in_it)? }
    }
    Ok(())
}

/// A record that was taken, whose bytes come to `long` if they are in the log alone.
#[inline(always)]
fn record<'r>(
    medium: &Medium,
    taken: &'r Taken,
    entry: &(u64, usize, usize),
    long: &'r mut Vec<u8>,
) -> Result<&'r [u8], Error> {
    match taken.source(entry) {
        Source::Bytes(record) => Ok(record),
        Source::Log(offset, bytes) => {
            long.resize(bytes, 0);
            medium.load_checked(offset, long)?;
            Ok(long)
        }
    }
}

impl Carry {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind it is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A truncation begins, by whoever has the right to it. It goes on until what is given is
    /// dropped.
    pub fn begin(&self) -> Active<'_> {
        self.lock().is_active = true;
        Active(self)
    }

    /// Lets time pass until somebody is `ready`, or may be.
    fn wait<'c>(
        &'c self,
        medium: &Medium,
        state: MutexGuard<'c, State>,
        ready: impl Fn(&State) -> bool,
    ) -> MutexGuard<'c, State> {
        drop(state);
        let takes_turns = medium.backing().contended();
        let state = self.lock();
        if takes_turns {
            return state;
        }
        self.changed.wait_while(state, |state| !ready(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries home what was taken, and gives it back. The caller drains. `long` is memory for the
    /// longest record that is in the log alone.
    ///
    /// # Errors
    /// What the medium refuses, this thread or another one.
    pub fn all(&self, medium: &Medium, taken: Taken, mut long: Vec<u8>) -> (Taken, Result<(), Error>) {
        let count = taken.order.len();
        *self.taken.write().unwrap_or_else(PoisonError::into_inner) = taken;
        let mut home = Home::new(medium);
        let (mut start, mut carried) = (0, Ok(()));
        while start < count && carried.is_ok() {
            let parts = self.parts(medium);
            let batch = start..count.min(start + BATCH * parts as usize);
            start = batch.end;
            carried = self.batch(medium, &mut home, batch, parts, &mut long);
        }
        if carried.is_ok() {
            home.finish();
        }
        (std::mem::take(&mut *self.taken.write().unwrap_or_else(PoisonError::into_inner)), carried)
    }

    /// Parts of the next batch: one for each that would carry it.
    fn parts(&self, medium: &Medium) -> u64 {
        // Where calls take bytes home those of all records go together.
        if medium.backing().drains_for_all() { 1 } else { (self.lock().waiting + 1).min(MOST_PARTS) }
    }

    fn batch(
        &self,
        medium: &Medium,
        home: &mut Home<'_>,
        batch: Range<usize>,
        parts: u64,
        long: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if parts == 1 {
            let taken = self.taken.read().unwrap_or_else(PoisonError::into_inner);
            return carry(medium, home, &taken, batch, (0, 1), long);
        }
        let mut state = self.lock();
        (state.batch, state.parts, state.begun, state.done) = (batch, parts, 0, 0);
        self.changed.notify_all();
        loop {
            if let Some(part) = state.take(self) {
                drop(state);
                part.go(medium, long);
                state = self.lock();
            } else if state.done < state.parts {
                state = self.wait(medium, state, |state| state.done == state.parts);
            } else {
                (state.parts, state.begun) = (0, 0);
                return state.failed.take().map_or(Ok(()), Err);
            }
        }
    }

    /// Helps until the truncation that is going on has ended; at once if there is none.
    pub fn help(&self, medium: &Medium) {
        let mut state = self.lock();
        if !state.is_active {
            return;
        }
        let mut long = Vec::new();
        state.waiting += 1;
        while state.is_active {
            let longest = || self.taken.read().unwrap_or_else(PoisonError::into_inner).longest;
            if state.begun == state.parts {
                state = self.wait(medium, state, |state| !state.is_active || state.begun < state.parts);
            } else if long.try_reserve(longest().saturating_sub(long.len())).is_err() {
                break;
            } else if let Some(part) = state.take(self) {
                drop(state);
                part.go(medium, &mut long);
                state = self.lock();
                #[cfg(test)]
                {
                    state.helped += 1;
                }
            }
        }
        state.waiting -= 1;
    }

    /// Threads that wait for the end of the truncation.
    #[cfg(test)]
    pub fn waiting(&self) -> u64 {
        self.lock().waiting
    }

    /// Parts that they have carried.
    #[cfg(test)]
    pub fn helped(&self) -> u64 {
        self.lock().helped
    }
}

/// A truncation that goes on.
pub(super) struct Active<'c>(&'c Carry);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.lock().is_active = false;
        self.0.changed.notify_all();
    }
}
