//! Compares what a pool holds with what it must hold.
//!
//! After a crash a pool must hold the effects of a *prefix* of the operations: at least every acknowledged one, at
//! most every started one, none of them in part.

use std::collections::BTreeMap;

use nearpm::Pool;

use crate::map::{Fault, Map, Value};
use crate::ops::{self, Op};

/// A violation of crash consistency.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// The structure is damaged.
    #[error(transparent)]
    Structure(#[from] Fault),
    /// The contents are those of no prefix that is allowed.
    #[error(
        "the contents are those of no prefix from {acknowledged} (acknowledged) to {started} (started) operations; against the former: {difference}"
    )]
    NoPrefix {
        /// Acknowledged operations.
        acknowledged: usize,
        /// Started operations.
        started: usize,
        /// First difference from the state after the acknowledged operations.
        difference: String,
    },
}

/// Contents of the map at the root of a pool, with every invariant checked. An empty pool has none.
pub fn contents<M: Map>(pool: &Pool) -> Result<BTreeMap<u64, Value>, Fault> {
    let root = pool.root()?;
    if root == 0 {
        return Ok(BTreeMap::new());
    }
    let mut result = Ok(BTreeMap::new());
    pool.tx(|tx| {
        result = M::at(root).contents(tx);
        Ok(())
    })?;
    result
}

/// Checks the contents of a pool after a crash; gives the number of operations whose effects are there.
pub fn prefix<M: Map>(pool: &Pool, ops: &[Op], acknowledged: usize, started: usize) -> Result<usize, Violation> {
    let found = contents::<M>(pool)?;
    prefix_of(&found, ops, acknowledged, started)
}

/// The same for contents that were read already.
pub fn prefix_of(
    found: &BTreeMap<u64, Value>,
    ops: &[Op],
    acknowledged: usize,
    started: usize,
) -> Result<usize, Violation> {
    let mut model = BTreeMap::new();
    ops[..acknowledged].iter().for_each(|op| ops::apply(&mut model, op));
    let mut differing = differences(&model, found);
    if differing == 0 {
        return Ok(acknowledged);
    }
    let first = first_difference(&model, found);
    for (i, op) in ops.iter().enumerate().take(started).skip(acknowledged) {
        let (Op::Insert(key, _) | Op::Remove(key) | Op::Get(key)) = op;
        let before = (model.get(key) != found.get(key)) as usize;
        ops::apply(&mut model, op);
        let after = (model.get(key) != found.get(key)) as usize;
        differing = differing + after - before;
        if differing == 0 {
            return Ok(i + 1);
        }
    }
    Err(Violation::NoPrefix { acknowledged, started, difference: first })
}

/// Keys on which two maps differ.
fn differences(model: &BTreeMap<u64, Value>, found: &BTreeMap<u64, Value>) -> usize {
    let missing = model.iter().filter(|(k, v)| found.get(k) != Some(v)).count();
    missing + found.keys().filter(|k| !model.contains_key(k)).count()
}

fn first_difference(model: &BTreeMap<u64, Value>, found: &BTreeMap<u64, Value>) -> String {
    let lost = model.iter().find(|(k, v)| found.get(k) != Some(v));
    let extra = found.keys().find(|k| !model.contains_key(k));
    match (lost, extra) {
        (Some((key, _)), _) if found.contains_key(key) => format!("key {key:#x} has another value"),
        (Some((key, _)), _) => format!("key {key:#x} is missing"),
        (None, Some(key)) => format!("key {key:#x} is there and should not be"),
        (None, None) => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_told_from_anything_else() {
        let ops = ops::generate(ops::Mix::Churn, 3, 60);
        for take in 0..=ops.len() {
            let mut model = BTreeMap::new();
            ops[..take].iter().for_each(|op| ops::apply(&mut model, op));
            let low = take.saturating_sub(5);
            let high = (take + 3).min(ops.len());
            let found = prefix_of(&model, &ops, low, high).unwrap();
            // Operations without effect make equal states: any of them will do.
            let mut same = BTreeMap::new();
            ops[..found].iter().for_each(|op| ops::apply(&mut same, op));
            assert_eq!(same, model);
            model.insert(u64::MAX, [1; 64]);
            assert!(prefix_of(&model, &ops, low, high).is_err());
        }
    }
}
