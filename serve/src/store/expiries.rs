//! Which keys expire when, in ordinary memory: what has expired is found without looking for it.
//!
//! A pool that is opened has keys that are not known here. They are scanned for in the background,
//! and before anyone is refused.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A change of what is known. It counts when the transaction does in which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A key of this hash expires at another moment than before; 0 is never.
    Moved { hash: u64, from: u64, to: u64 },
    /// All keys are gone.
    Cleared,
    /// The keys in front of this hash were looked at; all of them, if there is none.
    Scanned(Option<u64>),
    /// Keys that are here may be dead.
    LookAgain,
}

/// Changes that wait for their transaction.
#[derive(Debug, Default)]
pub struct Changes(RefCell<Vec<Change>>);

impl Changes {
    fn note(&self, change: Change) {
        self.0.borrow_mut().push(change);
    }

    /// A key of a hash expires at another moment than before; 0 is never.
    pub fn moved(&self, hash: u64, from: u64, to: u64) {
        if from != to {
            self.note(Change::Moved { hash, from, to });
        }
    }

    /// All keys are gone.
    pub fn cleared(&self) {
        self.note(Change::Cleared);
    }

    /// Keys that never expire are dead, or will be.
    pub fn look_again(&self) {
        self.note(Change::LookAgain);
    }

    /// The scan got as far as this hash, or to the end.
    pub fn scanned(&self, next: Option<u64>) {
        self.note(Change::Scanned(next));
    }
}

#[derive(Debug)]
struct State {
    /// Moments in milliseconds since 1970, and hashes of keys that expire then or once did.
    due: BTreeSet<(u64, u64)>,
    /// Where the scan goes on, if there is one.
    scan: Option<u64>,
}

/// When keys expire.
#[derive(Debug)]
pub struct Expiries(Mutex<State>);

impl Default for Expiries {
    /// Of a pool that nobody has looked at.
    fn default() -> Expiries {
        Expiries(Mutex::new(State { due: BTreeSet::new(), scan: Some(0) }))
    }
}

impl Expiries {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction counts, with its changes.
    pub fn apply(&self, changes: &Changes) {
        let changes = changes.0.take();
        if changes.is_empty() {
            return;
        }
        let mut state = self.state();
        for change in changes {
            match change {
                Change::Moved { hash, from, to } => {
                    state.due.remove(&(from, hash));
                    if to != 0 {
                        state.due.insert((to, hash));
                    }
                }
                Change::Cleared => state.due.clear(),
                Change::Scanned(next) => state.scan = next,
                Change::LookAgain => state.scan = Some(0),
            }
        }
    }

    /// Whether there may be dead keys.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let state = self.state();
        state.scan.is_some() || state.due.first().is_some_and(|(moment, _)| *moment <= now_ms)
    }

    /// Some moments that have passed, with their hashes, the earliest first.
    pub fn due(&self, now_ms: u64, most: usize) -> Vec<(u64, u64)> {
        self.state().due.iter().take(most).take_while(|(moment, _)| *moment <= now_ms).copied().collect()
    }

    /// Where the scan goes on.
    pub fn scan(&self) -> Option<u64> {
        self.state().scan
    }

    /// Keys of which it is known that they expire.
    pub fn len(&self) -> usize {
        self.state().due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_known() {
        let (expiries, changes) = (Expiries::default(), Changes::default());
        assert!(expiries.is_due(0) && expiries.scan() == Some(0));
        changes.scanned(None);
        changes.moved(1, 0, 50);
        changes.moved(2, 0, 40);
        changes.moved(1, 50, 60);
        assert_eq!(expiries.len(), 0);
        expiries.apply(&changes);
        assert_eq!((expiries.due(39, 9), expiries.due(60, 9)), (vec![], vec![(40, 2), (60, 1)]));
        assert_eq!(expiries.due(60, 1), [(40, 2)]);
        assert!(!expiries.is_due(39) && expiries.is_due(40));
        changes.moved(2, 40, 0);
        changes.moved(1, 60, 0);
        changes.look_again();
        expiries.apply(&changes);
        assert!(expiries.len() == 0 && expiries.scan() == Some(0));
    }
}
