//! The maps on several simulated cards at once, behind a hostile processor: to the end, with power
//! cuts at random accesses, also in the recovery, and with a card that does not come back.

mod computer;

use std::collections::BTreeMap;

use computer::{Cards, Computer};
use nearpm::{Durability, Engine, Error, Mechanism, Options, Pool, Synchronisation};
use nearpm_driver::Posting;
use nearpm_sim::host::{Cut, Parameters, Peers};
use nearpm_sim::machine::{Socket, until_power_cut};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::rng::Rng;
use nearpm_workloads::ops::{self, Mix, Op};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, HashMap, Map, check};

/// Bytes of a member: a stripe, a ring, spare pages.
const MEMBER_BYTES: u64 = (2 << 20) + (640 << 10);
const EPOCH: usize = 8;

/// A choice of what is run.
#[derive(Clone, Copy, Debug)]
struct Case {
    cards: usize,
    mechanism: Mechanism,
    engine: Engine,
    durability: Durability,
    synchronisation: Synchronisation,
    seed: u64,
}

const BOTH: [Synchronisation; 2] = [Synchronisation::Software, Synchronisation::Delayed];

impl Case {
    fn options(&self) -> Options {
        let options = Options::new().mechanism(self.mechanism).engine(self.engine).durability(self.durability);
        let options = options.synchronisation(self.synchronisation);
        options.lanes(1).ring_bytes(256 << 10).spare_pages(64).epoch_ops(0).id(1)
    }

    fn computer(&self, what: &str, kind: Cards) -> Computer {
        let name = format!("{what}-{self:?}-{kind:?}");
        let computer = Computer::new(kind, name, self.seed, self.cards, MEMBER_BYTES);
        computer.plug();
        computer
    }

    fn create(&self, computer: &Computer) -> Pool {
        let pool = self.options().create(&computer.pool(), self.cards as u64 * MEMBER_BYTES);
        pool.unwrap_or_else(|e| panic!("{self:?}: {e}"))
    }
}

fn model(ops: &[Op]) -> BTreeMap<u64, [u8; 64]> {
    let mut model = BTreeMap::new();
    ops.iter().for_each(|op| ops::apply(&mut model, op));
    model
}

fn contents<M: Map>(pool: &Pool) -> BTreeMap<u64, [u8; 64]> {
    check::contents::<M>(pool).expect("the structure is whole")
}

/// Objects of the program before its map, so that the map's nodes do not all lie on one card.
fn spread(pool: &Pool) {
    pool.tx(|tx| (0..16).try_for_each(|n| tx.alloc_zeroed(64 << (n % 7)).map(drop))).unwrap();
}

/// Runs to the end, closes, and reads with the other engine through the processor's cache.
fn runs_to_its_end<M: Map>(case: Case, kind: Cards) {
    let computer = case.computer(M::NAME, kind);
    let pool = case.create(&computer);
    spread(&pool);
    let map = run::create::<M>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, case.seed, 250);
    run::run(&pool, map, &ops, EPOCH, &Progress::default(), |_| {}).unwrap();
    let statistics = pool.statistics();
    assert!(statistics.commands > 0 && statistics.fallbacks == 0, "{case:?}: {statistics:?}");
    assert!(contents::<M>(&pool) == model(&ops), "{case:?}");
    pool.close().unwrap();
    let other = Case { mechanism: Mechanism::Undo, engine: Engine::Cpu, ..case };
    let pool = other.options().open(&computer.pool()).unwrap();
    assert!(contents::<M>(&pool) == model(&ops), "{case:?}, through the cache");
    assert_eq!((pool.recovery().undone, pool.recovery().redone), (0, 0), "{case:?}: a closed pool needs no recovery");
}

/// What recoveries found; a campaign that meets nothing shows nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    released: u64,
    discarded: u64,
    repaired: u64,
}

impl Found {
    fn count(&mut self, pool: &Pool) {
        let recovery = pool.recovery();
        self.released += recovery.released;
        self.discarded += recovery.discarded;
        self.repaired += recovery.undone + recovery.redone;
    }
}

/// Cuts the power at a random access, and at random ones of the recovery.
fn survives_cuts<M: Map>(case: Case, kind: Cards, found: &mut Found) -> bool {
    let computer = case.computer(M::NAME, kind);
    let pool = case.create(&computer);
    spread(&pool);
    let map = run::create::<M>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, case.seed, 100);
    let (progress, mut rng) = (Progress::default(), Rng::new(case.seed));
    let cycle = computer.machine.cycle();
    let cut = if rng.one_in(2) { Cut::AtAccess(rng.below(1500)) } else { Cut::AtCycle(cycle + rng.below(60_000)) };
    computer.machine.arm_cut(cut, case.seed);
    let outcome = until_power_cut(|| {
        let done = run::run(&pool, map, &ops, EPOCH, &progress, |_| {});
        computer.machine.disarm_cut();
        drop(pool);
        done
    });
    if computer.machine.is_powered() {
        outcome.expect("nothing unwinds while the power is on").unwrap();
        return false;
    }
    computer.power_up();
    for again in 0..rng.below(3) {
        computer.machine.arm_cut(Cut::AtAccess(rng.below(400)), case.seed + again);
        let opened = until_power_cut(|| case.options().open(&computer.pool()).map(drop));
        computer.machine.disarm_cut();
        if !computer.machine.is_powered() {
            computer.power_up();
        } else {
            opened.expect("nothing unwinds while the power is on").unwrap();
        }
    }
    let pool = case.options().open(&computer.pool()).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    let kept = check::prefix::<M>(&pool, &ops, progress.acknowledged(), progress.started(), case.durability)
        .unwrap_or_else(|e| panic!("{case:?}: {e}"));
    found.count(&pool);
    // It goes on from there.
    let map = run::open::<M>(&pool).unwrap();
    run::run(&pool, map, &ops[kept..], EPOCH, &Progress::default(), |_| {}).unwrap();
    assert!(contents::<M>(&pool) == model(&ops), "{case:?}, after recovery");
    true
}

fn cases(engine: Engine, seeds: u64) -> impl Iterator<Item = Case> {
    let one = move |cards, mechanism: Mechanism, seed: u64| {
        let asynchronous = seed % 3 == 2 && !mechanism.has_epochs();
        let durability = if asynchronous { Durability::Asynchronous } else { Durability::Durable };
        let synchronisation = BOTH[(seed / 2) as usize % 2];
        Case { cards, mechanism, engine, durability, synchronisation, seed }
    };
    let of = move |cards| Mechanism::ALL.into_iter().flat_map(move |m| (0..seeds).map(move |seed| one(cards, m, seed)));
    [1, 2, 4, 8].into_iter().flat_map(of)
}

fn thorough(thorough: u64, fast: u64) -> u64 {
    if nearpm_tier::thorough() { thorough } else { fast }
}

/// The same on the hardware's own Verilog: to the end with both kinds of synchronisation, and with
/// power cuts.
#[test]
fn striped_pools_live_on_verilated_cards() {
    let (mut found, mut cuts) = (Found::default(), 0);
    for (mechanism, seed) in Mechanism::ALL.into_iter().zip(0..) {
        let (engine, durability) = (Engine::Card, Durability::Durable);
        for (cards, synchronisation) in [2, 4].into_iter().zip(BOTH).take(thorough(2, 1) as usize) {
            let case = Case { cards, mechanism, engine, durability, synchronisation, seed };
            runs_to_its_end::<BTree>(case, Cards::Rtl);
            let seeds = seed..seed + thorough(20, 3);
            let cases = seeds.map(|seed| Case { synchronisation: Synchronisation::Delayed, seed, ..case });
            cuts += cases.filter(|&case| survives_cuts::<HashMap>(case, Cards::Rtl, &mut found)).count();
        }
    }
    println!("{cuts} power cuts on Verilated cards: {found:?}");
    assert!(cuts > 4 && found.repaired + found.released + found.discarded > 0, "{cuts} cuts, {found:?}");
}

#[test]
fn every_mechanism_runs_to_its_end_on_several_cards() {
    for case in cases(Engine::Card, 1) {
        for synchronisation in BOTH {
            runs_to_its_end::<BTree>(Case { synchronisation, ..case }, Cards::MODEL);
            runs_to_its_end::<HashMap>(Case { synchronisation, seed: 1, ..case }, Cards::MODEL);
        }
    }
}

#[test]
fn power_cuts_leave_a_prefix_of_the_operations_on_several_cards() {
    let (mut cuts, mut runs, mut found) = (0, 0, Found::default());
    for case in cases(Engine::Card, thorough(200, 8)) {
        cuts += u64::from(match case.seed % 2 {
            0 => survives_cuts::<BTree>(case, Cards::MODEL, &mut found),
            _ => survives_cuts::<HashMap>(case, Cards::MODEL, &mut found),
        });
        runs += 1;
    }
    println!("{cuts} cuts in {runs} runs; the recoveries found {found:?}");
    assert!(cuts > runs / 4, "only {cuts} cuts in {runs} runs");
    assert!(found.released > 0 && found.repaired > 0, "{found:?}");
}

#[test]
fn power_cuts_leave_a_prefix_of_the_operations_without_commands() {
    let mut found = Found::default();
    let cuts =
        cases(Engine::Cpu, thorough(40, 1)).filter(|&case| survives_cuts::<BTree>(case, Cards::MODEL, &mut found));
    assert!(cuts.count() > 0);
}

/// What the transactions of a sweep do: the n-th writes n, each way to read it afterwards gives a
/// value.
struct Writes {
    name: &'static str,
    write: fn(&Pool, &[u64], u64) -> Result<(), Error>,
    read: fn(&Pool, &[u64]) -> Result<Vec<u64>, Error>,
}

/// Logged on three cards.
const IN_PLACE: Writes = Writes {
    name: "in place",
    write: |pool, objects, n| pool.tx(|tx| objects[..3].iter().try_for_each(|&object| tx.write_u64(object, n))),
    read: |pool, objects| pool.tx(|tx| objects[..3].iter().map(|&object| tx.read_u64(object)).collect()),
};

const BYTES: u64 = 8192;
/// Logged on one card, for the word that leads to a new object, which is only stored to, on each
/// card in turn.
const NEW_OBJECTS: Writes = Writes {
    name: "new objects",
    write: |pool, objects, n| {
        pool.tx(|tx| {
            let new = tx.alloc_zeroed(BYTES)?;
            (0..BYTES).step_by(1024).try_for_each(|at| tx.write_u64(new + at, n))?;
            tx.write_u64(objects[0], new)
        })
    },
    read: |pool, objects| {
        pool.tx(|tx| {
            let new = tx.read_u64(objects[0])?;
            (0..BYTES).step_by(1024).map(|at| tx.read_u64(new + at)).collect()
        })
    },
};

/// Cuts the power in each of many cycles of four transactions over three cards, and looks whether
/// all have the same one of them, not before the last that was acknowledged.
fn sweep(kind: Cards, mechanism: Mechanism, writes: &Writes, found: &mut Found) -> Result<(), String> {
    let (engine, durability, synchronisation) = (Engine::Card, Durability::Durable, Synchronisation::Delayed);
    let case = Case { cards: 3, mechanism, engine, durability, synchronisation, seed: 0 };
    let options = case.options().epoch_ops(1);
    // So slow that a commit is acknowledged while it waits.
    let slow = Peers { latency_ps: 2_000_000, ..Peers::default() };
    for cycle in (0..1800).step_by(thorough(1, 18) as usize) {
        let computer = ordinary(kind, slow, format!("sweep-{}-{case:?}-{kind:?}-{cycle}", writes.name), case.cards);
        computer.plug();
        let pool = options.create(&computer.pool(), case.cards as u64 * MEMBER_BYTES).unwrap();
        let objects = objects(&pool);
        (writes.write)(&pool, &objects, 1).unwrap();
        pool.persist().unwrap();
        let mut acknowledged = 1;
        computer.machine.arm_cut(Cut::AtCycle(computer.machine.cycle() + cycle), cycle);
        let finished = until_power_cut(|| {
            for n in 2..6 {
                (writes.write)(&pool, &objects, n).unwrap();
                acknowledged = n;
            }
            computer.machine.disarm_cut();
        });
        if finished.is_ok() {
            computer.machine.cut_now(cycle);
        }
        let _ = until_power_cut(|| drop(pool));
        computer.power_up();
        let pool = options.open(&computer.pool()).map_err(|e| format!("cycle {cycle}: {e}"))?;
        found.count(&pool);
        let values = (writes.read)(&pool, &objects).map_err(|e| format!("cycle {cycle}: {e}"))?;
        let sound =
            values.iter().all(|&value| value == values[0]) && (acknowledged..acknowledged + 2).contains(&values[0]);
        if !sound {
            return Err(format!("cycle {cycle}: {values:?}, where {acknowledged} was acknowledged"));
        }
    }
    Ok(())
}

#[test]
fn transactions_over_several_cards_are_there_on_all_or_on_none() {
    for mechanism in Mechanism::ALL {
        let mut found = Found::default();
        sweep(Cards::MODEL, mechanism, &IN_PLACE, &mut found).unwrap_or_else(|e| panic!("{mechanism:?}, {e}"));
        println!("{mechanism:?}: {found:?}");
        assert!(found.released > 0 && found.discarded > 0, "{mechanism:?}: {found:?}");
    }
}

/// A commit on the card that has the log alone must not be before what others only store.
#[test]
fn new_objects_on_cards_without_a_log_are_whole_once_their_transaction_is_there() {
    for mechanism in Mechanism::ALL {
        let mut found = Found::default();
        sweep(Cards::MODEL, mechanism, &NEW_OBJECTS, &mut found).unwrap_or_else(|e| panic!("{mechanism:?}, {e}"));
        println!("{mechanism:?}: {found:?}");
        assert!(found.repaired > 0, "{mechanism:?}: {found:?}");
    }
}

/// Cards that do not keep their side of the delayed synchronisation.
#[test]
fn cards_that_lose_waiting_commits_are_found() {
    let faulty = Cards::Model(Some(Fault::ParkedIsNotSaved));
    let lost = sweep(faulty, Mechanism::Undo, &IN_PLACE, &mut Found::default());
    println!("{}", lost.expect_err("an acknowledged transaction is lost"));
}

/// Objects of which the first of each member come one after the other.
fn objects(pool: &Pool) -> Vec<u64> {
    let all = pool.tx(|tx| (0..16).map(|_| tx.alloc_zeroed(8192)).collect::<Result<Vec<_>, _>>()).unwrap();
    // Two are in a chunk, and chunks go to the members in turn.
    all.into_iter().step_by(2).collect()
}

/// A computer that is not hostile.
fn ordinary(kind: Cards, peers: Peers, name: String, cards: usize) -> Computer {
    Computer::made_of(kind, Parameters::default(), peers, Posting::Line, name, cards, MEMBER_BYTES)
}

/// Simulated nanoseconds and commands of an update, on an ordinary processor. `objects` names the
/// changed objects; each lies on a member of its own.
fn costs(cards: usize, synchronisation: Synchronisation, objects: &[usize]) -> (u64, u64) {
    let case = Case {
        cards,
        mechanism: Mechanism::Undo,
        engine: Engine::Card,
        durability: Durability::Durable,
        synchronisation,
        seed: 0,
    };
    let computer = ordinary(Cards::MODEL, Peers::default(), format!("costs-{case:?}-{objects:?}"), cards);
    computer.plug();
    let pool = case.create(&computer);
    let places = self::objects(&pool);
    const UPDATES: u64 = 64;
    let (start, commands) = (computer.machine.now_ps(), pool.statistics().commands);
    for n in 0..UPDATES {
        pool.tx(|tx| objects.iter().try_for_each(|&object| tx.write_u64(places[object], n))).unwrap();
    }
    assert_eq!(pool.statistics().fallbacks, 0);
    ((computer.machine.now_ps() - start) / 1000 / UPDATES, (pool.statistics().commands - commands) / UPDATES)
}

#[test]
fn who_waits_for_whom_costs_time() {
    let (alone, commands) = costs(1, Synchronisation::Software, &[0]);
    println!("a durable update of 8 B on one card: {alone} ns");
    for cards in [2, 4] {
        for synchronisation in BOTH {
            let (one, posted) = costs(cards, synchronisation, &[0]);
            println!("on one of {cards} cards, {synchronisation:?}: {one} ns");
            assert_eq!(posted, commands, "one log, one commit");
            assert!(one <= alone + alone / 20, "a transaction on one card costs what it costs on a pool on one card");
        }
        let all: Vec<usize> = (0..cards).collect();
        let [software, delayed] = BOTH.map(|synchronisation| costs(cards, synchronisation, &all).0);
        println!("on all {cards} cards: {software} ns by software, {delayed} ns delayed");
        assert!(delayed < software, "the cards wait for each other while the processor does not");
    }
}

/// What one card has logged and others have only stored is committed on that card alone, whoever
/// waits: a commit on the others would be one more answer to wait for. (New objects are stored to
/// without a log; what says that they are allocated lies on the first card.)
#[test]
fn cards_that_only_stored_get_no_commit_of_a_durable_transaction() {
    let commands = |synchronisation| {
        let (cards, mechanism, engine, durability) = (2, Mechanism::Undo, Engine::Card, Durability::Durable);
        let case = Case { cards, mechanism, engine, durability, synchronisation, seed: 0 };
        let computer = ordinary(Cards::MODEL, Peers::default(), format!("stored-{case:?}"), cards);
        computer.plug();
        let pool = case.create(&computer);
        let before = pool.statistics().commands;
        let mut made: Vec<u64> = (0..16).map(|_| pool.tx(|tx| tx.alloc_zeroed(8192)).unwrap()).collect();
        made.sort_unstable();
        let far = made.iter().filter(|&&at| at - made[0] > 1 << 20).count();
        assert!(far >= 4, "chunks go to the cards in turn: {made:?}");
        pool.statistics().commands - before
    };
    let [software, delayed] = BOTH.map(commands);
    assert_eq!(software, delayed);
}

/// A card that does not come back is named, the others are as the cut left them, and everything
/// recovers when it is back.
#[test]
fn a_card_that_does_not_come_back_is_named_and_nothing_is_lost() {
    let (cards, engine, durability) = (3, Engine::Card, Durability::Durable);
    for (socket, seed) in [(Socket::Absent, 7), (Socket::Silent, 8)] {
        for mechanism in Mechanism::ALL {
            for synchronisation in BOTH {
                does_not_come_back(Case { cards, mechanism, engine, durability, synchronisation, seed }, socket);
            }
        }
    }
}

fn does_not_come_back(case: Case, socket: Socket<'_>) {
    let computer = case.computer("away", Cards::MODEL);
    let pool = case.create(&computer);
    spread(&pool);
    let map = run::create::<BTree>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, case.seed, 100);
    let progress = Progress::default();
    computer.machine.arm_cut(Cut::AtAccess(700), case.seed);
    let outcome = until_power_cut(|| run::run(&pool, map, &ops, EPOCH, &progress, |_| {}).map(|()| drop(pool)));
    assert!(outcome.is_err(), "{case:?}: the power fails in the run");
    computer.refuses_without(1, socket, |location| case.options().open(location));
    let pool = case.options().open(&computer.pool()).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    check::prefix::<BTree>(&pool, &ops, progress.acknowledged(), progress.started(), case.durability)
        .unwrap_or_else(|e| panic!("{case:?}: {e}"));
}
