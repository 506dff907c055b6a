//! Runs on a card that go wrong when a step is missing.

use std::sync::Arc;

use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions, Posting};

use super::common::{Model, Operation, apply, check_leaks, contents, create, operations};
use super::thorough;
use crate::{Durability, Engine, Error, Mechanism, Pool, PoolOptions, Tx, cards};

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

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub enum Scenario {
    /// Operations of a mechanism, and power cuts.
    Cuts(Mechanism),
    /// The same in a pool that is new, in the place of another one.
    FirstUse(Mechanism),
    /// Power cuts while log rings are made and grow, over entries of another pool.
    Rings,
    /// What a transaction has stored to is free when it is taken back; the card writes there next, for a process with this mechanism.
    TakenBack(Mechanism),
    /// Processes that die on one boot, each followed by one with another mechanism.
    Processes,
    /// Transactions and stores of the program on the same lines, which undo and redo logging allow.
    Mixed(Mechanism),
    /// The primitives of the paper.
    Primitives,
}

fn say(error: Error) -> String {
    error.to_string()
}

fn options(mechanism: Mechanism) -> PoolOptions {
    PoolOptions::new().mechanism(mechanism).engine(Engine::Card).lanes(2).ring_bytes(64 * 1024).epoch_ops(5).id(9)
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

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} instead of {expected:?}")) }
}

/// Does operations, looking at everything now and then, until the card has gone; gives the states that may survive.
fn work(pool: &Pool, operations: &[Operation], mut model: Model) -> Result<Vec<Model>, String> {
    let mut states = vec![model.clone()];
    for (number, operation) in operations.iter().enumerate() {
        let before = model.clone();
        let done = apply(pool, &mut model, operation);
        match operation {
            Operation::Put { key, bytes, fill } => drop(model.insert(*key, vec![*fill; *bytes])),
            Operation::Remove { key } => drop(model.remove(key)),
            Operation::Abort { .. } => {}
        }
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

/// Recovers on a card that powers up with this memory; recoveries are cut, too, until one comes through.
fn recovers(mechanism: Mechanism, seed: u64, mut medium: Vec<u8>, states: &[Model]) -> Result<(), String> {
    for again in 1..100 {
        let card = MockCard::with_medium(MockOptions { cut_after: Some(again * 37), ..mock(seed) }, medium);
        let reopened = Registered::new(card.clone(), seed).and_then(|registered| {
            let pool = options(mechanism).open(&registered.pool()).map_err(say)?;
            let found = contents(&pool).map_err(say)?;
            check_leaks(&pool, &found).map_err(say)?;
            Ok(found)
        });
        medium = card.power_cut();
        match reopened {
            Ok(found) if states.contains(&found) => return Ok(()),
            Ok(_) => return Err(format!("none of {} states", states.len())),
            Err(_) => {}
        }
    }
    Err("no recovery comes through".into())
}

/// Half of the commits that runs are cut in wait for durability.
fn options_of(mechanism: Mechanism, seed: u64) -> PoolOptions {
    let durability = if seed.is_multiple_of(2) { Durability::Durable } else { Durability::Asynchronous };
    options(mechanism).durability(durability)
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
    cut_work(mechanism, seed, card.mock.power_cut(), create, if thorough() { 20 } else { 5 }, moment)
}

/// Operations on a card with this memory, `begin` in front of them: whole, and then cut at so many moments, each a number of accesses of so many.
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

/// Cuts while the ring of a thread is made and that of transactions grows. Both lie where another pool of the same identifier has left whole
/// entries, which would put old bytes back: they have the places and the lane of new ones, and identifiers above those of the new pool.
fn rings(seed: u64) -> Result<(), String> {
    const OBJECT_BYTES: usize = 48 * 1024;
    /// Bytes between two words that are logged, each by an entry of two lines: some entry is whole unless nearly all zeros come to it.
    const APART: u64 = 128;
    /// Accesses between two cuts. Other seeds cut in between.
    const STRIDE: usize = 5;
    let options = options(Mechanism::Undo);
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let fill = |pool: &Pool, value: u8| {
        pool.tx(|tx| {
            let object = tx.alloc(OBJECT_BYTES as u64)?;
            tx.write(object, &[value; OBJECT_BYTES])?;
            Ok(object)
        })
    };
    let former = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    let object = fill(&former, 0xee).map_err(say)?;
    for words in [1, 1, 1, 1, OBJECT_BYTES as u64 / APART] {
        let mut places = (0..words).map(|n| object + n * APART);
        let logged = places.clone().try_for_each(|place| former.undolog_create(0, place, 8));
        logged.and_then(|()| former.commit_log(0)).map_err(say)?;
        former.tx(|tx| places.try_for_each(|place| tx.write(place, &[0xdd; 8]))).map_err(say)?;
    }
    former.close().and_then(|()| crate::remove(&card.pool())).map_err(say)?;
    let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    same(fill(&pool, 0x11).map_err(say)?, object, "the place of the object")?;
    pool.close().map_err(say)?;
    let image = card.mock.power_cut();

    let make_and_grow = |pool: &Pool| {
        pool.undolog_create(0, object, 64)?;
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
        let found = pool.tx(|tx| tx.read_vec(object, OBJECT_BYTES)).map_err(say)?;
        same(found.iter().find(|&&byte| byte != 0x11), None, "bytes that nobody has changed")?;
    }
    Ok(())
}

/// A process takes a transaction back and closes the pool in order, so that the next one drops no lines, whose commands write the same lines.
fn taken_back(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    // They share lines, which commands write where they write a part.
    const OBJECT_BYTES: usize = 40;
    const OBJECTS: usize = 8;
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let store = |tx: &mut Tx<'_>, value: u8| {
        (0..OBJECTS).try_for_each(|_| {
            let object = tx.alloc(OBJECT_BYTES as u64)?;
            tx.write(object, &[value; OBJECT_BYTES])
        })
    };
    let pool = options(Mechanism::Undo).create(&card.pool(), POOL_BYTES).map_err(say)?;
    let given_up = pool.tx(|tx| store(tx, 0xee).and_then(|()| Err::<(), _>(Error::abort("given up"))));
    same(matches!(given_up, Err(Error::Aborted(_))), true, "it was taken back")?;
    pool.close().map_err(say)?;
    let pool = options(mechanism).open(&card.pool()).map_err(say)?;
    pool.tx(|tx| store(tx, 0x11)).map_err(say)?;
    pool.close().map_err(say)?;
    let pool = options(Mechanism::Undo).open(&card.pool()).map_err(say)?;
    let objects = pool.objects().map_err(say)?;
    same(objects.len(), OBJECTS, "objects")?;
    for (object, _) in objects {
        let found = pool.tx(|tx| tx.read_vec(object, OBJECT_BYTES)).map_err(say)?;
        same(found, vec![0x11; OBJECT_BYTES], "the next process")?;
    }
    pool.close().map_err(say)
}

fn processes(seed: u64) -> Result<(), String> {
    let mechanism = |n: u64| Mechanism::ALL[(seed / n) as usize % 4];
    let mut card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let mut pool = options(mechanism(1)).create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    let mut model = Model::new();
    for n in [4, 3, 1] {
        let states = work(&pool, &operations(seed + 1000 * n, 15 + seed as usize % 7, 300), model)?;
        std::mem::forget(pool);
        let next = Registered::new(card.mock.clone(), seed)?;
        pool = options(mechanism(n)).open(&next.pool()).map_err(say)?;
        model = contents(&pool).map_err(say)?;
        if !states.contains(&model) {
            return Err(format!("the next process finds none of {} states", states.len()));
        }
        check_leaks(&pool, &model).map_err(say)?;
        card = next;
    }
    pool.close().map_err(say)
}

fn mixed(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let pool = options(mechanism).create(&card.pool(), POOL_BYTES).map_err(say)?;
    let object = pool.tx(|tx| tx.alloc_zeroed(4096)).map_err(say)?;
    for round in 1..6u8 {
        // One line, in thirds: by a transaction, by a store, by a transaction that reads before.
        pool.tx(|tx| tx.write(object, &[round; 16])).map_err(say)?;
        let mut found = [0; 16];
        pool.load(object, &mut found).map_err(say)?;
        same(found, [round; 16], "the program")?;
        pool.store(object + 16, &[round; 16]).map_err(say)?;
        let found = pool.tx(|tx| {
            let found = tx.read_vec(object + 16, 16)?;
            tx.write(object + 32, &[round; 16])?;
            Ok(found)
        });
        same(found.map_err(say)?, vec![round; 16], "the transaction")?;
        pool.tx(|tx| tx.write(object + 2048, &[round; 300])).map_err(say)?;
        pool.store(object + 16, &[round | 0x80; 16]).map_err(say)?;
        // The line is dirty, and nobody reads it before it is changed again, or what was changed is taken back.
        let kept = pool.tx(|tx| {
            tx.write(object + 48, &[if round % 2 == 0 { round } else { 0xee }; 16])?;
            if round % 2 == 0 { Ok(()) } else { Err(Error::abort("taken back")) }
        });
        let last = if kept.is_ok() { round } else { round - 1 };
        let line = pool.tx(|tx| tx.read_vec(object, 64)).map_err(say)?;
        let expected = [[round; 16], [round | 0x80; 16], [round; 16], [last; 16]].concat();
        same(line, expected, "the line")?;
    }
    pool.flush(object, 64).map_err(say)?;
    pool.close().map_err(say)?;
    let after = Registered::new(MockCard::with_medium(mock(seed), card.mock.power_cut()), seed)?;
    let pool = options(mechanism).open(&after.pool()).map_err(say)?;
    let line = pool.tx(|tx| tx.read_vec(object, 64)).map_err(say)?;
    same((line[0], line[16], line[32], line[63]), (5, 5 | 0x80, 5, 4), "after the power cut")
}

fn primitives(seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let options = options(Mechanism::Undo);
    let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    let found = pool.tx(|tx| Ok((tx.alloc_zeroed(4096)?, tx.alloc_zeroed(64)?)));
    let (object, reference) = found.map_err(say)?;
    let work = || -> Result<(u64, Vec<u8>), Error> {
        // A page that will be the copy's has lines in the cache.
        let used = pool.tx(|tx| tx.alloc_zeroed(4096))?;
        pool.store(used + seed % 5 * 700, &[9; 700])?;
        pool.tx(|tx| tx.free(used))?;
        pool.tx(|tx| tx.write_u64(reference, object))?;
        // Lines that are dirty, or clean and soon stale, when the card reads or writes them.
        pool.store(object + 64, &[7; 64])?;
        let first = pool.redolog_create(0, object, &[1; 100])?;
        let second = pool.redolog_create(0, object + 1000, &[2; 100])?;
        pool.applylog(0, first, 100)?;
        pool.applylog(0, second, 100)?;
        pool.commit_log(0)?;
        pool.store(object + 1200, &[4; 64])?;
        let copy = pool.shadowcpy(0, object, 4096)?;
        let mut seen = vec![0; 1300];
        pool.load(copy, &mut seen)?;
        pool.store(copy + 2000, &[3; 100])?;
        pool.flush(copy, 4096)?;
        pool.switch_page(reference, copy)?;
        pool.store(copy + 3000, &[5; 64])?;
        pool.undolog_create(0, copy + 3000, 64)?;
        pool.store(copy + 3000, &[6; 64])?;
        pool.abort_log(0)?;
        let mut back = [0; 64];
        pool.load(copy + 3000, &mut back)?;
        seen.extend(back);
        Ok((copy, seen))
    };
    let (copy, seen) = work().map_err(say)?;
    same((seen[0], seen[99], seen[100], seen[1000], seen[1200]), (1, 1, 7, 2, 4), "the copy")?;
    same(&seen[1300..], &[5; 64][..], "what was rolled back")?;
    let after = Registered::new(MockCard::with_medium(mock(seed), card.mock.power_cut()), seed)?;
    let pool = options.open(&after.pool()).map_err(say)?;
    let page = pool.tx(|tx| tx.read_u64(reference)).map_err(say)?;
    same(page, copy, "the reference")?;
    let found = pool.tx(|tx| tx.read_vec(page, 4096)).map_err(say)?;
    same((found[0], found[100], found[1000], found[1200], found[2000], found[3000]), (1, 7, 2, 4, 3, 5), "the page")
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Scenario; 14] = [
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
    ];

    /// Makes a run, the same for the same seed.
    pub fn run(self, seed: u64) -> Result<(), String> {
        match self {
            Scenario::Cuts(mechanism) => cuts(mechanism, seed),
            Scenario::FirstUse(mechanism) => first_use(mechanism, seed),
            Scenario::Rings => rings(seed),
            Scenario::TakenBack(mechanism) => taken_back(mechanism, seed),
            Scenario::Processes => processes(seed),
            Scenario::Mixed(mechanism) => mixed(mechanism, seed),
            Scenario::Primitives => primitives(seed),
        }
    }
}
