//! A simulated computer with a card, and the pool of a job on it.

use std::sync::Arc;

use nearpm::{Options, Pool, cards};
use nearpm_driver::{Card, CardError, CardOptions, Posting};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut, CutRecord, Parameters};
use nearpm_sim::machine::Machine;
use nearpm_sim::saved::Saved;

use crate::kind::Cards;

/// Media end at multiples of this.
const GRAIN: u64 = 2 << 20;

/// What the card has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CardCounters {
    /// Commands accepted.
    pub commands: u64,
    /// Commands and host accesses that waited for a conflicting earlier item.
    pub held: u64,
}

/// The computer.
pub struct Rig {
    cards: Cards,
    machine: Machine,
    name: String,
    posting: Posting,
}

impl Rig {
    /// A computer with its power on and a blank card of a size that holds a pool of `pool_bytes`.
    /// No other one in the process may have the name at the same time.
    pub fn new(cards: Cards, name: &str, parameters: Parameters, posting: Posting, pool_bytes: u64) -> Rig {
        let bytes = (POOLS_BASE + pool_bytes).next_multiple_of(GRAIN) + GRAIN;
        let machine = Machine::new(parameters, &*cards, Medium::blank(bytes as usize));
        Rig { cards, machine, name: name.to_owned(), posting }
    }

    /// Opens the card and makes it known to the library.
    pub fn open_card(&self) -> Result<Arc<Card>, CardError> {
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let options = CardOptions { posting: self.posting, firmware, ..CardOptions::default() };
        let card = Arc::new(Card::open(Arc::new(self.machine.function()), options)?);
        cards::register(&self.name, Arc::clone(&card));
        Ok(card)
    }

    /// Where the pool lies.
    pub fn location(&self) -> String {
        format!("card:{}/job", self.name)
    }

    /// Creates the pool.
    pub fn create_pool(&self, options: &Options, bytes: u64) -> Result<Pool, nearpm::Error> {
        options.create(&self.location(), bytes)
    }

    /// Opens the pool, which recovers it.
    pub fn open_pool(&self, options: &Options) -> Result<Pool, nearpm::Error> {
        options.open(&self.location())
    }

    /// Simulated time since the machine was made, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.machine.now_ps() / 1000
    }

    /// Lets the card show what happens inside it, for [`CutRecord::since`].
    pub fn watch_card(&self) {
        self.machine.watch_card(true);
    }

    /// Cuts the power: at once, or when told. The save has energy for `save_cycles`.
    pub fn cut(&self, cut: Option<Cut>, save_cycles: u64, seed: u64) {
        self.machine.set_save_cycles(save_cycles);
        match cut {
            None => self.machine.cut_now(seed),
            Some(cut) => self.machine.arm_cut(cut, seed),
        }
    }

    /// Cancels a cut that has not come.
    pub fn disarm(&self) {
        self.machine.disarm_cut();
    }

    /// Whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.machine.is_powered()
    }

    /// The last power cut, while the power is off, and what it left in the save area.
    pub fn last_cut(&self) -> Option<(CutRecord, Saved)> {
        self.machine.last_cut().zip(self.machine.look_at_medium(Saved::read))
    }

    /// Lines in the host's caches that were stored to and not written back, and lost with the last
    /// power cut.
    pub fn lost_lines(&self) -> usize {
        self.machine.dirty_lines()
    }

    /// Brings the power back. What the process knew of the card is gone with the cut.
    pub fn power_up(&self) {
        cards::unregister(&self.name);
        self.machine.power_up(&*self.cards);
    }

    /// What the card has counted since its power-up.
    pub fn counters(&self, card: &Card) -> CardCounters {
        let read = |register| u64::from(card.registers().read(register));
        CardCounters { commands: read(reg::COMMANDS_ACCEPTED), held: read(reg::COMMANDS_HELD) + read(reg::HOST_HELD) }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        cards::unregister(&self.name);
    }
}
