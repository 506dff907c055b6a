//! A test's expectation against what the model reaches.

use std::collections::BTreeSet;

use crate::explore::{Exploration, Outcome};
use crate::litmus::Test;

/// The states of `allowed`.
pub fn expected(test: &Test) -> BTreeSet<Outcome> {
    let complete = |state: &Vec<Option<String>>| state.iter().flatten().cloned().collect();
    test.allowed.iter().flat_map(|named| named.states.iter().map(complete)).collect()
}

/// Differences between what a test expects and what was found, as sentences; none if the set is exactly the expected one.
pub fn differences(test: &Test, found: &Exploration) -> Vec<String> {
    let expected = expected(test);
    let mut all: Vec<String> = Vec::new();
    for state in found.outcomes.difference(&expected) {
        let pattern: Vec<Option<String>> = state.iter().cloned().map(Some).collect();
        let why = test.forbidden.iter().find(|f| f.states.iter().any(|p| crate::litmus::fits(p, &pattern)));
        let why = why.map(|f| format!(" ({}: {})", f.name, f.reason)).unwrap_or_default();
        all.push(format!("reached and not allowed: {}{why}", printed(test, state)));
    }
    for state in expected.difference(&found.outcomes) {
        all.push(format!("allowed and not reached: {}", printed(test, state)));
    }
    if found.stuck {
        all.push("the program can come to a stand".into());
    }
    all
}

/// A state with its names.
pub fn printed(test: &Test, state: &Outcome) -> String {
    test.observed.iter().zip(state).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
