//! Distributed RAM.

use super::{clocked, memory};
use crate::dut::PortValue;
use rust_hdl::prelude::*;
use std::collections::BTreeMap;

/// A RAM of 2^N entries with one write port and R read ports that answer within the cycle, for
/// distributed (LUT) RAM.
///
/// A write shows on the read ports after the rising edge. Each read port costs a copy of the memory;
/// beyond a few hundred entries use [`ByteRam`](super::ByteRam).
#[derive(LogicBlock)]
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
    pub read_address: [Signal<In, Bits<N>>; R],
    /// The entries at `read_address`, combinationally.
    pub read_data: [Signal<Out, T>; R],
    _entries: BTreeMap<u64, T>,
}

impl<T: Synth, const N: usize, const R: usize> Default for AsyncRam<T, N, R> {
    fn default() -> Self {
        assert!((1..=10).contains(&N), "2^{N} entries are not a distributed RAM");
        assert!((1..=8).contains(&R), "{R} read ports");
        Self {
            clock: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            write_enable: Default::default(),
            read_address: std::array::from_fn(|_| Default::default()),
            read_data: std::array::from_fn(|_| Default::default()),
            _entries: BTreeMap::new(),
        }
    }
}

impl<T: Synth, const N: usize, const R: usize> Logic for AsyncRam<T, N, R> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.write_enable.val() {
            self._entries.insert(self.write_address.val().to_u64(), self.write_data.val());
        }
        for (address, data) in self.read_address.iter().zip(&mut self.read_data) {
            data.next = self._entries.get(&address.val().to_u64()).copied().unwrap_or_default();
        }
    }

    fn connect(&mut self) {
        self.read_data.iter_mut().for_each(Logic::connect);
    }

    fn hdl(&self) -> Verilog {
        let mut code = memory("distributed", T::BITS, 1 << N);
        code += "always @(posedge clock) if (write_enable) mem[write_address] <= write_data;\n";
        for port in 0..R {
            code += &format!("always @(*) read_data${port} = mem[read_address${port}];\n");
        }
        Verilog::Custom(code)
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("async_ram", &["write_address", "write_data", "write_enable"], &[])
    }
}

crate::dut_ports!([T: PortValue, const N: usize, const R: usize] AsyncRam<T, N, R> {
    clock, write_address, write_data, write_enable, read_address, read_data
});
