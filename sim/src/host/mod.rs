//! The host: processors with caches that are not coherent with the cards, a link to each card, host
//! memory, and one power cord for all.
//!
//! | module | holds |
//! |---|---|
//! | [`Parameters`] | every cost, with its source |
//! | `fabric` | all links and cards in one time; power cuts |
//! | `slot` | one link, and the card behind it |
//! | [`Peers`] | the links between cards |
//! | `link`, `packet` | when a packet leaves and arrives, and what it is |
//! | `cpu` | cores: what a load, store, write-back or fence does and costs |
//! | `cached`, `uncached` | the two ways of an access |
//! | `resume` | how far an access has come that waits while other cores go on |
//! | `turns` | where it stops for them |
//! | `adversary` | what happens unasked |
//! | `function` | configuration, reset, host memory, interrupts |
//! | `cache` | the write-back cache over the memory of all cards |
//! | `windows` | which line of the cache is whose |
//! | `combine` | a core's write-combining buffers |
//! | `dma` | host memory that the card may write |
//!
//! **Fault model.** At a power cut the card saves what its energy allows and its memory keeps,
//! drops or tears what it has not answered. All cards and the host lose their power in the same
//! cycle. Messages between cards are lost. Posted writes that had arrived at the card are the
//! card's; those on the link, in write-combining buffers and in dirty cache lines are lost; so is
//! host memory. [`Behaviour::Adversarial`] does, by seed, what the contract of the processor
//! permits and programs tend to forget: evict and prefetch any line at any time, drain buffers
//! late, in pieces, in any order, and put write-backs off until the fence.
//!
//! Not modelled: translation, instruction fetch, contention between cores other than on the link,
//! caches above host memory.

mod adversary;
mod cache;
mod cached;
mod combine;
mod cpu;
mod cut;
mod dma;
mod fabric;
mod function;
mod link;
mod packet;
mod parameters;
mod peers;
mod ranges;
mod resume;
mod slot;
mod statistics;
mod turns;
mod uncached;
mod windows;

pub(crate) use cpu::{Host, Window};
pub use cut::{Cut, CutRecord, Event, EventRecord};
pub(crate) use fabric::HANG_CYCLES;
pub use parameters::{Behaviour, Parameters};
pub use peers::{Mischief, Peers};
pub(crate) use resume::{Blocked, Progress};
pub(crate) use slot::{Plug, Slot};
pub use statistics::Statistics;

/// BARs of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    Registers,
    Commands,
    Memory,
}

/// A BAR of one of the cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub card: usize,
    pub bar: Bar,
}
