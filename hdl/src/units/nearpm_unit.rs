//! An execution unit.

use super::dma_engine::DmaEngine;
use super::metadata_generator::MetadataGenerator;
use super::sequencer::Sequencer;
use crate::bundles::{MemoryRequester, Work};
use crate::dut::Ports;
use rust_hdl::prelude::*;

/// Runs two commands at a time: their instructions in turn, their reads and writes overlapped.
///
/// Guarantees: `done` comes when every write of the command is answered by the memory. A command
/// without memory errors writes what its program says and nothing else, to the byte. Behind a read
/// that failed nothing is written. Bound: five cycles from `issue_valid` to the read burst at the
/// memory port's AXI side; from the last read beat there to the last write beat of a sealed head
/// eight, with nobody else at the port. See [`Sequencer`] and [`DmaEngine`].
#[derive(LogicBlock, Default, Ports)]
pub struct NearPmUnit {
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

    /// A command is done. Stays until it is taken.
    pub done_valid: Signal<Out, Bit>,
    /// That is noted.
    pub done_ready: Signal<In, Bit>,
    /// Its request slot.
    pub done_slot: Signal<Out, Bits<5>>,
    /// Its status: that of `End`, MemoryError or FirmwareFault.
    pub done_status: Signal<Out, Bits<8>>,
    /// A command waited, and everything before is durable. Stays until it is taken.
    pub progress_valid: Signal<Out, Bit>,
    /// That is noted: the command goes on.
    pub progress_ready: Signal<In, Bit>,
    /// Its request slot.
    pub progress_slot: Signal<Out, Bits<5>>,
    /// Where a replay resumes.
    pub progress_pc: Signal<Out, Bits<8>>,

    /// Write a word of the control store at the next edge; only while the unit has no command.
    pub prog_we: Signal<In, Bit>,
    /// Which word.
    pub prog_addr: Signal<In, Bits<7>>,
    /// Its new value.
    pub prog_data: Signal<In, Bits<32>>,

    /// Request no new burst.
    pub quiesce: Signal<In, Bit>,
    /// No burst is requested or outstanding, and nothing that is done waits to be told.
    pub quiet: Signal<Out, Bit>,

    /// Memory.
    pub mem: MemoryRequester,

    sequencer: Sequencer,
    generator: MetadataGenerator,
    engine: DmaEngine,
}

impl Logic for NearPmUnit {
    #[hdl_gen]
    fn update(&mut self) {
        MemoryRequester::link(&mut self.mem, &mut self.engine.mem);
        clock!(self, clock, sequencer, generator, engine);
        self.sequencer.reset.next = self.reset.val();
        self.generator.reset.next = self.reset.val();
        self.engine.reset.next = self.reset.val();
        self.engine.quiesce.next = self.quiesce.val();
        self.quiet.next = self.engine.quiet.val() & self.sequencer.quiet.val();

        self.sequencer.issue_valid.next = self.issue_valid.val();
        self.issue_ready.next = self.sequencer.issue_ready.val();
        self.sequencer.work.next = self.work.val();
        self.sequencer.prog_we.next = self.prog_we.val();
        self.sequencer.prog_addr.next = self.prog_addr.val();
        self.sequencer.prog_data.next = self.prog_data.val();
        self.done_valid.next = self.sequencer.done_valid.val();
        self.sequencer.done_ready.next = self.done_ready.val();
        self.done_slot.next = self.sequencer.done_slot.val();
        self.done_status.next = self.sequencer.done_status.val();
        self.progress_valid.next = self.sequencer.progress_valid.val();
        self.sequencer.progress_ready.next = self.progress_ready.val();
        self.progress_slot.next = self.sequencer.progress_slot.val();
        self.progress_pc.next = self.sequencer.progress_pc.val();

        self.engine.operation_valid.next = self.sequencer.operation_valid.val();
        self.sequencer.operation_ready.next = self.engine.operation_ready.val();
        self.engine.operation.next = self.sequencer.operation.val();
        self.engine.operation_copy.next = self.sequencer.operation_copy.val();
        self.sequencer.store_context.next = self.engine.store_context.val();
        self.engine.store_value.next = self.sequencer.store_value.val();
        for i in 0..2 {
            self.sequencer.retire[i].next = self.engine.retire[i].val();
            self.sequencer.answered[i].next = self.engine.answered[i].val();
            self.sequencer.memory_error[i].next = self.engine.memory_error[i].val();
            self.engine.failed[i].next = self.sequencer.failed[i].val();
        }

        self.generator.generate_valid.next = self.sequencer.generate_valid.val();
        self.sequencer.generate_ready.next = self.generator.generate_ready.val();
        self.generator.work.next = self.sequencer.present.val();
        self.generator.object.next = self.sequencer.object.val();
        self.generator.kind.next = self.sequencer.kind.val();
        self.generator.line_valid.next = self.engine.line_valid.val();
        self.generator.line_first.next = self.engine.line_first.val();
        self.generator.line_last.next = self.engine.line_last.val();
        self.generator.line.next = self.engine.line.val();
        self.generator.copy_started.next = self.engine.copy_started.val();
        self.engine.head_ready.next = self.generator.head_ready.val();
        self.generator.head_take.next = self.engine.head_take.val();
        self.engine.head.next = self.generator.head.val();
        self.generator.head_written.next = self.engine.head_written.val();
    }
}
