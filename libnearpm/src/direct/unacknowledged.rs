//! The newest record that nobody has waited for.
//!
//! Invariants:
//! - who appends without waiting raises the number before the lock of the shard is given back;
//! - who is to say that all is durable up to the number reads it with all shards locked, and drains
//!   behind that;
//! - the number is cleared only if it is still the one that was read: later records are not durable
//!   yet.
//!
//! So a number of 0 says that every record is durable whose append has returned, and the number
//! that a record depends on is that of all of these that are not.

use super::sync::{AtomicU64, Ordering};

/// The number, 0 where everything was waited for.
#[derive(Default)]
pub(super) struct Unacknowledged(AtomicU64);

impl Unacknowledged {
    /// The number of the newest record that nobody has waited for, 0 for none: what is appended now
    /// depends on it.
    pub fn newest(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Records up to this number were appended, and are not waited for. The caller has locked their
    /// shard.
    pub fn raise(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Release);
    }

    /// Everything is durable up to the number that was `seen` with all shards locked.
    pub fn clear(&self, seen: u64) {
        // Only if no later commit joined meanwhile.
        let _ = self.0.compare_exchange(seen, 0, Ordering::Release, Ordering::Relaxed);
    }

    /// Waits until everything is durable that was appended before. Gives the number up to which it
    /// waited, 0 if it did not.
    ///
    /// # Errors
    /// That of `drain`.
    pub fn wait<S, E>(&self, lock_all: impl FnOnce() -> S, drain: impl FnOnce() -> Result<(), E>) -> Result<u64, E> {
        if self.newest() == 0 {
            return Ok(0);
        }
        // With all shards locked: no record with a lower number is still on its way into the log.
        let seen = {
            let _shards = lock_all();
            self.newest()
        };
        if seen != 0 {
            drain()?;
            self.clear(seen);
        }
        Ok(seen)
    }
}
