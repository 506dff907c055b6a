//! Where the commands of a lane go on a card, and what its status says of them: for who posts them,
//! and for who waits beside that.

use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::{Card, CardError, Latched, Ticket};

use crate::error::Error;
use crate::memory::Medium;
use crate::statistics::count;

/// A lane on a card.
#[derive(Clone)]
pub(crate) struct ReadBack {
    pub(super) card: Arc<Card>,
    pub(super) page: usize,
    pub(super) pool: u32,
    /// Device addresses of the pool.
    pub(super) place: Range<u64>,
    pub(super) thread: u16,
}

impl ReadBack {
    /// Waits until a command is accepted, by a read of the card's status, which comes behind
    /// everything that was posted before and fenced, by whatever thread. Other threads may post
    /// meanwhile.
    ///
    /// # Errors
    /// A log of the pool has failed, a store to it was lost, a command of the lane was refused; the
    /// card has gone.
    pub fn wait(&self, medium: &Medium, ticket: Ticket) -> Result<(), Error> {
        count(&medium.counters.completions, 1);
        self.verified(self.card.read_back(ticket))?;
        // Whoever waited at the same time, or posts now, may have been told of a failure that is
        // this one's, too.
        if self.card.has_failed(self.page, self.pool, self.thread)? { Err(Error::Poisoned) } else { Ok(()) }
    }

    /// Success only where no log of the pool has failed. Of several failures that of a log comes
    /// first: it is why others were refused.
    pub(super) fn verified(&self, outcome: Result<Latched, CardError>) -> Result<(), Error> {
        let latched = match &outcome {
            Ok(latched) => *latched,
            Err(_) => self.card.push(self.page)?,
        };
        self.card.verify_stores(&self.place, latched).map_err(|error| self.failed(error))?;
        self.card.verify_logs(self.pool, latched).map_err(|error| self.failed(error))?;
        self.check()?;
        outcome.map_err(|error| self.failed(error)).map(drop)
    }

    pub(super) fn failed(&self, error: CardError) -> Error {
        Error::failed(error, &self.place)
    }

    /// A failure of an earlier command of this lane that nobody waited for.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.card.take_failure(self.page, self.pool, self.thread)? {
            Some(failure) => Err(self.failed(failure.into())),
            None => Ok(()),
        }
    }
}
