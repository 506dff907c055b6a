//! What test programs of the hardware share, compiled once: benches with their scenarios, and
//! faults planted into generated Verilog.
//!
//! [`card`] is the whole card with memory, host and register master around it; [`front`],
//! [`persistence`] and [`split`] are the benches of one part each, and [`memory`] is what lies
//! behind a memory port. A scenario panics where the design does what it must not.
//! [`persist_buffer`] runs the persist buffer beside the machine that defines it. [`planted`]
//! plants faults, each of which a scenario has to see.

pub mod card;
pub mod front;
pub mod memory;
pub mod persist_buffer;
pub mod persistence;
pub mod planted;
pub mod split;
