//! The axiomatic form: all executions of a test, and in each all sets of persists that the
//! relations permit to be durable.
//!
//! An execution is a prefix of each thread, for each load the store that it reads, and for each
//! word an order of its stores, together consistent with one order of all ([`candidate`]). In it
//! `pmo` is a relation among stores to PM ([`order`]). The power may fail with any set durable that
//! holds with a store all that is `pmo` before it, and all that a completed wait has waited for. A
//! word then holds the last of its durable stores in any order that has `pmo` in it ([`durable`]).

mod candidate;
mod durable;
mod matrix;
mod order;
mod refusal;

use std::collections::BTreeSet;

pub use refusal::{Refusal, refusal};

use crate::litmus::Test;
use crate::outcome::Outcome;
use crate::rules::Semantics;

/// All outcomes of a test.
pub fn outcomes(test: &Test, semantics: Semantics) -> BTreeSet<Outcome> {
    let lowered = if semantics.is_epoch() { test.with_barriers() } else { test.clone() };
    let mut found = BTreeSet::new();
    candidate::each(&lowered, |candidate| {
        let order = order::of(candidate, semantics);
        durable::each(candidate, &order, |outcome| {
            found.insert(outcome);
        });
    });
    found
}
