//! The pools whose operations are counted: direct ones and those with mechanisms, in the
//! processor's memory and on a card.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::{MappedMemory, Memory, Survives};
use nearpm::{Engine, Error, Mechanism, Options, Pool, Statistics, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};

use crate::operations::{self, Operation};

/// Bytes of a pool.
const BYTES: u64 = 4 << 20;
const LINE: u64 = 64;

/// A kind of pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A direct pool in memory.
    Direct(Mode),
    /// A direct pool on a card.
    DirectOnCard,
    /// A direct pool whose commits a mechanism brings home, in memory, or on a card by its
    /// commands.
    DirectBy(Mechanism, Engine),
    /// A pool with a mechanism, in memory.
    Cpu(Mechanism),
    /// A pool with a mechanism whose copies a card makes.
    Card(Mechanism),
    /// A pool with a mechanism, whose transactions are open beside each other, in memory, or on a
    /// card by its commands.
    Concurrent(Mechanism, Engine),
}

pub fn all() -> Vec<Kind> {
    let direct = [Kind::Direct(Mode::WorkingCopy), Kind::Direct(Mode::InPlace), Kind::DirectOnCard];
    let mechanisms = Mechanism::ALL.into_iter();
    let by = mechanisms.clone().flat_map(|by| [Kind::DirectBy(by, Engine::Cpu), Kind::DirectBy(by, Engine::Card)]);
    direct
        .into_iter()
        .chain(by)
        .chain(mechanisms.clone().flat_map(|mechanism| [Kind::Cpu(mechanism), Kind::Card(mechanism)]))
        .chain(mechanisms.flat_map(|of| [Kind::Concurrent(of, Engine::Cpu), Kind::Concurrent(of, Engine::Card)]))
        .collect()
}

impl Kind {
    pub fn name(self) -> String {
        match self {
            Kind::Direct(mode) => mode.name().to_owned(),
            Kind::DirectOnCard => "working-copy-card".to_owned(),
            Kind::DirectBy(mechanism, Engine::Card) => format!("working-copy-{}-card", mechanism.name()),
            Kind::DirectBy(mechanism, _) => format!("working-copy-{}-cpu", mechanism.name()),
            Kind::Cpu(mechanism) => format!("{}-cpu", mechanism.name()),
            Kind::Card(mechanism) => format!("{}-card", mechanism.name()),
            Kind::Concurrent(mechanism, Engine::Card) => format!("concurrent-{}-card", mechanism.name()),
            Kind::Concurrent(mechanism, _) => format!("concurrent-{}-cpu", mechanism.name()),
        }
    }

    /// Whether nothing but the library and the operation is executed.
    pub fn is_in_memory(self) -> bool {
        matches!(
            self,
            Kind::Direct(_) | Kind::DirectBy(_, Engine::Cpu) | Kind::Cpu(_) | Kind::Concurrent(_, Engine::Cpu)
        )
    }

    /// Whether its instructions are held by a table.
    pub fn has_instructions(self) -> bool {
        self.is_in_memory() && !matches!(self, Kind::Concurrent(..))
    }
}

/// What was asked of a memory, or of a card.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    fences: u64,
    lines: u64,
    commands: u64,
    logged: u64,
}

impl Cost {
    pub const NAMES: [&str; 4] = ["fences", "lines", "commands", "bytes logged"];

    pub fn numbers(&self) -> Vec<u64> {
        vec![self.fences, self.lines, self.commands, self.logged]
    }

    pub fn since(&self, earlier: &Cost) -> Cost {
        Cost {
            fences: self.fences - earlier.fences,
            lines: self.lines - earlier.lines,
            commands: self.commands - earlier.commands,
            logged: self.logged - earlier.logged,
        }
    }
}

/// What memories count.
#[derive(Default)]
struct Counts {
    fences: AtomicU64,
    lines: AtomicU64,
}

/// Memory that counts what it is asked for. Nothing is written back: it is the processor's own.
struct Counted {
    memory: MappedMemory,
    counts: Arc<Counts>,
}

impl Memory for Counted {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.memory.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        let lines = (offset + bytes).div_ceil(LINE) - offset / LINE;
        self.counts.lines.fetch_add(lines, Ordering::Relaxed);
    }
    fn fence(&self) -> Result<(), Error> {
        self.counts.fences.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn invalidate(&self, _offset: u64, _bytes: u64) {}
    fn address(&self) -> Option<*mut u8> {
        self.memory.address()
    }
}

enum Held {
    Mechanism(Box<Pool>),
    Direct(Box<DirectPool>),
}

/// An open pool.
pub struct Opened {
    held: Held,
    /// Of a pool in memory.
    counts: Option<Arc<Counts>>,
    /// Of a pool on a card.
    _card: Option<cards::Registered>,
}

fn memory(counts: Arc<Counts>) -> Box<dyn Memory> {
    let file = tempfile::NamedTempFile::new().expect("a file can be made");
    file.as_file().set_len(BYTES).expect("there is room");
    let open = file.reopen().expect("it is there");
    let memory = MappedMemory::map(open, file.path(), Survives::ProcessCrash).expect("it can be mapped");
    Box::new(Counted { memory, counts })
}

fn card() -> cards::Registered {
    let options = MockOptions { pm_bytes: 8 << 20, evict_one_in: 0, ..MockOptions::default() };
    let card = Card::open(Arc::new(MockCard::new(options)), CardOptions::default()).expect("a mock is a card");
    cards::Registered::new(Arc::new(card))
}

impl Opened {
    pub fn create(kind: Kind) -> Opened {
        let direct = |mode| Options::new().mode(mode).id(5);
        let mechanism = |mechanism, engine| {
            Options::new().mechanism(mechanism).engine(engine).epoch_ops(64).ring_bytes(512 << 10).lanes(1).id(5)
        };
        let counts = kind.is_in_memory().then(Arc::<Counts>::default);
        let card = (!kind.is_in_memory()).then(card);
        let location = card.as_ref().map(|card| card.pool("pool")).unwrap_or_default();
        let memory = || memory(counts.clone().expect("it is in memory"));
        let held = match kind {
            Kind::Direct(mode) => {
                DirectPool::create_in(memory(), &direct(mode)).map(|pool| Held::Direct(Box::new(pool)))
            }
            Kind::DirectBy(of, engine) => {
                let options = direct(Mode::WorkingCopy).mechanism(of).engine(engine);
                let pool = if kind.is_in_memory() {
                    DirectPool::create_in(memory(), &options)
                } else {
                    DirectPool::create(&location, BYTES, &options)
                };
                pool.map(|pool| Held::Direct(Box::new(pool)))
            }
            Kind::DirectOnCard => DirectPool::create(&location, BYTES, &direct(Mode::WorkingCopy))
                .map(|pool| Held::Direct(Box::new(pool))),
            Kind::Cpu(of) => mechanism(of, Engine::Cpu).create_in(memory()).map(|pool| Held::Mechanism(Box::new(pool))),
            Kind::Card(of) => {
                mechanism(of, Engine::Card).create(&location, BYTES).map(|pool| Held::Mechanism(Box::new(pool)))
            }
            Kind::Concurrent(of, engine) => {
                let options = mechanism(of, engine).concurrent(true);
                let pool =
                    if kind.is_in_memory() { options.create_in(memory()) } else { options.create(&location, BYTES) };
                pool.map(|pool| Held::Mechanism(Box::new(pool)))
            }
        };
        let held = held.expect("the pool can be made");
        let prepared = match &held {
            Held::Mechanism(pool) => pool.tx(|tx| operations::prepare(&mut tx.typed())),
            Held::Direct(pool) => pool.tx(|tx| operations::prepare(tx)),
        };
        prepared.expect("it has room");
        Opened { held, counts, _card: card }
    }

    pub fn run(&self, operation: Operation, number: u64) {
        let done = match &self.held {
            Held::Mechanism(pool) => pool.tx(|tx| operations::operate(&mut tx.typed(), operation, number)),
            Held::Direct(pool) => pool.tx(|tx| operations::operate(tx, operation, number)),
        };
        match (operation, done) {
            (Operation::Abort, Err(Error::Aborted(_))) => {}
            (_, done) => done.expect("it is done"),
        }
    }

    pub fn check(&self, operation: Operation, times: u64) {
        let checked = match &self.held {
            Held::Mechanism(pool) => pool.tx(|tx| operations::check(&tx.typed(), operation, times)),
            Held::Direct(pool) => pool.read(|from| operations::check(from, operation, times)),
        };
        checked.expect("it can be read");
    }

    fn statistics(&self) -> Statistics {
        match &self.held {
            Held::Mechanism(pool) => pool.statistics(),
            Held::Direct(pool) => pool.statistics(),
        }
    }

    /// What was spent since the pool was made: as its memory counts, or else as the library does.
    pub fn cost(&self) -> Cost {
        let statistics = self.statistics();
        let Statistics { commands, bytes_logged: logged, .. } = statistics;
        let (fences, lines) = match &self.counts {
            Some(counts) => (counts.fences.load(Ordering::Relaxed), counts.lines.load(Ordering::Relaxed)),
            None => (statistics.fences, statistics.lines_written_back),
        };
        Cost { fences, lines, commands, logged }
    }

    /// Counts a fence that no operation has asked for.
    pub fn fence(&self) {
        self.counts.as_ref().expect("it is in memory").fences.fetch_add(1, Ordering::Relaxed);
    }
}
