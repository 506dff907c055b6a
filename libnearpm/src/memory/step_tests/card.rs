//! The link to a card is not coherent (contract, C9): runs in front of a cache that evicts and
//! loads ahead of time as it likes.
//!
//! The card and the cache are the driver's mock: a line is evicted, and one that was touched or
//! dropped lately is fetched, at any access; what is written back travels at any moment until the
//! fence; commands are carried out late and in any order that does not conflict.

mod dense;
mod direct;
mod directory;
mod lines;
mod primitives;
mod recoveries;
mod striped;

use std::sync::Arc;

use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions, Posting};
use nearpm_interface::geometry::POOLS_BASE;

use super::common::{Model, Operation, apply, check_leaks, contents, create, operations};
use super::object::Object;
use super::{same, say, thorough};
use crate::{Durability, Engine, Error, Mechanism, Options, Pool, cards};

const POOL_BYTES: u64 = 512 * 1024;

/// A card and its name.
struct Registered {
    name: cards::Registered,
    mock: MockCard,
}

impl Registered {
    fn new(mock: MockCard, seed: u64) -> Result<Registered, String> {
        let posting = [Posting::Line, Posting::WriteCombining, Posting::Uncached][seed as usize % 3];
        let card = Card::open(Arc::new(mock.clone()), CardOptions { posting, ..CardOptions::default() });
        Ok(Registered { name: cards::Registered::new(Arc::new(card.map_err(|e| e.to_string())?)), mock })
    }

    fn pool(&self) -> String {
        self.name.pool("p")
    }
}

/// The pool of a process that has died: the lines that it has left are in the cache, and nothing
/// that it would still do reaches the cards.
struct Died<P> {
    cards: Vec<MockCard>,
    _pool: P,
}

/// Keeps the pool of a process that dies now; to be kept up to the end of a run.
fn died<P>(pool: P, cards: &[&Registered]) -> Died<P> {
    Died { cards: cards.iter().map(|card| card.mock.clone()).collect(), _pool: pool }
}

impl<P> Drop for Died<P> {
    fn drop(&mut self) {
        self.cards.iter().for_each(|card| drop(card.power_cut()));
    }
}

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub enum Scenario {
    /// Operations of a mechanism, and power cuts.
    Cuts(Mechanism),
    /// The same in a pool that is new, in the place of another one.
    FirstUse(Mechanism),
    /// Power cuts while log rings are made and grow, over entries of another pool.
    Rings,
    /// What a transaction has stored to is free when it is taken back; the card writes there next,
    /// for a process with this mechanism.
    TakenBack(Mechanism),
    /// Processes that die on one boot, each followed by one with another mechanism.
    Processes,
    /// Transactions and stores of the program on the same lines, which undo and redo logging allow.
    Mixed(Mechanism),
    /// The primitives of the paper.
    Primitives,
    /// Power cuts while pools are made and removed.
    Directory,
    /// A pool in the place of one that a process has left, which died.
    Replaced(Mechanism),
    /// Copies of a pool that a process has left, which died, and power cuts.
    Copies(Mechanism),
    /// Pools over several cards, of which one or all lose power.
    Striped(Mechanism),
    /// Power cuts while a pool over several cards is made, in the place of another one.
    StripedFirstUse(Mechanism),
    /// Power cuts at the steps of a recovery, and a little work behind it.
    Recoveries(Mechanism),
    /// Processes on one boot that close the pool in order.
    Reopened,
    /// A pool that a process reaches around the cache.
    Uncached,
    /// Power cuts at one access in a few while a pool over several cards is made.
    StripedCreation,
    /// A pool over several cards that processes reach around the cache, too.
    StripedUncached,
    /// Redo logs that use the slots of those before them again.
    SlotsUsedAgain,
    /// Commits that are made durable later.
    Persisted(Mechanism),
    /// Power cuts at each access of the recovery of a long redo log.
    LongLog,
    /// Power cuts at each access of primitives.
    PrimitivesCut,
    /// Direct pools, and power cuts.
    Direct(Durability),
    /// Direct pools whose commits a mechanism brings home, and power cuts.
    DirectBy(Mechanism, Durability),
}

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).engine(Engine::Card).lanes(2).ring_bytes(64 * 1024).epoch_ops(5).id(9)
}

fn mock(seed: u64) -> MockOptions {
    MockOptions {
        pm_bytes: 2 << 20,
        seed,
        host_ordered: seed % 4 != 3,
        evict_one_in: [5, 2, 9][seed as usize % 3],
        ..MockOptions::default()
    }
}

/// A memory without pools, in whose place something else was before.
fn used_memory(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0xa5; bytes];
    memory[..POOLS_BASE as usize].fill(0);
    memory
}

/// The state after the last operation.
fn last<T>(mut states: Vec<T>) -> T {
    states.pop().expect("the first state is one")
}

/// Does operations, looking at everything now and then, until the card has gone; gives the states
/// that may survive.
fn work(pool: &Pool, operations: &[Operation], mut model: Model) -> Result<Vec<Model>, String> {
    let mut states = vec![model.clone()];
    for (number, operation) in operations.iter().enumerate() {
        let before = model.clone();
        let done = apply(pool, &mut model, operation);
        operation.done_to(&mut model);
        if done.is_err() {
            states.push(model);
            return Ok(states);
        }
        let statistics = pool.statistics();
        if statistics.acknowledged == statistics.transactions {
            states.clear();
        } else if states.is_empty() {
            states.push(before);
        }
        states.push(model.clone());
        if number % 5 == 4
            && let Ok(found) = contents(pool)
        {
            same(found, model.clone(), "while it works")?;
        }
    }
    Ok(states)
}

/// Looks at what a card holds that powers up with this memory; openings of pools are cut, too,
/// until a look comes through.
fn look<T>(seed: u64, mut medium: Vec<u8>, look: impl Fn(&Registered) -> Result<T, Error>) -> Result<T, String> {
    for again in 1..100 {
        let settings =
            MockOptions { cut_after: Some(37 * again * (again + 1) / 2), pm_bytes: medium.len(), ..mock(seed) };
        let card = MockCard::with_medium(settings, medium);
        let seen = Registered::new(card.clone(), seed).map(|registered| look(&registered));
        let gone = card.is_gone();
        medium = card.power_cut();
        match seen {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) if !gone => return Err(format!("the card is there: {error}")),
            _ => {}
        }
    }
    Err("no recovery comes through".into())
}

/// Recovers on a card that powers up with this memory.
fn recovers(mechanism: Mechanism, seed: u64, medium: Vec<u8>, states: &[Model]) -> Result<(), String> {
    recovers_named(mechanism, seed, medium, "p", states)
}

/// The same of the pool with this name.
fn recovers_named(
    mechanism: Mechanism,
    seed: u64,
    medium: Vec<u8>,
    name: &str,
    states: &[Model],
) -> Result<(), String> {
    let found = look(seed, medium, |card| {
        let pool = options(mechanism).open(&card.name.pool(name))?;
        let found = contents(&pool)?;
        check_leaks(&pool, &found)?;
        Ok(found)
    })?;
    if states.contains(&found) { Ok(()) } else { Err(format!("none of {} states", states.len())) }
}

/// Half of the commits that runs are cut in wait for durability. Now and then the processor does
/// the work of the card.
fn options_of(mechanism: Mechanism, seed: u64) -> Options {
    let durability = if seed.is_multiple_of(2) { Durability::Durable } else { Durability::Asynchronous };
    let engine = if seed % 5 == 4 { Engine::Cpu } else { Engine::Card };
    options(mechanism).durability(durability).engine(engine)
}

/// Cuts on the way through operations in a pool that is ready for them.
fn cuts(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let pool = options_of(mechanism, seed).create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    drop(pool);
    let moment = |cut, span| (seed.wrapping_mul(7919) + cut * span / 5) % span;
    cut_work(mechanism, seed, card.mock.power_cut(), |_| Ok(()), 5, moment)
}

/// Cuts in the first use of a pool, where another pool of the same identifier has left its entries.
fn first_use(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let options = options_of(mechanism, seed);
    let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).map_err(say)?;
    work(&pool, &operations(seed + 5000, 30, 300), Model::new())?;
    drop(pool);
    crate::remove(&card.pool()).map_err(say)?;
    drop(options.create(&card.pool(), POOL_BYTES).map_err(say)?);
    // The first accesses, and some later ones.
    let moment = |cut, span| (seed * 17 + cut * 41) % if cut % 5 < 4 { span / 8 } else { span };
    cut_work(mechanism, seed, card.mock.power_cut(), create, if thorough() { 10 } else { 5 }, moment)
}

/// Operations on a card with this memory, `begin` in front of them: whole, and then cut at so many
/// moments, each a number of accesses of so many.
fn cut_work(
    mechanism: Mechanism,
    seed: u64,
    image: Vec<u8>,
    begin: fn(&Pool) -> Result<(), Error>,
    cuts: u64,
    moment: impl Fn(u64, u64) -> u64,
) -> Result<(), String> {
    let options = options_of(mechanism, seed);
    let script = operations(seed, 20, 300);
    let dry = Registered::new(MockCard::with_medium(mock(seed), image.clone()), seed)?;
    let pool = options.open(&dry.pool()).map_err(say)?;
    let opened = dry.mock.accesses();
    begin(&pool).map_err(say)?;
    let states = work(&pool, &script, Model::new())?;
    let span = dry.mock.accesses() - opened;
    pool.close().map_err(say)?;
    recovers(mechanism, seed, dry.mock.power_cut(), &states[states.len() - 1..])?;
    for cut in 0..cuts {
        let cut_after = opened + moment(cut, span);
        let card = MockCard::with_medium(MockOptions { cut_after: Some(cut_after), ..mock(seed) }, image.clone());
        let card = Registered::new(card, seed)?;
        let Ok(pool) = options.open(&card.pool()) else { continue };
        let states = match begin(&pool) {
            Ok(()) => work(&pool, &script, Model::new())?,
            Err(_) => vec![Model::new()],
        };
        drop(pool);
        recovers(mechanism, seed, card.mock.power_cut(), &states)?;
    }
    Ok(())
}

/// Cuts while the ring of a thread is made and that of transactions grows. Both lie where another
/// pool of the same identifier has left whole entries, which would put old bytes back: they have
/// the places and the lane of new ones, and identifiers above those of the new pool.
fn rings(seed: u64) -> Result<(), String> {
    const OBJECT_BYTES: usize = 48 * 1024;
    /// Accesses between two cuts. Other seeds cut in between.
    const STRIDE: usize = 5;
    let options = options(Mechanism::Undo);
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let former = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    let object = Object::new(&former, OBJECT_BYTES, 0xee)?;
    object.leave_entries(&former)?;
    former.close().and_then(|()| crate::remove(&card.pool())).map_err(say)?;
    let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    same(Object::new(&pool, OBJECT_BYTES, 0x11)?.offset, object.offset, "the place of the object")?;
    pool.close().map_err(say)?;
    let image = card.mock.power_cut();

    let make_and_grow = |pool: &Pool| {
        pool.undolog_create(0, object.offset, 64)?;
        pool.reserve_log(POOL_BYTES)
    };
    let dry = Registered::new(MockCard::with_medium(mock(seed), image.clone()), seed)?;
    let pool = options.open(&dry.pool()).map_err(say)?;
    let opened = dry.mock.accesses();
    make_and_grow(&pool).map_err(say)?;
    let moments = opened..dry.mock.accesses() + STRIDE as u64;
    for cut_after in moments.skip(seed as usize % STRIDE).step_by(STRIDE) {
        let cut = MockCard::with_medium(MockOptions { cut_after: Some(cut_after), ..mock(seed) }, image.clone());
        let cut = Registered::new(cut, seed)?;
        let pool = options.open(&cut.pool()).map_err(say)?;
        // It fails where the card has gone.
        let _ = make_and_grow(&pool);
        drop(pool);
        let after = Registered::new(MockCard::with_medium(mock(seed), cut.mock.power_cut()), seed)?;
        let pool = options.open(&after.pool()).map_err(say)?;
        same(object.value(&pool)?, 0x11, "what nobody has changed")?;
    }
    Ok(())
}

impl super::Scenario for Scenario {
    const NOT_REQUIRED: &'static str = "libnearpm/src/memory/step_tests/card/not_required.txt";
    const COHERENT: bool = false;

    fn all() -> Vec<Scenario> {
        vec![
            Scenario::Primitives,
            Scenario::Processes,
            Scenario::Mixed(Mechanism::Undo),
            Scenario::Mixed(Mechanism::Redo),
            Scenario::Cuts(Mechanism::Undo),
            Scenario::Cuts(Mechanism::Redo),
            Scenario::Cuts(Mechanism::Checkpoint),
            Scenario::Cuts(Mechanism::Shadow),
            Scenario::FirstUse(Mechanism::Undo),
            Scenario::FirstUse(Mechanism::Redo),
            Scenario::FirstUse(Mechanism::Checkpoint),
            Scenario::Rings,
            Scenario::TakenBack(Mechanism::Redo),
            Scenario::TakenBack(Mechanism::Shadow),
            Scenario::Directory,
            Scenario::Replaced(Mechanism::Redo),
            Scenario::Replaced(Mechanism::Shadow),
            Scenario::Copies(Mechanism::Undo),
            Scenario::Copies(Mechanism::Shadow),
            Scenario::Striped(Mechanism::Undo),
            Scenario::Striped(Mechanism::Redo),
            Scenario::Striped(Mechanism::Checkpoint),
            Scenario::Striped(Mechanism::Shadow),
            Scenario::StripedFirstUse(Mechanism::Undo),
            Scenario::StripedFirstUse(Mechanism::Shadow),
            Scenario::Recoveries(Mechanism::Undo),
            Scenario::Recoveries(Mechanism::Redo),
            Scenario::Recoveries(Mechanism::Checkpoint),
            Scenario::Recoveries(Mechanism::Shadow),
            Scenario::Reopened,
            Scenario::Uncached,
            Scenario::StripedCreation,
            Scenario::StripedUncached,
            Scenario::SlotsUsedAgain,
            Scenario::Persisted(Mechanism::Undo),
            Scenario::Persisted(Mechanism::Redo),
            Scenario::Persisted(Mechanism::Checkpoint),
            Scenario::Persisted(Mechanism::Shadow),
            Scenario::LongLog,
            Scenario::PrimitivesCut,
            Scenario::Direct(Durability::Durable),
            Scenario::Direct(Durability::Asynchronous),
            Scenario::DirectBy(Mechanism::Undo, Durability::Durable),
            Scenario::DirectBy(Mechanism::Undo, Durability::Asynchronous),
            Scenario::DirectBy(Mechanism::Redo, Durability::Durable),
            Scenario::DirectBy(Mechanism::Redo, Durability::Asynchronous),
            Scenario::DirectBy(Mechanism::Checkpoint, Durability::Durable),
            Scenario::DirectBy(Mechanism::Checkpoint, Durability::Asynchronous),
        ]
    }

    fn seeds(self) -> u64 {
        let (each_time, thorough_form) = match self {
            Scenario::TakenBack(_)
            | Scenario::Processes
            | Scenario::Mixed(_)
            | Scenario::Primitives
            | Scenario::Replaced(_)
            | Scenario::Reopened
            | Scenario::Uncached => (6, 48),
            Scenario::Cuts(_)
            | Scenario::FirstUse(_)
            | Scenario::Rings
            | Scenario::Recoveries(_)
            | Scenario::Direct(_)
            | Scenario::DirectBy(..) => (4, 32),
            Scenario::StripedCreation => (1, 12),
            Scenario::StripedUncached => (2, 6),
            // They have many cuts.
            Scenario::SlotsUsedAgain | Scenario::Persisted(_) | Scenario::LongLog | Scenario::PrimitivesCut => (1, 8),
            // Their memories are large, or their pools many.
            Scenario::Directory | Scenario::Copies(_) | Scenario::Striped(_) | Scenario::StripedFirstUse(_) => (1, 6),
        };
        if thorough() { thorough_form } else { each_time }
    }

    fn run(self, seed: u64) -> Result<(), String> {
        match self {
            Scenario::Cuts(mechanism) => cuts(mechanism, seed),
            Scenario::FirstUse(mechanism) => first_use(mechanism, seed),
            Scenario::Rings => rings(seed),
            Scenario::TakenBack(mechanism) => lines::taken_back(mechanism, seed),
            Scenario::Processes => lines::processes(seed),
            Scenario::Mixed(mechanism) => lines::mixed(mechanism, seed),
            Scenario::Primitives => primitives::primitives(seed),
            Scenario::Directory => directory::directory(seed),
            Scenario::Replaced(mechanism) => directory::replaced(mechanism, seed),
            Scenario::Copies(mechanism) => directory::copies(mechanism, seed),
            Scenario::Striped(mechanism) => striped::cuts(mechanism, seed),
            Scenario::StripedFirstUse(mechanism) => striped::first_use(mechanism, seed),
            Scenario::Recoveries(mechanism) => recoveries::recoveries(mechanism, seed),
            Scenario::Reopened => recoveries::reopened(seed),
            Scenario::Uncached => recoveries::uncached(seed),
            Scenario::StripedCreation => striped::creation(seed),
            Scenario::StripedUncached => striped::uncached(seed),
            Scenario::SlotsUsedAgain => dense::slots_used_again(seed),
            Scenario::Persisted(mechanism) => dense::persisted(mechanism, seed),
            Scenario::LongLog => dense::long_log(seed),
            Scenario::PrimitivesCut => dense::primitives(seed),
            Scenario::Direct(durability) => direct::cuts(durability, None, seed),
            Scenario::DirectBy(mechanism, durability) => direct::cuts(durability, Some(mechanism), seed),
        }
    }
}
