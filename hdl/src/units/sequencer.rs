//! Runs microprograms.

use super::context::Context;
use super::instruction::{Decode, Operation};
use crate::bundles::Work;
use crate::cells::{AsyncRam, Register};
use nearpm_interface::geometry::CONTEXTS_PER_UNIT;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;

/// The instruction that is executed, and what is offered to others.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    full: Bit,
    context: Bit,
    pc: Bits<8>,
    progress: Bit,
    progress_context: Bit,
    sync: Bit,
    sync_context: Bit,
    done: Bit,
    done_slot: Bits<5>,
    done_status: Bits<8>,
}

/// Executes one instruction a cycle, of one of two commands.
///
/// Guarantees: `progress`, `sync` and `done` stay as they are until they are taken. A command that waits leaves the
/// sequencer to the other one. The operations of a command reach the memory engine in program order.
/// Bound: a command's first instruction is executed in the cycle after its issue when the sequencer is free, and its
/// operation is at the engine in the same cycle.
#[derive(LogicBlock)]
pub struct Sequencer {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,

    /// A command is issued.
    pub issue_valid: Signal<In, Bit>,
    /// A context is free.
    pub issue_ready: Signal<Out, Bit>,
    /// The command.
    pub work: Signal<In, Work>,
    /// Write a word of the control store at the next edge.
    pub prog_we: Signal<In, Bit>,
    /// Which word.
    pub prog_addr: Signal<In, Bits<7>>,
    /// Its new value.
    pub prog_data: Signal<In, Bits<32>>,

    /// An operation for the memory engine.
    pub operation_valid: Signal<Out, Bit>,
    /// The memory engine takes it.
    pub operation_ready: Signal<In, Bit>,
    /// The operation.
    pub operation: Signal<Out, Operation>,
    /// The operation is a copy.
    pub operation_copy: Signal<Out, Bit>,
    /// The operation that is taken in this cycle writes a head.
    pub generate_valid: Signal<Out, Bit>,
    /// The metadata generator takes it.
    pub generate_ready: Signal<In, Bit>,
    /// The command that executes.
    pub present: Signal<Out, Work>,
    /// Pool offset of the head's object.
    pub object: Signal<Out, Bits<64>>,
    /// Kind of the head.
    pub kind: Signal<Out, Bits<8>>,

    /// The context whose value is stored.
    pub store_context: Signal<In, Bit>,
    /// Its value.
    pub store_value: Signal<Out, Bits<64>>,
    /// All bursts of an operation have been requested, by context.
    pub retire: [Signal<In, Bit>; CONTEXTS_PER_UNIT],
    /// No write burst is unanswered, by context.
    pub answered: [Signal<In, Bit>; CONTEXTS_PER_UNIT],
    /// Memory failed, by context.
    pub memory_error: [Signal<In, Bit>; CONTEXTS_PER_UNIT],
    /// Memory has failed: nothing may be written any more, by context.
    pub failed: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],

    /// A command is done.
    pub done_valid: Signal<Out, Bit>,
    /// That is noted.
    pub done_ready: Signal<In, Bit>,
    /// Its request slot.
    pub done_slot: Signal<Out, Bits<5>>,
    /// Its status.
    pub done_status: Signal<Out, Bits<8>>,
    /// A command waited, and everything before is durable.
    pub progress_valid: Signal<Out, Bit>,
    /// That is noted.
    pub progress_ready: Signal<In, Bit>,
    /// Its request slot.
    pub progress_slot: Signal<Out, Bits<5>>,
    /// Where a replay resumes.
    pub progress_pc: Signal<Out, Bits<8>>,
    /// A command waits for other devices.
    pub sync_valid: Signal<Out, Bit>,
    /// Every participant has reported.
    pub sync_ready: Signal<In, Bit>,
    /// Participants of its transaction.
    pub sync_participants: Signal<Out, Bits<32>>,
    /// Its transaction.
    pub sync_txid: Signal<Out, Bits<64>>,
    /// Its pool.
    pub sync_pool: Signal<Out, Bits<32>>,
    /// Its thread.
    pub sync_thread: Signal<Out, Bits<16>>,
    /// No command is done without that being noted.
    pub quiet: Signal<Out, Bit>,

    program: AsyncRam<Bits<32>, 7, 1>,
    works: AsyncRam<Work, 1, 3>,
    contexts: [Context; CONTEXTS_PER_UNIT],
    decode: Decode,
    instruction: Register<Bits<32>>,
    state: Register<State>,

    accept: Signal<Local, Bit>,
    fault: Signal<Local, Bit>,
    operates: Signal<Local, Bit>,
    step: Signal<Local, Bit>,
    go_on: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    pc: Signal<Local, Bits<8>>,
    next_pc: Signal<Local, Bits<8>>,
    fetch_pc: Signal<Local, Bits<8>>,
    fetch_context: Signal<Local, Bit>,
    here: Signal<Local, Bits<2>>,
    there: Signal<Local, Bits<2>>,
    new: Signal<Local, Bits<2>>,
    stored: Signal<Local, Work>,
    waited: Signal<Local, Work>,
    slot: Signal<Local, Bits<5>>,
    zero1: Constant<Bits<1>>,
    one1: Constant<Bits<1>>,
    one8: Constant<Bits<8>>,
    in_0: Constant<Bits<2>>,
    in_1: Constant<Bits<2>>,
    fault_status: Constant<Bits<8>>,
}
