//! The transaction-level card: the behaviour of the RTL and its timing, for millions of commands.
//!
//! [`ModelCard`] is event-driven: nothing is computed for a cycle in which nothing happens, and a
//! run depends on nothing but the medium, the accesses and their cycles. Its parts are the units of
//! `docs/hardware.md` under their names:
//!
//! | module | units |
//! |---|---|
//! | `card` | what connects them; those behind it are below its folder |
//! | `card::front`, `pages` | CommandPort, HostPort: arrival, reassembly, numbering |
//! | `decoder`, `mapping` | Decoder, AddressMap |
//! | `order`, [`item`] | OrderingPoint, RangeTable, DependencyMatrix, RequestSlots, lines of HostQueue |
//! | `card::dispatch` | Dispatcher, issue of HostQueue, CompletionWriter |
//! | `hold` | what a failed log holds: HostQueue, DependencyMatrix |
//! | `card::parked`, `card::peers` | MultiDevice: commands that wait for other devices, and the messages |
//! | `card::unit` | NearPmUnit |
//! | `card::port`, [`memory`] | MemoryPort and the memory behind it |
//! | `firmware`, `card::persistence`, `card::registers` | FirmwareStore, Persistence, Registers |
//! | [`timing`] | every latency |
//! | [`Busy`] | when units had commands |
//! | [`trace`], [`monitor`] | what happened, and whether its order was right |
//! | [`fault`] | protections that tests disable |
//!
//! **What it leaves out.** Cycles inside a unit's pipeline are constants, not registers; a burst is
//! one event, so that a unit starts to write when a read burst is whole. Its card has one memory
//! port: what a second one changes is time alone, and that is measured on the RTL.

mod answers;
mod busy;
mod card;
mod decoder;
#[doc(hidden)]
pub mod fault;
mod firmware;
mod hold;
pub mod item;
mod mapping;
pub mod memory;
pub mod monitor;
mod order;
mod pages;
pub mod timing;
pub mod trace;
mod wheel;

pub use busy::Busy;
pub use card::{Config, MOST_UNITS, ModelCard};
pub use memory::Kind;
pub use timing::Timing;
