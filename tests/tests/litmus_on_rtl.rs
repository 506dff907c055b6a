//! The litmus tests of the ordering model on the RTL, cut at every cycle: whatever is shown the model allows.
//!
//! One test, because a process that makes copies of itself keeps to one thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_ppo::verdict::{expected, printed};
use nearpm_tests::cuts::copies::keep_panics;
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
    let seeds = if thorough() { 6 } else { 1 };
    let chosen: Vec<_> =
        tests.iter().filter(|(name, test)| runs(test) && (thorough() || FAST.contains(&name.as_str()))).collect();
    let (start, mut wrong) = (Instant::now(), Vec::new());
    let (mut reached, mut allowed, mut cuts, mut cycles) = (0, 0, 0, 0);
    for (name, test) in &chosen {
        let may = expected(test);
        let mut shown = BTreeSet::new();
        for seed in 0..seeds {
            let run = observe(test, &cards, seed, JOBS);
            shown.extend(run.states);
            cuts += run.cuts;
            cycles += run.cycles;
        }
        wrong.extend(shown.difference(&may).map(|s| format!("{name}: {}", printed(test, s))));
        let missing: Vec<String> = may.difference(&shown).map(|s| printed(test, s)).collect();
        println!("{name:<44} {}/{} {}", may.len() - missing.len(), may.len(), missing.join("; "));
        reached += may.len() - missing.len();
        allowed += may.len();
    }
    println!(
        "{} tests, {seeds} runs of each, {cuts} cuts, {reached} of {allowed} allowed states reached; {:.1} million cycles behind cuts, {:.0} s",
        chosen.len(),
        cycles as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    let (number, violations) = (chosen.len(), wrong.len());
    println!(
        r#"{{"counts":{{"tests":{number},"cuts":{cuts},"cycles":{cycles},"reached":{reached},"allowed":{allowed},"violations":{violations}}}}}"#
    );
    assert_eq!(wrong, Vec::<String>::new(), "shown and not allowed");
    assert!(chosen.len() >= if thorough() { 40 } else { FAST.len() }, "{} tests", chosen.len());
    assert!(2 * reached > allowed, "{reached} of {allowed} states");
}
