//! Pools whose objects the program reaches by pointer.
//!
//! The program sees the pool as memory, from [`DirectPool::base`] on, and stores to it with plain
//! stores. What it changes in a transaction it names first, by [`Transaction::add`]. This is the
//! interface under C programs, where stores cannot be seen, and under everything that is to be as
//! fast as the processor is.
//!
//! | mode | the program works on | a snapshot | a commit |
//! |---|---|---|---|
//! | [`Mode::InPlace`] | persistent memory itself | durable before the program may store: one fence | two fences |
//! | [`Mode::WorkingCopy`] | a volatile copy (of a file a private mapping: pages that nobody stores to cost nothing) | a copy in ordinary memory | one fence; in persistent memory one more for new objects of 512 B and more, and for ranges of 16 KiB and more; three more for transactions that add more than 2 MiB |
//!
//! Both write one log ([`nearpm_interface::record`]), which `recovery/segments.rs` reads when the
//! pool is opened. What a record holds is written home when its segment is full (a *truncation*),
//! so that bytes that change often go home once.
//!
//! A working copy's commits go home by records, or by a mechanism that the options choose
//! ([`crate::Options::mechanism`]), whose copies are commands where the pool is on a card.
//!
//! | file | holds |
//! |---|---|
//! | `lifetime.rs` | create, open, close |
//! | `pool.rs` | an open pool |
//! | `persist.rs` | what becomes durable outside of transactions |
//! | `copies.rs` | copies that are durable when they return |
//! | `append.rs` | appending to its log |
//! | `by_mechanism.rs` | commits that a mechanism brings home, by the card's commands where the pool is on a card |
//! | `carry.rs` | carrying home what a truncation has taken, with the help of who waits for it |
//! | `truncate.rs` | truncating the log, and the segments that it consists of |
//! | `transaction.rs` | what a transaction collects, commit and abort |
//! | `differences.rs` | what of a transaction has changed, where a log's bytes are dear |
//! | `records.rs` | the records of one append |
//! | `lock_order.rs` | the order in which a thread takes locks |
//! | `log.rs` | lanes and segments, and where records lie in them |
//! | `old.rs` | old bytes of large transactions, which the log keeps |
//! | `once.rs` | new objects that are written once, to their place |
//! | `known.rs` | which records are durable, and which of them a recovery will know to be |
//! | `state.rs` | what an open transaction remembers |
//! | `grow.rs` | a pool that gets more room while it is open |
//! | `lint.rs` | finding faults of the program |
//! | `mode_by_use.rs` | how the last program has used the pool, for the choice of a mode |
//! | `shard.rs` | what each thread has for itself |
//! | `slot.rs` | which of them is the calling thread's |
//! | `snapshot.rs` | reads of the pool as it was, which no writer waits for |
//! | `unacknowledged.rs` | the newest record that nobody has waited for |
//! | `tx.rs` | transactions of typed objects: closures, and who may be in the pool at the same time |

mod append;
mod by_mechanism;
mod carry;
mod copies;
mod differences;
mod grow;
mod known;
mod lifetime;
mod lint;
mod lock_order;
mod log;
mod mode_by_use;
mod old;
mod once;
#[cfg(test)]
mod orders;
mod persist;
mod pool;
mod records;
mod shard;
mod slot;
mod snapshot;
mod state;
/// What the number of the newest record is made of; the tests that try every order of events give
/// them another one.
mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};
    pub use std::sync::{Mutex, MutexGuard};
}
#[cfg(test)]
pub(crate) mod tests;
mod transaction;
mod truncate;
mod tx;
mod unacknowledged;

pub use crate::heap::Reservation;
pub use crate::options::{Growth, Mode};
pub(crate) use mode_by_use::of_last_use;
pub use pool::DirectPool;
pub use snapshot::{Snapshot, SnapshotReader};
pub use transaction::Transaction;
pub use tx::{Locked, Reader, Tx};
