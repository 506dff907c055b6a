//! The card, who uses it, and the socket.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail, ensure};
use nearpm_driver::pci::{Caching, Mapping};
use nearpm_driver::registers::Capabilities;
use nearpm_driver::{Card, CardError};
use nearpm_endpoint::server::{self, Host};
use nearpm_interface::geometry::COMMAND_PAGES;
use nix::errno::Errno;

use crate::claims::{Claims, Seat};
use crate::client::Client;

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

    /// Serves processes on a socket.
    ///
    /// # Errors
    /// If the socket cannot be made, or the card has gone or failed.
    pub fn serve(self: &Arc<Self>, path: &Path) -> Result<()> {
        server::serve(&Seats(self.clone()), path)
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

    fn take_seat(&self) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = taken.iter().position(|taken| !taken)?;
        taken[free] = true;
        Some(free as Seat + 1)
    }

    pub(crate) fn leave_seat(&self, seat: Seat) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[usize::from(seat) - 1] = false;
    }
}

/// Gives functions to those who come.
struct Seats(Arc<Share>);

impl Host for Seats {
    type Device = Client;

    fn name(&self) -> &'static str {
        "nearpm card share"
    }

    fn admit(&self) -> Result<Client, Errno> {
        let seat = self.0.take_seat().ok_or(Errno::EUSERS)?;
        let refused = match Client::new(self.0.clone(), seat) {
            Ok(Some(client)) => return Ok(client),
            Ok(None) => Errno::EAGAIN,
            Err(error) => {
                self.0.fail(&error);
                Errno::EIO
            }
        };
        self.0.leave_seat(seat);
        Err(refused)
    }

    fn check(&self) -> Result<()> {
        if self.0.works()
            && let Err(error) = self.0.card.registers().state()
        {
            self.0.fail(&error);
        }
        match &*self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(why) => bail!("{why}; what was acknowledged is kept: start this again when the card is back"),
        }
    }
}
