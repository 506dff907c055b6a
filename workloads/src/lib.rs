//! Crash-consistent workloads, written once over the library's transactions.
//!
//! The mechanism (undo log, redo log, checkpoint, shadow paging), the executor (processor or card)
//! and the memory (file, test memory, simulated card) are the pool's; nothing here knows them.
//!
//! | module | holds |
//! |---|---|
//! | [`BTree`] | B+tree, 8-byte keys, 64-byte values |
//! | [`HashMap`] | hash map that grows a bucket at a time, same keys and values |
//! | [`RbTree`], [`SkipList`] | red-black tree and skip list, same keys and values |
//! | [`programs`] | the paper's nine workloads over them and over tables and stores of their own |
//! | [`store`] | what they work on: a pool's transactions, or bare memory |
//! | [`ops`] | deterministic operations by seed |
//! | [`run`] | applies operations and keeps what was acknowledged |
//! | [`check`] | compares what a pool holds with what it must hold |

mod btree;
pub mod check;
mod hashmap;
mod map;
pub mod ops;
pub mod programs;
mod rbtree;
pub mod run;
mod skiplist;
pub mod store;

pub use btree::BTree;
pub use hashmap::HashMap;
pub use map::{Damage, Fault, Map, VALUE_BYTES, Value};
pub use rbtree::RbTree;
pub use skiplist::SkipList;
