//! Typed objects in pools: pointers, types that may persist, and the seam through which they are
//! loaded and stored.
//!
//! No reference to persistent memory ever exists. A [`Ptr`] is an offset with a type; [`Load::get`]
//! and [`Store::set`] copy a value out and in, and the derive of [`Persistent`] makes a method of
//! each field, so that one field can be copied alone. What is written against [`Load`] and
//! [`Store`] runs on every kind of pool: natively on a [`crate::direct::DirectPool`], and by
//! [`crate::OffsetTx::typed`] on pools with a mechanism, on a card or a simulated one.
//!
//! | file | holds |
//! |---|---|
//! | `persistent.rs` | types whose every bit pattern is a value |
//! | `parts.rs` | the fields of a derived type, for the derive |
//! | `layout.rs` | a type's layout as a number, kept beside the root |
//! | `later.rs` | what is still to be freed |
//! | `page_copies.rs` | pages as they were when a snapshot was taken |
//! | `pointer.rs` | pointers |
//! | `plock.rs` | locks |
//! | `seam/` | the traits [`Load`] and [`Store`], and the typed root object |
//! | `serialised.rs` | values as serde sees them |
//! | `tuples.rs` | tuples |
//! | `values.rs` | options, spans of time, enums without fields |
//! | `variants.rs` | enums with fields |
//! | `window.rs` | memory of this process, by checked offsets |
//! | `within.rs` | the transaction that serde's calls are made in |
//! | `gate.rs` | who may be in a pool at the same time |
//! | `locks.rs` | who holds which locks |

pub(crate) mod gate;
mod later;
mod layout;
pub(crate) mod locks;
pub(crate) mod page_copies;
mod parts;
pub(crate) mod persistent;
mod plock;
mod pointer;
mod seam;
#[cfg(feature = "serde")]
mod serialised;
mod tuples;
mod values;
mod variants;
/// What the gate, the locks and the copies of pages are made of; the tests that try every order of
/// events give them another one.
pub(crate) mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
    pub use std::sync::{Condvar, Mutex, MutexGuard};
    /// How often a thread looks again before it waits: about as long as a short transaction takes.
    pub const SPINS: u32 = if cfg!(miri) { 0 } else { 200 };
    /// Pages whose copies one table has.
    pub const TABLE: usize = 512;
}
pub(crate) mod window;
#[cfg(feature = "serde")]
pub(crate) mod within;

#[doc(hidden)]
pub use later::Later;
pub(crate) use later::later;
pub use layout::{Description, fingerprint};
pub use persistent::{ArrayFields, NoFields, PBool, Persistent};
pub use plock::PLock;
pub use pointer::Ptr;
pub use seam::{Load, Store};
pub(crate) use seam::{pointer, root_type, whole};
pub use tuples::{PTuple2, PTuple3, PTuple4};
pub use values::{PCode, PDuration, POption};
pub use variants::{PEnum, PersistentEnum};

/// What the derive of [`Persistent`] refers to, and nobody else.
#[doc(hidden)]
pub mod derived {
    pub use super::parts::{At, Part, Parts, check, describe};
    pub use super::variants::FieldBytes;
    pub use std::mem::offset_of;
}
