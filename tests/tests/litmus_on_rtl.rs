//! The litmus tests of the ordering model on the RTL, cut at every cycle: whatever is shown the
//! model allows.
//!
//! One test, because a process that makes copies of itself keeps to one thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::expected;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::litmus::comparison::{Cards, Comparison};
use nearpm_tests::litmus::every_cycle::observe;
use nearpm_tests::litmus::{at_random, runs as can_run, tests};
use nearpm_tests::rig::{rtl_cards, thorough};

/// Tests of the ordinary form: commands and stores in both directions, a commit, a page switch.
const FAST: [&str; 5] = [
    "i1-undo-log-then-store",
    "i1-command-then-load",
    "i2-bypassing-store-behind-command",
    "c7-order-of-stores-survives",
    "c1-commit-after-its-logs",
];
/// Programs of a test that are cut at every cycle: one, and in the long form further ones for as
/// long as neither these nor runs that are cut at random have shown every allowed state.
const MOST_PROGRAMS: u64 = 5;
/// Copies of the process at a time, at least: they wait for each other.
const JOBS: usize = 4;

#[test]
fn what_the_rtl_shows_at_any_cycle_the_model_allows() {
    let cards = Arc::new(rtl_cards(MemoryPorts::One));
    keep_panics();
    let (tests, jobs) = (tests(), nearpm_tier::jobs(JOBS));
    let most = if thorough() { MOST_PROGRAMS } else { 1 };
    let one_card = |test: &Test| can_run(test) && test.devices == 1;
    let chosen = tests.iter().filter(|(name, test)| one_card(test) && (thorough() || FAST.contains(&name.as_str())));
    let (start, mut all) = (Instant::now(), Comparison::on(Cards::Rtl));
    let (mut programs, mut cuts, mut cycles, mut runs) = (0, 0, 0, 0);
    for (name, test) in chosen {
        let (may, begun) = (expected(test), Instant::now());
        let (mut shown, mut program, mut further) = (BTreeSet::new(), 0, 0);
        let before = cuts;
        while program == 0 || program < most && !may.is_subset(&shown) {
            let run = observe(test, &cards, program, jobs);
            shown.extend(run.states);
            (cuts, cycles) = (cuts + run.cuts, cycles + run.cycles);
            if program == 0 {
                further = at_random::observe(test, &*cards, &mut shown, 0, jobs);
            }
            program += 1;
        }
        println!(
            "{name}: {} cuts of {program} programs, {further} runs, {} states, {:.1} s",
            cuts - before,
            shown.len(),
            begun.elapsed().as_secs_f64()
        );
        all.take(name, test, &shown);
        (programs, runs) = (programs + program, runs + further);
    }
    let (number, reached, allowed) = (all.tests(), all.reached, all.allowed);
    println!(
        "{number} tests, {cuts} cuts of {programs} programs, {runs} further runs, {reached} of {allowed} allowed states reached; {:.1} million cycles behind cuts, {:.0} s",
        cycles as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    all.hold(&[("cuts", cuts), ("cycles", cycles), ("runs", runs)], thorough());
    assert!(number >= if thorough() { 40 } else { FAST.len() }, "{number} tests");
    assert!(10 * reached > 6 * allowed, "{reached} of {allowed} states");
}
