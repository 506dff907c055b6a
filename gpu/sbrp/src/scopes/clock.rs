//! Clocks of persists.

use std::collections::BTreeMap;

/// Of each thread, how many of its persists are covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    of: BTreeMap<u64, u32>,
}

impl Clock {
    /// Covers what another clock covers.
    pub fn join(&mut self, other: &Clock) {
        other.of.iter().for_each(|(thread, count)| self.raise(*thread, *count));
    }

    /// Covers the first `count` persists of a thread.
    pub fn raise(&mut self, thread: u64, count: u32) {
        let own = self.of.entry(thread).or_default();
        *own = (*own).max(count);
    }

    /// Whether all that another clock covers is covered.
    pub fn covers(&self, other: &Clock) -> bool {
        other.of.iter().all(|(thread, count)| self.count(*thread) >= *count)
    }

    /// Persists of a thread that are covered.
    pub fn count(&self, thread: u64) -> u32 {
        self.of.get(&thread).copied().unwrap_or(0)
    }
}
