//! The two forms of each model allow the same outcomes.

use std::collections::BTreeSet;

use nearpm_sbrp::random::trial;
use nearpm_sbrp::{axiomatic, operational};

#[test]
fn both_forms_agree_on_random_programs() {
    let mut outcomes = 0;
    for seed in 0..std::env::var("N").map_or(2000, |n| n.parse().unwrap()) {
        let trial = trial(seed);
        let axioms = axiomatic::outcomes(&trial.test, trial.semantics);
        let machine = operational::explore(&trial.test, trial.semantics, 1_000_000).expect("small");
        let machine: BTreeSet<_> = machine.witnesses.into_keys().collect();
        let only = |a: &BTreeSet<Vec<u8>>, b: &BTreeSet<Vec<u8>>| a.difference(b).take(3).cloned().collect::<Vec<_>>();
        assert!(
            axioms == machine,
            "seed {seed}, {}, without {:?}\n{}\nonly axioms {:?}\nonly machine {:?}",
            trial.semantics.model, trial.dropped, trial.text, only(&axioms, &machine), only(&machine, &axioms)
        );
        outcomes += axioms.len();
    }
    assert!(outcomes > 20_000, "{outcomes} outcomes: the programs do nothing");
}
