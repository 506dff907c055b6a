//! Distributed RAM.

use super::{clocked, low_bits, memory};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::collections::BTreeMap;

/// A RAM of 2^N entries with one write port and R read ports that answer within the cycle, for
/// distributed (LUT) RAM.
///
/// A write shows on the read ports after the rising edge. Each read port costs a copy of the
/// memory; beyond a few hundred entries use [`ByteRam`](super::ByteRam).
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct AsyncRam<T: Synth, const N: usize, const R: usize> {
    /// Rising edge, for writes.
    pub clock: Signal<In, Clock>,
    /// Entry to write, 0 to 2^N - 1; N is 1 to 10.
    pub write_address: Signal<In, Bits<N>>,
    /// What to write.
    pub write_data: Signal<In, T>,
    /// Write at the next edge.
    pub write_enable: Signal<In, Bit>,
    /// Entries to read.
    #[default(std::array::from_fn(|_| Default::default()))]
    pub read_address: [Signal<In, Bits<N>>; R],
    /// The entries at `read_address`, combinationally.
    #[default(std::array::from_fn(|_| Default::default()))]
    pub read_data: [Signal<Out, T>; R],
    _entries: BTreeMap<u64, T>,
    #[default({ Self::checked(); 1 << N })]
    _depth: usize,
}

impl<T: Synth, const N: usize, const R: usize> AsyncRam<T, N, R> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!((1..=10).contains(&N), "2^{N} entries are not a distributed RAM");
        assert!((1..=8).contains(&R), "{R} read ports");
    }
}

impl<T: Synth, const N: usize, const R: usize> AsyncRam<T, N, R> {
    /// With fewer entries: `depth` of them, a power of two from 2 to 2^N. Addresses repeat after
    /// that.
    pub fn of_depth(depth: usize) -> Self {
        assert!(depth.is_power_of_two() && (2..=1 << N).contains(&depth), "{depth} of 2^{N} entries");
        Self { _depth: depth, ..Self::default() }
    }

    /// The entry at an address.
    fn entry(&self, address: Bits<N>) -> u64 {
        address.to_u64() % self._depth as u64
    }

    /// Verilog of that.
    fn entry_text(&self, address: &str) -> String {
        low_bits(address, N, self._depth.ilog2() as usize)
    }
}

impl<T: Synth, const N: usize, const R: usize> Logic for AsyncRam<T, N, R> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.write_enable.val() {
            self._entries.insert(self.entry(self.write_address.val()), self.write_data.val());
        }
        for port in 0..R {
            let entry = self.entry(self.read_address[port].val());
            self.read_data[port].next = self._entries.get(&entry).copied().unwrap_or_default();
        }
    }

    fn connect(&mut self) {
        self.read_data.iter_mut().for_each(Logic::connect);
    }

    fn hdl(&self) -> Verilog {
        let mut code = memory("distributed", T::BITS, self._depth);
        let address = self.entry_text("write_address");
        code += &format!("always @(posedge clock) if (write_enable) mem[{address}] <= write_data;\n");
        for port in 0..R {
            let address = self.entry_text(&format!("read_address${port}"));
            code += &format!("always @(*) read_data${port} = mem[{address}];\n");
        }
        Verilog::Custom(code)
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("async_ram", &["write_address", "write_data", "write_enable"], &[])
    }
}
