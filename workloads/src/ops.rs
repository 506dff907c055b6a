//! Deterministic operations: the same seed gives the same sequence on every machine.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::map::Value;

/// One operation, which is one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the value of a key.
    Insert(u64, Value),
    /// Removes a key, which may be absent.
    Remove(u64),
    /// Looks a key up.
    Get(u64),
}

/// What a sequence consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Random new keys (paper, Table 4).
    Inserts,
    /// Inserts, updates, removals and look-ups on few keys, so that structures shrink too.
    Churn,
}

/// A value that names its key and the operation that wrote it.
pub fn value_of(key: u64, op: u64) -> Value {
    let mut value = [0; 64];
    for (i, word) in value.chunks_exact_mut(8).enumerate() {
        let word_value = key.rotate_left(8 * i as u32) ^ op.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i as u64;
        word.copy_from_slice(&word_value.to_le_bytes());
    }
    value
}

/// `count` operations by `seed`.
pub fn generate(mix: Mix, seed: u64, count: usize) -> Vec<Op> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let keys = (count as u64 / 4).max(8);
    (0..count as u64)
        .map(|i| match mix {
            Mix::Inserts => {
                let key = rng.random();
                Op::Insert(key, value_of(key, i))
            }
            Mix::Churn => {
                let key = rng.random_range(0..keys);
                match rng.random_range(0..10) {
                    0..=4 => Op::Insert(key, value_of(key, i)),
                    5..=8 => Op::Remove(key),
                    _ => Op::Get(key),
                }
            }
        })
        .collect()
}

/// Applies an operation to a model.
pub fn apply(model: &mut BTreeMap<u64, Value>, op: &Op) {
    match op {
        Op::Insert(key, value) => {
            model.insert(*key, *value);
        }
        Op::Remove(key) => {
            model.remove(key);
        }
        Op::Get(_) => {}
    }
}
