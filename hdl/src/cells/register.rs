//! Flip-flops with reset and enable.

use super::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Flip-flops with synchronous reset and enable.
///
/// At a rising edge: the reset value when `reset`, else `d` when `enable`, else unchanged. Starts
/// with the reset value. Unlike rust-hdl's `DFF`, whose value survives a reset.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Register<T: Synth> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high; stronger than `enable`.
    pub reset: Signal<In, Bit>,
    /// Take `d` at the next edge.
    pub enable: Signal<In, Bit>,
    /// The next value.
    pub d: Signal<In, T>,
    /// The value.
    pub q: Signal<Out, T>,
    _reset_value: T,
}

impl<T: Synth> Register<T> {
    /// A register that resets to, and starts with, `reset_value`.
    pub fn new(reset_value: T) -> Self {
        Self { q: Signal::new_with_default(reset_value), _reset_value: reset_value, ..Self::default() }
    }
}

impl<T: Synth> Logic for Register<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            if self.reset.val() {
                self.q.next = self._reset_value;
            } else if self.enable.val() {
                self.q.next = self.d.val();
            }
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        let value = self._reset_value.verilog();
        Verilog::Custom(format!(
            "initial q = {value:x};\n\
             always @(posedge clock)\n\
             \x20   if (reset) q <= {value:x};\n\
             \x20   else if (enable) q <= d;\n"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("register", &["reset", "enable", "d"], &["q"])
    }
}
