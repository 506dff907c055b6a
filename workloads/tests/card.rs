//! The B+tree on a simulated card, behind a hostile processor: its cache evicts and prefetches at
//! any time, and its buffers drain late, in pieces and in any order. First to the end, then with a
//! power cut at a random access, recovery, and the check of what is left.

mod computer;

use std::collections::BTreeMap;

use computer::{Cards, Computer};
use nearpm::{Durability, Engine, Mechanism, Options, Pool};
use nearpm_sim::host::Cut;
use nearpm_sim::machine::until_power_cut;
use nearpm_sim::rng::Rng;
use nearpm_workloads::ops::{self, Mix, Op};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, check};

const POOL_BYTES: u64 = 2 << 20;
const EPOCH: usize = 8;

fn options(mechanism: Mechanism, engine: Engine) -> Options {
    Options::new().mechanism(mechanism).engine(engine).lanes(1).ring_bytes(256 << 10).epoch_ops(0).id(1)
}

fn model(ops: &[Op]) -> BTreeMap<u64, [u8; 64]> {
    let mut model = BTreeMap::new();
    ops.iter().for_each(|op| ops::apply(&mut model, op));
    model
}

fn contents(pool: &Pool) -> BTreeMap<u64, [u8; 64]> {
    check::contents::<BTree>(pool).expect("the structure is whole")
}

/// Runs to the end, closes, and reads with the other engine through the processor's cache.
fn runs_to_its_end(mechanism: Mechanism, seed: u64) {
    let what = format!("{mechanism:?}, seed {seed}");
    let computer = Computer::new(Cards::MODEL, format!("end-{mechanism:?}-{seed}"), seed, 1, POOL_BYTES);
    computer.plug();
    let pool = options(mechanism, Engine::Card).create(&computer.pool(), POOL_BYTES).unwrap();
    let map = run::create::<BTree>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, seed, 300);
    run::run(&pool, map, &ops, EPOCH, &Progress::default(), |_| {}).unwrap();
    assert!(pool.statistics().commands > 0, "{what}");
    assert!(contents(&pool) == model(&ops), "{what}");
    pool.close().unwrap();
    let pool = options(Mechanism::Undo, Engine::Cpu).open(&computer.pool()).unwrap();
    assert!(contents(&pool) == model(&ops), "{what}, through the cache");
    assert_eq!((pool.recovery().undone, pool.recovery().redone), (0, 0), "{what}: a closed pool needs no recovery");
}

/// Cuts the power at a random access.
fn survives_a_cut(mechanism: Mechanism, engine: Engine, seed: u64) -> bool {
    let what = format!("{mechanism:?}, {engine:?}, seed {seed}");
    let computer = Computer::new(Cards::MODEL, format!("cut-{mechanism:?}-{engine:?}-{seed}"), seed, 1, POOL_BYTES);
    computer.plug();
    let options = options(mechanism, engine);
    let pool = options.create(&computer.pool(), POOL_BYTES).unwrap();
    let map = run::create::<BTree>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, seed, 120);
    let progress = Progress::default();
    computer.machine.arm_cut(Cut::AtAccess(Rng::new(seed).below(1200)), seed);
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
    let pool = options.open(&computer.pool()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let kept = check::prefix::<BTree>(&pool, &ops, progress.acknowledged(), progress.started(), Durability::Durable)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    // It goes on from there.
    let map = run::open::<BTree>(&pool).unwrap();
    run::run(&pool, map, &ops[kept..], EPOCH, &Progress::default(), |_| {}).unwrap();
    assert!(contents(&pool) == model(&ops), "{what}, after recovery");
    true
}

/// The process dies behind a random number of operations, with nothing closed; another mechanism
/// goes on, on the same boot and behind the same cache, which holds lines as they were before
/// commands wrote them.
fn is_left_to(first: Mechanism, second: (Mechanism, Engine), seed: u64) {
    let what = format!("{first:?} to {second:?}, seed {seed}");
    let computer = Computer::new(Cards::MODEL, format!("left-{what}"), seed, 1, POOL_BYTES);
    computer.plug();
    let pool = options(first, Engine::Card).create(&computer.pool(), POOL_BYTES).unwrap();
    let map = run::create::<BTree>(&pool).unwrap();
    let ops = ops::generate(Mix::Churn, seed, 200);
    let (done, progress) = (20 + Rng::new(seed).below(100) as usize, Progress::default());
    run::run(&pool, map, &ops[..done], EPOCH, &progress, |_| {}).unwrap();
    std::mem::forget(pool);
    // The next process knows the card by another handle.
    computer.unplug();
    computer.plug();
    let pool = options(second.0, second.1).open(&computer.pool()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let kept = check::prefix::<BTree>(&pool, &ops, progress.acknowledged(), progress.started(), Durability::Durable)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let map = run::open::<BTree>(&pool).unwrap();
    run::run(&pool, map, &ops[kept..], EPOCH, &Progress::default(), |_| {}).unwrap();
    pool.close().unwrap();
    let pool = options(Mechanism::Undo, Engine::Cpu).open(&computer.pool()).unwrap();
    assert!(contents(&pool) == model(&ops), "{what}, at the end");
}

#[test]
fn a_process_that_dies_leaves_its_pool_to_every_other_mechanism() {
    for first in Mechanism::ALL {
        for second in Mechanism::ALL {
            for seed in 0..4 {
                is_left_to(first, (second, if seed == 3 { Engine::Cpu } else { Engine::Card }), seed);
            }
        }
    }
}

#[test]
fn every_mechanism_runs_to_its_end_behind_a_hostile_cache() {
    for mechanism in Mechanism::ALL {
        (0..6).for_each(|seed| runs_to_its_end(mechanism, seed));
    }
}

#[test]
fn power_cuts_leave_a_prefix_of_the_operations_behind_a_hostile_cache() {
    let seeds = if nearpm_tier::thorough() { 400 } else { 40 };
    for mechanism in Mechanism::ALL {
        let cuts = (0..seeds).filter(|&seed| survives_a_cut(mechanism, Engine::Card, seed)).count();
        assert!(cuts as u64 > seeds / 4, "{mechanism:?}: only {cuts} cuts");
        for seed in 0..seeds / 8 {
            survives_a_cut(mechanism, Engine::Cpu, seed);
        }
    }
}
