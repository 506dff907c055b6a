//! Commits of a lane that are posted and waited for beside whoever posts the next one.
//!
//! A wait is one read of the card's status, which all threads share that wait at the same time on
//! one command page, of whatever lane (`nearpm_driver`'s `page/shared_read.rs`).
//!
//! Invariants:
//! - commits are numbered in the order in which they are posted, by whoever has the lane,
//!   each ordered ahead of everything that is posted or stored later;
//! - who waits looks at the newest number, and reads the status behind that: what it read speaks
//!   for every commit up to that number;
//! - a number is acknowledged only when such a read has found nothing wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::executor::Posted;
use crate::memory::Medium;

/// Number of a commit that was posted, from 1.
pub(crate) type Number = u64;

/// What was posted, and what is known to be durable.
#[derive(Default)]
pub(crate) struct Together {
    /// The newest commit, and how to wait for it.
    newest: Mutex<(Number, Option<Posted>)>,
    acknowledged: AtomicU64,
}

impl Together {
    fn newest(&self) -> MutexGuard<'_, (Number, Option<Posted>)> {
        // What is behind it is replaced whole.
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit was posted, with the lane. Gives its number.
    pub fn posted(&self, how: Posted) -> Number {
        let mut newest = self.newest();
        *newest = (newest.0 + 1, Some(how));
        newest.0
    }

    /// The newest commit that was posted, asked with the lane; 0 for none.
    pub fn last(&self) -> Number {
        self.newest().0
    }

    /// Whether everything that was posted is acknowledged, asked with the lane.
    pub fn all_acknowledged(&self) -> bool {
        self.acknowledged.load(Ordering::Acquire) == self.last()
    }

    /// Waits until a commit is durable, without the lane.
    ///
    /// # Errors
    /// Those of [`Posted::wait`].
    pub fn wait(&self, medium: &Medium, number: Number) -> Result<(), Error> {
        if self.acknowledged.load(Ordering::Acquire) >= number {
            return Ok(());
        }
        let newest = self.newest().clone();
        if let (newest, Some(posted)) = newest {
            posted.wait(medium)?;
            self.acknowledged.fetch_max(newest, Ordering::Release);
        }
        Ok(())
    }
}
