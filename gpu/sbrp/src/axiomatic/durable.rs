//! What may be durable when the power fails in an execution.

use super::candidate::{Candidate, product};
use super::matrix::Matrix;
use super::order::Order;
use crate::litmus::Action;
use crate::outcome::{Outcome, observe};

/// Calls `found` with every outcome.
pub fn each(candidate: &Candidate, order: &Order, mut found: impl FnMut(Outcome)) {
    for set in 0..1u32 << order.persists.len() {
        let closed = order.before.iter().enumerate().all(|(i, before)| set >> i & 1 == 0 || before & !set == 0);
        if closed && order.waited_for & !set == 0 {
            each_last(candidate, order, set, &mut found);
        }
    }
}

/// Goes through what may be the last durable store of each word.
fn each_last(candidate: &Candidate, order: &Order, set: u32, found: &mut impl FnMut(Outcome)) {
    let words = candidate.test.words.len();
    let of_word = |word: usize| {
        (0..order.persists.len()).filter(move |i| set >> i & 1 == 1 && word_of(candidate, order.persists[*i]) == word)
    };
    let choices: Vec<Vec<Option<usize>>> = (0..words)
        .map(|word| {
            let last = |i: &usize| of_word(word).all(|other| order.before[other] >> i & 1 == 0);
            let all: Vec<_> = of_word(word).filter(last).map(Some).collect();
            if all.is_empty() { vec![None] } else { all }
        })
        .collect();
    let several = choices.iter().any(|choice| choice.len() > 1);
    product(&choices, |last| {
        if several && !is_an_order(order, set, last, of_word) {
            return;
        }
        let value = |word: usize| match last[word].map(|i| candidate.events[order.persists[i]].action) {
            Some(Action::Store { value, .. }) => value,
            _ => candidate.test.words[word].initial,
        };
        found(observe(candidate.test, value, &candidate.registers, candidate.marks, candidate.ended));
    });
}

/// Whether one order of the persists makes all of `last` the last of their words.
fn is_an_order<I: Iterator<Item = usize>>(
    order: &Order,
    set: u32,
    last: &[Option<usize>],
    of_word: impl Fn(usize) -> I,
) -> bool {
    let mut related = Matrix::new(order.persists.len());
    for b in (0..order.persists.len()).filter(|i| set >> i & 1 == 1) {
        (0..order.persists.len()).filter(|a| order.before[b] >> a & 1 == 1).for_each(|a| related.add(a, b));
    }
    for (word, chosen) in last.iter().enumerate() {
        let Some(chosen) = chosen else { continue };
        of_word(word).filter(|other| other != chosen).for_each(|other| related.add(other, *chosen));
    }
    related.close();
    related.is_irreflexive()
}

fn word_of(candidate: &Candidate, event: usize) -> usize {
    match candidate.events[event].action {
        Action::Store { word, .. } => word,
        _ => usize::MAX,
    }
}
