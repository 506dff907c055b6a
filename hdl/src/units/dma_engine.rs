//! The memory engine of a unit: reading half, lines in between, writing half.

use super::dma_read::DmaRead;
use super::dma_write::DmaWrite;
use super::instruction::Operation;
use crate::bundles::MemoryRequester;
use crate::cells::Fifo;
use crate::dut::Ports;
use nearpm_interface::geometry::CONTEXTS_PER_UNIT;
use rust_hdl::prelude::*;

/// Carries out operations in order; reads of the next overlap with writes of the one before.
///
/// Guarantees and bounds are those of [`DmaRead`] and [`DmaWrite`]. Source and destination of a
/// copy have the same offset in the line, so lines are never shifted.
#[derive(LogicBlock, Default, Ports)]
pub struct DmaEngine {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Make no new request.
    pub quiesce: Signal<In, Bit>,
    /// Nothing is requested or outstanding.
    pub quiet: Signal<Out, Bit>,

    /// An operation.
    pub operation_valid: Signal<In, Bit>,
    /// The operation is taken.
    pub operation_ready: Signal<Out, Bit>,
    /// The operation.
    pub operation: Signal<In, Operation>,
    /// The operation is a copy.
    pub operation_copy: Signal<In, Bit>,
    /// All bursts of an operation have been requested, by context.
    pub retire: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// No write burst is unanswered, by context.
    pub answered: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// Memory failed, by context.
    pub memory_error: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// Write nothing any more, by context.
    pub failed: [Signal<In, Bit>; CONTEXTS_PER_UNIT],
    /// The context whose value is stored.
    pub store_context: Signal<Out, Bit>,
    /// Its value.
    pub store_value: Signal<In, Bits<64>>,

    /// A copy begins to be written.
    pub copy_started: Signal<Out, Bit>,
    /// A line of a copy arrives.
    pub line_valid: Signal<Out, Bit>,
    /// The first of its copy.
    pub line_first: Signal<Out, Bit>,
    /// The last of its copy.
    pub line_last: Signal<Out, Bit>,
    /// The line, zero outside of the range.
    pub line: Signal<Out, Bits<512>>,
    /// The next head can be had: it stands on `head` from the next cycle but one on.
    pub head_ready: Signal<In, Bit>,
    /// It is wanted.
    pub head_take: Signal<Out, Bit>,
    /// The head.
    pub head: Signal<In, Bits<512>>,
    /// It is written.
    pub head_written: Signal<Out, Bit>,

    /// Memory.
    pub mem: MemoryRequester,

    reader: DmaRead,
    lines: Fifo<Bits<512>, 6, 7>,
    writer: DmaWrite,
}

impl Logic for DmaEngine {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, reader, lines, writer);
        self.reader.reset.next = self.reset.val();
        self.lines.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.reader.quiesce.next = self.quiesce.val();
        self.writer.quiesce.next = self.quiesce.val();
        self.quiet.next = self.reader.quiet.val() & self.writer.quiet.val();

        self.operation_ready.next = self.writer.operation_ready.val() & self.reader.operation_ready.val();
        self.writer.operation.next = self.operation.val();
        self.writer.operation_valid.next = self.operation_valid.val() & self.reader.operation_ready.val();
        self.reader.operation.next = self.operation.val();
        self.reader.operation_valid.next =
            self.operation_valid.val() & self.operation_copy.val() & self.writer.operation_ready.val();

        self.mem.rd_valid.next = self.reader.rd_valid.val();
        self.mem.rd_line.next = self.reader.rd_line.val();
        self.mem.rd_beats.next = self.reader.rd_beats.val();
        self.mem.rd_tag.next = 0.into();
        self.reader.rd_ready.next = self.mem.rd_ready.val();
        self.reader.rdata_valid.next = self.mem.rdata_valid.val();
        self.reader.rdata.next = self.mem.rdata.val();
        self.reader.rdata_error.next = self.mem.rdata_error.val();
        self.reader.freed.next = self.writer.line_taken.val();

        self.line_valid.next = self.reader.line_valid.val();
        self.line_first.next = self.reader.line_first.val();
        self.line_last.next = self.reader.line_last.val();
        self.line.next = self.reader.line.val();
        self.lines.write.next = self.reader.line_valid.val();
        self.lines.data_in.next = self.reader.line.val();
        self.lines.read.next = self.writer.line_taken.val();
        self.writer.line_valid.next = self.reader.line_valid.val();
        self.writer.line.next = self.lines.data_out.val();

        self.writer.head_ready.next = self.head_ready.val();
        self.head_take.next = self.writer.head_take.val();
        self.writer.head.next = self.head.val();
        self.head_written.next = self.writer.head_written.val();
        self.copy_started.next = self.writer.copy_started.val();
        self.store_context.next = self.writer.store_context.val();
        self.writer.store_value.next = self.store_value.val();
        for i in 0..2 {
            self.retire[i].next = self.writer.retire[i].val();
            self.answered[i].next = self.writer.answered[i].val();
            self.memory_error[i].next = self.writer.memory_error[i].val() | self.reader.memory_error[i].val();
            self.writer.failed[i].next = self.failed[i].val();
        }

        self.mem.wr_valid.next = self.writer.wr_valid.val();
        self.mem.wr_line.next = self.writer.wr_line.val();
        self.mem.wr_beats.next = self.writer.wr_beats.val();
        self.mem.wr_tag.next = self.writer.wr_tag.val();
        self.writer.wr_ready.next = self.mem.wr_ready.val();
        self.mem.wdata.next = self.writer.wdata.val();
        self.mem.wstrb.next = self.writer.wstrb.val();
        self.writer.wdata_ready.next = self.mem.wdata_ready.val();
        self.writer.b_valid.next = self.mem.b_valid.val();
        self.writer.b_tag.next = self.mem.b_tag.val();
        self.writer.b_error.next = self.mem.b_error.val();
    }
}
