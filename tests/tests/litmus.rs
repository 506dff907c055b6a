//! The litmus tests of the ordering model on the transaction-level card: whatever a run shows, the
//! model allows.
//!
//! An adversarial host runs each program that the commands of one card or several can express, many
//! times, and the power fails at a random moment. At the end stands how many of the allowed states
//! were seen.

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
const RUNS: u64 = 120;
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
    let explained = tests.iter().filter_map(|(name, test)| Some((name, test.model_only.as_ref()?)));
    explained.clone().for_each(|(name, why)| println!("{name:<44} explained: {why}"));
    all.hold(&[("runs", runs), ("tests explained", explained.count() as u64)], thorough());
    assert!(
        run >= 45 && several >= 6 && 2 * reached > allowed,
        "{run} tests, {several} with several cards, {reached} of {allowed} states"
    );
}

/// A test that no card runs has a reason in its file, and no other test has one; the page counts
/// both.
#[test]
fn a_test_that_no_card_runs_says_why() {
    let tests = tests();
    let wrong: Vec<&str> = tests
        .iter()
        .filter(|(_, test)| can_run(test) == test.model_only.as_ref().is_some_and(|why| why.len() > 20))
        .map(|(name, _)| &name[..])
        .collect();
    assert_eq!(wrong, [""; 0], "run and explained, or neither");
    let alone = tests.values().filter(|test| test.model_only.is_some()).count();
    let page = include_str!("../../docs/ppo.md");
    for count in [
        format!("and {} litmus tests in `proof/ppo/litmus`", tests.len()),
        format!(
            "runs the {} tests that commands, or a microprogram of the tests' own, can express",
            tests.len() - alone
        ),
        format!("The other {alone} are the model's alone"),
    ] {
        assert!(page.contains(&count), "docs/ppo.md does not say: {count}");
    }
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
        (Fault::ResetDropsWork, "c8-reset-drains"),
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
