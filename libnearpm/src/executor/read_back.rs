//! Where the commands of a lane go on a card, and what its status says of them: for who posts them,
//! and for who waits beside that.

use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::{Card, CardError, Latched, Ticket};

use crate::error::Error;
use crate::memory::Medium;
use crate::statistics::count;

/// A commit that is ordered ahead of everything later, and not acknowledged yet.
#[derive(Clone)]
pub(crate) enum Posted {
    /// By a command.
    Command(ReadBack, Ticket),
    /// By stores of the processor, on the way to a card.
    Stores,
}

impl Posted {
    /// Waits until it is durable, beside whoever posts the next one. It speaks for everything that
    /// was posted in the lane before.
    ///
    /// # Errors
    /// Those of [`ReadBack::wait`] and of the medium's drain.
    pub fn wait(&self, medium: &Medium) -> Result<(), Error> {
        match self {
            Posted::Command(at, ticket) => at.wait(medium, *ticket),
            Posted::Stores => medium.drain(),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use nearpm_driver::CardOptions;
    use nearpm_driver::card::PoolMapping;
    use nearpm_driver::mock::{MockCard, MockOptions};
    use nearpm_interface::command::{Command, Opcode};
    use nearpm_interface::geometry::POOLS_BASE;

    use super::*;
    use crate::memory::{Backing, VolatileMemory};

    const POOL: u32 = 7;
    const BYTES: u64 = 1 << 20;

    /// Of two who wait, one is told why; the other one's commit may be among what was refused for
    /// that.
    #[test]
    fn a_failure_is_told_to_all_who_wait() {
        let mock = MockCard::new(MockOptions { pm_bytes: 4 << 20, ..MockOptions::default() });
        let card = Arc::new(Card::open(Arc::new(mock), CardOptions::default()).unwrap());
        let place = POOLS_BASE..POOLS_BASE + BYTES;
        for thread in [0, 1] {
            let mapping = PoolMapping {
                pool: POOL,
                thread,
                base: place.start,
                bytes: BYTES,
                ring: 4096 * (1 + u64::from(thread)),
                ring_bytes: 4096,
                committed: 0,
            };
            card.map_pool(mapping).unwrap();
        }
        let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(64))));
        let lanes =
            [0, 1].map(|thread| ReadBack { card: card.clone(), page: 1, pool: POOL, place: place.clone(), thread });
        let post = |thread, opcode| {
            let command = Command { opcode, pool: POOL, thread, ..Command::default() };
            card.post(1, command, false).unwrap()
        };
        const REFUSED: u8 = 31;
        post(0, REFUSED);
        let tickets = [post(0, Opcode::Fence as u8), post(0, Opcode::Fence as u8)];
        let other = post(1, Opcode::Fence as u8);
        let told = tickets.map(|ticket| lanes[0].wait(&medium, ticket));
        assert!(matches!(told, [Err(Error::Card(_)), Err(Error::Poisoned)]), "{told:?}");
        lanes[1].wait(&medium, other).expect("another lane's commands have not failed");
    }
}
