//! When keys were used last, about: a table of moments in ordinary memory, by hash.
//!
//! Keys that share a place share their moment, so that one of them may outlive what its own use
//! would give it. After a restart all keys are as old.

use std::sync::atomic::{AtomicU32, Ordering};

/// Places of the table, 4 MiB in all.
const PLACES: usize = 1 << 20;

/// The table.
pub struct Recency(Box<[AtomicU32]>);

impl Default for Recency {
    fn default() -> Recency {
        Recency((0..PLACES).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Recency {
    fn place(&self, hash: u64) -> &AtomicU32 {
        &self.0[hash as usize % PLACES]
    }

    /// A key was used.
    pub fn touch(&self, hash: u64, now_ms: u64) {
        self.place(hash).store(now_ms as u32, Ordering::Relaxed);
    }

    /// Milliseconds since a key was used, at most 49 days; for a key that was not used since the
    /// start some number of them.
    pub fn age_ms(&self, hash: u64, now_ms: u64) -> u32 {
        (now_ms as u32).wrapping_sub(self.place(hash).load(Ordering::Relaxed))
    }
}
