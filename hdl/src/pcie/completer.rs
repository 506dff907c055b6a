//! Requests of the host.

use super::header::{BarOffset, BlockShape, ByteCount, CompletionHeader};
use super::lanes::{AlignWrite, CompletionBeat};
use crate::cells::{Concat, Widen};
use nearpm_interface::geometry::{COMMAND_BAR, MSIX_BAR, PM_BAR, REGISTER_BAR};
use rust_hdl::prelude::*;

/// Request types (PG213, completer request descriptor).
pub mod request_type {
    /// Memory read.
    pub const MEMORY_READ: u64 = 0;
    /// Memory write.
    pub const MEMORY_WRITE: u64 = 1;
    /// The first of the messages, which nobody answers.
    pub const MESSAGE: u64 = 12;
}

/// Completion status.
pub mod completion_status {
    /// Successful completion.
    pub const SUCCESS: u64 = 0;
    /// Unsupported request.
    pub const UNSUPPORTED: u64 = 1;
    /// Completer abort: the card has refused the access.
    pub const ABORT: u64 = 4;
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Decide,
    WriteBeat,
    WriteLine,
    Drain,
    ReadLow,
    ReadHigh,
    Send,
    Refuse,
}

/// Performs requests one after the other.
///
/// Guarantees: an access begins when the one before has been answered by the card, so that the order of arrival is the card's order. Of a
/// write exactly the enabled bytes are written. A read is answered by completions that end at multiples of 128 bytes; where the card
/// refuses a line, by a completer abort from there on. Other requests that want an answer get Unsupported Request with what the PCIe block
/// logs; messages, and writes to no BAR, have no effect (`unsupported` pulses). Bound: a write takes two cycles a line
/// beside the access; a read four a completion beside its accesses and its beats.
#[derive(LogicBlock)]
pub struct Completer {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Completer requests.
    pub cq_tdata: Signal<In, Bits<512>>,
    /// See PG213.
    pub cq_tuser: Signal<In, Bits<183>>,
    /// The last beat of a packet.
    pub cq_tlast: Signal<In, Bit>,
    /// A beat is here.
    pub cq_tvalid: Signal<In, Bit>,
    /// It is taken.
    pub cq_tready: Signal<Out, Bit>,
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
    /// See `LineAccess`.
    pub access_valid: Signal<Out, Bit>,
    /// See `LineAccess`.
    pub access_write: Signal<Out, Bit>,
    /// See `LineAccess`.
    pub access_bar: Signal<Out, Bits<3>>,
    /// See `LineAccess`.
    pub access_line: Signal<Out, Bits<34>>,
    /// See `LineAccess`.
    pub access_data: Signal<Out, Bits<512>>,
    /// See `LineAccess`.
    pub access_strobes: Signal<Out, Bits<64>>,
    /// See `LineAccess`.
    pub access_lanes: Signal<Out, Bits<16>>,
    /// See `LineAccess`.
    pub access_done: Signal<In, Bit>,
    /// See `LineAccess`.
    pub access_read: Signal<In, Bits<512>>,
    /// See `LineAccess`.
    pub access_error: Signal<In, Bit>,
    /// Pulse: a request that is not supported.
    pub unsupported: Signal<Out, Bit>,

    phase: DFF<Phase>,
    request: DFF<Bits<128>>,
    first_enables: DFF<Bits<4>>,
    last_enables: DFF<Bits<4>>,
    line: DFF<Bits<34>>,
    rotation: DFF<Bits<4>>,
    earlier: DFF<Bits<512>>,
    earlier_enables: DFF<Bits<64>>,
    data: DFF<Bits<512>>,
    strobes: DFF<Bits<64>>,
    last: DFF<Bit>,
    flushed: DFF<Bit>,
    answers: DFF<Bit>,
    left: DFF<Bits<11>>,
    bytes: DFF<Bits<13>>,
    lane: DFF<Bits<5>>,
    low_bits: DFF<Bits<2>>,
    low: DFF<Bits<512>>,
    high: DFF<Bits<512>>,
    beat: DFF<Bits<2>>,
    status: DFF<Bits<3>>,

    kind: Signal<Local, Bits<4>>,
    bar: Signal<Local, Bits<3>>,
    known: Signal<Local, Bit>,
    discontinue: Signal<Local, Bit>,
    first_lane: Signal<Local, Bits<4>>,
    write_line: Signal<Local, Bits<34>>,
    offset_line: Signal<Local, Bits<34>>,
    next_line: Signal<Local, Bits<34>>,
    next_block: Signal<Local, Bits<34>>,
    payload: Signal<Local, Bits<64>>,
    advance: Signal<Local, Bit>,
    left_next: Signal<Local, Bits<11>>,
    bytes_next: Signal<Local, Bits<13>>,
    in_low: Signal<Local, Bit>,
    read_done: Signal<Local, Bit>,
    offset: BarOffset,
    count: ByteCount,
    shape: BlockShape,
    align: AlignWrite,
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

    pm_bar: Constant<Bits<3>>,
    command_bar: Constant<Bits<3>>,
    register_bar: Constant<Bits<3>>,
    msix_bar: Constant<Bits<3>>,
    read_type: Constant<Bits<4>>,
    write_type: Constant<Bits<4>>,
    message_type: Constant<Bits<4>>,
    success: Constant<Bits<3>>,
    unsupported_status: Constant<Bits<3>>,
    abort: Constant<Bits<3>>,
    /// Dwords of a request's descriptor.
    descriptor: Constant<Bits<4>>,
    one34: Constant<Bits<34>>,
    two34: Constant<Bits<34>>,
    behind_descriptor: Constant<Bits<64>>,
    one2: Constant<Bits<2>>,
    zero2: Constant<Bits<2>>,
    zero5: Constant<Bits<5>>,
    zero6: Constant<Bits<6>>,
    zero11: Constant<Bits<11>>,
    zero64: Constant<Bits<64>>,
    four_bytes: Constant<Bits<13>>,
    refusal_keep: Constant<Bits<16>>,
    /// `is_sop[0]`, `is_eop[0]`, and 7 as `is_eop0_ptr`.
    whole_packet: Constant<Bits<17>>,
    is_sop: Constant<Bits<8>>,
    is_eop: Constant<Bits<8>>,
    is_both: Constant<Bits<8>>,
    neither: Constant<Bits<8>>,
    zero4: Constant<Bits<4>>,
}

impl Default for Completer {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            cq_tdata: Default::default(),
            cq_tuser: Default::default(),
            cq_tlast: Default::default(),
            cq_tvalid: Default::default(),
            cq_tready: Default::default(),
            cc_tdata: Default::default(),
            cc_tkeep: Default::default(),
            cc_tuser: Default::default(),
            cc_tlast: Default::default(),
            cc_tvalid: Default::default(),
            cc_tready: Default::default(),
            access_valid: Default::default(),
            access_write: Default::default(),
            access_bar: Default::default(),
            access_line: Default::default(),
            access_data: Default::default(),
            access_strobes: Default::default(),
            access_lanes: Default::default(),
            access_done: Default::default(),
            access_read: Default::default(),
            access_error: Default::default(),
            unsupported: Default::default(),
            phase: Default::default(),
            request: Default::default(),
            first_enables: Default::default(),
            last_enables: Default::default(),
            line: Default::default(),
            rotation: Default::default(),
            earlier: Default::default(),
            earlier_enables: Default::default(),
            data: Default::default(),
            strobes: Default::default(),
            last: Default::default(),
            flushed: Default::default(),
            answers: Default::default(),
            left: Default::default(),
            bytes: Default::default(),
            lane: Default::default(),
            low_bits: Default::default(),
            low: Default::default(),
            high: Default::default(),
            beat: Default::default(),
            status: Default::default(),
            kind: Default::default(),
            bar: Default::default(),
            known: Default::default(),
            discontinue: Default::default(),
            first_lane: Default::default(),
            write_line: Default::default(),
            offset_line: Default::default(),
            next_line: Default::default(),
            next_block: Default::default(),
            payload: Default::default(),
            advance: Default::default(),
            left_next: Default::default(),
            bytes_next: Default::default(),
            in_low: Default::default(),
            read_done: Default::default(),
            offset: Default::default(),
            count: Default::default(),
            shape: Default::default(),
            align: Default::default(),
            header: Default::default(),
            beats: Default::default(),
            lower: Default::default(),
            block_dwords: Default::default(),
            block_bytes: Default::default(),
            offset_bytes: Default::default(),
            enables: Default::default(),
            enables_dword: Default::default(),
            refusal: Default::default(),
            refusal_beat: Default::default(),
            refusal_data: Default::default(),

            refusal_user: Default::default(),
            end_lane: Default::default(),
            beat_user: Default::default(),
            pm_bar: Constant::new((PM_BAR as u64).into()),
            command_bar: Constant::new((COMMAND_BAR as u64).into()),
            register_bar: Constant::new((REGISTER_BAR as u64).into()),
            msix_bar: Constant::new((MSIX_BAR as u64).into()),
            read_type: Constant::new(request_type::MEMORY_READ.into()),
            write_type: Constant::new(request_type::MEMORY_WRITE.into()),
            message_type: Constant::new(request_type::MESSAGE.into()),
            success: Constant::new(completion_status::SUCCESS.into()),
            unsupported_status: Constant::new(completion_status::UNSUPPORTED.into()),
            abort: Constant::new(completion_status::ABORT.into()),
            descriptor: Constant::new(4.into()),
            one34: Constant::new(1.into()),
            two34: Constant::new(2.into()),
            behind_descriptor: Constant::new((!0xffffu64).into()),
            one2: Constant::new(1.into()),
            zero2: Constant::new(0.into()),
            zero5: Constant::new(0.into()),
            zero6: Constant::new(0.into()),
            zero11: Constant::new(0.into()),
            zero64: Constant::new(0.into()),
            four_bytes: Constant::new(4.into()),
            refusal_keep: Constant::new(0xff.into()),
            whole_packet: Constant::new((1 | 1 << 6 | 7 << 8).into()),
            is_sop: Constant::new(1.into()),
            is_eop: Constant::new((1 << 6).into()),
            is_both: Constant::new((1 | 1 << 6).into()),
            neither: Constant::new(0.into()),
            zero4: Constant::new(0.into()),
        }
    }
}

impl Logic for Completer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            request,
            first_enables,
            last_enables,
            line,
            rotation,
            earlier,
            earlier_enables,
            data,
            strobes,
            last,
            flushed,
            answers,
            left,
            bytes,
            lane,
            low_bits,
            low,
            high,
            beat,
            status
        );
        // What the request says.
        self.kind.next = self.request.q.val().get_bits::<4>(75);
        self.bar.next = self.request.q.val().get_bits::<3>(112);
        self.known.next = (self.bar.val() == self.pm_bar.val())
            | (self.bar.val() == self.command_bar.val())
            | (self.bar.val() == self.register_bar.val())
            | (self.bar.val() == self.msix_bar.val());
        self.offset.address.next = self.request.q.val().get_bits::<62>(2);
        self.offset.aperture.next = self.request.q.val().get_bits::<6>(115);
        self.offset_line.next = self.offset.offset.val().get_bits::<34>(6);
        self.first_lane.next = self.offset.offset.val().get_bits::<4>(2);
        self.count.dwords.next = self.request.q.val().get_bits::<11>(64);
        self.count.first.next = self.first_enables.q.val();
        self.count.last.next = self.last_enables.q.val();

        // Writes. What stands in front of the payload would belong to the line below.
        self.write_line.next = self.offset_line.val();
        if self.first_lane.val() < self.descriptor.val() {
            self.write_line.next = self.offset_line.val() - self.one34.val();
        }
        self.discontinue.next = self.cq_tuser.val().get_bit(96);
        self.payload.next = self.cq_tuser.val().get_bits::<64>(16);
        if self.cq_tuser.val().get_bit(80) {
            self.payload.next = self.cq_tuser.val().get_bits::<64>(16) & self.behind_descriptor.val();
        }
        if self.discontinue.val() | (self.phase.q.val() != Phase::WriteBeat) {
            self.payload.next = self.zero64.val();
        }
        self.align.data.next = self.cq_tdata.val();
        self.align.enables.next = self.payload.val();
        self.align.rotation.next = self.rotation.q.val();
        self.align.earlier.next = self.earlier.q.val();
        self.align.earlier_enables.next = self.earlier_enables.q.val();
        self.next_line.next = self.line.q.val() + self.one34.val();
        self.next_block.next = self.line.q.val() + self.two34.val();

        // Reads.
        self.shape.lane.next = self.lane.q.val();
        self.shape.left.next = self.left.q.val();
        self.block_dwords.i.next = self.shape.dwords.val();
        self.block_bytes.high.next = self.block_dwords.o.val();
        self.block_bytes.low.next = self.zero2.val();
        self.offset_bytes.i.next = self.low_bits.q.val();
        self.left_next.next = self.left.q.val() - self.block_dwords.o.val();
        self.bytes_next.next = self.bytes.q.val() - self.block_bytes.o.val() + self.offset_bytes.o.val();
        self.in_low.next = self.phase.q.val() == Phase::ReadLow;

        self.access_write.next = self.phase.q.val() == Phase::WriteLine;
        self.access_bar.next = self.bar.val();
        self.access_data.next = self.data.q.val();
        self.access_strobes.next = self.strobes.q.val();
        self.access_line.next = self.line.q.val();
        self.access_lanes.next = self.shape.low.val();
        if self.phase.q.val() == Phase::ReadHigh {
            self.access_line.next = self.next_line.val();
            self.access_lanes.next = self.shape.high.val();
        }
        self.access_valid.next = ((self.phase.q.val() == Phase::WriteLine) & self.strobes.q.val().any())
            | (self.in_low.val() & self.shape.low.val().any())
            | (self.phase.q.val() == Phase::ReadHigh);

        // Completions.
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
        self.cc_tvalid.next = (self.phase.q.val() == Phase::Send) | (self.phase.q.val() == Phase::Refuse);

        self.cq_tready.next = false;
        self.unsupported.next = false;
        self.advance.next = self.access_done.val() | !self.strobes.q.val().any();
        self.read_done.next = !self.left_next.val().any();
        match self.phase.q.val() {
            Phase::Idle => {
                self.request.d.next = self.cq_tdata.val().get_bits::<128>(0);
                self.first_enables.d.next = self.cq_tuser.val().get_bits::<4>(0);
                self.last_enables.d.next = self.cq_tuser.val().get_bits::<4>(8);
                if self.cq_tvalid.val() {
                    self.phase.d.next = Phase::Decide;
                }
            }
            Phase::Decide => {
                self.rotation.d.next = self.first_lane.val() - self.descriptor.val();
                self.earlier_enables.d.next = self.zero64.val();
                self.flushed.d.next = false;
                self.left.d.next = self.count.dwords.val();
                self.lane.d.next = self.offset.offset.val().get_bits::<5>(2);
                self.low_bits.d.next = self.count.offset.val();
                self.bytes.d.next = self.count.bytes.val();
                self.beat.d.next = self.zero2.val();
                self.status.d.next = self.success.val();
                self.answers.d.next = false;
                if (self.kind.val() == self.write_type.val()) & self.known.val() {
                    self.line.d.next = self.write_line.val();
                    self.phase.d.next = Phase::WriteBeat;
                } else if (self.kind.val() == self.read_type.val()) & self.known.val() {
                    self.line.d.next = (self.offset_line.val() >> self.one34.val()) << self.one34.val();
                    self.cq_tready.next = true;
                    self.phase.d.next = Phase::ReadLow;
                } else {
                    self.unsupported.next = true;
                    self.status.d.next = self.unsupported_status.val();
                    self.answers.d.next =
                        (self.kind.val() != self.write_type.val()) & (self.kind.val() < self.message_type.val());
                    if self.kind.val() != self.read_type.val() {
                        self.bytes.d.next = self.four_bytes.val();
                        self.lane.d.next = self.zero5.val();
                        self.low_bits.d.next = self.zero2.val();
                    }
                    self.phase.d.next = Phase::Drain;
                }
            }
            Phase::WriteBeat => {
                if self.cq_tvalid.val() {
                    self.cq_tready.next = true;
                    self.data.d.next = self.align.line.val();
                    self.strobes.d.next = self.align.strobes.val();
                    self.earlier.d.next = self.align.turned.val();
                    self.earlier_enables.d.next = self.align.turned_enables.val();
                    self.last.d.next = self.cq_tlast.val();
                    self.phase.d.next = Phase::WriteLine;
                }
            }
            Phase::WriteLine => {
                if self.advance.val() {
                    self.line.d.next = self.next_line.val();
                    self.phase.d.next = Phase::WriteBeat;
                    if self.last.q.val() {
                        // What the last beat has for the next line.
                        self.data.d.next = self.align.line.val();
                        self.strobes.d.next = self.align.strobes.val();
                        self.flushed.d.next = true;
                        self.phase.d.next = Phase::WriteLine;
                    }
                    if self.flushed.q.val() {
                        self.phase.d.next = Phase::Idle;
                    }
                }
            }
            Phase::Drain => {
                self.cq_tready.next = true;
                if self.cq_tvalid.val() & self.cq_tlast.val() {
                    self.phase.d.next = Phase::Idle;
                    if self.answers.q.val() {
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::ReadLow => {
                self.low.d.next = self.access_read.val();
                if !self.shape.low.val().any() {
                    self.phase.d.next = Phase::ReadHigh;
                } else if self.access_done.val() {
                    self.phase.d.next = Phase::Send;
                    if self.shape.high.val().any() {
                        self.phase.d.next = Phase::ReadHigh;
                    }
                    if self.access_error.val() {
                        self.status.d.next = self.abort.val();
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::ReadHigh => {
                self.high.d.next = self.access_read.val();
                if self.access_done.val() {
                    self.phase.d.next = Phase::Send;
                    if self.access_error.val() {
                        self.status.d.next = self.abort.val();
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::Send => {
                if self.cc_tready.val() {
                    self.beat.d.next = self.beat.q.val() + self.one2.val();
                    if self.beats.last.val() {
                        self.beat.d.next = self.zero2.val();
                        self.left.d.next = self.left_next.val();
                        self.bytes.d.next = self.bytes_next.val();
                        self.lane.d.next = self.zero5.val();
                        self.low_bits.d.next = self.zero2.val();
                        self.line.d.next = self.next_block.val();
                        self.phase.d.next = Phase::ReadLow;
                        if self.read_done.val() {
                            self.phase.d.next = Phase::Idle;
                        }
                    }
                }
            }
            Phase::Refuse => {
                if self.cc_tready.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
        }
    }
}

crate::dut_ports!(Completer {
    clock,
    reset,
    cq_tdata,
    cq_tuser,
    cq_tlast,
    cq_tvalid,
    cq_tready,
    cc_tdata,
    cc_tkeep,
    cc_tuser,
    cc_tlast,
    cc_tvalid,
    cc_tready,
    access_valid,
    access_write,
    access_bar,
    access_line,
    access_data,
    access_strobes,
    access_lanes,
    access_done,
    access_read,
    access_error,
    unsupported,
});
