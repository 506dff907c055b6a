//! The litmus files: exact in both forms, and each can fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearpm_sbrp::explain::{Explanation, explain};
use nearpm_sbrp::litmus::{Test, parse};
use nearpm_sbrp::rules::{Rule, Semantics};
use nearpm_sbrp::verdict::{BOUND, differences, needed, outcomes};
use nearpm_sbrp::{Model, operational};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn tests() -> BTreeMap<String, Test> {
    let files = std::fs::read_dir(root().join("litmus")).expect("the folder of the tests");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let test = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, test)
    };
    files.map(read).collect()
}

#[test]
fn every_test_has_exactly_its_states_in_both_forms() {
    let tests = tests();
    assert!(tests.len() >= 120, "{} tests", tests.len());
    for (name, test) in &tests {
        let wrong = differences(test, |semantics| semantics).expect("small");
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        assert_eq!(test.allowed.len(), 4, "{name} says what each model allows");
    }
}

#[test]
fn each_test_names_the_rules_that_it_needs_and_each_rule_is_needed() {
    let tests = tests();
    let mut by_rule: BTreeMap<Rule, usize> = BTreeMap::new();
    for (name, test) in &tests {
        assert_eq!(needed(test), test.needs, "{name}: what `needs` names");
        assert!(!test.needs.is_empty(), "{name} fails without no rule");
        test.needs.iter().for_each(|rule| *by_rule.entry(*rule).or_default() += 1);
    }
    let never: Vec<&str> = Rule::ALL.iter().filter(|r| !by_rule.contains_key(r)).map(|r| r.name()).collect();
    assert!(never.is_empty(), "no test needs {never:?}");
}

#[test]
fn a_dropped_rule_is_reported_with_the_reason_of_what_it_forbids() {
    let tests = tests();
    let wrong = differences(&tests["of-two-stores"], |s| s.without(Rule::OFenceOrders)).expect("small");
    let said = wrong.iter().any(|line| line.contains("the second is durable without the first"));
    assert!(said, "{wrong:#?}");
}

#[test]
fn every_allowed_state_has_a_witness_that_the_machine_can_take() {
    for (name, test) in tests() {
        let semantics = Semantics::of(Model::Sbrp);
        let machine = operational::Machine::new(&test, semantics);
        for outcome in outcomes(&test, Model::Sbrp) {
            let found = explain(&test, semantics, &outcome, BOUND).expect("small");
            let Explanation::Allowed(steps) = found else { panic!("{name}: {outcome:?} has no witness") };
            let mut state = machine.start();
            for step in steps {
                let next = machine.steps(&state).into_iter().find(|(taken, _)| *taken == step);
                state = next.unwrap_or_else(|| panic!("{name}: {step:?} cannot be taken")).1;
            }
            assert_eq!(machine.observe(&state), outcome, "{name}");
        }
    }
}

#[test]
fn what_is_refused_names_both_lines() {
    let test = &tests()["cu-chain-block"];
    let state = nearpm_sbrp::explain::state(test, "x=0 y=1").expect("a state");
    let found = explain(test, Semantics::of(Model::Sbrp), &state, BOUND).expect("small");
    let line_of = |word: usize| test.stores().iter().find(|store| store.word == word).expect("a store").line;
    let refused = nearpm_sbrp::axiomatic::Refusal::Order(line_of(0), line_of(1));
    assert_eq!(found, Explanation::Refused(refused));
}

/// Neither form of the completed model allows what the model it is compared with as the stronger
/// forbids.
#[test]
fn models_are_as_strong_as_they_are_said_to_be() {
    for (name, test) in tests() {
        let of = |model| outcomes(&test, model);
        assert_eq!(of(Model::Epoch), of(Model::EpochPm), "{name}: the two epoch models differ in cost only");
        assert!(of(Model::Sbrp).is_subset(&of(Model::SbrpAsPublished)), "{name}: completing the model adds no state");
        // Strict persistency refuses every order of SBRP's persists that visibility has not.
        let strict = of(Model::Strict);
        assert!(strict.is_subset(&of(Model::Sbrp)), "{name}: strict persistency is the strongest");
    }
}

#[test]
fn the_page_lists_every_rule_and_every_family() {
    let page = root().join("../../docs/sbrp.md");
    let page = std::fs::read_to_string(page).expect("docs/sbrp.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} | {} |", rule.name(), rule.text(), rule.source());
        assert!(page.contains(&row), "docs/sbrp.md lacks the row\n{row}");
    }
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    tests().into_values().for_each(|test| *families.entry(test.family).or_default() += 1);
    for (family, count) in &families {
        assert!(page.contains(&format!("| {family} | {count} |")), "docs/sbrp.md lacks `| {family} | {count} |`");
    }
}
