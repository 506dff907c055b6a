//! Why a state may be, or may not: a run that ends in it, or the order that it would break.

use crate::axiomatic::{Refusal, refusal};
use crate::litmus::{Observable, Test, Value};
use crate::operational::{Step, TooLarge, explore};
use crate::outcome::Outcome;
use crate::rules::Semantics;

/// The answer to "why".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The state may be: a shortest run after which the power may fail and leave it.
    Allowed(Vec<Step>),
    /// It may not.
    Refused(Refusal),
}

/// Explains a state.
///
/// # Errors
/// If the machine has more than `bound` states.
pub fn explain(test: &Test, semantics: Semantics, state: &Outcome, bound: usize) -> Result<Explanation, TooLarge> {
    let mut found = explore(test, semantics, bound)?;
    Ok(match found.witnesses.remove(state) {
        Some(steps) => Explanation::Allowed(steps),
        None => Explanation::Refused(refusal(test, semantics, state)),
    })
}

/// Reads `x=1 y=0 r=-`: every observable has its value.
///
/// # Errors
/// What is wrong with it.
pub fn state(test: &Test, text: &str) -> Result<Outcome, String> {
    let mut values: Vec<Option<Value>> = vec![None; test.observed.len()];
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is no `name=value`"))?;
        let place = test.observed.iter().position(|o| o == name).ok_or_else(|| format!("`{name}` is not observed"))?;
        let register = matches!(test.observables[place], Observable::Register(_));
        values[place] = Some(match value {
            "-" if register => crate::litmus::NOT_LOADED,
            _ => value.parse().map_err(|_| format!("`{value}` is no value of `{name}`"))?,
        });
    }
    let complete: Option<Outcome> = values.iter().copied().collect();
    complete.ok_or_else(|| format!("a state names all that is observed: {}", test.observed.join(" ")))
}

/// The explanation, a line a step.
pub fn in_words(test: &Test, explanation: &Explanation) -> Vec<String> {
    match explanation {
        Explanation::Allowed(steps) => steps.iter().map(|step| step_in_words(test, *step)).collect(),
        Explanation::Refused(why) => vec![match why {
            Refusal::NotExecuted => "no execution loads these values and sets these marks".to_string(),
            Refusal::NotStored => "no store leaves these values".into(),
            Refusal::Order(first, second) => {
                format!("the store at line {second} is durable, and what it is ordered behind, at line {first}, is not")
            }
            Refusal::Wait(line) => format!("the store at line {line} is not durable, and something has waited for it"),
            Refusal::Contradiction => {
                "the words would have to become durable in orders that contradict each other".into()
            }
        }],
    }
}

fn step_in_words(test: &Test, step: Step) -> String {
    match step {
        Step::Executed { thread, line } => format!("{} executes line {line}", test.threads[thread].name),
        Step::Durable { store } => {
            let site = test.stores()[store];
            format!("{}={} of line {} becomes durable", test.words[site.word].name, site.value, site.line)
        }
        Step::Ended { launch } => format!("the host is told that launch {launch} has ended"),
    }
}
