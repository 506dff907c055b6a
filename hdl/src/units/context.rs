//! One of the commands that a unit overlaps.

use crate::cells::Register;
use crate::dut::Ports;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// What is known of the command.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    busy: Bit,
    ready: Bit,
    ended: Bit,
    waiting: Bit,
    failed: Bit,
    copied: Bit,
    empty: Bit,
    operations: Bits<4>,
    slot: Bits<5>,
    pc: Bits<8>,
    status: Bits<8>,
}

/// Follows one command from its issue until it is done.
///
/// Guarantees: `want_progress` and `want_done` rise only when every operation that the command has
/// begun is answered by the memory. After a memory error the command executes nothing behind a
/// `Wait`, and its status is MemoryError. Bound: at most 15 operations that are not written out.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Context {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,

    /// A command starts here; only while not `busy`.
    pub accept: Signal<In, Bit>,
    /// Its request slot, with `accept`.
    pub accept_slot: Signal<In, Bits<5>>,
    /// Its first instruction, with `accept`.
    pub accept_pc: Signal<In, Bits<8>>,
    /// Its operands have no bytes.
    pub accept_empty: Signal<In, Bit>,
    /// The instruction at `pc` is fetched.
    pub fetched: Signal<In, Bit>,
    /// The instruction that is executed gave the memory engine an operation.
    pub operate: Signal<In, Bit>,
    /// That operation is a copy.
    pub copy: Signal<In, Bit>,
    /// The program ends, with `end_status`.
    pub end_program: Signal<In, Bit>,
    /// Status of the program.
    pub end_status: Signal<In, Bits<8>>,
    /// The program waits until it is durable.
    pub wait_durable: Signal<In, Bit>,
    /// The instruction behind the one that is executed.
    pub next_pc: Signal<In, Bits<8>>,

    /// All bursts of one operation have been requested.
    pub retire: Signal<In, Bit>,
    /// No write burst of the command is unanswered.
    pub answered: Signal<In, Bit>,
    /// Memory failed for the command.
    pub memory_error: Signal<In, Bit>,

    /// There is a command here.
    pub busy: Signal<Out, Bit>,
    /// Its next instruction, at `pc`, may be fetched.
    pub ready: Signal<Out, Bit>,
    /// Instruction to fetch, or where a replay resumes.
    pub pc: Signal<Out, Bits<8>>,
    /// Its request slot.
    pub slot: Signal<Out, Bits<5>>,
    /// Its status, with `want_done`.
    pub status: Signal<Out, Bits<8>>,
    /// Memory has failed for it: nothing may be written any more.
    pub failed: Signal<Out, Bit>,
    /// It has copied since its start or its last wait.
    pub copied: Signal<Out, Bit>,
    /// A copy would be one of nothing.
    pub empty: Signal<Out, Bit>,
    /// It waits, and everything before is durable.
    pub want_progress: Signal<Out, Bit>,
    /// The progress is noted.
    pub progress_taken: Signal<In, Bit>,
    /// It has ended, and everything is durable.
    pub want_done: Signal<Out, Bit>,
    /// The status is noted: the context is free.
    pub done_taken: Signal<In, Bit>,

    state: Register<State>,
    drained: Signal<Local, Bit>,
    operations: Signal<Local, Bits<4>>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<4>>,
    #[default(Constant::new((Status::MemoryError as u64).into()))]
    memory_error_status: Constant<Bits<8>>,
}

impl Logic for Context {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, state);
        self.state.reset.next = self.reset.val();
        self.state.enable.next = true;
        self.state.d.next = self.state.q.val();
        self.operations.next = self.state.q.val().operations;
        self.drained.next = !self.operations.val().any() & self.answered.val();

        self.busy.next = self.state.q.val().busy;
        self.ready.next = self.state.q.val().ready;
        self.pc.next = self.state.q.val().pc;
        self.slot.next = self.state.q.val().slot;
        self.failed.next = self.state.q.val().failed;
        self.copied.next = self.state.q.val().copied;
        self.empty.next = self.state.q.val().empty;
        self.status.next = self.state.q.val().status;
        if self.state.q.val().failed {
            self.status.next = self.memory_error_status.val();
        }
        self.want_progress.next = self.state.q.val().waiting & self.drained.val() & !self.state.q.val().failed;
        self.want_done.next = self.state.q.val().ended & self.drained.val();

        if self.operate.val() & !self.retire.val() {
            self.state.d.next.operations = self.operations.val() + self.one.val();
        }
        if self.retire.val() & !self.operate.val() {
            self.state.d.next.operations = self.operations.val() - self.one.val();
        }
        if self.operate.val() & self.copy.val() {
            self.state.d.next.copied = true;
        }
        if self.memory_error.val() {
            self.state.d.next.failed = true;
        }
        if self.end_program.val() {
            self.state.d.next.ended = true;
            self.state.d.next.status = self.end_status.val();
        }
        if self.wait_durable.val() {
            self.state.d.next.waiting = true;
            self.state.d.next.pc = self.next_pc.val();
        }
        if self.state.q.val().waiting & self.drained.val() & self.state.q.val().failed {
            self.state.d.next.waiting = false;
            self.state.d.next.ended = true;
        }
        if self.progress_taken.val() {
            self.state.d.next.waiting = false;
            self.state.d.next.copied = false;
            self.state.d.next.ready = true;
        }
        if self.done_taken.val() {
            self.state.d.next.busy = false;
            self.state.d.next.ended = false;
        }
        if self.accept.val() {
            self.state.d.next.busy = true;
            self.state.d.next.ready = true;
            self.state.d.next.failed = false;
            self.state.d.next.copied = false;
            self.state.d.next.empty = self.accept_empty.val();
            self.state.d.next.slot = self.accept_slot.val();
            self.state.d.next.pc = self.accept_pc.val();
        }
        if self.fetched.val() {
            self.state.d.next.ready = false;
        }
    }
}
