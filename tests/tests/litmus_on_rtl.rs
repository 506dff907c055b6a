//! The litmus tests of the ordering model on the RTL, cut at every cycle: whatever is shown the model allows.
//!
//! One test, because a process that makes copies of itself keeps to one thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_ppo::litmus::Test;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::litmus::comparison::Comparison;
use nearpm_tests::litmus::every_cycle::observe;
use nearpm_tests::litmus::{runs, tests};
use nearpm_tests::rig::{rtl_cards, thorough};

/// Tests of the ordinary form: commands and stores in both directions, a commit, a page switch.
const FAST: [&str; 5] = [
    "i1-undo-log-then-store",
    "i1-command-then-load",
    "i2-bypassing-store-behind-command",
    "c7-order-of-stores-survives",
    "c1-commit-after-its-logs",
];
/// Copies of the process at a time.
const JOBS: usize = 4;

#[test]
fn what_the_rtl_shows_at_any_cycle_the_model_allows() {
    let cards = Arc::new(rtl_cards(MemoryPorts::One));
    keep_panics();
    let tests = tests();
    let programs = if thorough() { 2 } else { 1 };
    let one_card = |test: &Test| runs(test) && test.devices == 1;
    let chosen = tests.iter().filter(|(name, test)| one_card(test) && (thorough() || FAST.contains(&name.as_str())));
    let (start, mut all) = (Instant::now(), Comparison::default());
    let (mut cuts, mut cycles) = (0, 0);
    for (name, test) in chosen {
        let (mut shown, before, begun) = (BTreeSet::new(), cuts, Instant::now());
        for seed in 0..programs {
            let run = observe(test, &cards, seed, JOBS);
            shown.extend(run.states);
            cuts += run.cuts;
            cycles += run.cycles;
        }
        println!("{name}: {} cuts, {} states, {:.1} s", cuts - before, shown.len(), begun.elapsed().as_secs_f64());
        all.take(name, test, &shown);
    }
    let Comparison { tests: number, allowed, reached, wrong, .. } = all;
    println!(
        "{number} tests, {programs} programs of each, {cuts} cuts, {reached} of {allowed} allowed states reached; {:.1} million cycles behind cuts, {:.0} s",
        cycles as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    let violations = wrong.len();
    println!(
        r#"{{"counts":{{"tests":{number},"cuts":{cuts},"cycles":{cycles},"reached":{reached},"allowed":{allowed},"violations":{violations}}}}}"#
    );
    assert_eq!(wrong, Vec::<String>::new(), "shown and not allowed");
    assert!(number >= if thorough() { 40 } else { FAST.len() }, "{number} tests");
    assert!(10 * reached > 6 * allowed, "{reached} of {allowed} states");
}
