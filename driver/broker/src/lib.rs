//! Shares a card among processes: each gets a PCI function of its own over vfio-user, and opens it
//! as it would open the card.
//!
//! | module | holds |
//! |---|---|
//! | [`share`] | the card, and who uses it |
//! | [`claims`] | what each process has: mapping entries, pools, the lock of the table of pools |
//! | `client` | the function of one process: its BARs |
//! | `seats` | the socket, where who comes gets a function |
//! | `traffic` | its command pages: what is checked, posted for it and told to it |
//!
//! **What is kept apart.** A command reaches the card only if its (pool, thread) was mapped by the
//! same process, and a mapping lies in no pool of another one. The card holds each command to the
//! pool of its mapping. Completion records go to memory that the process itself has given, and its
//! counters and failures are its own.
//!
//! **What is not.** Loads and stores of the PM window reach all of it, but for the save area and
//! the firmware, where they trap: processes that share a card trust each other that far. And they
//! share the card's time.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod claims;
mod client;
mod seats;
pub mod share;
mod traffic;

pub use share::{SEATS, Share};
