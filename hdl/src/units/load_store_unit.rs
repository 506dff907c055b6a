//! Loads and stores of 8-byte words.

use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use rust_hdl::prelude::*;

/// Places an 8-byte word in a line, combinationally.
///
/// Guarantees that exactly the eight bytes of the word's lane are strobed, so that the store is one
/// atomic write of the memory. The word itself stands in every lane, which costs no multiplexer.
#[derive(LogicBlock, Default, Ports)]
pub struct LoadStoreUnit {
    /// Lane of the word in its line, 0 to 7.
    pub lane: Signal<In, Bits<3>>,
    /// The word.
    pub value: Signal<In, Bits<64>>,
    /// Data of the line.
    pub line: Signal<Out, Bits<512>>,
    /// Bytes to write.
    pub strobes: Signal<Out, Bits<64>>,
}

impl Logic for LoadStoreUnit {
    fn update(&mut self) {
        let word = self.value.val().to_value().to_bytes(8);
        self.line.next = PortValue::from_value(Value::from_bytes(&word.repeat(8)));
        self.strobes.next = (0xffu64 << (8 * self.lane.val().to_u64())).into();
    }

    fn connect(&mut self) {
        self.line.connect();
        self.strobes.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "always @(*) begin\n\
             \x20   line = {8{value}};\n\
             \x20   strobes = 64'hff << {lane, 3'd0};\n\
             end\n"
                .into(),
        )
    }
}
