//! The transaction-level card: its contract, power cuts, random traffic, refusals, and several of
//! them that wait for each other.

mod support;

#[macro_use]
mod peers_support;

mod contract;
mod cuts;
mod end_to_end;
mod failures;
mod memory;
mod peers;
mod peers_failures;
mod peers_random;
mod random;
mod refusals;
mod speed;
