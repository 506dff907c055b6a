//! The host: processors with caches that are not coherent with the card, the link, host memory, and the power cord.
//!
//! | module | holds |
//! |---|---|
//! | [`Parameters`] | every cost, with its source |
//! | `fabric` | the link and the card behind it, in one time; power cuts |
//! | `link`, `packet` | when a packet leaves and arrives, and what it is |
//! | `cpu` | cores: what a load, store, write-back or fence does and costs |
//! | `cached`, `uncached` | the two ways of an access |
//! | `adversary` | what happens unasked |
//! | `function` | configuration, reset, host memory, interrupts |
//! | `cache` | the write-back cache |
//! | `combine` | a core's write-combining buffers |
//! | `dma` | host memory that the card may write |
//! | `config_space` | the function's configuration space |
//!
//! **Fault model.** At a power cut the card saves what its energy allows and its memory keeps, drops or tears what it has not
//! answered. Posted writes that had arrived at the card are the card's; those on the link, in write-combining
//! buffers and in dirty cache lines are lost; so is host memory. [`Behaviour::Adversarial`] does, by seed, what the
//! contract of the processor permits and programs tend to forget: evict and prefetch any line at any time, drain buffers late, in pieces, in
//! any order, and put write-backs off until the fence.
//!
//! Not modelled: translation, instruction fetch, contention between cores other than on the link, caches above host memory.

mod adversary;
mod cache;
mod cached;
mod combine;
mod config_space;
mod cpu;
mod cut;
mod dma;
mod fabric;
mod function;
mod link;
mod packet;
mod parameters;
mod ranges;
mod statistics;
mod uncached;

pub(crate) use cpu::{Host, Window};
pub use cut::{Cut, CutRecord, Event, EventRecord};
pub use parameters::{Behaviour, Parameters};
pub use statistics::Statistics;

/// BARs of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    Registers,
    Commands,
    Memory,
}
