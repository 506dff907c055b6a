//! The transaction form of the memory against the DDR4 channel that it stands for.

use crate::support::scenario::{compare, conflicts, deliver, filled};
use crate::support::*;
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{LINE_U64, POOLS_BASE};
use nearpm_interface::registers::state;
use nearpm_sim::core::{Access, CardCore};
use nearpm_sim::model::{Config, Kind, ModelCard};
use nearpm_sim::rng::Rng;

fn rig(memory: Kind) -> Rig {
    let config = Config { memory, ..Config::default() };
    let mut rig = Rig::of(ModelCard::new(config, filled()));
    rig.until(state::OPEN);
    rig.rings();
    rig.map(POOL, 0, POOLS_BASE);
    // Both begin where the last refresh is equally long ago.
    rig.card.advance_to(20_000);
    rig
}

/// Cycles that `work` takes until the card is at rest, with each form.
fn cycles(work: impl Fn(&mut Rig)) -> [f64; 2] {
    [Kind::Cycle, Kind::Transaction].map(|kind| {
        let mut rig = rig(kind);
        let start = rig.card.cycle();
        work(&mut rig);
        rig.settle();
        (rig.card.cycle() - start) as f64
    })
}

fn within(what: &str, percent: f64, work: impl Fn(&mut Rig)) {
    let [exact, fast] = cycles(work);
    let off = (fast / exact - 1.0) * 100.0;
    println!("{what}: {exact} cycles, in transactions {off:+.1} %");
    assert!(off.abs() <= percent, "{what}: {exact} against {fast} cycles");
}

/// Undo logs of `length`, posted without waiting, from places that do not meet.
fn logs(rig: &mut Rig, length: u32, count: u64) {
    let step = (length as u64).next_multiple_of(64);
    for n in 0..count {
        let source = n * step % (RING - step);
        let slot = SLOTS + n * (step + 64) % (RING_BYTES - 16384) / 64 * 64;
        rig.post(Command { flags: 0, ..undo(5, source, length, slot) });
    }
}

#[test]
fn streams_of_commands_take_the_same_time_within_ten_percent() {
    for length in [64, 256, 1024, 4096, 16384] {
        within(&format!("undo logs of {length} B"), 10.0, |rig| logs(rig, length, 400));
    }
}

#[test]
fn host_accesses_take_the_same_time_within_ten_percent() {
    within("loads of random lines", 10.0, |rig| {
        let mut rng = Rng::new(1);
        for _ in 0..400 {
            let address = POOLS_BASE + rng.below(POOL_BYTES / 64) * LINE_U64;
            rig.card.submit(Access::PmRead { address });
        }
    });
    within("stores of random lines", 10.0, |rig| {
        let mut rng = Rng::new(1);
        for n in 0..400 {
            rig.store(rng.below(POOL_BYTES / 64) * LINE_U64, pattern(0, n));
        }
    });
    within("stores and loads in turn", 10.0, |rig| {
        for n in 0..200 {
            rig.store(n * 4096 % POOL_BYTES, pattern(0, n));
            rig.load((n * 4096 + 2048) % POOL_BYTES);
        }
    });
}

#[test]
fn single_accesses_on_an_idle_card_differ_by_few_cycles() {
    for n in 0..200 {
        let [exact, fast] = cycles(|rig| {
            let now = rig.card.cycle();
            rig.card.advance_to(now + n * 37);
            rig.load(n * 8192 % POOL_BYTES);
        });
        assert!((exact - fast).abs() <= 3.0, "load {n}: {exact} against {fast} cycles");
    }
}

#[test]
fn conflicts_end_the_same_on_both() {
    for seed in 0..20 {
        let scenario = conflicts(seed, 150);
        within(&format!("conflicts {seed}"), 10.0, |rig| {
            deliver(rig, &scenario, u64::MAX);
        });
        let mut oracle = oracle::Oracle::new(filled());
        oracle.apply(&scenario::post(0, 0, map_command(POOLS_BASE)));
        scenario.accesses.iter().for_each(|a| {
            oracle.apply(a);
        });
        let mut rig = rig(Kind::Cycle);
        deliver(&mut rig, &scenario, u64::MAX);
        rig.settle();
        compare(&rig, &oracle, "cycle by cycle").unwrap();
    }
}

#[test]
fn single_logs_on_an_idle_card_differ_by_few_cycles() {
    let mut sum = 0.0;
    for n in 0..100 {
        let [exact, fast] = cycles(|rig| {
            rig.run(undo(5, n * 2368 % RING, 64, SLOTS + n * 1856 % 65536 / 64 * 64));
        });
        assert!((exact - fast).abs() <= 4.0, "log {n}: {exact} against {fast} cycles");
        sum += fast - exact;
    }
    println!("single logs: {:+.2} cycles on average", sum / 100.0);
}
