//! Dwords from where they stand in a packet to where they stand in a line, and back: combinational
//! cells.

use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use rust_hdl::prelude::*;

/// Dwords of a beat or a line.
const LANES: usize = 16;

/// Makes lines out of the beats of a write: turns a beat by `rotation` Dwords, and joins what stays
/// in its line with what the beat before had for it.
#[derive(LogicBlock, Default, Ports)]
pub struct AlignWrite {
    /// A beat.
    pub data: Signal<In, Bits<512>>,
    /// Its bytes that are written.
    pub enables: Signal<In, Bits<64>>,
    /// Dwords to turn upwards by; the same for all beats of a packet.
    pub rotation: Signal<In, Bits<4>>,
    /// `turned` of the beat before.
    pub earlier: Signal<In, Bits<512>>,
    /// `turned_enables` of the beat before; 0 at the first.
    pub earlier_enables: Signal<In, Bits<64>>,
    /// The beat, turned.
    pub turned: Signal<Out, Bits<512>>,
    /// Its enables, turned.
    pub turned_enables: Signal<Out, Bits<64>>,
    /// The line.
    pub line: Signal<Out, Bits<512>>,
    /// The bytes of the line that are written.
    pub strobes: Signal<Out, Bits<64>>,
}

impl Logic for AlignWrite {
    fn update(&mut self) {
        let rotation = self.rotation.val().to_u64() as usize;
        let turn = |value: Value, bits: usize| {
            (0..LANES).fold(Value::ZERO, |turned, lane| {
                let from = (lane + LANES - rotation) % LANES;
                turned.with_slice(lane * bits, bits, value.slice(from * bits, bits))
            })
        };
        let join = |now: Value, before: Value, bits: usize| {
            let low = rotation * bits;
            if low == 0 { now } else { now.with_slice(0, low, before.slice(0, low)) }
        };
        let turned = turn(self.data.val().to_value(), 32);
        let enables = turn(self.enables.val().to_value(), 4);
        self.turned.next = PortValue::from_value(turned);
        self.turned_enables.next = PortValue::from_value(enables);
        self.line.next = PortValue::from_value(join(turned, self.earlier.val().to_value(), 32));
        self.strobes.next = PortValue::from_value(join(enables, self.earlier_enables.val().to_value(), 4));
    }

    fn connect(&mut self) {
        self.turned.connect();
        self.turned_enables.connect();
        self.line.connect();
        self.strobes.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "wire [1023:0] twice = {data, data} << {rotation, 5'd0};\n\
             wire [127:0] twice_enables = {enables, enables} << {rotation, 2'd0};\n\
             wire [511:0] mask = {512{1'b1}} << {rotation, 5'd0};\n\
             wire [63:0] enables_mask = {64{1'b1}} << {rotation, 2'd0};\n\
             always @(*) begin\n\
             \x20   turned = twice[1023:512];\n\
             \x20   turned_enables = twice_enables[127:64];\n\
             \x20   line = (turned & mask) | (earlier & ~mask);\n\
             \x20   strobes = (turned_enables & enables_mask) | (earlier_enables & ~enables_mask);\n\
             end\n"
                .into(),
        )
    }
}

/// The beats of a completion: header, then `dwords` Dwords of two lines from Dword `lane` on.
#[derive(LogicBlock, Default, Ports)]
pub struct CompletionBeat {
    /// Header.
    pub header: Signal<In, Bits<96>>,
    /// Lower line.
    pub low: Signal<In, Bits<512>>,
    /// Upper line.
    pub high: Signal<In, Bits<512>>,
    /// First Dword.
    pub lane: Signal<In, Bits<5>>,
    /// Dwords of data.
    pub dwords: Signal<In, Bits<6>>,
    /// Which beat.
    pub beat: Signal<In, Bits<2>>,
    /// The beat.
    pub data: Signal<Out, Bits<512>>,
    /// Its Dwords that count.
    pub keep: Signal<Out, Bits<16>>,
    /// It is the last.
    pub last: Signal<Out, Bit>,
    /// Last Dword of the last beat.
    pub ending: Signal<Out, Bits<4>>,
}

impl Logic for CompletionBeat {
    fn update(&mut self) {
        let (lane, dwords) = (self.lane.val().to_u64() as usize, self.dwords.val().to_u64() as usize);
        let beat = self.beat.val().to_u64() as usize;
        let header = self.header.val().to_value();
        let lines =
            Value::ZERO.with_slice(0, 512, self.low.val().to_value()).with_slice(512, 512, self.high.val().to_value());
        let (mut data, mut keep) = (Value::ZERO, 0u64);
        for slot in 0..LANES {
            let at = beat * LANES + slot;
            let dword = match at.checked_sub(3) {
                None => header.slice(at * 32, 32),
                // What leaves the lines is only there while the inputs settle.
                Some(index) if index < dwords && lane + index >= 2 * LANES => Value::ZERO,
                Some(index) if index < dwords => lines.slice((lane + index) * 32, 32),
                Some(_) => continue,
            };
            data = data.with_slice(slot * 32, 32, dword);
            keep |= 1 << slot;
        }
        let end = dwords + 2;
        self.data.next = PortValue::from_value(data);
        self.keep.next = keep.into();
        self.last.next = end / LANES == beat;
        self.ending.next = ((end % LANES) as u64).into();
    }

    fn connect(&mut self) {
        self.data.connect();
        self.keep.connect();
        self.last.connect();
        self.ending.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "wire [1023:0] from = {high, low} >> {lane, 5'd0};\n\
             wire [1535:0] packet = {416'd0, from, header};\n\
             wire [47:0] kept = ~({48{1'b1}} << (dwords + 6'd3));\n\
             wire [5:0] final_lane = dwords + 6'd2;\n\
             reg [511:0] piece;\n\
             integer slot;\n\
             always @(*) begin\n\
             \x20   case (beat)\n\
             \x20       2'd0: begin piece = packet[511:0]; keep = kept[15:0]; end\n\
             \x20       2'd1: begin piece = packet[1023:512]; keep = kept[31:16]; end\n\
             \x20       default: begin piece = packet[1535:1024]; keep = kept[47:32]; end\n\
             \x20   endcase\n\
             \x20   for (slot = 0; slot < 16; slot = slot + 1)\n\
             \x20       data[32 * slot +: 32] = piece[32 * slot +: 32] & {32{keep[slot]}};\n\
             \x20   last = final_lane[5:4] == beat;\n\
             \x20   ending = final_lane[3:0];\n\
             end\n"
                .into(),
        )
    }
}
