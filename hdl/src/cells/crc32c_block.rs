//! CRC-32C of 64-byte blocks.
//!
//! The CRC is linear over XOR, so the state after a block is `advance(state) ^ data(block)`: the
//! data part has no feedback and is pipelined at will, and the feedback is a 32-bit XOR of about 16
//! terms a bit, which fits one cycle at 300 MHz. Both matrices are computed here from the
//! polynomial.

use super::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::fmt::Write;

/// CRC-32C (Castagnoli, RFC 3720) in reflected form, as `crc32c` and the SSE 4.2 instruction have
/// it.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// State before the first block; the result is the state XORed with the same.
const INITIAL: u32 = u32::MAX;
/// Block, bits.
const BLOCK: usize = 512;
/// The first stage XORs groups of this many bits, about 32 of which go into each of its outputs:
/// three levels of 6-input tables at most.
const GROUP: usize = 64;
/// Groups a block.
const GROUPS: usize = BLOCK / GROUP;

/// The state after `bits` message bits of 0.
pub(crate) fn advance(mut state: u32, bits: usize) -> u32 {
    for _ in 0..bits {
        state = (state >> 1) ^ (POLYNOMIAL & (state & 1).wrapping_neg());
    }
    state
}

/// The state before `bits` message bits of 0, from the state after them.
pub(crate) fn retreat(mut state: u32, bits: usize) -> u32 {
    for _ in 0..bits {
        let out = state >> 31;
        state = (state ^ (POLYNOMIAL & out.wrapping_neg())) << 1 | out;
    }
    state
}

/// What message bit `index` of a block alone adds to the state after the block.
fn data_column(index: usize) -> u32 {
    // A message bit is XORed into bit 0 of the state, and is then followed by the rest of the
    // block.
    advance(1, BLOCK - index)
}

/// CRC-32C of one 64-byte block a cycle, over messages of any number of blocks.
///
/// A block that is `valid` in a cycle shows in `state` and `crc` **three** rising edges later,
/// while `done` is high for one cycle. Blocks may follow each other without a gap; `first` starts a
/// new message. Byte 0 of a message is bits 7..0 of its first block. `state` and `crc` keep their
/// values until the next `done`.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Crc32cBlock {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: forgets blocks on their way; the next block must be `first`.
    pub reset: Signal<In, Bit>,
    /// There is a block in this cycle.
    pub valid: Signal<In, Bit>,
    /// The block starts a message.
    pub first: Signal<In, Bit>,
    /// 64 bytes, byte 0 lowest.
    pub block: Signal<In, Bits<512>>,
    /// A block has just been added.
    pub done: Signal<Out, Bit>,
    /// The running state, to be continued.
    #[default(Signal::new_with_default(u64::from(INITIAL).into()))]
    pub state: Signal<Out, Bits<32>>,
    /// The CRC-32C of the message so far.
    pub crc: Signal<Out, Bits<32>>,
    /// The two pipeline stages before the state, youngest first: (first, data part).
    #[default([None; 2])]
    _stages: [Option<(bool, u32)>; 2],
    #[default((0..BLOCK).map(data_column).collect())]
    _columns: Vec<u32>,
}

impl Crc32cBlock {
    /// The data part of the present block.
    fn data_part(&self) -> u32 {
        let block = self.block.val();
        let set = self._columns.iter().enumerate().filter(|(bit, _)| block.get_bit(*bit));
        set.fold(0, |sum, (_, column)| sum ^ column)
    }
}

impl Logic for Crc32cBlock {
    fn update(&mut self) {
        if !self.clock.pos_edge() {
            return;
        }
        let [young, old] = self._stages;
        let reset = self.reset.val();
        self.done.next = old.is_some() && !reset;
        if let Some((first, data)) = old {
            let state = if first { INITIAL } else { self.state.val().to_u32() };
            let state = advance(state, BLOCK) ^ data;
            self.state.next = u64::from(state).into();
            self.crc.next = u64::from(state ^ INITIAL).into();
        }
        let entering = self.valid.val().then(|| (self.first.val(), self.data_part()));
        self._stages = if reset { [None; 2] } else { [entering, young] };
    }

    fn connect(&mut self) {
        self.done.connect();
        self.state.connect();
        self.crc.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut v = String::new();
        for group in 0..GROUPS {
            let _ = writeln!(v, "reg [31:0] part{group};");
        }
        v += "reg [31:0] data;\nreg [1:0] busy;\nreg [1:0] start;\n";
        let _ = writeln!(v, "wire [31:0] base = start[1] ? 32'h{INITIAL:08x} : state;");
        v += "initial begin busy = 2'd0; done = 1'b0;\n";
        let _ = writeln!(v, "    state = 32'h{INITIAL:08x}; end");
        v += "always @(*) crc = ~state;\nalways @(posedge clock) begin\n";
        // The enables are for simulation: what nobody waits for is not computed.
        v += "    if (valid) begin\n";
        for group in 0..GROUPS {
            let (low, high) = (group * GROUP, group * GROUP + GROUP - 1);
            for row in 0..32 {
                let taps = (0..GROUP).filter(|bit| self._columns[low + bit] >> row & 1 == 1);
                let mask = taps.fold(0u64, |mask, bit| mask | 1 << bit);
                let _ = writeln!(v, "        part{group}[{row}] <= ^(block[{high}:{low}] & 64'h{mask:016x});");
            }
        }
        let parts: Vec<_> = (0..GROUPS).map(|group| format!("part{group}")).collect();
        let _ = writeln!(v, "    end\n    if (busy[0]) data <= {};", parts.join(" ^ "));
        v += "    start <= {start[0], first};\n\
              \x20   busy <= reset ? 2'd0 : {busy[0], valid};\n\
              \x20   done <= busy[1] & ~reset;\n\
              \x20   if (busy[1]) begin\n";
        for row in 0..32 {
            let taps = (0..32).filter(|bit| advance(1 << bit, BLOCK) >> row & 1 == 1);
            let mask = taps.fold(0u32, |mask, bit| mask | 1 << bit);
            let _ = writeln!(v, "        state[{row}] <= ^(base & 32'h{mask:08x}) ^ data[{row}];");
        }
        v += "    end\nend\n";
        Verilog::Custom(v)
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "valid", "first", "block"];
        clocked("crc32c_block", &inputs, &["done", "state", "crc"])
    }
}
