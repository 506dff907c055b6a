//! The memory request group: what a unit asks of [`crate::units`]' memory port.

use crate::dut::Ports;
use rust_hdl::prelude::*;

/// Requesters of the memory port: units 0 to 3, then [`HOST_QUEUE`] and [`SYSTEM`].
pub const REQUESTERS: usize = 6;
/// Index of the host queue among the requesters.
pub const HOST_QUEUE: usize = 4;
/// Index of the system (persistence, firmware store) among the requesters.
pub const SYSTEM: usize = 5;

/// Memory request group, seen from the requester.
///
/// A requester asks for a read only when it has room for the data, and for a write only when the
/// whole burst's data is at hand; there is no back-pressure on data and responses.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "MemoryResponder"]
pub struct MemoryRequester {
    /// A read burst is asked for.
    pub rd_valid: Signal<Out, Bit>,
    /// The read burst is taken.
    pub rd_ready: Signal<In, Bit>,
    /// First line of the read burst, which stays inside 4 KiB.
    pub rd_line: Signal<Out, Bits<34>>,
    /// Beats of the read burst less one, 0 to 63.
    pub rd_beats: Signal<Out, Bits<6>>,
    /// Returned with the data.
    pub rd_tag: Signal<Out, Bits<3>>,
    /// A line of data is here.
    pub rdata_valid: Signal<In, Bit>,
    /// The line.
    pub rdata: Signal<In, Bits<512>>,
    /// Tag of the burst that the line belongs to.
    pub rdata_tag: Signal<In, Bits<3>>,
    /// Last line of its burst.
    pub rdata_last: Signal<In, Bit>,
    /// The memory could not read the line.
    pub rdata_error: Signal<In, Bit>,
    /// A write burst is asked for.
    pub wr_valid: Signal<Out, Bit>,
    /// The write burst is taken.
    pub wr_ready: Signal<In, Bit>,
    /// First line of the write burst, which stays inside 4 KiB.
    pub wr_line: Signal<Out, Bits<34>>,
    /// Beats of the write burst less one, 0 to 63.
    pub wr_beats: Signal<Out, Bits<6>>,
    /// Returned with the response.
    pub wr_tag: Signal<Out, Bits<3>>,
    /// Next line of the burst that was taken first.
    pub wdata: Signal<Out, Bits<512>>,
    /// Bytes of the line to write, one bit each.
    pub wstrb: Signal<Out, Bits<64>>,
    /// The line is taken.
    pub wdata_ready: Signal<In, Bit>,
    /// A write burst is answered: it is durable, or failed.
    pub b_valid: Signal<In, Bit>,
    /// Tag of the answered burst.
    pub b_tag: Signal<In, Bits<3>>,
    /// The memory could not write the burst.
    pub b_error: Signal<In, Bit>,
}

/// Memory request group, seen from the memory port.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "MemoryRequester"]
pub struct MemoryResponder {
    /// See [`MemoryRequester::rd_valid`].
    pub rd_valid: Signal<In, Bit>,
    /// See [`MemoryRequester::rd_ready`].
    pub rd_ready: Signal<Out, Bit>,
    /// See [`MemoryRequester::rd_line`].
    pub rd_line: Signal<In, Bits<34>>,
    /// See [`MemoryRequester::rd_beats`].
    pub rd_beats: Signal<In, Bits<6>>,
    /// See [`MemoryRequester::rd_tag`].
    pub rd_tag: Signal<In, Bits<3>>,
    /// See [`MemoryRequester::rdata_valid`].
    pub rdata_valid: Signal<Out, Bit>,
    /// See [`MemoryRequester::rdata`].
    pub rdata: Signal<Out, Bits<512>>,
    /// See [`MemoryRequester::rdata_tag`].
    pub rdata_tag: Signal<Out, Bits<3>>,
    /// See [`MemoryRequester::rdata_last`].
    pub rdata_last: Signal<Out, Bit>,
    /// See [`MemoryRequester::rdata_error`].
    pub rdata_error: Signal<Out, Bit>,
    /// See [`MemoryRequester::wr_valid`].
    pub wr_valid: Signal<In, Bit>,
    /// See [`MemoryRequester::wr_ready`].
    pub wr_ready: Signal<Out, Bit>,
    /// See [`MemoryRequester::wr_line`].
    pub wr_line: Signal<In, Bits<34>>,
    /// See [`MemoryRequester::wr_beats`].
    pub wr_beats: Signal<In, Bits<6>>,
    /// See [`MemoryRequester::wr_tag`].
    pub wr_tag: Signal<In, Bits<3>>,
    /// See [`MemoryRequester::wdata`].
    pub wdata: Signal<In, Bits<512>>,
    /// See [`MemoryRequester::wstrb`].
    pub wstrb: Signal<In, Bits<64>>,
    /// See [`MemoryRequester::wdata_ready`].
    pub wdata_ready: Signal<Out, Bit>,
    /// See [`MemoryRequester::b_valid`].
    pub b_valid: Signal<Out, Bit>,
    /// See [`MemoryRequester::b_tag`].
    pub b_tag: Signal<Out, Bits<3>>,
    /// See [`MemoryRequester::b_error`].
    pub b_error: Signal<Out, Bit>,
}
