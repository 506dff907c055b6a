//! Threads that wait for their commits together: one read of the card's status acknowledges
//! everything that was posted before it.
//!
//! Invariants:
//! - commits are numbered in the order in which they are posted, by whoever has the turn
//!   ([`super::by_mechanism`]);
//! - who waits looks at the newest number only with the lock that others wait for, and reads the
//!   status behind that: what it read speaks for every commit up to that number;
//! - a number is acknowledged only when such a read has found nothing wrong.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nearpm_driver::Ticket;

use crate::error::Error;
use crate::executor::ReadBack;
use crate::memory::Medium;

/// Number of a commit that was posted, from 1.
pub(super) type Number = u64;

/// The newest commit, and how to ask for it.
type Newest = (Number, Option<(ReadBack, Ticket)>);

/// What was posted, and what is known to be durable.
#[derive(Default)]
pub(super) struct Together {
    newest: Mutex<Newest>,
    acknowledged: Mutex<Number>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Together {
    /// A commit was posted, with the turn. Gives its number.
    pub fn posted(&self, how: (ReadBack, Ticket)) -> Number {
        let mut newest = lock(&self.newest);
        *newest = (newest.0 + 1, Some(how));
        newest.0
    }

    /// Whether everything that was posted is acknowledged. Asked with the turn, it waits for
    /// nobody.
    pub fn all_acknowledged(&self) -> bool {
        self.acknowledged.try_lock().is_ok_and(|acknowledged| *acknowledged == lock(&self.newest).0)
    }

    /// Waits until a commit is durable, without the turn.
    ///
    /// # Errors
    /// Those of [`ReadBack::wait`].
    pub fn wait(&self, medium: &Medium, number: Number) -> Result<(), Error> {
        let mut acknowledged = medium.lock(&self.acknowledged).unwrap_or_else(PoisonError::into_inner);
        if *acknowledged >= number {
            return Ok(());
        }
        let newest = lock(&self.newest).clone();
        if let (newest, Some((at, ticket))) = newest {
            at.wait(medium, ticket)?;
            *acknowledged = newest;
        }
        Ok(())
    }
}
