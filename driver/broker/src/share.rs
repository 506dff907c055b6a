//! The card, and who uses it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail, ensure};
use nearpm_driver::pci::{Caching, Mapping};
use nearpm_driver::registers::Capabilities;
use nearpm_driver::{Card, CardError};
use nearpm_interface::geometry::COMMAND_PAGES;

use crate::claims::{Claims, Seat};

/// Processes that can share a card: page 0 maps and unmaps for all of them.
pub const SEATS: usize = COMMAND_PAGES - 1;

/// A card that is shared.
pub struct Share {
    pub(crate) card: Arc<Card>,
    /// All of the card's memory.
    pub(crate) window: Box<dyn Mapping>,
    claims: Mutex<Claims>,
    taken: Mutex<[bool; SEATS]>,
    failure: Mutex<Option<String>>,
}

impl Share {
    /// Shares a card that nobody else uses, in this process or another one.
    ///
    /// # Errors
    /// If the card cannot be shared, or is shared already.
    pub fn new(card: Arc<Card>) -> Result<Arc<Share>> {
        ensure!(card.seat().is_none(), "the card is shared by another broker already: give the card itself");
        ensure!(
            card.capabilities().contains(Capabilities::COMPLETION_RECORDS),
            "a card without completion records cannot be shared: nothing would say whose commands have ended"
        );
        if card.capabilities().contains(Capabilities::PEERS) {
            ensure!(
                card.parked()?.is_empty(),
                "commands of a pool over several cards wait on this card: open that pool once, with all its cards, before sharing one"
            );
        }
        let window = card.window(0..card.pm_bytes(), Caching::Uncached)?;
        for page in 0..COMMAND_PAGES {
            card.drain(page)?;
        }
        Ok(Arc::new(Share {
            card,
            window,
            claims: Mutex::default(),
            taken: Mutex::default(),
            failure: Mutex::default(),
        }))
    }

    pub(crate) fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the card up: everything reads all ones for everybody from now on.
    pub(crate) fn fail(&self, error: &CardError) {
        let text = error.to_string();
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }

    /// Whether the card works, as far as is known.
    pub(crate) fn works(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Why the card was given up, if it was.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(why) => bail!("{why}; what was acknowledged is kept: start this again when the card is back"),
        }
    }

    pub(crate) fn take_seat(&self) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = taken.iter().position(|taken| !taken)?;
        taken[free] = true;
        Some(free as Seat + 1)
    }

    pub(crate) fn leave_seat(&self, seat: Seat) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[usize::from(seat) - 1] = false;
    }
}
