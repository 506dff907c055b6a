//! The litmus tests of the ordering model on the transaction-level card: whatever a run shows, the model allows.
//!
//! An adversarial host runs each program that the commands of one card or several can express, many times, and the power fails at a random moment. At the end
//! stands how many of the allowed states were seen.

use std::collections::BTreeSet;

use nearpm_ppo::verdict::{expected, printed};
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Peers;
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::litmus::comparison::Comparison;
use nearpm_tests::litmus::{observe_once, runs as can_run, tests};
use nearpm_tests::rig::thorough;

/// Runs of each test; in the long form more, for as long as an allowed state was not shown.
const RUNS: u64 = 300;
const MOST_RUNS: u64 = 3000;

/// Allowed states that no run shows: `test | state | why`.
const UNREACHED: &str = include_str!("../src/litmus/unreached.txt");

/// Powers a card up, perhaps one with a protection planted away.
fn power(fault: Option<Fault>) -> impl Fn(Medium) -> Box<dyn CardCore> {
    move |medium| match fault {
        None => Box::new(ModelCard::new(Config::default(), medium)),
        Some(fault) => Box::new(ModelCard::with_fault(Config::default(), medium, fault)),
    }
}

/// The links among several cards: in every other run they lose, double and delay messages.
fn links(seed: u64) -> Peers {
    let links = Peers::default();
    if seed.is_multiple_of(2) { links } else { links.adversarial(seed) }
}

/// `test | state` of a line with a reason.
fn state_of(line: &str) -> &str {
    let (state, why) = line.rsplit_once(" | ").expect("test | state | why");
    assert!(why.len() > 20, "{line}: no reason");
    state
}

#[test]
fn what_the_card_shows_the_model_allows() {
    let tests = tests();
    let (mut all, mut several, mut runs) = (Comparison::default(), 0, 0);
    let most = if thorough() { MOST_RUNS } else { RUNS };
    for (name, test) in tests.iter().filter(|(_, test)| can_run(test)) {
        let (may, mut shown) = (expected(test), BTreeSet::new());
        let mut seed = 0;
        while seed < RUNS || seed < most && !may.is_subset(&shown) {
            shown.insert(observe_once(test, &power(None), links(seed), seed));
            seed += 1;
        }
        runs += seed;
        all.take(name, test, &shown);
        several += usize::from(test.devices > 1);
    }
    let Comparison { tests: run, allowed, reached, wrong, missing } = all;
    println!(
        "{run} of {} tests, {several} of them with several cards, {RUNS} to {most} runs each, {reached} of {allowed} allowed states reached",
        tests.len()
    );
    let violations = wrong.len();
    println!(
        r#"{{"counts":{{"tests":{run},"runs":{runs},"reached":{reached},"allowed":{allowed},"violations":{violations}}}}}"#
    );
    assert_eq!(wrong, Vec::<String>::new(), "shown and not allowed");
    assert!(
        run >= 45 && several >= 6 && 2 * reached > allowed,
        "{run} tests, {several} with several cards, {reached} of {allowed} states"
    );
    let explained: BTreeSet<String> = UNREACHED.lines().map(|line| state_of(line).to_owned()).collect();
    assert_eq!(explained.difference(&missing).collect::<Vec<_>>(), [""; 0], "explained, and shown all the same");
    if thorough() {
        assert_eq!(missing.difference(&explained).collect::<Vec<_>>(), [""; 0], "neither shown nor explained");
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
    ];
    let mut unseen = Vec::new();
    for (fault, name) in planted {
        let test = &tests[name];
        let may = expected(test);
        match (0..10 * RUNS)
            .map(|seed| observe_once(test, &power(Some(fault)), links(seed), seed))
            .find(|state| !may.contains(state))
        {
            Some(state) => println!("{fault:?}: {name} shows {}", printed(test, &state)),
            None => unseen.push((fault, name)),
        }
    }
    assert_eq!(unseen, []);
}
