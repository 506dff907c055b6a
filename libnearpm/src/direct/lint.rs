//! The lint of direct pools: what a program stores, held against what it says that it stores.
//!
//! A pool that is opened with a [`Lint`] keeps two more copies of its heap: what was seen last, and
//! what is durable. At each begin, add, commit, abort and persist, and when the pool is closed, the
//! chunks in use are compared with them. That takes twice the memory of the heap, and at each of
//! these calls the time to read it. A store of the bytes that are there already is not seen. With
//! several threads a fault may be put down to the transaction that ends first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::DirectPool;
use crate::interval::IntervalSet;
use crate::lint::{Fault, Lint, LintReport};
use crate::memory::View;

/// Bytes that are compared at once.
const PIECE: u64 = 4096;

/// Differences so close to each other are one.
const CLOSE: u64 = 8;

/// What a transaction says of ranges.
pub(crate) struct Claims<'t> {
    /// Ranges that become durable with it.
    pub known: &'t IntervalSet,
    /// Ranges of new objects.
    pub fresh: &'t IntervalSet,
    /// Those of them whose bytes become durable with it.
    pub home: &'t [Range<u64>],
}

/// Takes a range out of a set.
fn without(set: &mut IntervalSet, range: &Range<u64>) {
    let mut left = IntervalSet::default();
    for part in set.iter() {
        left.insert(part.start..part.end.min(range.start).max(part.start));
        left.insert(part.start.max(range.end).min(part.end)..part.end);
    }
    *set = left;
}

/// The lint of an open pool.
pub(crate) struct Linter {
    lint: Lint,
    /// First offset that is looked at.
    start: u64,
    state: Mutex<State>,
}

struct State {
    /// The heap when it was looked at last.
    seen: Vec<u8>,
    /// What is durable of it, or will be with what was reported.
    durable: Vec<u8>,
    /// Ranges that open transactions have added.
    open: HashMap<usize, IntervalSet>,
    /// Ranges that a persist has made durable.
    persisted: IntervalSet,
    /// Ranges that mean something to this run of the program alone.
    volatile: IntervalSet,
}

impl Linter {
    /// Begins to look at a heap; `None` where nobody wants to know.
    pub fn new(lint: &Lint, view: &View, heap: Range<u64>) -> Option<Box<Linter>> {
        if matches!(lint, Lint::Off) {
            return None;
        }
        let mut seen = vec![0; (heap.end - heap.start) as usize];
        view.load(heap.start, &mut seen);
        let state = State {
            durable: seen.clone(),
            seen,
            open: HashMap::new(),
            persisted: IntervalSet::default(),
            volatile: IntervalSet::default(),
        };
        Some(Box::new(Linter { lint: lint.clone(), start: heap.start, state: Mutex::new(state) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn part(&self, range: &Range<u64>) -> Range<usize> {
        (range.start - self.start) as usize..(range.end - self.start) as usize
    }

    /// A range now is what counts as seen, and as durable if `durable`.
    fn take(&self, state: &mut State, view: &View, range: &Range<u64>, durable: bool) {
        let part = self.part(range);
        view.load(range.start, &mut state.seen[part.clone()]);
        if durable {
            let (seen, kept) = (&state.seen[part.clone()], &mut state.durable[part]);
            kept.copy_from_slice(seen);
        }
    }

    /// Where a range differs from what it was.
    fn differences(&self, view: &View, was: &[u8], range: &Range<u64>, found: &mut Vec<Range<u64>>) {
        let mut now = vec![0; PIECE as usize];
        let mut at = range.start;
        while at < range.end {
            let piece = at..(at + PIECE).min(range.end);
            let now = &mut now[..(piece.end - piece.start) as usize];
            view.load(at, now);
            let was = &was[self.part(&piece)];
            if now != was {
                let different = now.iter().zip(was).enumerate().filter(|(_, (now, was))| now != was);
                for (byte, _) in different.map(|(inside, pair)| (at + inside as u64, pair)) {
                    match found.last_mut() {
                        Some(last) if byte <= last.end + CLOSE => last.end = byte + 1,
                        _ => found.push(byte..byte + 1),
                    }
                }
            }
            at = piece.end;
        }
    }

    /// Where the chunks in use differ from what was seen last, or from what is durable.
    fn all_differences(&self, pool: &DirectPool, was: &[u8]) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        for range in pool.heap_index().ranges_in_use() {
            self.differences(pool.view(), was, &range, &mut found);
        }
        found
    }

    /// Tells of a fault in each object that ranges meet. Bytes of no object are nobody's business.
    fn tell(&self, pool: &DirectPool, fault: Fault, ranges: &[Range<u64>], volatile: &IntervalSet) {
        let mut parts = Vec::new();
        ranges.iter().for_each(|range| volatile.gaps(range, &mut parts));
        let mut object = 0;
        while let Some(next) = pool.next_object(object).filter(|_| !parts.is_empty()) {
            object = next;
            let object_bytes = pool.usable_bytes(object).unwrap_or(0);
            for part in &parts {
                let (start, end) = (part.start.max(object), part.end.min(object + object_bytes));
                if start < end {
                    self.lint.report(&LintReport { fault, offset: start, bytes: end - start, object, object_bytes });
                }
            }
        }
    }

    /// A transaction begins: what differs was stored outside of transactions, unless another one is
    /// open.
    pub fn begin(&self, pool: &DirectPool, key: usize) {
        let state = &mut *self.lock();
        if state.open.is_empty() {
            self.look(state, pool);
        }
        state.open.insert(key, IntervalSet::default());
    }

    /// Takes note of everything that was stored.
    fn look(&self, state: &mut State, pool: &DirectPool) {
        for range in self.all_differences(pool, &state.seen) {
            self.take(state, pool.view(), &range, false);
        }
    }

    /// A transaction adds ranges: what differs there was changed before.
    pub fn add(&self, pool: &DirectPool, key: usize, ranges: &[Range<u64>]) {
        let state = &mut *self.lock();
        let mut early = Vec::new();
        ranges.iter().for_each(|range| self.differences(pool.view(), &state.seen, range, &mut early));
        for range in &early {
            self.take(state, pool.view(), range, true);
        }
        ranges.iter().for_each(|range| state.open.entry(key).or_default().insert(range.clone()));
        self.tell(pool, Fault::Unlogged, &early, &state.volatile);
    }

    /// A transaction commits.
    pub fn commit(&self, pool: &DirectPool, key: usize, claims: &Claims<'_>) {
        let state = &mut *self.lock();
        let added = state.open.remove(&key).unwrap_or_default();
        let mut unused = Vec::new();
        for range in added.iter() {
            let mut changed = Vec::new();
            self.differences(pool.view(), &state.seen, &range, &mut changed);
            if changed.is_empty() {
                unused.push(range);
            }
        }
        self.tell(pool, Fault::UnusedAdd, &unused, &state.volatile);
        self.end(state, pool, claims);
    }

    /// A transaction was taken back.
    pub fn abort(&self, pool: &DirectPool, key: usize, claims: &Claims<'_>) {
        let state = &mut *self.lock();
        state.open.remove(&key);
        self.end(state, pool, claims);
    }

    /// What a transaction covers is durable; what else has changed, it should have added.
    fn end(&self, state: &mut State, pool: &DirectPool, claims: &Claims<'_>) {
        for range in claims.fresh.iter() {
            self.take(state, pool.view(), &range, false);
        }
        for range in claims.known.iter().chain(claims.home.iter().cloned()) {
            self.take(state, pool.view(), &range, true);
        }
        let mut stray = Vec::new();
        for range in self.all_differences(pool, &state.seen) {
            let mut parts = vec![range];
            for others in state.open.values() {
                parts = parts
                    .iter()
                    .flat_map(|part| {
                        let mut left = Vec::new();
                        others.gaps(part, &mut left);
                        left
                    })
                    .collect();
            }
            stray.append(&mut parts);
        }
        for range in &stray {
            // Told once.
            self.take(state, pool.view(), range, true);
        }
        self.tell(pool, Fault::Unlogged, &stray, &state.volatile);
    }

    /// Space was taken: whatever it holds.
    pub fn reserve(&self, pool: &DirectPool, range: &Range<u64>) {
        let state = &mut *self.lock();
        without(&mut state.persisted, range);
        without(&mut state.volatile, range);
        self.take(state, pool.view(), range, true);
    }

    /// The program makes ranges durable.
    pub fn persist(&self, pool: &DirectPool, ranges: &[Range<u64>]) {
        let state = &mut *self.lock();
        let mut redundant = Vec::new();
        for range in ranges {
            let mut changed = Vec::new();
            self.differences(pool.view(), &state.durable, range, &mut changed);
            // Without a persist before, the bytes may just be those that were there.
            if changed.is_empty() && state.persisted.covers(range) {
                redundant.push(range.clone());
            }
            self.take(state, pool.view(), range, true);
            state.persisted.insert(range.clone());
        }
        self.tell(pool, Fault::RedundantPersist, &redundant, &state.volatile);
    }

    /// A range means nothing beyond this run of the program: locks.
    pub fn ignore(&self, range: Range<u64>) {
        self.lock().volatile.insert(range);
    }

    /// The pool is closed.
    pub fn close(&self, pool: &DirectPool) {
        let state = &mut *self.lock();
        let left = self.all_differences(pool, &state.durable);
        self.tell(pool, Fault::Unpersisted, &left, &state.volatile);
    }
}
