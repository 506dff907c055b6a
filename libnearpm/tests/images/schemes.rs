//! The kinds of pools of which there are images, and the machines that they lie in.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::TestMemory;
use nearpm::{Engine, Error, Mechanism, Options, Pool, Recovery, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};

use crate::contents;

/// Bytes of a pool in the processor's memory, or on one card.
const BYTES: u64 = 512 << 10;
/// Bytes of a pool over two cards: a stripe of each, and something behind it.
const STRIPED_BYTES: u64 = 2 * ((2 << 20) + BYTES);
/// Identifier of all pools.
const ID: u32 = 7;

/// How a pool reaches its medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// A [`Pool`], with the copies made by the processor, or else by the card.
    Mechanism(Mechanism, Engine),
    /// A [`DirectPool`].
    Direct(Mode),
}

/// How a pool is used, and on how many cards; 0 for the processor's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    pub way: Way,
    pub cards: usize,
}

/// All of them.
pub fn all() -> Vec<Scheme> {
    let mechanisms =
        |engine, cards| Mechanism::ALL.map(move |mechanism| Scheme { way: Way::Mechanism(mechanism, engine), cards });
    let direct = |mode, cards| Scheme { way: Way::Direct(mode), cards };
    let direct = [direct(Mode::WorkingCopy, 0), direct(Mode::InPlace, 0), direct(Mode::WorkingCopy, 1)];
    let on_processor = mechanisms(Engine::Cpu, 0);
    on_processor
        .into_iter()
        .chain(mechanisms(Engine::Card, 1))
        .chain(mechanisms(Engine::Card, 2))
        .chain(direct)
        .collect()
}

impl Scheme {
    /// Name, fit for a file.
    pub fn name(&self) -> String {
        let way = match self.way {
            Way::Mechanism(mechanism, _) => mechanism.name(),
            Way::Direct(mode) => mode.name(),
        };
        format!("{way}-{}", ["memory", "card", "two-cards"][self.cards])
    }

    /// Whether a transaction is durable when it returns.
    pub fn is_durable(&self) -> bool {
        !matches!(self.way, Way::Mechanism(mechanism, _) if mechanism.has_epochs())
    }
}

/// The memory of a machine. What is in it is lost with its power, but for media.
pub enum Machine {
    Memory(TestMemory),
    Cards { mocks: Vec<MockCard>, names: Vec<cards::Registered> },
}

impl Machine {
    /// One for pools of a scheme, with blank media.
    pub fn blank(scheme: &Scheme) -> Machine {
        match scheme.cards {
            0 => Machine::with(vec![vec![0; BYTES as usize]], true),
            1 => Machine::with(vec![vec![0; 2 << 20]], false),
            cards => Machine::with(vec![vec![0; 4 << 20]; cards], false),
        }
    }

    /// One that powers up with media: of the processor's memory, or of cards.
    pub fn with(media: Vec<Vec<u8>>, is_memory: bool) -> Machine {
        if is_memory {
            let image = media.into_iter().next().expect("there is a memory");
            return Machine::Memory(TestMemory::from_image(image).evict(7, 11));
        }
        let supply = Some(Arc::new(AtomicBool::new(true)));
        let mock = |(seed, medium): (usize, Vec<u8>)| {
            let (pm_bytes, seed, supply) = (medium.len(), 3 + seed as u64, supply.clone());
            MockCard::with_medium(MockOptions { pm_bytes, seed, supply, ..MockOptions::default() }, medium)
        };
        let mocks: Vec<MockCard> = media.into_iter().enumerate().map(mock).collect();
        let register = |mock: &MockCard| {
            let card = Card::open(Arc::new(mock.clone()), CardOptions::default()).expect("a mock is a card");
            cards::Registered::new(Arc::new(card))
        };
        let names = mocks.iter().map(register).collect();
        Machine::Cards { mocks, names }
    }

    /// What is left when the power goes.
    pub fn power_cut(&self) -> Vec<Vec<u8>> {
        match self {
            Machine::Memory(memory) => vec![memory.durable()],
            Machine::Cards { mocks, .. } => mocks.iter().map(MockCard::power_cut).collect(),
        }
    }

    /// Where the pool on cards is.
    fn location(names: &[cards::Registered]) -> String {
        let names: Vec<&str> = names.iter().map(cards::Registered::name).collect();
        format!("card:{}/pool", names.join("+"))
    }
}

/// An open pool.
pub enum Opened {
    Mechanism(Box<Pool>),
    Direct(Box<DirectPool>),
}

/// Small logs, and epochs of a few transactions.
fn options(mechanism: Mechanism, engine: Engine) -> Options {
    let options = Options::new().mechanism(mechanism).engine(engine);
    options.lanes(2).ring_bytes(64 << 10).spare_pages(24).epoch_ops(3).id(ID)
}

fn direct_options(mode: Mode) -> Options {
    Options::new().mode(mode).id(ID)
}

/// Makes a pool that fills the machine's memory, or one on its cards.
pub fn create(way: Way, machine: &Machine) -> Result<Opened, Error> {
    let bytes_on = |names: &[cards::Registered]| if names.len() > 1 { STRIPED_BYTES } else { BYTES };
    let opened = match (way, machine) {
        (Way::Mechanism(mechanism, engine), Machine::Memory(memory)) => {
            Opened::mechanism(options(mechanism, engine).create_in(Box::new(memory.clone()))?)
        }
        (Way::Mechanism(mechanism, engine), Machine::Cards { names, .. }) => {
            Opened::mechanism(options(mechanism, engine).create(&Machine::location(names), bytes_on(names))?)
        }
        (Way::Direct(mode), Machine::Memory(memory)) => {
            Opened::direct(DirectPool::create_in(Box::new(memory.clone()), &direct_options(mode))?)
        }
        (Way::Direct(mode), Machine::Cards { names, .. }) => {
            let (location, bytes) = (Machine::location(names), bytes_on(names));
            Opened::direct(DirectPool::create(&location, bytes, &direct_options(mode))?)
        }
    };
    Ok(opened)
}

/// Opens the pool that a machine has.
pub fn open(way: Way, machine: &Machine) -> Result<Opened, Error> {
    let opened = match (way, machine) {
        (Way::Mechanism(mechanism, engine), Machine::Memory(memory)) => {
            Opened::mechanism(options(mechanism, engine).open_in(Box::new(memory.clone()))?)
        }
        (Way::Mechanism(mechanism, engine), Machine::Cards { names, .. }) => {
            Opened::mechanism(options(mechanism, engine).open(&Machine::location(names))?)
        }
        (Way::Direct(mode), Machine::Memory(memory)) => {
            Opened::direct(DirectPool::open_in(Box::new(memory.clone()), &direct_options(mode))?)
        }
        (Way::Direct(mode), Machine::Cards { names, .. }) => {
            Opened::direct(DirectPool::open(&Machine::location(names), &direct_options(mode))?)
        }
    };
    Ok(opened)
}

impl Opened {
    fn mechanism(pool: Pool) -> Opened {
        Opened::Mechanism(Box::new(pool))
    }

    fn direct(pool: DirectPool) -> Opened {
        Opened::Direct(Box::new(pool))
    }

    /// Does transaction `number`.
    pub fn change(&self, number: u64) -> Result<(), Error> {
        match self {
            Opened::Mechanism(pool) => pool.tx(|tx| contents::change(&mut tx.typed(), number)),
            Opened::Direct(pool) => pool.tx(|tx| contents::change(tx, number)),
        }
    }

    /// Everything in it.
    pub fn read(&self) -> Result<String, Error> {
        match self {
            Opened::Mechanism(pool) => pool.tx(|tx| contents::read(&tx.typed())),
            Opened::Direct(pool) => pool.read(|from| contents::read(from)),
        }
    }

    /// Makes durable what was done.
    pub fn persist(&self) -> Result<(), Error> {
        match self {
            Opened::Mechanism(pool) => pool.persist(),
            Opened::Direct(_) => Ok(()),
        }
    }

    /// What its opening had to recover.
    pub fn recovery(&self) -> Recovery {
        match self {
            Opened::Mechanism(pool) => pool.recovery(),
            Opened::Direct(pool) => pool.recovery(),
        }
    }

    /// Closes it.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Opened::Mechanism(pool) => pool.close(),
            Opened::Direct(pool) => pool.close(),
        }
    }
}
