//! The writing half of the memory engine.

use super::burst::Burst;
use super::instruction::Operation;
use super::lanes::ByteMask;
use super::load_store_unit::LoadStoreUnit;
use crate::cells::{Fifo, Register};
use crate::dut::Ports;
use nearpm_interface::geometry::CONTEXTS_PER_UNIT;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The operation that is cut into bursts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    active: Bit,
    first: Bit,
    requested: Bit,
    request_line: Bits<34>,
}

/// A burst, from its request to its last beat.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Beats {
    left: Bits<6>,
    first: Bit,
    last: Bit,
    offset: Bits<6>,
    end_byte: Bits<6>,
    whole: Bit,
    generate_head: Bit,
    store: Bit,
    context: Bit,
}

/// Writes copies from the line FIFO, heads and words, in the order of the operations.
///
/// Guarantees: a burst is requested only when its data is at hand, is at most 16 lines and stays
/// inside 4 KiB. Only the bytes of a copy's range are strobed, unless it writes whole lines; after
/// a memory error nothing is strobed for its context. With `quiesce` no new request is made; one
/// that is made stays until it is taken, and its data follows. Bound: a line that enters the FIFO
/// of an idle unit is requested in the next cycle; then one burst every two cycles. At most 63
/// bursts of a context are unanswered.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct DmaWrite {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Make no new request.
    pub quiesce: Signal<In, Bit>,
    /// Nothing is requested or unanswered.
    pub quiet: Signal<Out, Bit>,

    /// An operation.
    pub operation_valid: Signal<In, Bit>,
    /// The operation is taken.
    pub operation_ready: Signal<Out, Bit>,
    /// The operation.
    pub operation: Signal<In, Operation>,
    /// A copy begins to be written.
    pub copy_started: Signal<Out, Bit>,
    /// All bursts of an operation have been requested, by context.
    pub retire: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// No burst is unanswered, by context.
    pub answered: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// The memory could not write a burst, by context.
    pub memory_error: [Signal<Out, Bit>; CONTEXTS_PER_UNIT],
    /// Write nothing any more, by context.
    pub failed: [Signal<In, Bit>; CONTEXTS_PER_UNIT],

    /// A line enters the line FIFO.
    pub line_valid: Signal<In, Bit>,
    /// Oldest line of the line FIFO.
    pub line: Signal<In, Bits<512>>,
    /// It leaves the line FIFO.
    pub line_taken: Signal<Out, Bit>,
    /// The head of the entry whose data was written last can be had: it stands on `head` from the
    /// next cycle but one on, as soon as a request that is made in the next cycle may need it.
    pub head_ready: Signal<In, Bit>,
    /// It is wanted.
    pub head_take: Signal<Out, Bit>,
    /// The head.
    pub head: Signal<In, Bits<512>>,
    /// It is written.
    pub head_written: Signal<Out, Bit>,
    /// The context whose value is stored.
    pub store_context: Signal<Out, Bit>,
    /// Its value.
    pub store_value: Signal<In, Bits<64>>,

    /// A write burst is asked for.
    pub wr_valid: Signal<Out, Bit>,
    /// The write burst is taken.
    pub wr_ready: Signal<In, Bit>,
    /// Its first line.
    pub wr_line: Signal<Out, Bits<34>>,
    /// Its beats less one, 0 to 15.
    pub wr_beats: Signal<Out, Bits<6>>,
    /// Context 0 or 1.
    pub wr_tag: Signal<Out, Bits<3>>,
    /// Next line of the burst that was taken first.
    pub wdata: Signal<Out, Bits<512>>,
    /// Its bytes to write.
    pub wstrb: Signal<Out, Bits<64>>,
    /// The line is taken.
    pub wdata_ready: Signal<In, Bit>,
    /// A burst is answered.
    pub b_valid: Signal<In, Bit>,
    /// Its tag.
    pub b_tag: Signal<In, Bits<3>>,
    /// The memory could not write it.
    pub b_error: Signal<In, Bit>,

    queue: Fifo<Operation, 2, 3>,
    burst: Burst,
    mask: ByteMask,
    word: LoadStoreUnit,
    state: Register<State>,
    /// The operation in `state`, but for its place.
    present: Register<Operation>,
    request: Register<Beats>,
    beats: Register<Beats>,
    /// Lines in the FIFO that no request has claimed.
    available: Register<Bits<7>>,
    unanswered: [Register<Bits<6>>; CONTEXTS_PER_UNIT],

    front: Signal<Local, Operation>,
    load: Signal<Local, Bit>,
    form: Signal<Local, Bit>,
    possible: Signal<Local, Bit>,
    is_copy: Signal<Local, Bit>,
    one_more: Signal<Local, Bits<7>>,
    claim: Signal<Local, Bit>,
    grant: Signal<Local, Bit>,
    request_left: Signal<Local, Bits<6>>,
    beats_left: Signal<Local, Bits<6>>,
    beat_last: Signal<Local, Bit>,
    offset: Signal<Local, Bits<6>>,
    formed: [Signal<Local, Bit>; CONTEXTS_PER_UNIT],
    answers: [Signal<Local, Bit>; CONTEXTS_PER_UNIT],
    #[default(Constant::new(1.into()))]
    one3: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    one6: Constant<Bits<6>>,
    #[default(Constant::new(1.into()))]
    one7: Constant<Bits<7>>,
    #[default(Constant::new(Bits::<6>::mask()))]
    most6: Constant<Bits<6>>,
    #[default(Constant::new(0.into()))]
    none64: Constant<Bits<64>>,
}

impl Logic for DmaWrite {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, queue, burst, state, present, request, beats, available);
        self.queue.reset.next = self.reset.val();
        self.state.reset.next = self.reset.val();
        self.present.reset.next = self.reset.val();
        self.request.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.available.reset.next = self.reset.val();
        self.state.enable.next = true;
        self.present.enable.next = true;
        self.request.enable.next = true;
        self.beats.enable.next = true;
        self.available.enable.next = true;
        self.state.d.next = self.state.q.val();
        self.present.d.next = self.present.q.val();
        self.request.d.next = self.request.q.val();
        self.beats.d.next = self.beats.q.val();
        self.available.d.next = self.available.q.val();

        // Cut the operation.
        self.queue.write.next = self.operation_valid.val();
        self.queue.data_in.next = self.operation.val();
        self.operation_ready.next = !self.queue.full.val();
        self.front.next = self.queue.data_out.val();
        self.is_copy.next = !self.present.q.val().generate_head & !self.present.q.val().store;
        self.possible.next = self.state.q.val().active
            & !self.quiesce.val()
            & !self.state.q.val().requested
            & (self.present.q.val().context | (self.unanswered[0].q.val() != self.most6.val()))
            & (!self.present.q.val().context | (self.unanswered[1].q.val() != self.most6.val()));
        // A line may be asked for in the cycle of its arrival: it is in the FIFO when its data is
        // wanted.
        self.one_more.next = self.available.q.val() + self.one7.val();
        self.form.next = self.possible.val()
            & (self.present.q.val().store
                | (self.present.q.val().generate_head & self.head_ready.val())
                | (self.is_copy.val()
                    & ((self.burst.lines.val() <= self.available.q.val())
                        | (self.line_valid.val() & (self.burst.lines.val() == self.one_more.val())))));
        self.claim.next = self.form.val() & self.is_copy.val();
        self.head_take.next = self.form.val() & self.present.q.val().generate_head;
        self.load.next =
            !self.queue.empty.val() & (!self.state.q.val().active | (self.form.val() & self.burst.last.val()));
        self.queue.read.next = self.load.val();
        self.burst.load.next = self.load.val();
        self.burst.from.next = self.front.val().line;
        self.burst.count.next = self.front.val().count;
        self.burst.step.next = self.form.val();
        self.copy_started.next = self.load.val() & !self.front.val().generate_head & !self.front.val().store;

        // Request.
        self.grant.next = self.state.q.val().requested & self.wr_ready.val();
        self.wr_valid.next = self.state.q.val().requested;
        self.wr_line.next = self.state.q.val().request_line;
        self.request_left.next = self.request.q.val().left;
        self.wr_beats.next = self.request_left.val();
        self.wr_tag.next = 0.into();
        if self.request.q.val().context {
            self.wr_tag.next = self.one3.val();
        }
        if self.grant.val() {
            self.state.d.next.requested = false;
        }
        if self.form.val() {
            self.state.d.next.requested = true;
            self.state.d.next.request_line = self.burst.line.val();
            self.state.d.next.first = false;
            self.request.d.next.left = self.burst.beats.val();
            self.request.d.next.first = self.state.q.val().first;
            self.request.d.next.last = self.burst.last.val();
            self.request.d.next.offset = self.present.q.val().offset;
            self.request.d.next.end_byte = self.present.q.val().end_byte;
            self.request.d.next.whole = self.present.q.val().whole;
            self.request.d.next.generate_head = self.present.q.val().generate_head;
            self.request.d.next.store = self.present.q.val().store;
            self.request.d.next.context = self.present.q.val().context;
            if self.burst.last.val() {
                self.state.d.next.active = false;
            }
        }
        if self.load.val() {
            self.present.d.next = self.front.val();
            self.state.d.next.active = true;
            self.state.d.next.first = true;
        }
        if self.claim.val() & self.line_valid.val() {
            self.available.d.next = self.available.q.val() - self.burst.lines.val() + self.one7.val();
        } else if self.claim.val() {
            self.available.d.next = self.available.q.val() - self.burst.lines.val();
        } else if self.line_valid.val() {
            self.available.d.next = self.available.q.val() + self.one7.val();
        }

        // Data.
        self.beats_left.next = self.beats.q.val().left;
        self.beat_last.next = !self.beats_left.val().any();
        self.offset.next = self.beats.q.val().offset;
        self.mask.first.next = self.beats.q.val().first & !self.beats.q.val().whole;
        self.mask.last.next = self.beats.q.val().last & self.beat_last.val() & !self.beats.q.val().whole;
        self.mask.offset.next = self.offset.val();
        self.mask.end_byte.next = self.beats.q.val().end_byte;
        self.word.lane.next = self.offset.val().get_bits::<3>(3);
        self.word.value.next = self.store_value.val();
        self.store_context.next = self.beats.q.val().context;
        self.wdata.next = self.line.val();
        self.wstrb.next = self.mask.mask.val();
        if self.beats.q.val().generate_head {
            self.wdata.next = self.head.val();
        }
        if self.beats.q.val().store {
            self.wdata.next = self.word.line.val();
            self.wstrb.next = self.word.strobes.val();
        }
        if (self.failed[0].val() & !self.beats.q.val().context) | (self.failed[1].val() & self.beats.q.val().context) {
            self.wstrb.next = self.none64.val();
        }
        self.line_taken.next = self.wdata_ready.val() & !self.beats.q.val().generate_head & !self.beats.q.val().store;
        self.head_written.next = self.wdata_ready.val() & self.beats.q.val().generate_head;
        if self.wdata_ready.val() {
            self.beats.d.next.left = self.beats_left.val() - self.one6.val();
            self.beats.d.next.first = false;
        }
        if self.grant.val() {
            self.beats.d.next = self.request.q.val();
        }

        // Answers.
        self.formed[0].next = self.form.val() & !self.present.q.val().context;
        self.formed[1].next = self.form.val() & self.present.q.val().context;
        self.answers[0].next = self.b_valid.val() & !self.b_tag.val().get_bit(0);
        self.answers[1].next = self.b_valid.val() & self.b_tag.val().get_bit(0);
        for i in 0..2 {
            self.unanswered[i].clock.next = self.clock.val();
            self.unanswered[i].reset.next = self.reset.val();
            self.unanswered[i].enable.next = true;
            self.unanswered[i].d.next = self.unanswered[i].q.val();
            if self.formed[i].val() & !self.answers[i].val() {
                self.unanswered[i].d.next = self.unanswered[i].q.val() + self.one6.val();
            }
            if self.answers[i].val() & !self.formed[i].val() {
                self.unanswered[i].d.next = self.unanswered[i].q.val() - self.one6.val();
            }
            self.retire[i].next = self.formed[i].val() & self.burst.last.val();
            self.answered[i].next = !self.unanswered[i].q.val().any();
            self.memory_error[i].next = self.answers[i].val() & self.b_error.val();
        }
        self.quiet.next = !self.unanswered[0].q.val().any() & !self.unanswered[1].q.val().any();
    }
}
