//! A test's expectation against what the model reaches.

use std::collections::BTreeSet;

use crate::explore::{Exploration, Outcome};
use crate::litmus::Test;
use crate::litmus::expected::{Named, fits};

/// The states that a test allows.
pub fn expected(test: &Test) -> BTreeSet<Outcome> {
    states(&test.allowed)
}

/// The states of `allowed` lines.
pub fn states(allowed: &[Named]) -> BTreeSet<Outcome> {
    let complete = |state: &Vec<Option<String>>| state.iter().flatten().cloned().collect();
    allowed.iter().flat_map(|named| named.states.iter().map(complete)).collect()
}

/// Differences between what a test expects and what was found, as sentences; none if the set is
/// exactly the expected one.
pub fn differences(test: &Test, found: &Exploration) -> Vec<String> {
    let mut all = compare(&test.observed, &test.allowed, &test.forbidden, &found.outcomes);
    if found.stuck {
        all.push("the program can come to a stand".into());
    }
    all
}

/// Differences between sets of states, as sentences: of any model.
pub fn compare(
    observed: &[String],
    allowed: &[Named],
    forbidden: &[Named],
    outcomes: &BTreeSet<Outcome>,
) -> Vec<String> {
    let expected = states(allowed);
    let mut all: Vec<String> = Vec::new();
    for state in outcomes.difference(&expected) {
        let pattern: Vec<Option<String>> = state.iter().cloned().map(Some).collect();
        let why = forbidden.iter().find(|f| f.states.iter().any(|p| fits(p, &pattern)));
        let why = why.map(|f| format!(" ({}: {})", f.name, f.reason)).unwrap_or_default();
        all.push(format!("reached and not allowed: {}{why}", with_names(observed, state)));
    }
    for state in expected.difference(outcomes) {
        all.push(format!("allowed and not reached: {}", with_names(observed, state)));
    }
    all
}

/// A state of a test with its names.
pub fn printed(test: &Test, state: &Outcome) -> String {
    with_names(&test.observed, state)
}

/// A state with the names of what is observed.
pub fn with_names(observed: &[String], state: &[String]) -> String {
    observed.iter().zip(state).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
