//! A simulated NearPM card as a process of its own, served over vfio-user.
//!
//! | module | holds |
//! |---|---|
//! | [`device`] | the card as its one client has it; the socket and the function are `nearpm-endpoint`'s |
//! | [`engine`] | the card, its power, its file |
//! | `access`, `mapped` | accesses to the BARs in the two modes of the PM window |
//! | [`ledger`] | what the card was told that its memory does not hold |
//! | [`store`], [`record`] | the file, and its journal |
//! | [`control`] | power cuts, statistics, faults |
//!
//! **Kill at any moment.** What a host writes is journalled in the file before its write is
//! answered, so that a card that is started again on the file has done what anybody was told of.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod access;
pub mod control;
pub mod device;
pub mod engine;
pub mod ledger;
mod mapped;
pub mod record;
pub mod store;
