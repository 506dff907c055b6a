//! A card that several processes share through a broker: what a process claims, and what the broker
//! needs to post for others.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nearpm_interface::sharing::{self as reg, action, outcome};

use super::Card;
use crate::error::CardError;
use crate::page::Ended;
use crate::registers::{Capabilities, Registers};

/// This process among those that share the card.
#[derive(Debug)]
pub(crate) struct Sharing {
    seat: Seat,
    /// One action at a time.
    acts: Mutex<()>,
}

/// How long a process that has ended may take to leave, in nanoseconds.
const LEAVING_NS: u64 = 500_000_000;
/// How long one waits for the table of pools, in nanoseconds.
const TABLE_NS: u64 = 20 * LEAVING_NS;
/// Nanoseconds between two attempts to claim.
const LOOK_NS: u64 = 5_000_000;

/// Who a process is among those that share a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 1.
    pub number: u8,
    /// How many processes there can be.
    pub seats: u8,
}

impl Sharing {
    /// What a broker says of the card; `None` without one.
    pub(crate) fn find(capabilities: Capabilities, registers: &Registers) -> Option<Sharing> {
        if !capabilities.contains(Capabilities::SHARED) {
            return None;
        }
        let seat = registers.read(reg::SEAT);
        Some(Sharing { seat: Seat { number: seat as u8, seats: (seat >> 8) as u8 }, acts: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.acts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock of a shared card's table of pools. It is given back when this is dropped.
#[must_use]
#[derive(Debug)]
pub struct TableLock {
    card: std::sync::Arc<Card>,
}

impl Drop for TableLock {
    fn drop(&mut self) {
        // A broker that has gone has no locks.
        let _ = self.card.ask_broker(action::UNLOCK, None);
    }
}

impl Card {
    /// Who this process is among those that share the card; `None` where it has the card alone.
    pub fn seat(&self) -> Option<Seat> {
        Some(self.sharing.as_ref()?.seat)
    }

    /// Claims a pool, so that no other process opens it or what lies in its range; false where
    /// another process has it. One that was killed may have it for a moment. A process that has the
    /// card alone has every pool.
    ///
    /// # Errors
    /// [`CardError::Gone`].
    pub fn claim_pool(&self, pool: u32, range: Range<u64>) -> Result<bool, CardError> {
        let start = self.function().now_ns();
        loop {
            let is_mine = self.ask_broker(action::CLAIM, Some((pool, range.clone())))?;
            if is_mine || self.function().now_ns().saturating_sub(start) > LEAVING_NS {
                return Ok(is_mine);
            }
            self.function().relax(LOOK_NS);
        }
    }

    /// Gives a claimed pool back.
    ///
    /// # Errors
    /// [`CardError::Gone`].
    pub fn give_pool_back(&self, pool: u32) -> Result<(), CardError> {
        self.ask_broker(action::GIVE_BACK, Some((pool, 0..0))).map(drop)
    }

    /// Takes the lock of the card's table of pools, `None` where nobody shares the card. Waits
    /// while another process has it.
    ///
    /// # Errors
    /// [`CardError::Timeout`], [`CardError::Gone`].
    pub fn lock_table(self: &std::sync::Arc<Self>) -> Result<Option<TableLock>, CardError> {
        if self.sharing.is_none() {
            return Ok(None);
        }
        let start = self.function().now_ns();
        while !self.ask_broker(action::LOCK, None)? {
            // Who has it may be making a pool, or waiting for one who is leaving.
            let waited_ns = self.function().now_ns().saturating_sub(start);
            if waited_ns > TABLE_NS {
                let what = "get the lock of its table of pools, which another process has";
                return Err(CardError::Timeout { what, waited_ns });
            }
            self.function().relax(LOOK_NS);
        }
        Ok(Some(TableLock { card: self.clone() }))
    }

    /// Asks the broker for something; false where another process stands in the way.
    fn ask_broker(&self, action: u32, claim: Option<(u32, Range<u64>)>) -> Result<bool, CardError> {
        let Some(sharing) = &self.sharing else { return Ok(true) };
        let _alone = sharing.lock();
        let registers = self.registers();
        if let Some((pool, range)) = claim {
            registers.write(reg::CLAIM_POOL, pool);
            let (base, bytes) = (range.start, range.end - range.start);
            for (low, high, value) in
                [(reg::CLAIM_BASE, reg::CLAIM_BASE_HI, base), (reg::CLAIM_BYTES, reg::CLAIM_BYTES_HI, bytes)]
            {
                registers.write(low, value as u32);
                registers.write(high, (value >> 32) as u32);
            }
        }
        registers.write(reg::CLAIM_ACT, action);
        match registers.read(reg::CLAIM_OUTCOME) {
            outcome::DONE => Ok(true),
            outcome::TAKEN => Ok(false),
            u32::MAX => Err(CardError::Gone),
            _ => Err(CardError::Shared { what: "have a pool outside the card's memory" }),
        }
    }

    /// Takes how commands of a page have ended; see [`crate::page::CommandPage::take_ended`].
    ///
    /// # Errors
    /// If there is no such page.
    pub fn take_ended(&self, page: usize) -> Result<Vec<Ended>, CardError> {
        Ok(self.page(page)?.take_ended())
    }
}
