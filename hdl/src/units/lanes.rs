//! Byte lanes of a line: masks, strobes, and the place of an 8-byte word.

use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use rust_hdl::prelude::*;

/// The bytes of a line that belong to a range, combinationally: two levels of logic.
///
/// All 64, except those below `offset` when the line is the `first` of the range, and those above
/// `end_byte` when it is the `last`.
#[derive(LogicBlock, Default, Ports)]
pub struct ByteMask {
    /// The range starts in this line.
    pub first: Signal<In, Bit>,
    /// The range ends in this line.
    pub last: Signal<In, Bit>,
    /// First byte of the range in its first line, 0 to 63.
    pub offset: Signal<In, Bits<6>>,
    /// Last byte of the range in its last line, 0 to 63.
    pub end_byte: Signal<In, Bits<6>>,
    /// One bit a byte.
    pub mask: Signal<Out, Bits<64>>,
}

impl Logic for ByteMask {
    fn update(&mut self) {
        let (offset, end) = (self.offset.val().to_u64(), self.end_byte.val().to_u64());
        let low = if self.first.val() { u64::MAX << offset } else { u64::MAX };
        let high = if self.last.val() { u64::MAX >> (63 - end) } else { u64::MAX };
        self.mask.next = (low & high).into();
    }

    fn connect(&mut self) {
        self.mask.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "wire [5:0] spare = ~end_byte;\n\
             always @(*) mask = (first ? 64'hffffffffffffffff << offset : 64'hffffffffffffffff)\n\
             \x20   & (last ? 64'hffffffffffffffff >> spare : 64'hffffffffffffffff);\n"
                .into(),
        )
    }
}

/// A line with the bytes outside of a mask zeroed, combinationally: one level of logic. Zero while
/// not `valid`, which spares the simulation of idle cycles.
#[derive(LogicBlock, Default, Ports)]
pub struct MaskedLine {
    /// There is a line.
    pub valid: Signal<In, Bit>,
    /// The line.
    pub line: Signal<In, Bits<512>>,
    /// The bytes to keep.
    pub mask: Signal<In, Bits<64>>,
    /// The rest zeroed.
    pub masked: Signal<Out, Bits<512>>,
}

impl Logic for MaskedLine {
    fn update(&mut self) {
        let mask = if self.valid.val() { self.mask.val().to_u64() } else { 0 };
        if mask == u64::MAX {
            self.masked.next = self.line.val();
            return;
        }
        let mut bytes = self.line.val().to_value().to_bytes(64);
        bytes.iter_mut().enumerate().filter(|(lane, _)| mask >> lane & 1 == 0).for_each(|(_, b)| *b = 0);
        self.masked.next = PortValue::from_value(Value::from_bytes(&bytes));
    }

    fn connect(&mut self) {
        self.masked.connect();
    }

    fn hdl(&self) -> Verilog {
        let lanes: Vec<_> = (0..64).rev().map(|lane| format!("{{8{{mask[{lane}]}}}}")).collect();
        Verilog::Custom(format!(
            "always @(*) if (valid) masked = line & {{{}}}; else masked = 512'd0;\n",
            lanes.join(", ")
        ))
    }
}
