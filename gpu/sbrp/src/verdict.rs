//! A litmus file against both forms of the models.

use std::collections::BTreeSet;

use nearpm_ppo::verdict::compare;

use crate::litmus::Test;
use crate::operational::{TooLarge, explore};
use crate::outcome::{Outcome, in_words};
use crate::rules::{Rule, Semantics};
use crate::{Model, axiomatic};

/// Most states of the machine for a litmus test.
pub const BOUND: usize = 2_000_000;

/// The outcomes of a test, by the axioms.
pub fn outcomes(test: &Test, model: Model) -> BTreeSet<Outcome> {
    axiomatic::outcomes(test, Semantics::of(model))
}

/// What is wrong with a test: differences from what it allows, in either form; none if all is as it
/// says.
///
/// # Errors
/// If the machine has too many states.
pub fn differences(test: &Test, without: impl Fn(Semantics) -> Semantics) -> Result<Vec<String>, TooLarge> {
    let mut all = Vec::new();
    for (model, allowed) in &test.allowed {
        let semantics = without(Semantics::of(*model));
        let forbidden = if *model == Model::Sbrp { test.forbidden.as_slice() } else { &[] };
        let axioms = axiomatic::outcomes(test, semantics);
        let machine: BTreeSet<Outcome> = explore(test, semantics, BOUND)?.witnesses.into_keys().collect();
        for (form, found) in [("axioms", axioms), ("machine", machine)] {
            let found = found.iter().map(|outcome| in_words(outcome)).collect();
            let wrong = compare(&test.observed, allowed, forbidden, &found);
            all.extend(wrong.into_iter().map(|line| format!("{model}, {form}: {line}")));
        }
    }
    Ok(all)
}

/// The rules without which a model of the test allows other states.
pub fn needed(test: &Test) -> Vec<Rule> {
    let models = || test.allowed.iter().map(|(model, _)| Semantics::of(*model));
    let differs = |rule: &Rule| {
        models().any(|semantics| {
            axiomatic::outcomes(test, semantics) != axiomatic::outcomes(test, semantics.without(*rule))
        })
    };
    Rule::ALL.iter().copied().filter(differs).collect()
}
