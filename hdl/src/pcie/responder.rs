//! Completions.

use super::header::{BlockShape, CompletionHeader, completion_status};
use super::lanes::CompletionBeat;
use crate::cells::{Concat, Fifo, Widen};
use crate::dut::{PortValue, Ports};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// A request that wants an answer.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Owed {
    /// Its descriptor.
    pub request: Bits<128>,
    /// Enables of its first Dword.
    pub first_enables: Bits<4>,
    /// Enables of its last Dword.
    pub last_enables: Bits<4>,
    /// First Dword in its 128 bytes.
    pub lane: Bits<5>,
    /// First enabled byte of the first Dword.
    pub low_bits: Bits<2>,
    /// Dwords.
    pub left: Bits<11>,
    /// Bytes from the first enabled to the last.
    pub bytes: Bits<13>,
    /// It is not supported.
    pub refused: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Low,
    High,
    Send,
    Refuse,
    Skip,
}

/// Answers requests, in their order, out of the lines that were read for them.
///
/// Guarantees: a read is answered by completions that end at multiples of 128 bytes; where the card
/// has refused a line, by a completer abort from there on, and its further lines are taken and not
/// sent. What is not supported gets Unsupported Request with what the PCIe block logs. With
/// `forget` nothing is sent, no request is remembered, and every line that comes is dropped. Bound:
/// 2^`K` requests wait; a request takes one cycle beside its lines and the beats of its
/// completions, one that is refused two more. Parameters: `K` from 1 to 6, `C` = `K` + 1.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Responder<const K: usize, const C: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high. Only together with `LineAccess`.
    pub reset: Signal<In, Bit>,
    /// Drop all.
    pub forget: Signal<In, Bit>,
    /// A request is to be answered; lines of a read come later. Only while not `full`.
    pub owe: Signal<In, Bit>,
    /// Which.
    pub owed: Signal<In, Owed>,
    /// No further request can be kept.
    pub full: Signal<Out, Bit>,
    /// No request is to be answered.
    pub idle: Signal<Out, Bit>,
    /// The next line is here.
    pub answered: Signal<In, Bit>,
    /// The line.
    pub read: Signal<In, Bits<512>>,
    /// The card has refused it.
    pub error: Signal<In, Bit>,
    /// It is taken.
    pub take: Signal<Out, Bit>,
    /// Completions.
    pub cc_tdata: Signal<Out, Bits<512>>,
    /// See PG213.
    pub cc_tkeep: Signal<Out, Bits<16>>,
    /// See PG213.
    pub cc_tuser: Signal<Out, Bits<81>>,
    /// The last beat of a packet.
    pub cc_tlast: Signal<Out, Bit>,
    /// A beat is here.
    pub cc_tvalid: Signal<Out, Bit>,
    /// It is taken.
    pub cc_tready: Signal<In, Bit>,

    phase: DFF<Phase>,
    requests: Fifo<Owed, K, C>,
    request: DFF<Bits<128>>,
    first_enables: DFF<Bits<4>>,
    last_enables: DFF<Bits<4>>,
    left: DFF<Bits<11>>,
    bytes: DFF<Bits<13>>,
    lane: DFF<Bits<5>>,
    low_bits: DFF<Bits<2>>,
    low: DFF<Bits<512>>,
    high: DFF<Bits<512>>,
    beat: DFF<Bits<2>>,
    status: DFF<Bits<3>>,
    /// A line of the completion was refused.
    bad: DFF<Bit>,
    /// The read has been answered by an abort.
    skips: DFF<Bit>,

    oldest: Signal<Local, Owed>,
    oldest_lane: Signal<Local, Bits<5>>,
    is_high: Signal<Local, Bit>,
    is_whole: Signal<Local, Bit>,
    left_next: Signal<Local, Bits<11>>,
    bytes_next: Signal<Local, Bits<13>>,
    read_done: Signal<Local, Bit>,
    block_over: Signal<Local, Bit>,
    shape: BlockShape,
    header: CompletionHeader,
    beats: CompletionBeat,
    lower: Concat<5, 2, 7>,
    block_dwords: Widen<6, 11>,
    block_bytes: Concat<11, 2, 13>,
    offset_bytes: Widen<2, 13>,
    enables: Concat<4, 4, 8>,
    enables_dword: Widen<8, 32>,
    refusal: Concat<32, 96, 128>,
    refusal_beat: Concat<128, 128, 256>,
    refusal_data: Widen<256, 512>,
    refusal_user: Widen<17, 81>,
    end_lane: Concat<4, 8, 12>,
    beat_user: Widen<12, 81>,

    #[default(Constant::new(completion_status::SUCCESS.into()))]
    success: Constant<Bits<3>>,
    #[default(Constant::new(completion_status::UNSUPPORTED.into()))]
    unsupported_status: Constant<Bits<3>>,
    #[default(Constant::new(completion_status::ABORT.into()))]
    abort: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    one2: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero2: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero4: Constant<Bits<4>>,
    #[default(Constant::new(0.into()))]
    zero5: Constant<Bits<5>>,
    #[default(Constant::new(0.into()))]
    zero6: Constant<Bits<6>>,
    #[default(Constant::new(0xff.into()))]
    refusal_keep: Constant<Bits<16>>,
    /// `is_sop[0]`, `is_eop[0]`, and 7 as `is_eop0_ptr`.
    #[default(Constant::new((1 | 1 << 6 | 7 << 8).into()))]
    whole_packet: Constant<Bits<17>>,
    #[default(Constant::new(1.into()))]
    is_sop: Constant<Bits<8>>,
    #[default(Constant::new((1 << 6).into()))]
    is_eop: Constant<Bits<8>>,
    #[default(Constant::new((1 | 1 << 6).into()))]
    is_both: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    neither: Constant<Bits<8>>,
}

impl<const K: usize, const C: usize> Logic for Responder<K, C> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            request,
            first_enables,
            last_enables,
            left,
            bytes,
            lane,
            low_bits,
            low,
            high,
            beat,
            status,
            bad,
            skips
        );
        clock!(self, clock, requests);
        self.requests.reset.next = self.reset.val() | self.forget.val();
        self.requests.write.next = self.owe.val();
        self.requests.data_in.next = self.owed.val();
        self.full.next = self.requests.full.val();
        self.idle.next = (self.phase.q.val() == Phase::Idle) & self.requests.empty.val();
        self.oldest.next = self.requests.data_out.val();
        self.oldest_lane.next = self.oldest.val().lane;
        self.requests.read.next = self.phase.q.val() == Phase::Idle;

        // The completion that is next: of the lower line, of the upper one, or of both.
        self.shape.lane.next = self.lane.q.val();
        self.shape.left.next = self.left.q.val();
        self.is_high.next = self.shape.high.val().get_bit(0);
        self.block_dwords.i.next = self.shape.dwords.val();
        self.block_bytes.high.next = self.block_dwords.o.val();
        self.block_bytes.low.next = self.zero2.val();
        self.offset_bytes.i.next = self.low_bits.q.val();
        self.left_next.next = self.left.q.val() - self.block_dwords.o.val();
        self.bytes_next.next = self.bytes.q.val() - self.block_bytes.o.val() + self.offset_bytes.o.val();
        self.read_done.next = !self.left_next.val().any();
        self.take.next = self.answered.val()
            & ((self.phase.q.val() == Phase::Low) | (self.phase.q.val() == Phase::High) | self.forget.val());
        // All lines of the completion are here.
        self.is_whole.next = self.answered.val()
            & (((self.phase.q.val() == Phase::Low) & !self.is_high.val()) | (self.phase.q.val() == Phase::High));

        self.lower.high.next = self.lane.q.val();
        self.lower.low.next = self.low_bits.q.val();
        self.header.request.next = self.request.q.val();
        self.header.lower.next = self.lower.o.val();
        self.header.bytes.next = self.bytes.q.val();
        self.header.status.next = self.status.q.val();
        self.header.dwords.next = self.shape.dwords.val();
        self.beats.header.next = self.header.header.val();
        self.beats.low.next = self.low.q.val();
        self.beats.high.next = self.high.q.val();
        self.beats.lane.next = self.lane.q.val();
        self.beats.dwords.next = self.shape.dwords.val();
        self.beats.beat.next = self.beat.q.val();
        self.end_lane.high.next = self.zero4.val();
        self.end_lane.low.next = self.neither.val();
        if !self.beat.q.val().any() {
            self.end_lane.low.next = self.is_sop.val();
        }
        if self.beats.last.val() {
            self.end_lane.high.next = self.beats.ending.val();
            self.end_lane.low.next = self.is_eop.val();
            if !self.beat.q.val().any() {
                self.end_lane.low.next = self.is_both.val();
            }
        }
        self.beat_user.i.next = self.end_lane.o.val();
        self.enables.high.next = self.last_enables.q.val();
        self.enables.low.next = self.first_enables.q.val();
        self.enables_dword.i.next = self.enables.o.val();
        self.refusal.high.next = self.enables_dword.o.val();
        self.refusal.low.next = self.header.header.val();
        self.refusal_beat.high.next = self.request.q.val();
        self.refusal_beat.low.next = self.refusal.o.val();
        self.refusal_data.i.next = self.refusal_beat.o.val();
        self.refusal_user.i.next = self.whole_packet.val();
        self.cc_tdata.next = self.beats.data.val();
        self.cc_tkeep.next = self.beats.keep.val();
        self.cc_tlast.next = self.beats.last.val();
        self.cc_tuser.next = self.beat_user.o.val();
        if self.phase.q.val() == Phase::Refuse {
            self.header.dwords.next = self.zero6.val();
            self.cc_tdata.next = self.refusal_data.o.val();
            self.cc_tkeep.next = self.refusal_keep.val();
            self.cc_tlast.next = true;
            self.cc_tuser.next = self.refusal_user.o.val();
        }
        self.cc_tvalid.next =
            ((self.phase.q.val() == Phase::Send) | (self.phase.q.val() == Phase::Refuse)) & !self.forget.val();

        self.block_over.next = ((self.phase.q.val() == Phase::Send) & self.cc_tready.val() & self.beats.last.val())
            | (self.phase.q.val() == Phase::Skip);
        match self.phase.q.val() {
            Phase::Idle => {
                self.request.d.next = self.oldest.val().request;
                self.first_enables.d.next = self.oldest.val().first_enables;
                self.last_enables.d.next = self.oldest.val().last_enables;
                self.lane.d.next = self.oldest.val().lane;
                self.low_bits.d.next = self.oldest.val().low_bits;
                self.left.d.next = self.oldest.val().left;
                self.bytes.d.next = self.oldest.val().bytes;
                self.beat.d.next = self.zero2.val();
                self.status.d.next = self.success.val();
                self.bad.d.next = false;
                self.skips.d.next = false;
                if !self.requests.empty.val() {
                    self.phase.d.next = Phase::Low;
                    if self.oldest_lane.val().get_bit(4) {
                        self.phase.d.next = Phase::High;
                    }
                    if self.oldest.val().refused {
                        self.status.d.next = self.unsupported_status.val();
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::Low => {
                self.low.d.next = self.read.val();
                if self.answered.val() {
                    self.bad.d.next = self.error.val();
                    self.phase.d.next = Phase::High;
                }
            }
            Phase::High => {
                self.high.d.next = self.read.val();
            }
            Phase::Send => {
                if self.cc_tready.val() {
                    self.beat.d.next = self.beat.q.val() + self.one2.val();
                }
            }
            Phase::Refuse => {
                if self.cc_tready.val() {
                    self.phase.d.next = Phase::Idle;
                    if self.bad.q.val() {
                        self.skips.d.next = true;
                        self.phase.d.next = Phase::Skip;
                    }
                }
            }
            Phase::Skip => {}
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.is_whole.val() {
            self.phase.d.next = Phase::Send;
            if self.bad.q.val() | self.error.val() {
                self.bad.d.next = true;
                self.status.d.next = self.abort.val();
                self.phase.d.next = Phase::Refuse;
            }
            if self.skips.q.val() {
                self.phase.d.next = Phase::Skip;
            }
        }
        if self.block_over.val() {
            self.beat.d.next = self.zero2.val();
            self.left.d.next = self.left_next.val();
            self.bytes.d.next = self.bytes_next.val();
            self.lane.d.next = self.zero5.val();
            self.low_bits.d.next = self.zero2.val();
            self.phase.d.next = Phase::Low;
            if self.read_done.val() {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() | self.forget.val() {
            self.phase.d.next = Phase::Idle;
        }
    }
}
