//! Requests of the host.

mod kernel;
mod reset;

use super::header::{BarOffset, ByteCount, LineShape};
use super::lanes::AlignWrite;
use super::responder::Owed;
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
    Tell,
    ReadLine,
    Drain,
}

/// Makes accesses out of requests, in the order of arrival, and tells what is to be answered.
///
/// Guarantees: accesses are asked for in the order of arrival, and of a write exactly the enabled bytes are written. A read is told before its
/// first line is asked for, and asks for all its lines. Other requests that want an answer are told as not supported; messages, and writes to no BAR,
/// have no effect (`unsupported` pulses). When the link goes down (`shut`), what the host has asked is forgotten: accesses that were taken run to their
/// end, and until then nothing is taken, whether the link is up again or not. While `hold` says so no request is begun; `idle` says that none is in hand.
/// Bound: a write takes three cycles and one for each beat, a read two and one for each line, where the access is taken at once.
#[derive(LogicBlock)]
pub struct Completer {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high. Only together with `LineAccess`.
    pub reset: Signal<In, Bit>,
    /// The link is down.
    pub link_down: Signal<In, Bit>,
    /// Nothing is taken or sent: the link is down, or went down while accesses were under way that have not ended.
    pub shut: Signal<Out, Bit>,
    /// Take no further request; one that was begun runs to its end.
    pub hold: Signal<In, Bit>,
    /// No request is in hand. Accesses may be under way, and answers be owed.
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
    /// See `Responder`.
    pub owe: Signal<Out, Bit>,
    /// See `Responder`.
    pub owed: Signal<Out, Owed>,
    /// See `Responder`.
    pub owe_full: Signal<In, Bit>,
    /// See `LineAccess`.
    pub access_valid: Signal<Out, Bit>,
    /// See `LineAccess`.
    pub access_ready: Signal<In, Bit>,
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
    pub access_idle: Signal<In, Bit>,
    /// Pulse: a request that is not supported.
    pub unsupported: Signal<Out, Bit>,

    phase: DFF<Phase>,
    /// The link went down, and accesses of before are still under way.
    resetting: DFF<Bit>,
    is_shut: Signal<Local, Bit>,
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
    left: DFF<Bits<11>>,
    bytes: DFF<Bits<13>>,
    lane: DFF<Bits<5>>,
    low_bits: DFF<Bits<2>>,
    refused: DFF<Bit>,

    kind: Signal<Local, Bits<4>>,
    bar: Signal<Local, Bits<3>>,
    known: Signal<Local, Bit>,
    discontinue: Signal<Local, Bit>,
    first_lane: Signal<Local, Bits<4>>,
    write_line: Signal<Local, Bits<34>>,
    offset_line: Signal<Local, Bits<34>>,
    next_line: Signal<Local, Bits<34>>,
    payload: Signal<Local, Bits<64>>,
    advance: Signal<Local, Bit>,
    takes_beat: Signal<Local, Bit>,
    flushes: Signal<Local, Bit>,
    is_over: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    offset: BarOffset,
    count: ByteCount,
    shape: LineShape,
    align: AlignWrite,

    pm_bar: Constant<Bits<3>>,
    command_bar: Constant<Bits<3>>,
    register_bar: Constant<Bits<3>>,
    msix_bar: Constant<Bits<3>>,
    read_type: Constant<Bits<4>>,
    write_type: Constant<Bits<4>>,
    message_type: Constant<Bits<4>>,
    /// Dwords of a request's descriptor.
    descriptor: Constant<Bits<4>>,
    one34: Constant<Bits<34>>,
    behind_descriptor: Constant<Bits<64>>,
    zero2: Constant<Bits<2>>,
    zero5: Constant<Bits<5>>,
    zero64: Constant<Bits<64>>,
    four_bytes: Constant<Bits<13>>,
}

crate::dut_ports!(Completer {
    clock,
    reset,
    link_down,
    shut,
    hold,
    idle,
    cq_tdata,
    cq_tuser,
    cq_tlast,
    cq_tvalid,
    cq_tready,
    owe,
    owed,
    owe_full,
    access_valid,
    access_ready,
    access_write,
    access_bar,
    access_line,
    access_data,
    access_strobes,
    access_lanes,
    access_idle,
    unsupported,
});
