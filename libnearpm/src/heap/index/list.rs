//! The runs of one size that may have room and are in no arena.

use std::collections::{BTreeSet, TryReserveError};

/// Which of them serves next.
pub(super) enum List {
    /// The one that came last.
    Newest(Vec<u32>),
    /// The one whose first chunk is the lowest.
    Lowest(BTreeSet<u32>),
}

impl List {
    /// Makes room for one more.
    pub fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        match self {
            List::Newest(runs) => runs.try_reserve(1),
            List::Lowest(_) => Ok(()),
        }
    }

    pub fn push(&mut self, run: u32) {
        match self {
            List::Newest(runs) => runs.push(run),
            List::Lowest(runs) => {
                runs.insert(run);
            }
        }
    }

    /// Takes the run that serves next.
    pub fn pop(&mut self) -> Option<u32> {
        match self {
            List::Newest(runs) => runs.pop(),
            List::Lowest(runs) => runs.pop_first(),
        }
    }

    /// Whether another run is to serve before one that an arena has.
    pub fn is_before(&self, run: u32) -> bool {
        match self {
            List::Newest(_) => false,
            List::Lowest(runs) => runs.first().is_some_and(|&first| first < run),
        }
    }

    /// Takes one run out.
    pub fn remove(&mut self, run: u32) {
        match self {
            List::Newest(runs) => runs.retain(|&other| other != run),
            List::Lowest(runs) => {
                runs.remove(&run);
            }
        }
    }

    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        match self {
            List::Newest(runs) => runs.retain(|&run| keep(run)),
            List::Lowest(runs) => runs.retain(|&run| keep(run)),
        }
    }

    /// Sums up something of all of them.
    pub fn sum(&self, of: impl Fn(u32) -> u64) -> u64 {
        match self {
            List::Newest(runs) => runs.iter().map(|&run| of(run)).sum(),
            List::Lowest(runs) => runs.iter().map(|&run| of(run)).sum(),
        }
    }
}
