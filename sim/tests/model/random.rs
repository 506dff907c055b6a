//! Conflict-heavy random runs against the sequential oracle: loads, statuses, memory, and the order
//! of the trace.

use crate::support::scenario::{Boot, boot, compare, conflicts, cut_at, mechanisms, run};
use crate::support::*;

#[test]
fn every_mechanism_does_what_the_oracle_says() {
    for scenario in mechanisms() {
        run(&scenario, None).unwrap();
    }
}

#[test]
fn random_conflicts_are_as_if_one_after_the_other() {
    for seed in 0..150 {
        run(&conflicts(seed, 150), None).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

#[test]
fn random_cuts_of_random_conflicts_lose_nothing_and_invent_nothing() {
    for seed in 0..300 {
        let scenario = conflicts(seed, 60);
        let cycle = seed * 7919 % 1500;
        let (medium, oracle, _) = cut_at(&scenario, cycle, ENERGY, None);
        let (rig, end) = boot(medium, None);
        assert_eq!(end, Boot::Open, "seed {seed}");
        compare(&rig, &oracle, "conflicts").unwrap_or_else(|e| panic!("seed {seed} cycle {cycle}: {e}"));
    }
}
