//! A direct pool on a simulated card and on a mock card, both behind a hostile processor: power
//! cuts at random accesses, also while the pool is opened, and processes that die. Over several
//! lives of a pool nothing that was acknowledged is lost, and nothing is half done.

mod computer;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use computer::{Cards, Computer};
use nearpm::direct::DirectPool;
use nearpm::{Durability, Engine, Error, Mechanism, Options, Problem, Synchronisation, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::pci::PciFunction;
use nearpm_driver::{Card, CardOptions};
use nearpm_sim::host::Cut;
use nearpm_sim::machine::{Socket, until_power_cut};
use nearpm_sim::rng::Rng;

const POOL_BYTES: u64 = 1 << 20;
/// Words of the root, each the offset of an object or 0.
const SLOTS: u64 = 8;

/// The objects' bytes, and a word that is persisted outside of transactions.
type Model = (Vec<Option<Vec<u8>>>, u64);

#[derive(Clone, Copy)]
enum Operation {
    Put { slot: u64, bytes: u64, fill: u8 },
    Change { slot: u64, start: u64, bytes: u64, fill: u8, aborts: bool },
    Remove { slot: u64 },
    Persist { word: u64 },
}

/// The operation with a number, in the sequence of a seed.
fn operation(seed: u64, number: u64) -> Operation {
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
    let (slot, fill) = (rng.below(SLOTS), number as u8);
    let bytes = 1 + match rng.below(12) {
        0 => rng.below(50_000),
        1..3 => rng.below(5_000),
        _ => rng.below(300),
    };
    match rng.below(10) {
        0..4 => Operation::Put { slot, bytes, fill },
        4..7 => Operation::Change { slot, start: rng.below(1000), bytes, fill, aborts: rng.one_in(5) },
        7 => Operation::Remove { slot },
        _ => Operation::Persist { word: number },
    }
}

/// The part of an object that a change is about.
fn part(object: &[u8], start: u64, bytes: u64) -> std::ops::Range<usize> {
    let start = start as usize % object.len();
    start..(start + bytes as usize).min(object.len())
}

fn advance(model: &mut Model, operation: Operation) {
    match operation {
        Operation::Put { slot, bytes, fill } => model.0[slot as usize] = Some(vec![fill; bytes as usize]),
        Operation::Change { slot, start, bytes, fill, aborts: false } => {
            if let Some(object) = &mut model.0[slot as usize] {
                let part = part(object, start, bytes);
                object[part].fill(fill);
            }
        }
        Operation::Change { .. } => {}
        Operation::Remove { slot } => model.0[slot as usize] = None,
        Operation::Persist { word } => model.1 = word,
    }
}

fn poke(pool: &DirectPool, offset: u64, data: &[u8]) {
    assert!(pool.heap().start <= offset && offset + data.len() as u64 <= pool.heap().end);
    // SAFETY: the range lies in the heap of the pool, which is open, and this thread alone uses it.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), pool.base().add(offset as usize), data.len()) }
}

fn peek(pool: &DirectPool, offset: u64, bytes: u64) -> Vec<u8> {
    assert!(pool.heap().start <= offset && offset + bytes <= pool.heap().end);
    // SAFETY: the range lies in the heap of the pool, which is open, and nobody stores there
    // meanwhile.
    unsafe { std::slice::from_raw_parts(pool.base().add(offset as usize), bytes as usize).to_vec() }
}

fn word(pool: &DirectPool, offset: u64) -> u64 {
    u64::from_le_bytes(peek(pool, offset, 8).try_into().expect("eight bytes"))
}

/// How commits go home: by records, or by the card's commands; and whether each is waited for.
#[derive(Clone, Copy, Debug)]
struct By {
    mechanism: Option<Mechanism>,
    durability: Durability,
}

impl By {
    const RECORDS: By = By { mechanism: None, durability: Durability::Durable };

    fn mechanism(mechanism: Mechanism) -> By {
        By { mechanism: Some(mechanism), ..By::RECORDS }
    }

    fn asynchronous(self) -> By {
        By { durability: Durability::Asynchronous, ..self }
    }
}

fn options(by: By) -> Options {
    Options::new().mechanism(by.mechanism).durability(by.durability)
}

/// The name of a card for a test.
fn card_name(kind: &str, by: By, seed: u64) -> String {
    let waits = if by.durability == Durability::Durable { "" } else { "-asynchronous" };
    format!("direct-{kind}-{}{waits}-{seed}", by.mechanism.map_or("record", Mechanism::name))
}

fn create(location: &str, by: By) -> Result<DirectPool, Error> {
    create_with(location, POOL_BYTES, &options(by))
}

fn create_with(location: &str, bytes: u64, options: &Options) -> Result<DirectPool, Error> {
    let pool = DirectPool::create(location, bytes, options)?;
    let mut tx = pool.begin()?;
    let root = tx.alloc(&pool, (SLOTS + 1) * 8)?.offset;
    poke(&pool, root, &[0; (SLOTS as usize + 1) * 8]);
    tx.set_root(root);
    tx.commit(&pool)?;
    pool.wait_durable()?;
    Ok(pool)
}

fn open(location: &str, by: By) -> Result<DirectPool, Error> {
    DirectPool::open(location, &options(by))
}

/// Carries an operation out.
fn apply(pool: &DirectPool, operation: Operation) -> Result<(), Error> {
    let place = |slot: u64| pool.root() + slot * 8;
    let mut tx = pool.begin()?;
    match operation {
        Operation::Put { slot, bytes, fill } => {
            let object = tx.alloc(pool, 8 + bytes)?.offset;
            poke(pool, object, &bytes.to_le_bytes());
            poke(pool, object + 8, &vec![fill; bytes as usize]);
            let (place, old) = (place(slot), word(pool, place(slot)));
            tx.add(pool, place..place + 8)?;
            poke(pool, place, &object.to_le_bytes());
            if old != 0 {
                tx.free(pool, old)?;
            }
        }
        Operation::Change { slot, start, bytes, fill, aborts } => {
            let object = word(pool, place(slot));
            if object != 0 {
                let part = part(&peek(pool, object + 8, word(pool, object)), start, bytes);
                let at = object + 8 + part.start as u64;
                tx.add(pool, at..at + part.len() as u64)?;
                poke(pool, at, &vec![fill; part.len()]);
            }
            if aborts {
                return tx.abort(pool);
            }
        }
        Operation::Remove { slot } => {
            let (place, old) = (place(slot), word(pool, place(slot)));
            if old != 0 {
                tx.add(pool, place..place + 8)?;
                poke(pool, place, &[0; 8]);
                tx.free(pool, old)?;
            }
        }
        Operation::Persist { word } => {
            let place = place(SLOTS);
            poke(pool, place, &word.to_le_bytes());
            let range = place..place + 8;
            pool.persist(std::slice::from_ref(&range))?;
        }
    }
    tx.commit(pool)
}

/// What the pool holds; its objects are those that the root names.
fn contents(pool: &DirectPool) -> Model {
    let mut named = vec![pool.root()];
    let object = |slot| {
        let object = word(pool, pool.root() + slot * 8);
        (object != 0).then(|| {
            named.push(object);
            assert!(pool.usable_bytes(object).expect("an object") >= 8 + word(pool, object));
            peek(pool, object + 8, word(pool, object))
        })
    };
    let objects = (0..SLOTS).map(object).collect();
    named.sort_unstable();
    let found = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object));
    assert_eq!(found.collect::<Vec<_>>(), named, "an object is lost or was never there");
    (objects, word(pool, pool.root() + SLOTS * 8))
}

/// A pool over several lives: the sequence of operations, how many of them count, and what the pool
/// then holds.
struct Story {
    seed: u64,
    by: By,
    done: Cell<u64>,
    /// Operations that had returned and were not found.
    lost: u64,
    model: Model,
}

impl Story {
    fn new(seed: u64, by: By) -> Story {
        Story { seed, by, done: Cell::new(0), lost: 0, model: (vec![None; SLOTS as usize], 0) }
    }

    /// Goes on by some operations, to the first that fails.
    fn run(&self, pool: &DirectPool, operations: u64) -> Result<(), Error> {
        (0..operations).try_for_each(|_| {
            apply(pool, operation(self.seed, self.done.get()))?;
            self.done.set(self.done.get() + 1);
            Ok(())
        })
    }

    /// Of the operations up to `done`, how many survive a power cut: all of them, or where commits
    /// are not waited for those up to the last persist.
    fn acknowledged(&self, before: u64, done: u64) -> u64 {
        if self.by.durability == Durability::Durable {
            return done;
        }
        let persists = |&number: &u64| matches!(operation(self.seed, number), Operation::Persist { .. });
        (before..done).rev().find(persists).map_or(before, |number| number + 1)
    }

    /// Compares the pool with the operations that have returned; with one more if the last may have
    /// been `interrupted`, and where something may be `lost` with as many fewer as nobody has
    /// waited for.
    fn verify(&mut self, pool: &DirectPool, before: u64, lost: bool, interrupted: bool) {
        let done = self.done.get();
        let least = if lost { self.acknowledged(before, done) } else { done };
        (before..least).for_each(|number| advance(&mut self.model, operation(self.seed, number)));
        let found = contents(pool);
        let most = done + u64::from(interrupted);
        // The last one that looks so: some operations change nothing.
        let mut last = (found == self.model).then_some(least);
        let mut model = self.model.clone();
        for number in least..most {
            advance(&mut model, operation(self.seed, number));
            last = if found == model { Some(number + 1) } else { last };
        }
        let last = last.unwrap_or_else(|| panic!("seed {}: no state after {least} to {most} operations", self.seed));
        (self.model, self.lost) = (found, self.lost + done.saturating_sub(last));
        self.done.set(last);
    }
}

/// Opens a card and makes it known.
fn plug(name: &str, function: Arc<dyn PciFunction>) -> Result<(), nearpm_driver::CardError> {
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    cards::register(name, Arc::new(Card::open(function, CardOptions { firmware, ..CardOptions::default() })?));
    Ok(())
}

/// Five lives on a simulated card.
fn lives_on_the_model(seed: u64, by: By) -> Lives {
    let computer = Computer::new(Cards::MODEL, card_name("model", by, seed), seed, 1, POOL_BYTES);
    lives(&computer, (seed, by), POOL_BYTES, &options(by))
}

/// Of lives of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Lives {
    /// So many were ended by a power cut in the work.
    work: u64,
    /// So many in the opening.
    opening: u64,
    /// Operations that had returned and were not found.
    lost: u64,
}

impl std::ops::AddAssign for Lives {
    fn add_assign(&mut self, other: Lives) {
        self.work += other.work;
        self.opening += other.opening;
        self.lost += other.lost;
    }
}

/// Five lives on simulated cards.
fn lives(computer: &Computer, (seed, by): (u64, By), bytes: u64, options: &Options) -> Lives {
    let (location, machine) = (computer.pool(), &computer.machine);
    computer.plug();
    let (mut story, mut rng) = (Story::new(seed, by), Rng::new(seed));
    let mut pool = create_with(&location, bytes, options).unwrap();
    let mut cuts = Lives::default();
    for life in 0..5 {
        let before = story.done.get();
        // A process that dies leaves its lines in the cache, a power cut takes them away.
        let dies = rng.one_in(4);
        if dies {
            story.run(&pool, 1 + rng.below(60)).unwrap();
            std::mem::forget(pool);
        } else {
            machine.arm_cut(Cut::AtAccess(rng.below(700)), rng.bits());
            let end = until_power_cut(|| story.run(&pool, 60).and_then(|()| pool.close()));
            machine.disarm_cut();
            if machine.is_powered() {
                end.expect("nothing unwinds while the power is on").unwrap();
            } else {
                cuts.work += 1;
            }
        }
        let mut interrupted = !machine.is_powered();
        // An open epoch is taken back, whatever has ended the process.
        let is_taken_back = dies && by.mechanism.is_some_and(Mechanism::has_epochs);
        let mut recovery_cut = rng.one_in(2);
        pool = loop {
            computer.unplug();
            if !machine.is_powered() {
                computer.power_on();
            }
            if std::mem::take(&mut recovery_cut) {
                machine.arm_cut(Cut::AtAccess(rng.below(150)), rng.bits());
            }
            let opened = until_power_cut(|| {
                computer.plug();
                DirectPool::open(&location, options).expect("the pool opens")
            });
            machine.disarm_cut();
            match opened {
                Ok(pool) if machine.is_powered() => break pool,
                // The pool is not closed: its machine has no power.
                Ok(pool) => drop(until_power_cut(|| drop(pool))),
                Err(_) => {}
            }
            (cuts.opening, interrupted) = (cuts.opening + 1, true);
        };
        story.verify(&pool, before, interrupted || is_taken_back, interrupted);
        if life == 4 {
            story.run(&pool, 40).unwrap();
        }
    }
    pool.close().unwrap();
    let pool = Options::new().open(&location).unwrap();
    assert_eq!((pool.recovery().undone, pool.recovery().redone), (0, 0), "a closed pool needs no recovery");
    pool.check().unwrap();
    pool.close().unwrap();
    Lives { lost: story.lost, ..cuts }
}

#[test]
fn nothing_acknowledged_is_lost_on_a_simulated_card() {
    let seeds = if nearpm_tier::thorough() { 1500 } else { 30 };
    lose_nothing_on_the_model(seeds, By::RECORDS);
}

/// Where commits are not waited for, what survives is what the first operations have left, and the
/// last persist is among these.
#[test]
fn commits_that_nobody_waits_for_are_lost_from_the_last_on() {
    let seeds = if nearpm_tier::thorough() { 500 } else { 20 };
    lose_nothing_on_the_model(seeds, By::RECORDS.asynchronous());
    for mechanism in MECHANISMS {
        lose_nothing_on_the_model(seeds / 2, By::mechanism(mechanism).asynchronous());
    }
}

/// Bytes of a member of a pool over several cards: a stripe, a ring, spare pages.
const MEMBER_BYTES: u64 = (2 << 20) + (640 << 10);

/// What a pool over several cards is opened with: who makes the copies, and who waits for whom.
fn over_several(by: By, engine: Engine, seed: u64) -> Options {
    let synchronisation = [Synchronisation::Software, Synchronisation::Delayed][seed as usize % 2];
    let options = options(by).engine(engine).synchronisation(synchronisation);
    options.lanes(1).ring_bytes(256 << 10).spare_pages(64)
}

/// The stories of one card on several: objects, and the tables that say of them, lie on all.
#[test]
fn nothing_acknowledged_is_lost_on_several_cards() {
    let seeds = if nearpm_tier::thorough() { 200 } else { 4 };
    for mechanism in MECHANISMS {
        for (cards, engine) in [2, 4, 8].into_iter().flat_map(|cards| [(cards, Engine::Card), (cards, Engine::Cpu)]) {
            let seeds = if cards == 8 { seeds / 2 } else { seeds };
            let mut all = Lives::default();
            for seed in 0..seeds {
                let by = By::mechanism(mechanism);
                let by = if seed % 4 < 2 { by } else { by.asynchronous() };
                let name = format!("direct-{cards}-{engine:?}-{}-{seed}", mechanism.name());
                let computer = Computer::new(Cards::MODEL, name, seed, cards, MEMBER_BYTES);
                let options = over_several(by, engine, seed);
                // Other moments for each kind of pool.
                let seed = seed + 100 * cards as u64 + 1000 * mechanism as u64 + 10_000 * engine as u64;
                all += lives(&computer, (seed, by), cards as u64 * MEMBER_BYTES, &options);
            }
            println!("{mechanism:?}, {cards} cards, {engine:?}: {all:?}");
            assert!(all.work >= seeds && all.opening > seeds / 2, "only {all:?}");
        }
    }
}

/// A card that does not come back is named, the others are as the cut left them, and everything
/// that was acknowledged is there when it is back.
#[test]
fn a_card_that_does_not_come_back_is_named_and_nothing_is_lost() {
    for (seed, mechanism) in (0..).zip(MECHANISMS) {
        for (away, socket) in [(0, Socket::Absent), (2, Socket::Silent)] {
            let by = By::mechanism(mechanism);
            let name = format!("direct-away-{}-{away}", mechanism.name());
            let computer = Computer::new(Cards::MODEL, name, seed, 3, MEMBER_BYTES);
            let options = over_several(by, Engine::Card, seed);
            computer.plug();
            let pool = create_with(&computer.pool(), 3 * MEMBER_BYTES, &options).unwrap();
            let mut story = Story::new(seed, by);
            computer.machine.arm_cut(Cut::AtAccess(700), seed);
            let end = until_power_cut(|| story.run(&pool, 100).and_then(|()| pool.close()));
            assert!(end.is_err(), "{mechanism:?}: the power fails while it works");
            computer.refuses_without(away, socket, |location| DirectPool::open(location, &options));
            let pool = DirectPool::open(&computer.pool(), &options).unwrap();
            story.verify(&pool, 0, true, true);
            pool.close().unwrap();
        }
    }
}

/// The mechanisms whose copies the card makes.
const MECHANISMS: [Mechanism; 4] = Mechanism::ALL;

#[test]
fn nothing_acknowledged_is_lost_where_commands_bring_commits_home() {
    let seeds = if nearpm_tier::thorough() { 500 } else { 10 };
    MECHANISMS.iter().for_each(|&mechanism| lose_nothing_on_the_model(seeds, By::mechanism(mechanism)));
}

/// What is found is what the operations have left that are acknowledged, and where commits are not
/// waited for, some that had returned are missing: without these nothing would be shown of that.
fn lose_nothing_on_the_model(seeds: u64, by: By) {
    let mut all = Lives::default();
    (0..seeds).for_each(|seed| all += lives_on_the_model(seed, by));
    println!("{by:?}: {all:?}");
    assert!(all.work > seeds && all.opening > seeds / 2, "only {all:?}");
    assert_eq!(all.lost > 0, by.durability == Durability::Asynchronous, "{by:?}: {all:?}");
}

/// Threads whose commits go by lanes of their own, or by one that two share.
const CORES: u64 = 4;
const LANES: u16 = 3;
/// Bytes of a card that they work on.
const CORES_BYTES: u64 = 4 << 20;
/// Bytes of a thread's part of the root: the offset of its object, and two words.
const SHARE: u64 = 24;
const OBJECT: u64 = 64;

/// A thread puts a new object with a number in the place of its last one, and stores the number
/// twice; every third time it stores alone.
fn count_up(pool: &DirectPool, core: u64, number: u64) -> Result<(), Error> {
    let at = pool.root() + core * SHARE;
    let mut tx = pool.begin()?;
    if !number.is_multiple_of(3) {
        let (old, new) = (word(pool, at), tx.alloc(pool, OBJECT)?.offset);
        poke(pool, new, &[core as u8; OBJECT as usize]);
        tx.add(pool, at..at + 8)?;
        poke(pool, at, &new.to_le_bytes());
        tx.free(pool, old)?;
    }
    tx.add(pool, at + 8..at + SHARE)?;
    (1..3).for_each(|place| poke(pool, at + 8 * place, &number.to_le_bytes()));
    tx.commit(pool)
}

/// Several cores on one pool, over so many cards, until the power fails. Gives whether it did.
fn cores_on_the_model((seed, by): (u64, By), cards: usize, options: &Options) -> bool {
    let name = format!("{}-{cards}", card_name("cores", by, seed));
    let computer = Computer::new(Cards::MODEL, name, seed, cards, CORES_BYTES);
    let (location, machine) = (computer.pool(), &computer.machine);
    computer.plug();
    let pool = DirectPool::create(&location, cards as u64 * CORES_BYTES, options).unwrap();
    let mut tx = pool.begin().unwrap();
    let root = tx.alloc(&pool, CORES * SHARE).unwrap().offset;
    for core in 0..CORES {
        // Beside each other: their bits are in the same words.
        let object = tx.alloc(&pool, OBJECT).unwrap().offset;
        poke(&pool, object, &[core as u8; OBJECT as usize]);
        poke(&pool, root + core * SHARE, &[object.to_le_bytes(), [0; 8], [0; 8]].concat());
    }
    tx.set_root(root);
    tx.commit(&pool).unwrap();
    let start = machine.now_ps();
    (0..CORES as usize).for_each(|core| machine.wait_on_core(core, start));
    let mut rng = Rng::new(seed);
    machine.arm_cut(Cut::AtAccess(rng.below(3000)), rng.bits());
    let acknowledged: Vec<_> = (0..CORES).map(|_| AtomicU64::new(0)).collect();
    let works = (0..CORES).zip(&acknowledged).map(|(core, acknowledged)| {
        let pool = &pool;
        move || {
            until_power_cut(|| {
                (1..=60).try_for_each(|number| {
                    machine.let_others_catch_up();
                    count_up(pool, core, number)?;
                    acknowledged.store(number, Ordering::Relaxed);
                    Ok::<(), Error>(())
                })
            })
        }
    });
    let ends = machine.on_cores(works.collect());
    machine.disarm_cut();
    let was_cut = !machine.is_powered();
    let _ = until_power_cut(|| drop(pool));
    assert!(was_cut || ends.iter().all(|end| matches!(end, Ok(Ok(())))), "{ends:?}");
    computer.unplug();
    if was_cut {
        computer.power_on();
    }
    computer.plug();
    let pool = DirectPool::open(&location, options).unwrap();
    let mut named = vec![pool.root()];
    for (core, acknowledged) in (0..CORES).zip(acknowledged) {
        let at = pool.root() + core * SHARE;
        let (numbers, last) = ([word(&pool, at + 8), word(&pool, at + 16)], acknowledged.into_inner());
        let allowed = last..=last + u64::from(was_cut);
        assert!(numbers[0] == numbers[1] && allowed.contains(&numbers[0]), "seed {seed}: {numbers:?} of {last}");
        named.push(word(&pool, at));
        assert_eq!(peek(&pool, word(&pool, at), OBJECT), [core as u8; OBJECT as usize], "seed {seed}");
    }
    named.sort_unstable();
    let found = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object));
    assert_eq!(found.collect::<Vec<_>>(), named, "seed {seed}: an object is lost or was never there");
    pool.close().unwrap();
    was_cut
}

#[test]
fn threads_with_lanes_of_their_own_lose_nothing_acknowledged_on_a_simulated_card() {
    let seeds = if nearpm_tier::thorough() { 1000 } else { 40 };
    let by = By::mechanism(Mechanism::Undo);
    let options = options(by).lanes(LANES);
    let cuts = (0..seeds).filter(|&seed| cores_on_the_model((seed, by), 1, &options)).count() as u64;
    println!("{cuts} power cuts");
    assert!(cuts > seeds / 3, "only {cuts} cuts");
}

/// Over several cards they have one lane, whose ring lies on each.
#[test]
fn threads_lose_nothing_acknowledged_on_several_cards() {
    let seeds = if nearpm_tier::thorough() { 200 } else { 6 };
    for mechanism in MECHANISMS {
        let by = By::mechanism(mechanism);
        let is_cut = |&seed: &u64| cores_on_the_model((seed, by), 2, &over_several(by, Engine::Card, seed));
        let cuts = (0..seeds).filter(is_cut).count() as u64;
        println!("{mechanism:?}: {cuts} power cuts");
        assert!(cuts >= seeds / 3, "{mechanism:?}: only {cuts} cuts");
    }
}

/// Four lives on a mock card, each ended by a power cut.
fn lives_on_the_mock(seed: u64, by: By) -> u64 {
    let name = card_name("mock", by, seed);
    let location = format!("card:{name}/p");
    let settings = |cut_after| MockOptions { pm_bytes: 2 << 20, seed, cut_after, ..MockOptions::default() };
    let mut mock = MockCard::new(settings(None));
    plug(&name, Arc::new(mock.clone())).unwrap();
    create(&location, by).unwrap().close().unwrap();
    let (mut story, mut rng, mut cuts) = (Story::new(seed, by), Rng::new(seed), 0);
    for _ in 0..4 {
        let before = story.done.get();
        let cut_after = 30 + rng.below(700);
        mock = MockCard::with_medium(settings(Some(cut_after)), mock.power_cut());
        let opened = plug(&name, Arc::new(mock.clone())).is_ok().then(|| open(&location, by).ok()).flatten();
        if let Some(pool) = opened {
            cuts += u64::from(story.run(&pool, 60).is_err());
        }
        mock = MockCard::with_medium(settings(None), mock.power_cut());
        plug(&name, Arc::new(mock.clone())).unwrap();
        story.verify(&open(&location, by).unwrap(), before, true, true);
    }
    cards::unregister(&name);
    cuts
}

#[test]
fn nothing_acknowledged_is_lost_on_a_card_that_travels_in_any_order() {
    for by in [By::RECORDS, By::RECORDS.asynchronous()] {
        let cuts: u64 = (0..20).map(|seed| lives_on_the_mock(seed, by)).sum();
        assert!(cuts > 20, "{by:?}: only {cuts} cuts");
    }
}

#[test]
fn commands_that_travel_in_any_order_lose_nothing_acknowledged() {
    for mechanism in MECHANISMS {
        let cuts: u64 = (0..10).map(|seed| lives_on_the_mock(seed, By::mechanism(mechanism))).sum();
        assert!(cuts > 10, "{mechanism:?}: only {cuts} cuts");
    }
}

/// Each commit of a pointer program posts commands, and the card makes the copies that the log
/// consists of.
#[test]
fn a_commit_posts_commands() {
    for mechanism in MECHANISMS {
        let name = card_name("counted", By::mechanism(mechanism), 0);
        let mock = MockCard::new(MockOptions { pm_bytes: 2 << 20, ..MockOptions::default() });
        plug(&name, Arc::new(mock)).unwrap();
        let pool = create(&format!("card:{name}/p"), By::mechanism(mechanism)).unwrap();
        let at = pool.root();
        let before = pool.statistics();
        for number in 0..8u64 {
            let mut tx = pool.begin().unwrap();
            tx.add(&pool, at..at + 8).unwrap();
            poke(&pool, at, &number.to_le_bytes());
            tx.commit(&pool).unwrap();
        }
        let done = pool.statistics().since(&before);
        // A log and a commit word each; what redo applies waits for the next.
        assert_eq!((done.transactions, done.acknowledged), (8, 8), "{mechanism:?}");
        assert!(done.commands >= 15 && done.bytes_by_card >= 7 * 8, "{mechanism:?}: {done:?}");
        pool.close().unwrap();
        let pool = open(&format!("card:{name}/p"), By::RECORDS).unwrap();
        assert_eq!(word(&pool, pool.root()), 7, "{mechanism:?}");
        pool.close().unwrap();
        cards::unregister(&name);
    }
}

/// What a log ring has no room for would go by records on one card. On several it is refused with
/// what to do, nothing has happened, and the pool goes on; long ranges outside of transactions,
/// which need not be there all together, go home piece by piece.
#[test]
fn what_has_no_room_is_refused_on_several_cards() {
    const LARGE: u64 = 600 << 10;
    let rings = [16 << 10, 128 << 10];
    let by_logs = [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint];
    for (mechanism, ring) in by_logs.into_iter().flat_map(|mechanism| rings.map(|ring| (mechanism, ring))) {
        let options = over_several(By::mechanism(mechanism), Engine::Auto, 0).ring_bytes(ring);
        let names = (0..2).map(|card| format!("direct-large-{}-{ring}-{card}", mechanism.name()));
        let names: Vec<String> = names.collect();
        for name in &names {
            plug(name, Arc::new(MockCard::new(MockOptions { pm_bytes: 4 << 20, ..MockOptions::default() }))).unwrap();
        }
        let location = format!("card:{}/p", names.join("+"));
        let pool = create_with(&location, 2 * MEMBER_BYTES, &options).unwrap();
        let object = pool.reserve(LARGE).unwrap();
        let whole = object.offset..object.offset + LARGE;
        poke(&pool, whole.start, &vec![1; LARGE as usize]);
        pool.persist(std::slice::from_ref(&whole)).unwrap();
        let mut tx = pool.begin().unwrap();
        tx.make_room(&pool, object, false).unwrap();
        tx.publish(object, false);
        tx.commit(&pool).unwrap();
        let mut tx = pool.begin().unwrap();
        tx.add(&pool, whole.clone()).unwrap();
        poke(&pool, whole.start, &vec![2; LARGE as usize]);
        let refused = tx.commit(&pool).unwrap_err();
        let is_named = matches!(refused, Error::TooLarge { remedy: "Options::ring_bytes", .. });
        assert!(is_named, "{mechanism:?}: {refused}");
        let refused = pool.grow(8 * MEMBER_BYTES).unwrap_err();
        assert!(matches!(refused, Error::Pool { problem: Problem::BadOption { .. }, .. }), "{refused}");
        assert!(peek(&pool, whole.start, LARGE) == vec![1; LARGE as usize], "{mechanism:?}: it was taken back");
        let mut tx = pool.begin().unwrap();
        tx.add(&pool, whole.start..whole.start + 8).unwrap();
        poke(&pool, whole.start, &[3; 8]);
        tx.commit(&pool).unwrap();
        pool.close().unwrap();
        let pool = DirectPool::open(&location, &options).unwrap();
        assert_eq!(peek(&pool, whole.start, 8), [3; 8], "{mechanism:?}");
        assert!(peek(&pool, whole.start + 8, LARGE - 8) == vec![1; LARGE as usize - 8], "{mechanism:?}");
        pool.close().unwrap();
        names.iter().for_each(|name| drop(cards::unregister(name)));
    }
}
