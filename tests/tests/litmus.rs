//! The litmus tests of the ordering model on the transaction-level card: whatever a run shows, the model allows.
//!
//! An adversarial host runs each program that a card's commands can express, many times, and the power fails at a random moment. At the end
//! stands how many of the allowed states were seen.

use std::collections::BTreeSet;

use nearpm_ppo::verdict::{expected, printed};
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::litmus::{observe_once, runs, tests};

const RUNS: u64 = 300;

/// Powers a card up, perhaps one with a protection planted away.
fn power(fault: Option<Fault>) -> impl Fn(Medium) -> Box<dyn CardCore> {
    move |medium| match fault {
        None => Box::new(ModelCard::new(Config::default(), medium)),
        Some(fault) => Box::new(ModelCard::with_fault(Config::default(), medium, fault)),
    }
}

#[test]
fn what_the_card_shows_the_model_allows() {
    let tests = tests();
    let (mut run, mut reached, mut allowed, mut wrong) = (0, 0, 0, Vec::new());
    for (name, test) in tests.iter().filter(|(_, test)| runs(test)) {
        let may = expected(test);
        let shown: BTreeSet<Vec<String>> = (0..RUNS).map(|seed| observe_once(test, &power(None), seed)).collect();
        wrong.extend(shown.difference(&may).map(|s| format!("{name}: {}", printed(test, s))));
        let missing: Vec<String> = may.difference(&shown).map(|s| printed(test, s)).collect();
        println!("{name:<44} {}/{} {}", may.len() - missing.len(), may.len(), missing.join("; "));
        run += 1;
        reached += may.len() - missing.len();
        allowed += may.len();
    }
    println!("{run} of {} tests, {RUNS} runs each, {reached} of {allowed} allowed states reached", tests.len());
    let violations = wrong.len();
    println!(
        r#"{{"counts":{{"tests":{run},"runs":{},"reached":{reached},"allowed":{allowed},"violations":{violations}}}}}"#,
        run * RUNS
    );
    assert_eq!(wrong, Vec::<String>::new(), "shown and not allowed");
    assert!(run >= 30 && 2 * reached > allowed, "{run} tests, {reached} of {allowed} states");
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
            .map(|seed| observe_once(test, &power(Some(fault)), seed))
            .find(|state| !may.contains(state))
        {
            Some(state) => println!("{fault:?}: {name} shows {}", printed(test, &state)),
            None => unseen.push((fault, name)),
        }
    }
    assert_eq!(unseen, []);
}
