//! Runs microprograms.

use super::context::Context;
use super::instruction::{Classify, Decode, Operation};
use crate::bundles::Work;
use crate::cells::{AsyncRam, Concat, Register};
use crate::dut::Ports;
use nearpm_interface::geometry::CONTEXTS_PER_UNIT;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The instruction that is executed, and what is offered to others.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    full: Bit,
    context: Bit,
    pc: Bits<8>,
    progress: Bit,
    progress_context: Bit,
    done: Bit,
    done_slot: Bits<5>,
    done_status: Bits<8>,
}

/// Executes one instruction a cycle, of one of two commands.
///
/// Guarantees: `progress` and `done` stay as they are until they are taken. A command that waits
/// leaves the sequencer to the other one. The operations of a command reach the memory engine in
/// program order. Bound: a command's first instruction is executed in the cycle after its issue
/// when the sequencer is free, and its operation is at the engine in the same cycle.
#[derive(SmartDefault, LogicBlock, Ports)]
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
    /// No command is done without that being noted.
    pub quiet: Signal<Out, Bit>,

    /// Words with their kinds; both words that may come next are read, so that the choice comes
    /// last.
    words: AsyncRam<Bits<38>, 7, 2>,
    classify: Classify,
    classified: Concat<6, 32, 38>,
    works: AsyncRam<Work, 1, 2>,
    contexts: [Context; CONTEXTS_PER_UNIT],
    decode: Decode,
    instruction: Register<Bits<38>>,
    state: Register<State>,

    accept: Signal<Local, Bit>,
    kinds: Signal<Local, Bits<6>>,
    is_copy: Signal<Local, Bit>,
    is_generate: Signal<Local, Bit>,
    fault: Signal<Local, Bit>,
    operates: Signal<Local, Bit>,
    step: Signal<Local, Bit>,
    go_on: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    start_pc: Signal<Local, Bits<8>>,
    start_context: Signal<Local, Bit>,
    length: Signal<Local, Bits<19>>,
    fetch: Signal<Local, Bit>,
    pc: Signal<Local, Bits<8>>,
    next_pc: Signal<Local, Bits<8>>,
    fetch_pc: Signal<Local, Bits<8>>,
    fetch_context: Signal<Local, Bit>,
    stored: Signal<Local, Work>,
    here: [Signal<Local, Bit>; CONTEXTS_PER_UNIT],
    there: [Signal<Local, Bit>; CONTEXTS_PER_UNIT],
    fresh: [Signal<Local, Bit>; CONTEXTS_PER_UNIT],
    #[default(Constant::new(1.into()))]
    one1: Constant<Bits<1>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new((Status::FirmwareFault as u64).into()))]
    fault_status: Constant<Bits<8>>,
}

impl Logic for Sequencer {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, words, works, instruction, state);
        self.state.reset.next = self.reset.val();
        self.state.enable.next = true;
        self.state.d.next = self.state.q.val();

        // Control store and commands.
        self.words.write_enable.next = self.prog_we.val();
        self.words.write_address.next = self.prog_addr.val();
        self.classify.word.next = self.prog_data.val();
        self.classified.high.next = self.classify.kinds.val();
        self.classified.low.next = self.prog_data.val();
        self.words.write_data.next = self.classified.o.val();
        self.issue_ready.next = !self.contexts[0].busy.val() | !self.contexts[1].busy.val();
        self.accept.next = self.issue_valid.val() & self.issue_ready.val();
        self.fresh[0].next = !self.contexts[0].busy.val();
        self.fresh[1].next = self.contexts[0].busy.val();
        self.works.write_enable.next = self.accept.val();
        self.works.write_data.next = self.work.val();
        self.works.write_address.next = 0.into();
        if self.fresh[1].val() {
            self.works.write_address.next = self.one1.val();
        }
        self.works.read_address[0].next = 0.into();
        if self.state.q.val().context {
            self.works.read_address[0].next = self.one1.val();
        }
        self.works.read_address[1].next = 0.into();
        if self.store_context.val() {
            self.works.read_address[1].next = self.one1.val();
        }
        self.present.next = self.works.read_data[0].val();
        self.stored.next = self.works.read_data[1].val();
        self.store_value.next = self.stored.val().value;

        // Execute.
        self.here[0].next = !self.state.q.val().context;
        self.here[1].next = self.state.q.val().context;
        self.pc.next = self.state.q.val().pc;
        self.next_pc.next = self.pc.val() + self.one8.val();
        self.kinds.next = self.instruction.q.val().get_bits::<6>(32);
        self.decode.instruction.next = self.instruction.q.val().get_bits::<32>(0);
        self.decode.in_context.next = self.state.q.val().context;
        self.decode.source.next = self.present.val().source;
        self.decode.destination.next = self.present.val().destination;
        self.decode.auxiliary.next = self.present.val().auxiliary;
        self.decode.source_offset.next = self.present.val().source_offset;
        self.decode.destination_offset.next = self.present.val().destination_offset;
        self.decode.length.next = self.present.val().length;
        self.operation.next = self.decode.operation.val();
        self.object.next = self.decode.object.val();
        self.kind.next = self.decode.code.val();
        // The bits are those of `instruction`: sound, end, copy, generate, store, wait. A kernel
        // takes no names here.
        self.is_copy.next = self.kinds.val().get_bit(2);
        self.is_generate.next = self.kinds.val().get_bit(3);
        self.operation_copy.next = self.is_copy.val();
        self.fault.next = !self.kinds.val().get_bit(0)
            | self.pc.val().get_bit(7)
            | (self.is_copy.val() & self.here[0].val() & self.contexts[0].empty.val())
            | (self.is_copy.val() & self.here[1].val() & self.contexts[1].empty.val())
            | (self.is_generate.val() & self.here[0].val() & !self.contexts[0].copied.val())
            | (self.is_generate.val() & self.here[1].val() & !self.contexts[1].copied.val());
        self.operates.next = self.state.q.val().full
            & !self.fault.val()
            & (self.is_copy.val() | self.kinds.val().get_bit(4) | self.is_generate.val());
        self.operation_valid.next = self.operates.val() & (!self.is_generate.val() | self.generate_ready.val());
        self.generate_valid.next = self.operates.val() & self.is_generate.val() & self.operation_ready.val();
        self.go_on.next = self.operation_valid.val() & self.operation_ready.val();
        self.step.next = self.go_on.val() | (self.state.q.val().full & !self.operates.val());

        // Fetch.
        self.starts.next = self.contexts[0].ready.val() | self.contexts[1].ready.val() | self.accept.val();
        self.start_pc.next = self.work.val().pc;
        self.start_context.next = self.fresh[1].val();
        if self.contexts[0].ready.val() {
            self.start_pc.next = self.contexts[0].pc.val();
            self.start_context.next = false;
        } else if self.contexts[1].ready.val() {
            self.start_pc.next = self.contexts[1].pc.val();
            self.start_context.next = true;
        }
        self.words.read_address[0].next = self.next_pc.val().get_bits::<7>(0);
        self.words.read_address[1].next = self.start_pc.val().get_bits::<7>(0);
        self.fetch.next = self.starts.val() & (self.step.val() | !self.state.q.val().full);
        self.fetch_pc.next = self.start_pc.val();
        self.fetch_context.next = self.start_context.val();
        self.instruction.d.next = self.words.read_data[1].val();
        if self.go_on.val() {
            self.fetch.next = true;
            self.fetch_pc.next = self.next_pc.val();
            self.fetch_context.next = self.state.q.val().context;
            self.instruction.d.next = self.words.read_data[0].val();
        }
        self.there[0].next = self.fetch.val() & !self.go_on.val() & !self.fetch_context.val();
        self.there[1].next = self.fetch.val() & !self.go_on.val() & self.fetch_context.val();
        self.instruction.reset.next = false;
        self.instruction.enable.next = self.fetch.val();
        if self.step.val() {
            self.state.d.next.full = false;
        }
        if self.fetch.val() {
            self.state.d.next.full = true;
            self.state.d.next.pc = self.fetch_pc.val();
            self.state.d.next.context = self.fetch_context.val();
        }

        // The contexts.
        self.length.next = self.work.val().length;
        for i in 0..2 {
            self.contexts[i].clock.next = self.clock.val();
            self.contexts[i].reset.next = self.reset.val();
            self.contexts[i].accept.next = self.accept.val() & self.fresh[i].val();
            self.contexts[i].accept_slot.next = self.work.val().slot;
            self.contexts[i].accept_pc.next = self.work.val().pc;
            self.contexts[i].accept_empty.next = !self.length.val().any();
            self.contexts[i].fetched.next = self.there[i].val();
            self.contexts[i].operate.next = self.go_on.val() & self.here[i].val();
            self.contexts[i].copy.next = self.is_copy.val();
            self.contexts[i].end_program.next =
                self.step.val() & self.here[i].val() & (self.fault.val() | self.kinds.val().get_bit(1));
            self.contexts[i].end_status.next = self.decode.code.val();
            if self.fault.val() {
                self.contexts[i].end_status.next = self.fault_status.val();
            }
            self.contexts[i].wait_durable.next =
                self.step.val() & self.here[i].val() & !self.fault.val() & self.kinds.val().get_bit(5);
            self.contexts[i].next_pc.next = self.next_pc.val();
            self.contexts[i].retire.next = self.retire[i].val();
            self.contexts[i].answered.next = self.answered[i].val();
            self.contexts[i].memory_error.next = self.memory_error[i].val();
            self.failed[i].next = self.contexts[i].failed.val();
            self.contexts[i].progress_taken.next = false;
            self.contexts[i].done_taken.next = false;
        }

        // What waits for others. An offer stands until it is taken.
        self.progress_valid.next = self.state.q.val().progress;
        self.progress_slot.next = self.contexts[0].slot.val();
        self.progress_pc.next = self.contexts[0].pc.val();
        if self.state.q.val().progress_context {
            self.progress_slot.next = self.contexts[1].slot.val();
            self.progress_pc.next = self.contexts[1].pc.val();
        }
        if !self.state.q.val().progress {
            self.state.d.next.progress = self.contexts[0].want_progress.val() | self.contexts[1].want_progress.val();
            self.state.d.next.progress_context = !self.contexts[0].want_progress.val();
        } else if self.progress_ready.val() {
            self.state.d.next.progress = false;
            self.contexts[0].progress_taken.next = !self.state.q.val().progress_context;
            self.contexts[1].progress_taken.next = self.state.q.val().progress_context;
        }
        self.done_valid.next = self.state.q.val().done;
        self.done_slot.next = self.state.q.val().done_slot;
        self.done_status.next = self.state.q.val().done_status;
        if self.done_ready.val() {
            self.state.d.next.done = false;
        }
        if !self.state.q.val().done {
            if self.contexts[0].want_done.val() {
                self.state.d.next.done = true;
                self.state.d.next.done_slot = self.contexts[0].slot.val();
                self.state.d.next.done_status = self.contexts[0].status.val();
                self.contexts[0].done_taken.next = true;
            } else if self.contexts[1].want_done.val() {
                self.state.d.next.done = true;
                self.state.d.next.done_slot = self.contexts[1].slot.val();
                self.state.d.next.done_status = self.contexts[1].status.val();
                self.contexts[1].done_taken.next = true;
            }
        }
        self.quiet.next =
            !self.state.q.val().done & !self.contexts[0].want_done.val() & !self.contexts[1].want_done.val();
    }
}
