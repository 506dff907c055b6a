//! Exhaustive search: every state that a test's computer can reach, each once.

use std::collections::{BTreeSet, HashSet};

use crate::litmus::Test;
use crate::model::{Model, Phase, State};
use crate::rules::Rules;

/// Values of the observables, as they are printed.
pub type Outcome = Vec<String>;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// States of the running program: the moments at which the power may fail first.
    pub crash_states: usize,
    /// The different observations.
    pub outcomes: BTreeSet<Outcome>,
    /// The program came to a state in which nothing goes on although it has not ended.
    pub stuck: bool,
}

/// More states than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {bound} states: the test is too large to be searched")]
pub struct TooLarge {
    /// The bound.
    pub bound: usize,
}

/// Searches all states of a test.
///
/// # Errors
/// If there are more states than `bound`.
pub fn explore(test: &Test, rules: Rules, bound: usize) -> Result<Exploration, TooLarge> {
    let model = Model::new(test, rules);
    let mut found = Exploration { states: 0, steps: 0, crash_states: 0, outcomes: BTreeSet::new(), stuck: false };
    let mut seen: HashSet<State> = HashSet::new();
    let mut open = vec![model.start()];
    seen.insert(model.start());
    while let Some(state) = open.pop() {
        if seen.len() > bound {
            return Err(TooLarge { bound });
        }
        found.outcomes.extend(model.observe(&state));
        if state.phase == Phase::Running {
            found.crash_states += 1;
            found.stuck |= is_stuck(&model, &state);
        }
        for next in model.steps(&state) {
            found.steps += 1;
            if !seen.contains(&next) {
                seen.insert(next.clone());
                open.push(next);
            }
        }
    }
    found.states = seen.len();
    Ok(found)
}

fn is_stuck(model: &Model, state: &State) -> bool {
    let mut next = Vec::new();
    if !model.is_finished(state) {
        model.program_steps(state, &mut next);
        return next.is_empty();
    }
    false
}
