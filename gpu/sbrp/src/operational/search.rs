//! Exhaustive search of the machine's states, with a shortest way to each outcome.

use std::collections::{BTreeMap, HashMap};

use super::{Machine, Step};
use crate::litmus::Test;
use crate::outcome::Outcome;
use crate::rules::Semantics;

/// More states than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {bound} states: the test is too large to be searched")]
pub struct TooLarge {
    /// The bound.
    pub bound: usize,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Different states.
    pub states: usize,
    /// Each outcome, with a shortest run after which the power may fail and leave it: its witness.
    pub witnesses: BTreeMap<Outcome, Vec<Step>>,
}

/// Searches all states of a test.
///
/// # Errors
/// If there are more states than `bound`.
pub fn explore(test: &Test, semantics: Semantics, bound: usize) -> Result<Exploration, TooLarge> {
    let machine = Machine::new(test, semantics);
    let start = machine.start();
    let mut number = HashMap::from([(start.clone(), 0)]);
    // Breadth first: the first state that shows an outcome is one of the nearest.
    let mut states = vec![start];
    let mut from: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut found: BTreeMap<Outcome, usize> = BTreeMap::new();
    let mut next = 0;
    while let Some(state) = states.get(next).cloned() {
        found.entry(machine.observe(&state)).or_insert(next);
        for (step, after) in machine.steps(&state) {
            if !number.contains_key(&after) {
                number.insert(after.clone(), states.len());
                states.push(after);
                from.push((next, Some(step)));
            }
        }
        if states.len() > bound {
            return Err(TooLarge { bound });
        }
        next += 1;
    }
    let way = |mut at: usize| {
        let mut steps = Vec::new();
        while let (before, Some(step)) = from[at] {
            steps.push(step);
            at = before;
        }
        steps.reverse();
        steps
    };
    let witnesses = found.into_iter().map(|(outcome, at)| (outcome, way(at))).collect();
    Ok(Exploration { states: states.len(), witnesses })
}
