//! What is known to be durable, where new objects are written once: to their place, and not to the
//! log.
//!
//! The record of such an object holds its checksum ([`Operation::Home`]). Two numbers rise with the
//! records:
//!
//! | number | every record up to it |
//! |---|---|
//! | *durable* | is durable, as this pool knows |
//! | *shown* | is durable, and a recovery will know: a durable record says so ([`Operation::Through`]), or a word of the pool |
//!
//! Bytes at home that a record speaks of are changed only when the record is *shown*, because a
//! recovery would not find them as they were. So space that a commit has freed waits here until
//! that commit is shown: then a new object may be written to it. Where there is no other space it
//! is given earlier, and what comes there is logged (`heap/marks.rs`).
//!
//! Invariants:
//! - numbers are given with the lock that remembers them, so that none is missing below a number
//!   that is durable;
//! - a record says of others that they are durable only what was so when it was built.
//!
//! [`Operation::Home`]: nearpm_interface::record::Operation::Home
//! [`Operation::Through`]: nearpm_interface::record::Operation::Through

use std::collections::VecDeque;

use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Space that waits: number of the record that freed it, and its offset.
pub(super) type Freed = (u64, u64);

/// Records of one append that may not be durable.
struct Issued {
    last: u64,
    /// They say that records up to this number are durable.
    says: u64,
    durable: bool,
}

#[derive(Default)]
struct State {
    /// By number.
    issued: VecDeque<Issued>,
    durable: u64,
    shown: u64,
    /// Newest record that speaks of bytes at home.
    newest_home: u64,
    freed: VecDeque<Freed>,
}

impl State {
    /// Records up to a number are durable.
    fn advance(&mut self, number: u64) {
        while let Some(first) = self.issued.front().filter(|first| first.durable || first.last <= number) {
            (self.durable, self.shown) = (first.last, self.shown.max(first.says));
            self.issued.pop_front();
        }
    }
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct Known(Mutex<State>);

impl Known {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives numbers to the records of an append, of which the last one says that others are
    /// durable. The caller has locked its shard.
    #[inline(never)]
    pub fn issue(&self, sequence: &AtomicU64, count: u64, says: u64, names_home: bool) -> u64 {
        let mut state = self.state();
        let first = sequence.fetch_add(count, Ordering::Relaxed);
        let last = first + count - 1;
        state.issued.push_back(Issued { last, says, durable: false });
        if names_home {
            state.newest_home = last;
        }
        first
    }

    /// The append that ends with this record is durable.
    #[inline(never)]
    pub fn written(&self, last: u64) {
        let mut state = self.state();
        let Ok(at) = state.issued.binary_search_by_key(&last, |issued| issued.last) else { return };
        state.issued[at].durable = true;
        state.shown = state.shown.max(state.issued[at].says);
        state.advance(0);
    }

    /// Everything is durable up to a number that was read with all shards locked.
    pub fn waited(&self, seen: u64) {
        self.state().advance(seen);
    }

    /// A word of the pool says, durably, that records up to this number are durable.
    pub fn show(&self, number: u64) {
        let mut state = self.state();
        state.advance(number);
        state.shown = state.shown.max(number);
    }

    /// Records up to this number are durable.
    pub fn durable(&self) -> u64 {
        self.state().durable
    }

    /// A recovery will know that of records up to this number.
    pub fn shown(&self) -> u64 {
        self.state().shown
    }

    /// Newest record that speaks of bytes at home.
    pub fn newest_home(&self) -> u64 {
        self.state().newest_home
    }

    /// A record has freed space: it waits.
    pub fn free(&self, record: u64, objects: impl Iterator<Item = u64>) {
        self.state().freed.extend(objects.map(|object| (record, object)));
    }

    /// Hands on space that waits no more.
    pub fn ready(&self, mut release: impl FnMut(u64)) {
        let mut state = self.state();
        while let Some(&(_, object)) = state.freed.front().filter(|(record, _)| *record <= state.shown) {
            state.freed.pop_front();
            release(object);
        }
    }

    /// Hands on all space that waits, and the records that freed it; says whether there was some.
    pub fn all_freed(&self, mut release: impl FnMut(Freed)) -> bool {
        let freed = std::mem::take(&mut self.state().freed);
        let some = !freed.is_empty();
        freed.into_iter().for_each(&mut release);
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_is_what_nothing_is_missing_below() {
        let (known, sequence) = (Known::default(), AtomicU64::new(1));
        let numbers = [1, 2, 1].map(|count| known.issue(&sequence, count, 0, false));
        assert_eq!(numbers, [1, 2, 4]);
        known.written(4);
        assert_eq!(known.durable(), 0);
        known.written(1);
        assert_eq!(known.durable(), 1);
        known.written(3);
        assert_eq!((known.durable(), known.shown()), (4, 0));
    }

    #[test]
    fn what_is_durable_is_shown_when_a_durable_record_says_so() {
        let (known, sequence) = (Known::default(), AtomicU64::new(1));
        known.issue(&sequence, 1, 0, true);
        known.free(1, [64].into_iter());
        let mut released = Vec::new();
        known.waited(1);
        known.ready(|object| released.push(object));
        assert_eq!((known.durable(), known.shown(), known.newest_home()), (1, 0, 1));
        // It says so, and is not durable itself.
        known.issue(&sequence, 1, known.durable(), false);
        known.ready(|object| released.push(object));
        assert!(released.is_empty());
        known.waited(2);
        known.ready(|object| released.push(object));
        assert_eq!((known.shown(), released), (1, vec![64]));
    }

    #[test]
    fn a_truncation_shows_everything_and_space_is_given_earlier_with_its_record() {
        let (known, sequence) = (Known::default(), AtomicU64::new(1));
        known.issue(&sequence, 3, 0, false);
        known.free(3, [64, 128].into_iter());
        let mut released = Vec::new();
        assert!(known.all_freed(|freed| released.push(freed)));
        assert!(!known.all_freed(|_| panic!("none is left")));
        assert_eq!(released, [(3, 64), (3, 128)]);
        known.show(3);
        assert_eq!((known.durable(), known.shown()), (3, 3));
    }
}
