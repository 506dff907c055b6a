//! Requests of the host.

mod kernel;

use super::header::{BarOffset, ByteCount, LineShape, request_type};
use super::lanes::AlignWrite;
use super::responder::Owed;
use crate::dut::Ports;
use nearpm_interface::geometry::{COMMAND_BAR, MSIX_BAR, PM_BAR, REGISTER_BAR};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

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
/// Guarantees: accesses are asked for in the order of arrival, and of a write exactly the enabled
/// bytes are written. A read is told before its first line is asked for, and asks for all its
/// lines. Other requests that want an answer are told as not supported; messages, and writes to no
/// BAR, have no effect (`unsupported` pulses). A write whose data is poisoned (EP) has no effect
/// either; it is counted, as is whatever else but a memory read has the mark. When the link goes
/// down (`shut`), what the host has asked is forgotten: accesses that were taken run to their end,
/// and until then nothing is taken, whether the link is up again or not. While `hold` says so no
/// request is begun; `idle` says that none is in hand. Bound: a write takes three cycles and one
/// for each beat, a read two and one for each line, where the access is taken at once.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Completer {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high. Only together with `LineAccess`.
    pub reset: Signal<In, Bit>,
    /// The link is down.
    pub link_down: Signal<In, Bit>,
    /// Nothing is taken or sent: the link is down, or went down while accesses were under way that
    /// have not ended.
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
    /// Requests whose data is poisoned, since `reset`; wraps.
    pub poisoned: Signal<Out, Bits<32>>,

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
    poisoned_count: DFF<Bits<32>>,

    kind: Signal<Local, Bits<4>>,
    bar: Signal<Local, Bits<3>>,
    known: Signal<Local, Bit>,
    discontinue: Signal<Local, Bit>,
    is_poisoned: Signal<Local, Bit>,
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

    #[default(Constant::new((PM_BAR as u64).into()))]
    pm_bar: Constant<Bits<3>>,
    #[default(Constant::new((COMMAND_BAR as u64).into()))]
    command_bar: Constant<Bits<3>>,
    #[default(Constant::new((REGISTER_BAR as u64).into()))]
    register_bar: Constant<Bits<3>>,
    #[default(Constant::new((MSIX_BAR as u64).into()))]
    msix_bar: Constant<Bits<3>>,
    #[default(Constant::new(request_type::MEMORY_READ.into()))]
    read_type: Constant<Bits<4>>,
    #[default(Constant::new(request_type::MEMORY_WRITE.into()))]
    write_type: Constant<Bits<4>>,
    #[default(Constant::new(request_type::MESSAGE.into()))]
    message_type: Constant<Bits<4>>,
    /// Dwords of a request's descriptor.
    #[default(Constant::new(4.into()))]
    descriptor: Constant<Bits<4>>,
    #[default(Constant::new(1.into()))]
    one34: Constant<Bits<34>>,
    #[default(Constant::new((!0xffffu64).into()))]
    behind_descriptor: Constant<Bits<64>>,
    #[default(Constant::new(0.into()))]
    zero2: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero5: Constant<Bits<5>>,
    #[default(Constant::new(0.into()))]
    zero64: Constant<Bits<64>>,
    #[default(Constant::new(4.into()))]
    four_bytes: Constant<Bits<13>>,
    #[default(Constant::new(1.into()))]
    one32: Constant<Bits<32>>,
    #[default(Constant::new(0.into()))]
    zero32: Constant<Bits<32>>,
}
