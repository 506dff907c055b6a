//! The heap of a pool: what lies in it, and where.
//!
//! | file | holds |
//! |---|---|
//! | `layout.rs` | how it is divided: tables, chunks, zones; how the tables are written |
//! | `tables.rs` | the tables as a pool has them |
//! | `classes.rs` | sizes of objects, and how long the runs are that hold them |
//! | `spans.rs` | free chunks |
//! | `state.rs` | what the chunks hold, counted |
//! | `index/` | which bytes are objects, in memory, for several threads |

pub(crate) mod classes;
pub(crate) mod index;
mod layout;
pub(crate) mod spans;
mod state;
pub(crate) mod tables;

/// What the index is made of; the tests that try every order of events give it another one.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
    pub use std::sync::{Mutex, MutexGuard};
}

pub(crate) use layout::{Form, HeapLayout, Part};

/// Space that is taken, and becomes an object only when a commit says so. Plain data: it may lie on
/// a C program's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Offset of the object in the pool.
    pub offset: u64,
    /// Bytes that it has, at least those asked for.
    pub bytes: u64,
}
