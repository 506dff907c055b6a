//! What the tests of several kinds of pools have in common.

use nearpm_explorer::program::{Operation, Transaction};

pub use nearpm_tier::thorough;

/// A transaction of one operation on the slots.
pub fn single(kind: u8, value: u32) -> Transaction {
    Transaction { operations: vec![Operation { kind, key: 0, value }], ..Transaction::default() }
}
