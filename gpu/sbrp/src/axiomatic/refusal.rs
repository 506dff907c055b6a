//! Why a state cannot be: the order that it would break.

use super::candidate::{self, Candidate};
use super::order;
use crate::litmus::{Action, Observable, Test, Value};
use crate::outcome::observe;
use crate::rules::Semantics;

/// What a state would break, in the execution that comes nearest to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No execution loads these values or sets these marks.
    NotExecuted,
    /// The words hold what no store of an execution leaves.
    NotStored,
    /// Lines of the file: the first store must be durable because the second is.
    Order(usize, usize),
    /// Line of the store that must be durable because of a wait or an end of a launch.
    Wait(usize),
    /// The words would have to be durable in orders that contradict each other.
    Contradiction,
}

/// Why a semantics does not allow a state of a test. Of a state that it does allow the answer means
/// nothing.
pub fn refusal(test: &Test, semantics: Semantics, state: &[Value]) -> Refusal {
    let lowered = if semantics.is_epoch() { test.with_barriers() } else { test.clone() };
    let mut best = (usize::MAX, Refusal::NotExecuted);
    candidate::each(&lowered, |candidate| {
        let word = |word: usize| {
            let place = lowered.observables.iter().position(|o| *o == Observable::Word(word));
            place.map_or(0, |place| state[place])
        };
        if observe(&lowered, word, &candidate.registers, candidate.marks, candidate.ended) != state {
            return;
        }
        let found = nearest(candidate, semantics, state);
        if found.0 < best.0 {
            best = found;
        }
    });
    best.1
}

/// The set of durable stores that breaks the fewest orders, and one that it breaks.
fn nearest(candidate: &Candidate, semantics: Semantics, state: &[Value]) -> (usize, Refusal) {
    let order = order::of(candidate, semantics);
    let line = |place: usize| {
        let event = candidate.events[order.persists[place]];
        candidate.test.threads[event.thread].program[event.place].line
    };
    let mut best = (usize::MAX - 1, Refusal::NotStored);
    for set in 0..1u32 << order.persists.len() {
        if !could_hold(candidate, &order.persists, set, state) {
            continue;
        }
        let places = || (0..order.persists.len()).filter(|b| set >> b & 1 == 1);
        let broken: Vec<(usize, usize)> = places()
            .flat_map(|b| (0..order.persists.len()).filter(move |a| set >> a & 1 == 0).map(move |a| (a, b)))
            .filter(|(a, b)| order.before[*b] >> a & 1 == 1)
            .collect();
        let waited = order.waited_for & !set;
        let count = broken.len() + waited.count_ones() as usize;
        if count < best.0 {
            let why = match broken.first() {
                Some((a, b)) => Refusal::Order(line(*a), line(*b)),
                None if waited != 0 => Refusal::Wait(line(waited.trailing_zeros() as usize)),
                None => Refusal::Contradiction,
            };
            best = (count, why);
        }
    }
    best
}

/// Whether the observed words could hold their values with a set of stores durable, in some order.
fn could_hold(candidate: &Candidate, persists: &[usize], set: u32, state: &[Value]) -> bool {
    candidate.test.observables.iter().zip(state).all(|(observable, wanted)| {
        let Observable::Word(word) = observable else { return true };
        let mut stored = persists.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).filter_map(|(_, event)| {
            match candidate.events[*event].action {
                Action::Store { word: of, value, .. } if of == *word => Some(value),
                _ => None,
            }
        });
        let first = stored.next();
        match first {
            None => candidate.test.words[*word].initial == *wanted,
            Some(value) => value == *wanted || stored.any(|value| value == *wanted),
        }
    })
}
