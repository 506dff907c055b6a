//! A queue.

use super::{clocked, memory};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::collections::VecDeque;

/// A queue of 2^K entries with show-ahead: `data_out` is the oldest entry while not `empty`.
///
/// Accepts and gives an entry in each cycle. A write while `full` and a read while `empty` do
/// nothing, also when the other happens in the same cycle, so `full` and `empty` depend on the
/// state only. An entry that is written to an empty queue shows in the next cycle. One clock; to
/// cross clocks use rust-hdl's `AsynchronousFIFO`. Built from distributed RAM: K is 1 to 10.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Fifo<T: Synth, const K: usize, const C: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: the queue is empty afterwards.
    pub reset: Signal<In, Bit>,
    /// Append `data_in` at the next edge.
    pub write: Signal<In, Bit>,
    /// What to append.
    pub data_in: Signal<In, T>,
    /// No room for a write.
    pub full: Signal<Out, Bit>,
    /// Remove the oldest entry at the next edge.
    pub read: Signal<In, Bit>,
    /// The oldest entry; meaningless while `empty`.
    pub data_out: Signal<Out, T>,
    /// No entry to read.
    #[default(Signal::new_with_default(true))]
    pub empty: Signal<Out, Bit>,
    /// Entries in the queue, 0 to 2^K; C = K + 1 bits.
    pub count: Signal<Out, Bits<C>>,
    #[default({ Self::checked(); VecDeque::new() })]
    _queue: VecDeque<T>,
}

impl<T: Synth, const K: usize, const C: usize> Fifo<T, K, C> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!((1..=10).contains(&K), "2^{K} entries are not a small queue");
        assert!(C == K + 1, "the count of 2^{K} entries has {} bits, not {C}", K + 1);
    }
}

impl<T: Synth, const K: usize, const C: usize> Logic for Fifo<T, K, C> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let full = self._queue.len() == 1 << K;
            if self.reset.val() {
                self._queue.clear();
            } else {
                if self.read.val() {
                    self._queue.pop_front();
                }
                if self.write.val() && !full {
                    self._queue.push_back(self.data_in.val());
                }
            }
        }
        self.full.next = self._queue.len() == 1 << K;
        self.empty.next = self._queue.is_empty();
        self.count.next = self._queue.len().to_bits();
        // The Verilog shows a stale entry of an empty queue; nobody may look at either.
        self.data_out.next = self._queue.front().copied().unwrap_or_default();
    }

    fn connect(&mut self) {
        self.full.connect();
        self.data_out.connect();
        self.empty.connect();
        self.count.connect();
    }

    fn hdl(&self) -> Verilog {
        let memory = memory("distributed", T::BITS, 1 << K);
        Verilog::Custom(format!(
            "{memory}\
             reg [{top}:0] head;\n\
             reg [{top}:0] tail;\n\
             reg [{K}:0] used;\n\
             wire append = write & ~full;\n\
             wire remove = read & ~empty;\n\
             initial begin head = {K}'d0; tail = {K}'d0; used = {C}'d0; end\n\
             always @(*) begin\n\
             \x20   full = used[{K}];\n\
             \x20   empty = ~|used;\n\
             \x20   count = used;\n\
             \x20   data_out = mem[head];\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   if (append) mem[tail] <= data_in;\n\
             \x20   if (reset) begin head <= {K}'d0; tail <= {K}'d0; used <= {C}'d0; end\n\
             \x20   else begin\n\
             \x20       if (append) tail <= tail + {K}'d1;\n\
             \x20       if (remove) head <= head + {K}'d1;\n\
             \x20       used <= used + {{{K}'d0, append}} - {{{K}'d0, remove}};\n\
             \x20   end\n\
             end\n",
            top = K - 1,
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let outputs = ["full", "data_out", "empty", "count"];
        clocked("fifo", &["reset", "write", "data_in", "read"], &outputs)
    }
}
