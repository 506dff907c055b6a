//! A DDR4-2400 channel of 64 bits behind an AXI4 port, cycle by cycle.
//!
//! | module | holds |
//! |---|---|
//! | [`Ddr4`] | the AXI port in the card's clock, the contents, and what a power cut does to them |
//! | [`Config`] | every timing parameter with its source |
//! | `burst` | bursts and beats |
//! | `channel` | the controller: FR-FCFS, direction batches, refresh |
//! | `bank` | JEDEC's timing rules between commands |
//! | `queue` | the read or write queue of the controller, by bank |
//! | `map` | device address to bank group, bank, row, column |
//!
//! **Time.** The controller steps at a quarter of the DRAM clock (300 MHz) whatever the card's
//! clock is, and places commands within a step at single DRAM clocks; rules are kept in DRAM clocks
//! and never rounded.
//!
//! **Durability.** A write burst is answered (B) when its last beat stands in the controller's
//! write queue, which is powered until it has drained, as ADR does on a server. Every beat that was
//! handed over without its burst's answer is, at power-fail, kept, dropped, or torn at 8 bytes, by
//! seed.
//!
//! **Order.** Read data returns in the order of the read requests, all identifiers together, as a
//! MIG's AXI shim returns it. Between a read and a write that are both unanswered there is no
//! order: a read takes its data at the last moment, so that a card that lets a store overtake a
//! copy of its line is seen to fail.

mod bank;
mod burst;
mod channel;
mod config;
mod map;
pub mod measure;
mod port;
mod queue;
mod stats;
#[cfg(test)]
mod tests;

pub use burst::{ReadBeat, WriteAnswer, WriteBeat};
pub(crate) use config::{CLOCKS, CONTROLLER_MHZ};
pub use config::{Config, Controller, Timing};
pub(crate) use map::{BANKS, DramAddress};
pub use port::Ddr4;
pub use stats::Stats;
