//! Crash-consistent workloads, written once over the library's transactions.
//!
//! The mechanism (undo log, redo log, checkpoint, shadow paging), the executor (processor or card) and the memory (file, test
//! memory, simulated card) are the pool's; nothing here knows them.
//!
//! | module | holds |
//! |---|---|
//! | [`BTree`] | B+tree, 8-byte keys, 64-byte values |
//! | [`HashMap`] | hash map that grows a bucket at a time, same keys and values |
//! | [`ops`] | deterministic operations by seed |
//! | [`run`] | applies operations and keeps what was acknowledged |
//! | [`check`] | compares what a pool holds with what it must hold |

mod btree;
pub mod check;
mod hashmap;
mod map;
pub mod ops;
pub mod run;

pub use btree::BTree;
pub use hashmap::HashMap;
pub use map::{Damage, Fault, Map, VALUE_BYTES, Value};
