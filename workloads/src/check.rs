//! Compares what a pool holds with what it must hold.
//!
//! After a crash a pool must hold the effects of a *prefix* of the operations, none of them in
//! part, and, where commits are durable or epochs are cut, of three prefixes only. Let a be the
//! operations that were acknowledged, and s those that were started.
//!
//! - a operations: everything later was rolled back.
//! - s operations: the one in flight became durable before the program heard of it.
//! - s - 1 operations: those that had returned became durable together, as when the operation in
//!   flight cut the epoch before it began.
//!
//! Under undo and redo logging with durable commits a is s - 1 or s. Under checkpointing and shadow
//! paging a is the last acknowledged cut, and what lies between two cuts is no state that recovery
//! may leave.
//!
//! With asynchronous commits a is the operations up to the last `persist`. Each later one became
//! durable by itself, in order, so that every prefix from a to s operations is allowed.

use std::collections::BTreeMap;

use nearpm::{Durability, Pool};

use crate::map::{Fault, Map, Value};
use crate::ops::{self, Op};
use crate::programs::{Rows, Workload};

/// A violation of crash consistency.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// The structure is damaged.
    #[error(transparent)]
    Structure(#[from] Fault),
    /// The contents are those of no prefix that is allowed.
    #[error(
        "the contents are those of no prefix that a crash may leave, with {acknowledged} operations acknowledged and {started} started; against the former: {difference}"
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

/// Contents of the map at the root of a pool, with every invariant of map and pool checked. An
/// empty pool has none.
pub fn contents<M: Map>(pool: &Pool) -> Result<BTreeMap<u64, Value>, Fault> {
    pool.check()?;
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

/// Checks the contents of a pool after a crash; gives the number of operations whose effects are
/// there.
pub fn prefix<M: Map>(
    pool: &Pool,
    ops: &[Op],
    acknowledged: usize,
    started: usize,
    commits: Durability,
) -> Result<usize, Violation> {
    let found = contents::<M>(pool)?;
    prefix_of(&found, ops, acknowledged, started, commits)
}

/// The same for contents that were read already.
pub fn prefix_of(
    found: &BTreeMap<u64, Value>,
    ops: &[Op],
    acknowledged: usize,
    started: usize,
    commits: Durability,
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
        if differing == 0 && (i + 2 >= started || commits == Durability::Asynchronous) {
            return Ok(i + 1);
        }
    }
    Err(Violation::NoPrefix { acknowledged, started, difference: first })
}

/// Contents of the program at the root of a pool, with every invariant of program and pool checked.
/// Without a root there are none.
pub fn rows(pool: &Pool, program: &dyn Workload) -> Result<Option<Rows>, Fault> {
    pool.check()?;
    let root = pool.root()?;
    if root == 0 {
        return Ok(None);
    }
    let mut result = Ok(Rows::new());
    pool.tx(|tx| {
        result = program.contents(tx, root);
        Ok(())
    })?;
    result.map(Some)
}

/// Checks the contents of a program's pool after a crash; gives the number of transactions whose
/// effects are there.
pub fn prefix_of_program(
    pool: &Pool,
    program: &dyn Workload,
    acknowledged: usize,
    started: usize,
    commits: Durability,
) -> Result<usize, Violation> {
    let found = rows(pool, program)?.unwrap_or_default();
    let mut model = program.after(acknowledged);
    let first = first_difference(&model, &found);
    for kept in acknowledged..=started {
        let may_be = kept == acknowledged || kept + 1 >= started || commits == Durability::Asynchronous;
        if may_be && model == found {
            return Ok(kept);
        }
        if kept < started {
            program.model(&mut model, kept);
        }
    }
    Err(Violation::NoPrefix { acknowledged, started, difference: first })
}

/// Keys on which two maps differ.
fn differences(model: &BTreeMap<u64, Value>, found: &BTreeMap<u64, Value>) -> usize {
    let missing = model.iter().filter(|(k, v)| found.get(k) != Some(v)).count();
    missing + found.keys().filter(|k| !model.contains_key(k)).count()
}

fn first_difference<V: PartialEq>(model: &BTreeMap<u64, V>, found: &BTreeMap<u64, V>) -> String {
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

    fn state(ops: &[Op], count: usize) -> BTreeMap<u64, Value> {
        let mut model = BTreeMap::new();
        ops[..count].iter().for_each(|op| ops::apply(&mut model, op));
        model
    }

    #[test]
    fn the_three_states_are_told_from_anything_else() {
        let ops = ops::generate(ops::Mix::Churn, 3, 200);
        for started in 20..=ops.len() {
            let acknowledged = started - 20;
            for kept in [acknowledged, started - 1, started] {
                let mut found = state(&ops, kept);
                let judged = prefix_of(&found, &ops, acknowledged, started, Durability::Durable).unwrap();
                // Operations without effect make equal states: any of them will do.
                assert_eq!(state(&ops, judged), found);
                found.insert(u64::MAX, [1; 64]);
                assert!(prefix_of(&found, &ops, acknowledged, started, Durability::Durable).is_err());
            }
        }
    }

    #[test]
    fn a_state_between_two_cuts_is_refused() {
        let ops = ops::generate(ops::Mix::Inserts, 3, 100);
        let between = prefix_of(&state(&ops, 70), &ops, 64, 80, Durability::Durable);
        assert!(matches!(between, Err(Violation::NoPrefix { acknowledged: 64, started: 80, .. })));
        for commits in [Durability::Durable, Durability::Asynchronous] {
            assert!(prefix_of(&state(&ops, 63), &ops, 64, 80, commits).is_err(), "an acknowledged operation is lost");
        }
    }

    #[test]
    fn asynchronous_commits_leave_any_prefix_and_no_hole() {
        let ops = ops::generate(ops::Mix::Inserts, 3, 100);
        for kept in 64..=80 {
            assert_eq!(prefix_of(&state(&ops, kept), &ops, 64, 80, Durability::Asynchronous).unwrap(), kept);
        }
        assert!(prefix_of(&state(&ops, 81), &ops, 64, 80, Durability::Asynchronous).is_err(), "nobody has begun it");
        let mut hole = state(&ops, 72);
        ops::apply(&mut hole, &ops[73]);
        assert!(
            prefix_of(&hole, &ops, 64, 80, Durability::Asynchronous).is_err(),
            "one is missing before one that is there"
        );
    }
}
