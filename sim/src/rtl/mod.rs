//! The Verilated card: the hardware's own Verilog, cycle by cycle, with a DDR4 channel behind each
//! of its memory ports.
//!
//! | module | holds |
//! |---|---|
//! | [`RtlCards`] | the built design: makes cards, as a [`Power`](crate::machine::Power) |
//! | [`RtlCard`] | one powered card, as a [`CardCore`](crate::core::CardCore) |
//! | `pins` | the ports of the top module |
//! | `slaves` | drives `s_axi_host`, `s_axi_cmd`, `s_axil_ctrl` with what arrives over the link |
//! | `initiator` | one of these ports |
//! | `memory` | joins a memory port to its DDR4 channel |
//! | `channels` | `m_axi_mem0`, and `m_axi_mem1` where the design has it, with what lies behind them of one medium |
//! | `peers` | messages to and from other cards, on `peer_out` and `peer_in` |
//! | `completions` | takes what the card writes on `m_axi_cpl` |
//!
//! **A cycle.** All inputs are set from the state before the edge, the model settles, handshakes
//! are read, and the clock makes one full cycle. So paths from an input to an output inside the
//! card are honoured, but nothing outside the card answers in the cycle in which it is asked.
//!
//! **Order of delivery.** An access is presented when the address and data handshakes of the one
//! before have happened; a read, in addition, when every write before it has been answered. This is
//! how PCI Express delivers posted writes and what follows them.
//!
//! Time passes for the hardware whether it has work or not. A cycle that changes nothing but its
//! counters is not simulated; these count on.

mod answers;
mod card;
mod cards;
mod channels;
mod completions;
mod initiator;
mod memory;
mod peers;
mod pins;
mod slaves;

pub use card::{QUIET_CYCLES, RtlCard};
pub use cards::{Options, RtlCards};
