//! The litmus tests of the ordering model on the transaction-level card: whatever a run shows, the model allows.
//!
//! An adversarial host runs each program that the commands of one card or several can express, many times, and the power fails at a random moment. At the end
//! stands how many of the allowed states were seen.

use std::collections::BTreeSet;

use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::{expected, printed};
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Parameters;
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::litmus::comparison::{Cards, Comparison};
use nearpm_tests::litmus::{Begun, links, runs as can_run, tests};
use nearpm_tests::rig::thorough;

/// Runs of each test; in the long form more, for as long as an allowed state was not shown.
const RUNS: u64 = 300;
const MOST_RUNS: u64 = 3000;

/// Powers a card up, perhaps one with a protection planted away.
fn power(fault: Option<Fault>) -> impl Fn(Medium) -> Box<dyn CardCore> {
    move |medium| match fault {
        None => Box::new(ModelCard::new(Config::default(), medium)),
        Some(fault) => Box::new(ModelCard::with_fault(Config::default(), medium, fault)),
    }
}

/// A run on cards with perhaps such a fault.
fn observe(test: &Test, fault: Option<Fault>, seed: u64) -> Vec<String> {
    Begun::new(test, &power(fault), Parameters::default().adversarial(seed), links(seed)).observe(seed)
}

#[test]
fn what_the_card_shows_the_model_allows() {
    let tests = tests();
    let (mut all, mut several, mut runs) = (Comparison::on(Cards::Model), 0, 0);
    let most = if thorough() { MOST_RUNS } else { RUNS };
    for (name, test) in tests.iter().filter(|(_, test)| can_run(test)) {
        let (may, mut shown) = (expected(test), BTreeSet::new());
        let mut seed = 0;
        while seed < RUNS || seed < most && !may.is_subset(&shown) {
            shown.insert(observe(test, None, seed));
            seed += 1;
        }
        runs += seed;
        all.take(name, test, &shown);
        several += usize::from(test.devices > 1);
    }
    let (run, reached, allowed) = (all.tests(), all.reached, all.allowed);
    println!(
        "{run} of {} tests, {several} of them with several cards, {RUNS} to {most} runs each, {reached} of {allowed} allowed states reached",
        tests.len()
    );
    all.hold(&[("runs", runs)], thorough());
    assert!(
        run >= 45 && several >= 6 && 2 * reached > allowed,
        "{run} tests, {several} with several cards, {reached} of {allowed} states"
    );
}

/// A card without a protection shows a state that the model does not allow.
#[test]
fn a_broken_card_shows_what_the_model_forbids() {
    let tests = tests();
    let planted = [
        (Fault::StorePassesWaitingCommand, "i2-bypassing-store-behind-command"),
        (Fault::CommandPassesHeldStore, "c7-order-of-stores-survives"),
        (Fault::LoadsAreNotOrdered, "i1-command-then-load"),
        (Fault::CommitIsNotOrdered, "c1-commit-after-its-logs"),
    ];
    let mut unseen = Vec::new();
    for (fault, name) in planted {
        let test = &tests[name];
        let may = expected(test);
        match (0..10 * RUNS).map(|seed| observe(test, Some(fault), seed)).find(|state| !may.contains(state)) {
            Some(state) => println!("{fault:?}: {name} shows {}", printed(test, &state)),
            None => unseen.push((fault, name)),
        }
    }
    assert_eq!(unseen, []);
}
