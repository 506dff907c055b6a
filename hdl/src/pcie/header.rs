//! What requests say, and headers of completions: combinational cells.

use crate::dut::Ports;
use crate::dut::{PortValue, Value};
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

/// Offset in a BAR of 2^`aperture` bytes of the address that the host used.
#[derive(LogicBlock, Default, Ports)]
pub struct BarOffset {
    /// Address of the request, in Dwords.
    pub address: Signal<In, Bits<62>>,
    /// log2 of the bytes of the BAR.
    pub aperture: Signal<In, Bits<6>>,
    /// Offset in bytes; combinational.
    pub offset: Signal<Out, Bits<40>>,
}

impl Logic for BarOffset {
    fn update(&mut self) {
        let mask = (1u64 << self.aperture.val().to_u64()) - 1;
        let address = self.address.val().to_u64() << 2;
        self.offset.next = (address & mask & ((1 << 40) - 1)).into();
    }

    fn connect(&mut self) {
        self.offset.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("always @(*) offset = {address[37:0], 2'd0} & ~({40{1'b1}} << aperture);\n".into())
    }
}

/// Bytes that a read asks for, from the first enabled to the last (PCIe base specification,
/// 2.3.1.1).
#[derive(LogicBlock, Default, Ports)]
pub struct ByteCount {
    /// Dwords.
    pub dwords: Signal<In, Bits<11>>,
    /// Enables of the first Dword.
    pub first: Signal<In, Bits<4>>,
    /// Enables of the last Dword; 0 where there is but one.
    pub last: Signal<In, Bits<4>>,
    /// Bytes; combinational. A read of nothing counts 1.
    pub bytes: Signal<Out, Bits<13>>,
    /// First enabled byte of the first Dword.
    pub offset: Signal<Out, Bits<2>>,
}

impl Logic for ByteCount {
    fn update(&mut self) {
        let (first, last) = (self.first.val().to_u64(), self.last.val().to_u64());
        let offset = if first == 0 { 0 } else { u64::from(first.trailing_zeros()) };
        let end = if last == 0 { first } else { last };
        let spare = if end == 0 { 3 } else { u64::from(end.leading_zeros()) - 60 };
        let bytes = (4 * self.dwords.val().to_u64()).wrapping_sub(offset + spare);
        self.bytes.next = (bytes & 0x1fff).into();
        self.offset.next = offset.into();
    }

    fn connect(&mut self) {
        self.bytes.connect();
        self.offset.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "reg [3:0] ends;\nreg [1:0] spare;\n\
             always @(*) begin\n\
             \x20   offset = first[0] ? 2'd0 : first[1] ? 2'd1 : first[2] ? 2'd2 : first[3] ? 2'd3 : 2'd0;\n\
             \x20   ends = last == 4'd0 ? first : last;\n\
             \x20   spare = ends[3] ? 2'd0 : ends[2] ? 2'd1 : ends[1] ? 2'd2 : 2'd3;\n\
             \x20   bytes = {dwords, 2'd0} - {11'd0, offset} - {11'd0, spare};\n\
             end\n"
                .into(),
        )
    }
}

/// How much of a read the next line holds.
#[derive(LogicBlock, Default, Ports)]
pub struct LineShape {
    /// First Dword in its line.
    pub lane: Signal<In, Bits<4>>,
    /// Dwords that are not asked for yet; not 0.
    pub left: Signal<In, Bits<11>>,
    /// Dwords of the line; combinational.
    pub lanes: Signal<Out, Bits<16>>,
    /// Lines follow.
    pub more: Signal<Out, Bit>,
    /// Their Dwords.
    pub rest: Signal<Out, Bits<11>>,
}

impl Logic for LineShape {
    fn update(&mut self) {
        let (lane, left) = (self.lane.val().to_u64(), self.left.val().to_u64());
        let room = 16 - lane;
        let lanes = ((1u64 << left.min(room)) - 1) << lane;
        self.lanes.next = lanes.into();
        self.more.next = left > room;
        self.rest.next = (left.wrapping_sub(room) & 0x7ff).into();
    }

    fn connect(&mut self) {
        self.lanes.connect();
        self.more.connect();
        self.rest.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "reg [4:0] room;\n\
             reg [4:0] dwords;\n\
             always @(*) begin\n\
             \x20   room = 5'd16 - {1'd0, lane};\n\
             \x20   more = left > {6'd0, room};\n\
             \x20   rest = left - {6'd0, room};\n\
             \x20   dwords = more ? room : left[4:0];\n\
             \x20   lanes = ~({16{1'b1}} << dwords) << lane;\n\
             end\n"
                .into(),
        )
    }
}

/// How much of a read the next completion answers: completions end at multiples of 128 bytes, the
/// read completion boundary of an endpoint.
#[derive(LogicBlock, Default, Ports)]
pub struct BlockShape {
    /// First Dword in its 128 bytes.
    pub lane: Signal<In, Bits<5>>,
    /// Dwords that are not answered yet.
    pub left: Signal<In, Bits<11>>,
    /// Dwords of the completion; combinational.
    pub dwords: Signal<Out, Bits<6>>,
    /// Those in the lower line.
    pub low: Signal<Out, Bits<16>>,
    /// Those in the upper line.
    pub high: Signal<Out, Bits<16>>,
}

impl Logic for BlockShape {
    fn update(&mut self) {
        let (lane, left) = (self.lane.val().to_u64(), self.left.val().to_u64());
        let dwords = left.min(32 - lane);
        let lanes = ((1u64 << dwords) - 1) << lane;
        self.dwords.next = dwords.into();
        self.low.next = (lanes & 0xffff).into();
        self.high.next = (lanes >> 16 & 0xffff).into();
    }

    fn connect(&mut self) {
        self.dwords.connect();
        self.low.connect();
        self.high.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "reg [5:0] room;\n\
             always @(*) begin\n\
             \x20   room = 6'd32 - {1'd0, lane};\n\
             \x20   dwords = (left > {5'd0, room}) ? room : left[5:0];\n\
             \x20   {high, low} = ~({32{1'b1}} << dwords) << lane;\n\
             end\n"
                .into(),
        )
    }
}

/// The three Dwords in front of a completion (PG213, completer completion descriptor).
#[derive(LogicBlock, Default, Ports)]
pub struct CompletionHeader {
    /// The request.
    pub request: Signal<In, Bits<128>>,
    /// Low bits of the address of the first byte.
    pub lower: Signal<In, Bits<7>>,
    /// Bytes of the request from here on.
    pub bytes: Signal<In, Bits<13>>,
    /// Dwords of this completion.
    pub dwords: Signal<In, Bits<6>>,
    /// Completion status.
    pub status: Signal<In, Bits<3>>,
    /// Combinational.
    pub header: Signal<Out, Bits<96>>,
}

impl Logic for CompletionHeader {
    fn update(&mut self) {
        let request = self.request.val().to_value();
        let header = Value::ZERO
            .with_slice(0, 7, self.lower.val().to_u64())
            .with_slice(8, 2, request.slice(0, 2))
            .with_slice(16, 13, self.bytes.val().to_u64())
            .with_slice(32, 6, self.dwords.val().to_u64())
            .with_slice(43, 3, self.status.val().to_u64())
            .with_slice(48, 16, request.slice(80, 16))
            .with_slice(64, 8, request.slice(96, 8))
            .with_slice(72, 8, request.slice(104, 8))
            .with_slice(89, 3, request.slice(121, 3))
            .with_slice(92, 3, request.slice(124, 3));
        self.header.next = PortValue::from_value(header);
    }

    fn connect(&mut self) {
        self.header.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "always @(*) header = {1'd0, request[126:124], request[123:121], 1'd0, 8'd0, request[111:104], request[103:96],\n\
             \x20   request[95:80], 2'd0, status, 5'd0, dwords, 3'd0, bytes, 6'd0, request[1:0], 1'd0, lower};\n"
                .into(),
        )
    }
}
