//! Crash-consistent pools and transactions for persistent memory, with or without a NearPM card.
//!
//! Typed objects in a direct pool, which is the default:
//!
//! ```
//! use nearpm::prelude::*;
//!
//! #[derive(Clone, Copy, Persistent)]
//! #[repr(C)]
//! struct Guests {
//!     visits: u64,
//! }
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("guests.pool");
//! # let path = path.to_str().unwrap();
//! let pool = DirectPool::open_or_create(path, 1 << 20, &Options::new())?;
//! let guests = pool.tx(|tx| tx.root_or_zeroed::<Guests>())?;
//! let visits = pool.tx(|tx| tx.update(guests.visits(), |n| n + 1))?;
//! assert_eq!(visits, 1);
//! pool.close()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! Offsets, in a pool with a mechanism of the paper:
//!
//! ```
//! use nearpm::{Error, Mechanism, Options};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("example.pool");
//! # let path = path.to_str().unwrap();
//! let pool = Options::new().mechanism(Mechanism::Undo).create(path, 1 << 20)?;
//! let object = pool.tx(|tx| {
//!     let object = tx.alloc(64)?;
//!     tx.write_u64(object, 42)?;
//!     tx.set_root(object)?;
//!     Ok(object)
//! })?;
//! pool.close()?;
//!
//! let pool = Options::new().open(path)?;
//! assert_eq!(pool.root()?, object);
//! assert_eq!(pool.tx(|tx| tx.read_u64(object))?, 42);
//! # Ok::<(), Error>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`memory`] | the trait through which persistent memory is reached, and its implementations |
//! | [`cards`] | cards by name, for `card:NAME/POOL` |
//! | [`check`] | looking into pools that nobody has open: damage, repair, contents, copies |
//! | [`direct`] | pools that programs reach by pointer, and by typed objects: start at `docs/rust.md` |
//! | [`typed`] | pointers, types that may persist, the traits by which they are loaded and stored |
//! | [`pmdk`] | what PMDK programs have in a pool |
//! | [`size`] | sizes as people write them |
//! | [`collections`] | vector, text, maps and queue in pools |
//!
//! Inside, modules use those above them in this table, or beside them, and no circle is among them
//! (`tests/shape/tests/modules.rs` holds that):
//!
//! | modules | hold |
//! |---|---|
//! | `error`, `events`, `damage`, `interval`, `blocks`, `statistics`, `random`, `process`, `inside`, `planted`, `pmdk_format` | what everything may use |
//! | `stripes`, `memory`, `lint`, `options`, `part` | media, and how pools are created and opened |
//! | `executor`, `lane` | who makes the copies, and the log rings |
//! | `heap`, `pages`, `page_cache`, `write_set` | tables on the medium, and what memory keeps of it |
//! | `recovery` | from the logs to a pool in which none counts: rings, then pages that moved, then segments |
//! | `mechanism`, `typed`, `thread_lane`, `transaction` | what happens at commit or not at all |
//! | `pool`, `primitives`, `direct`, `pmdk`, `collections`, `check` | what programs and tools use |
//!
//! One transaction runs at a time on a [`Pool`]: a second thread waits, unless
//! [`Options::concurrent`] lets them be open beside each other. Several pools are independent.

#![deny(unsafe_code)]
#![warn(missing_docs)]

// The derive names this crate, also where it is used inside of it.
extern crate self as nearpm;

mod blocks;
pub mod cards;
pub mod check;
pub mod collections;
mod damage;
pub mod direct;
pub mod error;
mod events;
mod executor;
mod heap;
mod inside;
mod interval;
mod lane;
mod lint;
mod mechanism;
pub mod memory;
mod options;
mod page_cache;
mod pages;
mod part;
mod planted;
pub mod pmdk;
mod pmdk_format;
mod pool;
mod primitives;
#[doc(hidden)]
pub mod process;
mod random;
mod recovery;
pub mod size;
mod statistics;
mod stripes;
mod thread_lane;
mod transaction;
pub mod typed;
mod write_set;

pub use direct::Tx;
pub use error::{Error, Problem};
pub use lint::{Fault, Lint, LintReport};
pub use memory::Survives;
pub use nearpm_derive::{Persistent, PersistentEnum};
pub use nearpm_driver::pci::Caching;
pub use options::{Durability, Engine, Mechanism, Mode, Options, Synchronisation};
pub use pool::{CardPool, Location, Pool, list, remove};
pub use recovery::Recovery;
pub use statistics::{ClassState, HeapState, Statistics};
pub use transaction::{OffsetTx, TypedTx};
pub use typed::{Load, PLock, Persistent, Ptr, Store};

/// The page for users, whose programs are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct RustPage;

/// What programs with typed objects use.
pub mod prelude {
    pub use crate::collections::{PBTreeMap, PHashMap, PQueue, PString, PVec};
    pub use crate::direct::{DirectPool, Reader, Tx};
    pub use crate::typed::{Load, PBool, PLock, Ptr, Store};
    pub use crate::{Durability, Error, Options, Persistent, Survives};
}
