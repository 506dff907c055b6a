//! A simulated computer with a card, and the pool of a job on it.

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nearpm::{Engine, Mechanism, Pool, PoolOptions, cards};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::{Cut, Parameters};
use nearpm_sim::machine::{Machine, Power};
use nearpm_sim::model::{self, ModelCard};

use crate::hardware::rtl_cards;

/// Cards that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CardKind {
    /// The transaction-level model
    Model,
    /// The Verilated RTL
    Rtl,
}

impl CardKind {
    /// Name, for people.
    pub fn name(self) -> &'static str {
        match self {
            CardKind::Model => "transaction-level card",
            CardKind::Rtl => "Verilated RTL",
        }
    }

    /// What makes such cards.
    fn power(self) -> Result<Box<dyn Power>> {
        Ok(match self {
            CardKind::Model => {
                Box::new(|medium| Box::new(ModelCard::new(model::Config::default(), medium)) as Box<dyn CardCore>)
            }
            CardKind::Rtl => Box::new(rtl_cards(CARD_MHZ)?),
        })
    }
}

/// Clock of the simulated cards, in MHz.
const CARD_MHZ: u64 = 300;
/// Name of the card in the process.
const CARD: &str = "sim";
/// Where the pool lies.
const POOL: &str = "card:sim/job";
/// Pools begin at multiples of this, and so do media end.
const GRAIN: u64 = 2 << 20;
/// Bytes of the log ring: the pages of an epoch fit.
const RING_BYTES: u32 = 4 << 20;

/// Bytes of a pool for so many entries: key, value, their share of nodes and of the allocator, shadow pages, and the ring.
pub fn pool_bytes(operations: usize) -> u64 {
    (3 * RING_BYTES as u64 + 320 * operations as u64).next_multiple_of(GRAIN)
}

/// Options of a job's pool. Epochs are cut by the job.
pub fn pool_options(mechanism: Mechanism, engine: Engine) -> PoolOptions {
    PoolOptions::new().mechanism(mechanism).engine(engine).lanes(1).ring_bytes(RING_BYTES).epoch_ops(0).id(1)
}

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
    power: Box<dyn Power>,
    machine: Machine,
}

impl Rig {
    /// A computer with its power on and a blank card of a size that holds a pool of `pool_bytes`.
    pub fn new(kind: CardKind, pool_bytes: u64) -> Result<Rig> {
        let bytes = (POOLS_BASE + pool_bytes).next_multiple_of(GRAIN) + GRAIN;
        let power = kind.power()?;
        let machine = Machine::new(Parameters::default(), &*power, Medium::blank(bytes as usize));
        Ok(Rig { power, machine })
    }

    /// Opens the card and makes it known to the library.
    pub fn open_card(&self) -> Result<Arc<Card>> {
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let card = Card::open(Arc::new(self.machine.function()), CardOptions { firmware, ..CardOptions::default() })
            .context("the simulated card does not open")?;
        let card = Arc::new(card);
        cards::register(CARD, Arc::clone(&card));
        Ok(card)
    }

    /// Creates the pool.
    pub fn create_pool(&self, options: &PoolOptions, bytes: u64) -> Result<Pool> {
        options.create(POOL, bytes).context("the pool cannot be created")
    }

    /// Opens the pool, which recovers it.
    pub fn open_pool(&self, options: &PoolOptions) -> Result<Pool> {
        options.open(POOL).context("the pool cannot be opened")
    }

    /// Simulated time since the machine was made, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.machine.now_ps() / 1000
    }

    /// Cuts the power: at once, or when told.
    pub fn cut(&self, cut: Option<Cut>, seed: u64) {
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

    /// Brings the power back. What the process knew of the card is gone with the cut.
    pub fn power_up(&self) {
        cards::unregister(CARD);
        self.machine.power_up(&*self.power);
    }

    /// What the card has counted since its power-up.
    pub fn counters(&self, card: &Card) -> CardCounters {
        let read = |register| u64::from(card.registers().read(register));
        CardCounters { commands: read(reg::COMMANDS_ACCEPTED), held: read(reg::COMMANDS_HELD) + read(reg::HOST_HELD) }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        cards::unregister(CARD);
    }
}
