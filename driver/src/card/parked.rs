//! Commands that wait for other cards, as the register block shows them.

use std::sync::atomic::{AtomicU32, Ordering};

use nearpm_interface::registers::{self as reg, parked_action};

use super::Card;
use crate::error::CardError;
use crate::registers::Registers;

/// A command that waits for other cards, or behind such a command of its (pool, thread).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Place in the card's table.
    pub place: u32,
    /// Pool.
    pub pool: u32,
    /// Thread.
    pub thread: u16,
    /// Opcode.
    pub opcode: u8,
    /// Mask of the cards that take part, by their numbers; 0 for a command that only waits behind
    /// another one.
    pub participants: u32,
    /// Transaction.
    pub txid: u64,
}

/// Number of a card, once it was given one.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU32);

impl Card {
    /// Number under which other cards know this one, if it was given one since it was opened.
    pub fn device_number(&self) -> Option<u32> {
        self.number.0.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Gives the card its number, which is its bit in a mask of participants. From now on it tells
    /// the others how far it has come, so that commands which waited for it go on: a recovery has
    /// decided about those before.
    pub fn give_number(&self, number: u32) {
        self.registers().write(reg::DEVICE_NUMBER, number);
        self.number.0.store(number + 1, Ordering::Relaxed);
    }

    /// The commands that wait.
    ///
    /// # Errors
    /// [`CardError::Gone`].
    pub fn parked(&self) -> Result<Vec<Parked>, CardError> {
        let registers = self.registers();
        let used = registers.read(reg::PARKED);
        let places = (0..u32::BITS).filter(|place| used >> place & 1 == 1);
        let parked = places.map(|place| look(registers, place)).collect();
        // One that has gone reads all ones.
        if registers.is_present() { Ok(parked) } else { Err(CardError::Gone) }
    }

    /// Takes waiting commands away, because their transactions are undone. What waits behind one
    /// goes on when it has gone: the newest are to come first. Without effect on a card that has
    /// its number.
    pub fn discard(&self, parked: &[Parked]) -> Result<(), CardError> {
        self.act(parked, parked_action::DISCARD)
    }

    /// Lets waiting commands go on, because their transactions are committed, and waits until they
    /// have retired: where a page has a ring, until their completion records have come. Whoever
    /// posts a command that may have to wait asks for its record (`notify`); without one this ends
    /// as [`CardError::Timeout`], though the command has been let go.
    pub fn release(&self, parked: &[Parked]) -> Result<(), CardError> {
        self.act(parked, parked_action::RELEASE)
    }

    fn act(&self, parked: &[Parked], action: u32) -> Result<(), CardError> {
        if parked.is_empty() {
            return Ok(());
        }
        // They were posted before the pages were opened, so that the pages must not count them
        // among their own.
        let mut pages = self.drained_pages()?;
        let mut read = vec![0; pages.len()];
        parked.iter().for_each(|parked| self.registers().write(reg::PARKED_ACT, parked.place | action << 8));
        let start = self.function().now_ns();
        loop {
            let mut ended = 0;
            for (page, read) in pages.iter_mut().zip(&mut read) {
                ended += page.foreign(read)?;
            }
            if ended >= parked.len() as u64 {
                return pages.iter_mut().try_for_each(|page| page.restart());
            }
            self.pause(start, "end commands that waited for other cards")?;
        }
    }
}

fn look(registers: &Registers, place: u32) -> Parked {
    registers.write(reg::PARKED_SELECT, place);
    let who = registers.read(reg::PARKED_THREAD);
    let txid = |half| u64::from(registers.read(half));
    Parked {
        place,
        pool: registers.read(reg::PARKED_POOL),
        thread: who as u16,
        opcode: (who >> 16) as u8,
        participants: who >> 24,
        txid: txid(reg::PARKED_TXID_LO) | txid(reg::PARKED_TXID_HI) << 32,
    }
}
