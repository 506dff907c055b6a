//! The reading half of the memory engine.

use super::burst::Burst;
use super::instruction::Operation;
use super::lanes::{ByteMask, MaskedLine};
use crate::cells::{Fifo, Register};
use crate::dut::Ports;
use nearpm_interface::geometry::CONTEXTS_PER_UNIT;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Lines that the engine holds between its halves.
pub const FIFO_LINES: u64 = 64;

/// What is still to be requested, and how far its next request is.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    active: Bit,
    /// The request was offered in the cycle before, and not taken.
    held: Bit,
    /// It was taken in the cycle before: it is counted, and the next one is cut.
    taken: Bit,
}

/// The copy whose lines arrive.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Arrival {
    active: Bit,
    first: Bit,
    offset: Bits<6>,
    end_byte: Bits<6>,
    left: Bits<13>,
    context: Bit,
}

/// Reads the lines of copies, and zeroes what lies outside of their ranges.
///
/// Guarantees: requests only while the line FIFO has room for the longest burst; all requests of a
/// unit have one tag, so that their data comes in order. A burst is at most 16 lines and stays
/// inside 4 KiB. With `quiesce` no new request is made; one that is made stays until it is taken.
/// Bound: a copy that is taken in a cycle is requested two cycles later; then one burst every two
/// cycles, every three while the FIFO has room for less than two.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct DmaRead {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Make no new request.
    pub quiesce: Signal<In, Bit>,
    /// Nothing is requested or outstanding.
    pub quiet: Signal<Out, Bit>,

    /// A copy.
    pub operation_valid: Signal<In, Bit>,
    /// The copy is taken.
    pub operation_ready: Signal<Out, Bit>,
    /// The copy.
    pub operation: Signal<In, Operation>,

    /// A read burst is asked for.
    pub rd_valid: Signal<Out, Bit>,
    /// The read burst is taken.
    pub rd_ready: Signal<In, Bit>,
    /// Its first line.
    pub rd_line: Signal<Out, Bits<34>>,
    /// Its beats less one, 0 to 15.
    pub rd_beats: Signal<Out, Bits<6>>,
    /// A line is here.
    pub rdata_valid: Signal<In, Bit>,
    /// The line.
    pub rdata: Signal<In, Bits<512>>,
    /// The memory could not read it.
    pub rdata_error: Signal<In, Bit>,

    /// A line of the present copy, in the cycle of its arrival.
    pub line_valid: Signal<Out, Bit>,
    /// The first of its copy.
    pub line_first: Signal<Out, Bit>,
    /// The last of its copy.
    pub line_last: Signal<Out, Bit>,
    /// The line, zero outside of the range.
    pub line: Signal<Out, Bits<512>>,
    /// A line leaves the line FIFO.
    pub freed: Signal<In, Bit>,
    /// A line could not be read, by context.
    pub memory_error: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],

    queue: Fifo<Operation, 2, 3>,
    arrivals: Fifo<Operation, 2, 3>,
    burst: Burst,
    mask: ByteMask,
    mask_now: Register<Bits<64>>,
    masked: MaskedLine,
    state: Register<State>,
    arrival: Register<Arrival>,
    /// Lines of the FIFO that no request has claimed.
    #[default(Register::new(FIFO_LINES.into()))]
    credit: Register<Bits<7>>,
    /// They are enough for the longest burst: told from a register, since the memory port's pick
    /// hangs on it.
    #[default(Register::new(true))]
    plenty: Register<Bit>,
    /// Lines requested that have not arrived.
    outstanding: Register<Bits<7>>,

    front: Signal<Local, Operation>,
    arriving: Signal<Local, Operation>,
    load: Signal<Local, Bit>,
    form: Signal<Local, Bit>,
    arrival_load: Signal<Local, Bit>,
    arrival_left: Signal<Local, Bits<13>>,
    arrival_last: Signal<Local, Bit>,
    next_first: Signal<Local, Bit>,
    next_left: Signal<Local, Bits<13>>,
    next_offset: Signal<Local, Bits<6>>,
    next_end_byte: Signal<Local, Bits<6>>,
    #[default(Constant::new(1.into()))]
    one7: Constant<Bits<7>>,
    #[default(Constant::new(1.into()))]
    one13: Constant<Bits<13>>,
}

impl Logic for DmaRead {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, queue, burst, arrivals, mask_now, state, arrival, credit, plenty, outstanding);
        self.queue.reset.next = self.reset.val();
        self.arrivals.reset.next = self.reset.val();
        self.mask_now.reset.next = self.reset.val();
        self.state.reset.next = self.reset.val();
        self.arrival.reset.next = self.reset.val();
        self.credit.reset.next = self.reset.val();
        self.plenty.reset.next = self.reset.val();
        self.outstanding.reset.next = self.reset.val();
        self.mask_now.enable.next = true;
        self.state.enable.next = true;
        self.arrival.enable.next = true;
        self.credit.enable.next = true;
        self.plenty.enable.next = true;
        self.outstanding.enable.next = true;
        self.state.d.next = self.state.q.val();
        self.arrival.d.next = self.arrival.q.val();
        self.credit.d.next = self.credit.q.val();
        self.outstanding.d.next = self.outstanding.q.val();

        // Request: the burst as it is cut. The memory port's answer goes into registers alone, and
        // acts a cycle later.
        self.queue.write.next = self.operation_valid.val();
        self.queue.data_in.next = self.operation.val();
        self.operation_ready.next = !self.queue.full.val();
        self.front.next = self.queue.data_out.val();
        self.rd_valid.next = self.state.q.val().held
            | (self.state.q.val().active & !self.state.q.val().taken & self.plenty.q.val() & !self.quiesce.val());
        self.rd_line.next = self.burst.line.val();
        self.rd_beats.next = self.burst.beats.val();
        self.state.d.next.held = self.rd_valid.val() & !self.rd_ready.val();
        self.state.d.next.taken = self.rd_valid.val() & self.rd_ready.val();
        self.form.next = self.state.q.val().taken;
        self.load.next = !self.queue.empty.val()
            & !self.arrivals.full.val()
            & (!self.state.q.val().active | (self.form.val() & self.burst.last.val()));
        self.queue.read.next = self.load.val();
        self.burst.load.next = self.load.val();
        self.burst.from.next = self.front.val().from;
        self.burst.count.next = self.front.val().count;
        self.burst.step.next = self.form.val();
        if self.form.val() & self.burst.last.val() {
            self.state.d.next.active = false;
        }
        if self.load.val() {
            self.state.d.next.active = true;
        }
        if self.form.val() & self.freed.val() {
            self.credit.d.next = self.credit.q.val() - self.burst.lines.val() + self.one7.val();
        } else if self.form.val() {
            self.credit.d.next = self.credit.q.val() - self.burst.lines.val();
        } else if self.freed.val() {
            self.credit.d.next = self.credit.q.val() + self.one7.val();
        }
        // 16 lines; 32 where a burst is taken off in this cycle.
        self.plenty.d.next = self.credit.q.val().get_bit(5) | self.credit.q.val().get_bit(6);
        if self.credit.q.val().get_bit(4) & !self.form.val() {
            self.plenty.d.next = true;
        }

        // Arrival. The mask of the next line is ready before the line is.
        self.arrivals.write.next = self.load.val();
        self.arrivals.data_in.next = self.front.val();
        self.arriving.next = self.arrivals.data_out.val();
        self.arrival_left.next = self.arrival.q.val().left;
        self.arrival_last.next = self.arrival_left.val() == self.one13.val();
        self.arrival_load.next = !self.arrivals.empty.val()
            & (!self.arrival.q.val().active | (self.rdata_valid.val() & self.arrival_last.val()));
        self.arrivals.read.next = self.arrival_load.val();
        self.next_first.next = self.arrival.q.val().first;
        self.next_left.next = self.arrival_left.val();
        self.next_offset.next = self.arrival.q.val().offset;
        self.next_end_byte.next = self.arrival.q.val().end_byte;
        if self.rdata_valid.val() {
            self.next_first.next = false;
            self.next_left.next = self.arrival_left.val() - self.one13.val();
            if self.arrival_last.val() {
                self.arrival.d.next.active = false;
            }
        }
        if self.arrival_load.val() {
            self.next_first.next = true;
            self.next_left.next = self.arriving.val().count;
            self.next_offset.next = self.arriving.val().offset;
            self.next_end_byte.next = self.arriving.val().end_byte;
            self.arrival.d.next.active = true;
            self.arrival.d.next.context = self.arriving.val().context;
        }
        self.arrival.d.next.first = self.next_first.val();
        self.arrival.d.next.left = self.next_left.val();
        self.arrival.d.next.offset = self.next_offset.val();
        self.arrival.d.next.end_byte = self.next_end_byte.val();
        self.mask.first.next = self.next_first.val();
        self.mask.last.next = self.next_left.val() == self.one13.val();
        self.mask.offset.next = self.next_offset.val();
        self.mask.end_byte.next = self.next_end_byte.val();
        self.mask_now.d.next = self.mask.mask.val();
        self.masked.valid.next = self.rdata_valid.val();
        self.masked.line.next = self.rdata.val();
        self.masked.mask.next = self.mask_now.q.val();
        self.line.next = self.masked.masked.val();
        self.line_valid.next = self.rdata_valid.val();
        self.line_first.next = self.arrival.q.val().first;
        self.line_last.next = self.arrival_last.val();
        self.memory_error[0].next = self.rdata_valid.val() & self.rdata_error.val() & !self.arrival.q.val().context;
        self.memory_error[1].next = self.rdata_valid.val() & self.rdata_error.val() & self.arrival.q.val().context;
        if self.form.val() & self.rdata_valid.val() {
            self.outstanding.d.next = self.outstanding.q.val() + self.burst.lines.val() - self.one7.val();
        } else if self.form.val() {
            self.outstanding.d.next = self.outstanding.q.val() + self.burst.lines.val();
        } else if self.rdata_valid.val() {
            self.outstanding.d.next = self.outstanding.q.val() - self.one7.val();
        }
        self.quiet.next = !self.outstanding.q.val().any() & !self.state.q.val().taken & !self.rd_valid.val();
    }
}
