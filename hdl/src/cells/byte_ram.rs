//! Block RAM with byte enables.

use super::{clocked, memory};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::collections::BTreeMap;

/// A RAM of 2^N words of D bits with a write strobe per byte, for block RAM.
///
/// The word at `read_address` appears on `read_data` after the next rising edge, while
/// `read_enable` is high; else `read_data` keeps its value. A read of the word that is written at
/// the same edge gives the old word. For a read within the cycle use [`AsyncRam`](super::AsyncRam).
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct ByteRam<const D: usize, const S: usize, const N: usize> {
    /// Rising edge, both ports.
    pub clock: Signal<In, Clock>,
    /// Word to write, 0 to 2^N - 1.
    pub write_address: Signal<In, Bits<N>>,
    /// Word to write.
    pub write_data: Signal<In, Bits<D>>,
    /// Which bytes to write; 0 writes nothing. S = D / 8 bits, S > 1.
    pub write_strobe: Signal<In, Bits<S>>,
    /// Word to read, 0 to 2^N - 1.
    pub read_address: Signal<In, Bits<N>>,
    /// Read at the next edge.
    pub read_enable: Signal<In, Bit>,
    /// The word that was read last.
    pub read_data: Signal<Out, Bits<D>>,
    #[default({ Self::checked(); BTreeMap::new() })]
    _words: BTreeMap<u64, Bits<D>>,
}

impl<const D: usize, const S: usize, const N: usize> ByteRam<D, S, N> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!(S * 8 == D && S > 1, "{S} strobes do not cover {D} bits, or are fewer than two");
        assert!((1..=24).contains(&N), "2^{N} words are not a block RAM");
    }
}

impl<const D: usize, const S: usize, const N: usize> Logic for ByteRam<D, S, N> {
    fn update(&mut self) {
        if !self.clock.pos_edge() {
            return;
        }
        if self.read_enable.val() {
            let word = self._words.get(&self.read_address.val().to_u64());
            self.read_data.next = word.copied().unwrap_or_default();
        }
        let (data, strobe) = (self.write_data.val(), self.write_strobe.val());
        if strobe.any() {
            let word = self._words.entry(self.write_address.val().to_u64()).or_default();
            for bit in (0..D).filter(|bit| strobe.get_bit(bit / 8)) {
                *word = word.replace_bit(bit, data.get_bit(bit));
            }
        }
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let memory = memory("block", D, 1 << N);
        Verilog::Custom(format!(
            "{memory}\
             initial read_data = {D}'d0;\n\
             integer lane;\n\
             always @(posedge clock) begin\n\
             \x20   if (read_enable) read_data <= mem[read_address];\n\
             \x20   for (lane = 0; lane < {S}; lane = lane + 1)\n\
             \x20       if (write_strobe[lane])\n\
             \x20           mem[write_address][8*lane +: 8] <= write_data[8*lane +: 8];\n\
             end\n"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["write_address", "write_data", "write_strobe", "read_address", "read_enable"];
        clocked("byte_ram", &inputs, &["read_data"])
    }
}
