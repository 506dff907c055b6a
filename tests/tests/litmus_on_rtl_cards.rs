//! The litmus tests of several cards on Verilated ones: whatever a run shows, the ordering model
//! allows.
//!
//! The power fails at a random moment. `litmus.rs` does the same on transaction-level cards. One
//! test, because a process that makes copies of itself keeps to one thread.

use std::collections::BTreeSet;
use std::time::Instant;

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::litmus::at_random::observe;
use nearpm_tests::litmus::comparison::{Cards, Comparison};
use nearpm_tests::litmus::{runs as can_run, tests};
use nearpm_tests::rig::{rtl_cards, thorough};

/// Runs of each test, also where each allowed state was shown before.
const LEAST_RUNS: u64 = 64;
/// Copies of the process at a time, at least: they wait for each other.
const JOBS: usize = 4;

#[test]
fn what_several_rtl_cards_show_the_model_allows() {
    let cards = rtl_cards(MemoryPorts::One);
    keep_panics();
    let (tests, jobs) = (tests(), nearpm_tier::jobs(JOBS));
    let (mut all, mut runs) = (Comparison::on(Cards::Rtl), 0);
    for (name, test) in tests.iter().filter(|(_, test)| can_run(test) && test.devices > 1) {
        let (mut shown, begun) = (BTreeSet::new(), Instant::now());
        let run = observe(test, &cards, &mut shown, LEAST_RUNS, jobs);
        println!("{name}: {run} runs, {} states, {:.1} s", shown.len(), begun.elapsed().as_secs_f64());
        all.take(name, test, &shown);
        runs += run;
    }
    let (tests, reached, allowed) = (all.tests(), all.reached, all.allowed);
    println!("{tests} tests, {runs} runs, {reached} of {allowed} allowed states reached");
    all.hold(&[("runs", runs)], thorough());
    assert!(tests >= 6 && 3 * reached > allowed, "{tests} tests, {reached} of {allowed} states");
}
