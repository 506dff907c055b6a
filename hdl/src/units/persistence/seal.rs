//! The checksum of a head, from the state of a CRC that was given the head with zeros in its last
//! four bytes.

use crate::cells::crc32c_block::retreat;
use crate::dut::Ports;
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal::HEAD_COVERED;
use rust_hdl::prelude::*;

/// Bits of a head that its checksum does not cover.
const UNCOVERED: usize = (LINE - HEAD_COVERED) * 8;

/// The checksum to write into a head's last four bytes, combinationally.
///
/// A CRC state moves linearly, so the state behind the covered bytes follows from the state behind
/// the whole line when the line ends in zeros. 32 XORs of about 16 bits.
#[derive(LogicBlock, Default, Ports)]
pub struct SealOfState {
    /// State of `Crc32cBlock` after the body and the head, whose last four bytes were zero.
    pub state: Signal<In, Bits<32>>,
    /// The checksum.
    pub crc: Signal<Out, Bits<32>>,
}

impl Logic for SealOfState {
    fn update(&mut self) {
        let crc = !retreat(self.state.val().to_u64() as u32, UNCOVERED);
        self.crc.next = u64::from(crc).into();
    }

    fn connect(&mut self) {
        self.crc.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut code = String::from("always @(*) begin\n");
        for row in 0..32 {
            let taps = (0..32).filter(|bit| retreat(1 << bit, UNCOVERED) >> row & 1 == 1);
            let mask = taps.fold(0u32, |mask, bit| mask | 1 << bit);
            code += &format!("    crc[{row}] = ~^(state & 32'h{mask:08x});\n");
        }
        Verilog::Custom(code + "end\n")
    }
}
