//! Requests of the host.

mod kernel;
mod reset;

use super::header::{BarOffset, BlockShape, ByteCount, CompletionHeader};
use super::lanes::{AlignWrite, CompletionBeat};
use crate::cells::{Concat, Widen};
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
/// logs; messages, and writes to no BAR, have no effect (`unsupported` pulses). When the link goes down, what the host has asked is forgotten: an
/// access that is under way runs to its end with all that it says, and until then nothing is taken or sent, whether the link is up again or not.
/// While `hold` says so no request is begun; `idle` says that none is being performed. Bound: a write takes two cycles a line
/// beside the access; a read four a completion beside its accesses and its beats.
#[derive(LogicBlock)]
pub struct Completer {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high. Only together with `LineAccess`.
    pub reset: Signal<In, Bit>,
    /// The link is down.
    pub link_down: Signal<In, Bit>,
    /// Take no further request; one that was begun runs to its end.
    pub hold: Signal<In, Bit>,
    /// No request is being performed.
    pub idle: Signal<Out, Bit>,
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
    /// The link went down, and an access of before is still under way.
    resetting: DFF<Bit>,
    /// Nothing is taken or sent.
    shut: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
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

crate::dut_ports!(Completer {
    clock,
    reset,
    link_down,
    hold,
    idle,
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
