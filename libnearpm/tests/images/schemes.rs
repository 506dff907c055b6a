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
    /// A [`DirectPool`] by packed records (in place: undo records).
    Direct(Mode),
    /// A [`DirectPool`] on a working copy whose commits a mechanism brings home, by the processor
    /// or by the card.
    Commands(Mechanism, Engine),
}

/// Where a pool lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The processor's memory.
    Memory,
    /// The same, made durable as a file is: by one call for all of it, so that long values are
    /// written once and logs have segments of the second version.
    File,
    Card,
    TwoCards,
}

/// How a pool is used, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    pub way: Way,
    pub place: Place,
    /// Since which of the commits that left images there are some of it.
    pub since: usize,
}

/// All of them.
pub fn all() -> Vec<Scheme> {
    use Place::{Card, File, Memory, TwoCards};
    let by = |way: fn(Mechanism, Engine) -> Way, engine, place, since| {
        Mechanism::ALL.map(move |mechanism| Scheme { way: way(mechanism, engine), place, since })
    };
    let direct = |mode, place, since| Scheme { way: Way::Direct(mode), place, since };
    let mut all = Vec::new();
    all.extend(by(Way::Mechanism, Engine::Cpu, Memory, 0));
    all.extend(by(Way::Mechanism, Engine::Card, Card, 0));
    all.extend(by(Way::Mechanism, Engine::Card, TwoCards, 0));
    all.extend(
        [(Mode::WorkingCopy, Memory), (Mode::InPlace, Memory), (Mode::WorkingCopy, Card)].map(|(m, p)| direct(m, p, 0)),
    );
    all.extend([Mode::WorkingCopy, Mode::InPlace].map(|mode| direct(mode, File, 3)));
    all.extend(by(Way::Commands, Engine::Cpu, Memory, 3));
    all.extend(by(Way::Commands, Engine::Card, Card, 3));
    all
}

impl Scheme {
    /// Name, fit for a file.
    pub fn name(&self) -> String {
        let way = match self.way {
            Way::Mechanism(mechanism, _) => mechanism.name(),
            Way::Direct(mode) => mode.name(),
            Way::Commands(mechanism, _) => &format!("working-copy-{}", mechanism.name()),
        };
        let place = match self.place {
            Place::Memory => "memory",
            Place::File => "file",
            Place::Card => "card",
            Place::TwoCards => "two-cards",
        };
        format!("{way}-{place}")
    }

    /// Whether it lies in no card.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory | Place::File)
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
        let media = match scheme.place {
            Place::Memory | Place::File => vec![vec![0; BYTES as usize]],
            Place::Card => vec![vec![0; 2 << 20]],
            Place::TwoCards => vec![vec![0; 4 << 20]; 2],
        };
        Machine::with(media, scheme)
    }

    /// One that powers up with the media of a scheme.
    pub fn with(media: Vec<Vec<u8>>, scheme: &Scheme) -> Machine {
        if scheme.is_in_memory() {
            let image = media.into_iter().next().expect("there is a memory");
            let memory = TestMemory::from_image(image).evict(7, 11);
            return Machine::Memory(if scheme.place == Place::File { memory.one_domain() } else { memory });
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

/// Options of a way: with a mechanism small logs, and epochs of a few transactions.
fn options(way: Way) -> Options {
    let by = |mechanism, engine| {
        let options = Options::new().mechanism(mechanism).engine(engine);
        options.lanes(2).ring_bytes(64 << 10).spare_pages(24).epoch_ops(3)
    };
    let options = match way {
        Way::Mechanism(mechanism, engine) => by(mechanism, engine),
        Way::Direct(mode) => Options::new().mode(mode),
        Way::Commands(mechanism, engine) => by(mechanism, engine).mode(Mode::WorkingCopy),
    };
    options.id(ID)
}

/// Makes a pool that fills the machine's memory, or one on its cards.
pub fn create(way: Way, machine: &Machine) -> Result<Opened, Error> {
    let bytes_on = |names: &[cards::Registered]| if names.len() > 1 { STRIPED_BYTES } else { BYTES };
    let options = options(way);
    match (way, machine) {
        (Way::Mechanism(..), Machine::Memory(memory)) => {
            options.create_in(Box::new(memory.clone())).map(Opened::mechanism)
        }
        (Way::Mechanism(..), Machine::Cards { names, .. }) => {
            options.create(&Machine::location(names), bytes_on(names)).map(Opened::mechanism)
        }
        (_, Machine::Memory(memory)) => DirectPool::create_in(Box::new(memory.clone()), &options).map(Opened::direct),
        (_, Machine::Cards { names, .. }) => {
            DirectPool::create(&Machine::location(names), bytes_on(names), &options).map(Opened::direct)
        }
    }
}

/// Opens the pool that a machine has.
pub fn open(way: Way, machine: &Machine) -> Result<Opened, Error> {
    let options = options(way);
    match (way, machine) {
        (Way::Mechanism(..), Machine::Memory(memory)) => {
            options.open_in(Box::new(memory.clone())).map(Opened::mechanism)
        }
        (Way::Mechanism(..), Machine::Cards { names, .. }) => {
            options.open(&Machine::location(names)).map(Opened::mechanism)
        }
        (_, Machine::Memory(memory)) => DirectPool::open_in(Box::new(memory.clone()), &options).map(Opened::direct),
        (_, Machine::Cards { names, .. }) => DirectPool::open(&Machine::location(names), &options).map(Opened::direct),
    }
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
