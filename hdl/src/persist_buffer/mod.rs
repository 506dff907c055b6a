//! The persist buffer of a GPU's multiprocessor: not part of the card, and a unit like those of it.
//!
//! Scoped buffered release persistency (Pandey, Kamath and Basu, ASPLOS '23, "the paper") keeps
//! what a multiprocessor (SM) stores to persistent memory (PM) in its L1 until the order that
//! programs asked for lets it go. Section 6 and Fig. 5 of the paper are this unit; what it does,
//! event by event, is defined by `nearpm_sbrp::buffer::PersistBuffer`, with which it is simulated
//! side by side. `docs/persist-buffer.md` has its ports, proofs and area.
//!
//! | part of the paper | here |
//! |---|---|
//! | PB, the FIFO of entries | three memories `kinds`, `masks`, `lines`, between `head` and `tail` |
//! | 8 bits of each line of L1, the index of its entry | the memory `places` |
//! | FSM, ODM, EDM, ACTR | registers `flushing`, `ordering`, `evicting`, `outstanding` |
//! | a search for ordering entries of a warp behind an entry | [`LastOrders`]: the last one decides |
//! | a search for ordering entries before an entry | [`OrderFlags`]: a bit an entry |

mod kernel;
mod last_orders;
mod order_flags;

pub use last_orders::LastOrders;
pub use order_flags::OrderFlags;

use crate::cells::{AsyncRam, Register};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// What an entry is, and what is asked for: the three bits of its type.
pub mod kind {
    /// A dirty line of PM; a warp stores to it.
    pub const PERSIST: u64 = 0;
    /// An `oFence`, or a CUDA fence of the block.
    pub const OFENCE: u64 = 1;
    /// A block acquire.
    pub const ACQUIRE_BLOCK: u64 = 2;
    /// A block release.
    pub const RELEASE_BLOCK: u64 = 3;
    /// A device acquire.
    pub const ACQUIRE_DEVICE: u64 = 4;
    /// A device release, or a CUDA fence of the device.
    pub const RELEASE_DEVICE: u64 = 5;
    /// A `dFence`.
    pub const DFENCE: u64 = 6;
    /// An entry whose line was evicted; L1 wants to evict a line.
    pub const EVICTED: u64 = 7;
}

/// The buffer of the paper: 32 warps, 256 entries, 512 lines, a counter to 255.
pub type PaperBuffer = PersistBuffer<32, 5, 8, 9, 8>;
/// A small one, for proofs: 4 warps, 4 entries, 4 lines, a counter to 3.
pub type SmallBuffer = PersistBuffer<4, 2, 2, 2, 2>;

/// Which persists may go to memory, in what order, and which warps wait for them.
///
/// W warps (2^V = W), 2^K entries, 2^L lines of L1, at most 2^A - 1 outstanding flushes.
/// The head of the queue and the requests of warps take turns, a cycle each, so that neither keeps
/// the other waiting. Guarantees: a persist of a warp that is accepted behind an ordering operation
/// of that warp goes to memory only when all that was accepted before that operation is durable.
/// What is accepted leaves in the end if memory acknowledges and `advance` comes. Nothing depends
/// on a warp that waits. Bound: a request is answered in the cycle after it was taken; the head
/// does something every second cycle.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct PersistBuffer<const W: usize, const V: usize, const K: usize, const L: usize, const A: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nothing is in the buffer and nothing outstanding.
    pub reset: Signal<In, Bit>,

    /// A warp asks for something.
    pub request_valid: Signal<In, Bit>,
    /// The request is taken; every second cycle.
    pub request_ready: Signal<Out, Bit>,
    /// What for: a [`kind`].
    pub request_kind: Signal<In, Bits<3>>,
    /// The warp, 0 to W - 1; of no account for an eviction.
    pub request_warp: Signal<In, Bits<V>>,
    /// The line of L1 that it stores to, or that is evicted; of no account for an order.
    pub request_line: Signal<In, Bits<L>>,
    /// Pulse, in the cycle after a request was taken: it has an entry, its own or shared, or the
    /// line goes to memory.
    pub accepted: Signal<Out, Bit>,
    /// Pulse, with `accepted`: and the warp is held until its entry is done.
    pub held: Signal<Out, Bit>,
    /// Pulse, instead of `accepted`: not now, the warp asks again.
    pub refused: Signal<Out, Bit>,

    /// The head may do something in its turn: the policy of section 6.2, and room on the way to
    /// memory.
    pub advance: Signal<In, Bit>,
    /// Pulse: a line goes to memory.
    pub flush_valid: Signal<Out, Bit>,
    /// The line.
    pub flush_line: Signal<Out, Bits<L>>,
    /// Pulse: an entry leaves the head without a line.
    pub left: Signal<Out, Bit>,
    /// Pulse: memory has made a line durable. Of no account where nothing is outstanding.
    pub acknowledge: Signal<In, Bit>,

    /// FSM: warps whose next persist waits for the outstanding flushes.
    pub flush_status: Signal<Out, Bits<W>>,
    /// ODM: warps that an ordering entry in the queue holds.
    pub order_delay: Signal<Out, Bits<W>>,
    /// EDM: warps that go on when their order has left, or no flush is outstanding.
    pub eviction_delay: Signal<Out, Bits<W>>,
    /// ACTR: flushes that are not acknowledged.
    pub outstanding_count: Signal<Out, Bits<A>>,
    /// No room for another entry.
    pub full: Signal<Out, Bit>,
    /// No entry, and nothing outstanding: the end of a kernel may be told.
    pub drained: Signal<Out, Bit>,

    kinds: AsyncRam<Bits<3>, K, 1>,
    masks: AsyncRam<Bits<W>, K, 1>,
    lines: AsyncRam<Bits<L>, K, 1>,
    /// Of each line of L1, the entry that it had last. Whether that is still its entry, the entry
    /// says.
    places: AsyncRam<Bits<K>, L, 1>,
    last_orders: LastOrders<W, V, K>,
    order_flags: OrderFlags<K>,
    head: Register<Bits<K>>,
    tail: Register<Bits<K>>,
    is_full: Register<Bit>,
    flushing: Register<Bits<W>>,
    ordering: Register<Bits<W>>,
    evicting: Register<Bits<W>>,
    outstanding: Register<Bits<A>>,
    /// The head's turn; else that of the request that was taken.
    #[default(Register::new(true))]
    heads_turn: Register<Bit>,
    asked: Register<Bit>,
    asked_kind: Register<Bits<3>>,
    asked_warp: Register<Bits<V>>,
    asked_line: Register<Bits<L>>,
    /// The entry that the line of the request had last.
    asked_place: Register<Bits<K>>,

    /// The entry that is looked at: how far behind the head it is, whether it is one, and what is
    /// in it.
    place: Signal<Local, Bits<K>>,
    offset: Signal<Local, Bits<K>>,
    used: Signal<Local, Bits<K>>,
    empty: Signal<Local, Bit>,
    in_queue: Signal<Local, Bit>,
    entry_kind: Signal<Local, Bits<3>>,
    entry_mask: Signal<Local, Bits<W>>,
    order_offset: Signal<Local, Bits<K>>,
    next_tail: Signal<Local, Bits<K>>,
    newest: Signal<Local, Bits<K>>,
    warp_bit: Signal<Local, Bits<W>>,
    is_persist: Signal<Local, Bit>,
    is_eviction: Signal<Local, Bit>,
    is_order: Signal<Local, Bit>,
    holds: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    behind_order: Signal<Local, Bit>,
    merge: Signal<Local, Bit>,
    wants_entry: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    share: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    evict: Signal<Local, Bit>,
    none_outstanding: Signal<Local, Bit>,
    can_count: Signal<Local, Bit>,
    marks: Signal<Local, Bits<W>>,
    marked: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    flush: Signal<Local, Bit>,
    holds_head: Signal<Local, Bit>,
    leave: Signal<Local, Bit>,
    acknowledged: Signal<Local, Bit>,
    sends: Signal<Local, Bit>,
    #[default(Constant::new(1.into()))]
    one_place: Constant<Bits<K>>,
    #[default(Constant::new(1.into()))]
    one_warp: Constant<Bits<W>>,
    #[default(Constant::new(0.into()))]
    no_warp: Constant<Bits<W>>,
    #[default(Constant::new(1.into()))]
    one_flush: Constant<Bits<A>>,
    #[default(most_flushes::<W, V, A>())]
    most_flushes: Constant<Bits<A>>,
    #[default(Constant::new(kind::PERSIST.into()))]
    persist_kind: Constant<Bits<3>>,
    #[default(Constant::new(kind::OFENCE.into()))]
    ofence_kind: Constant<Bits<3>>,
    #[default(Constant::new(kind::RELEASE_DEVICE.into()))]
    release_device_kind: Constant<Bits<3>>,
    #[default(Constant::new(kind::DFENCE.into()))]
    dfence_kind: Constant<Bits<3>>,
    #[default(Constant::new(kind::EVICTED.into()))]
    evicted_kind: Constant<Bits<3>>,
}

/// The most that a counter of A bits holds.
fn most_flushes<const W: usize, const V: usize, const A: usize>() -> Constant<Bits<A>> {
    const { assert!(W == 1 << V && W >= 2 && W <= 64, "warps have numbers of V bits") };
    const { assert!(A >= 2 && A <= 10, "a counter has 2 to 10 bits") };
    Constant::new(Bits::<A>::mask())
}
