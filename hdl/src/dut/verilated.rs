//! The back end that is Verilator.

use super::{Dut, PortId, Value};
use nearpm_verilate::{Direction, Instance, Library, Port, Source};
use std::path::Path;

/// A unit's generated Verilog on Verilator.
pub struct VerilatedDut {
    instance: Instance,
    ports: Vec<Port>,
    clock: Option<Port>,
    settled: bool,
    traced: bool,
    cycles: u64,
}

impl VerilatedDut {
    /// Builds the module `top` of `verilog`, warnings denied; with `trace`, writes all nets of all
    /// cycles to that VCD file.
    ///
    /// # Panics
    /// When the build fails, with Verilator's words.
    pub fn new(verilog: String, trace: Option<&Path>) -> Self {
        let source = Source::new("top", verilog).with_trace(trace.is_some());
        let library = Library::build(&source).unwrap_or_else(|e| panic!("{e}"));
        let mut instance = library.instance().unwrap_or_else(|e| panic!("{e}"));
        if let Some(path) = trace {
            instance.open_trace(path).unwrap_or_else(|e| panic!("{e}"));
        }
        let names: Vec<_> = instance.ports().iter().map(|p| p.name.clone()).collect();
        let ports = names.iter().map(|n| instance.port(n).expect("a listed port")).collect();
        let clock = instance.port("clock").ok();
        Self { instance, ports, clock, settled: true, traced: trace.is_some(), cycles: 0 }
    }

    fn settle(&mut self) {
        if !self.settled {
            self.instance.eval();
            self.settled = true;
        }
    }
}

impl Dut for VerilatedDut {
    fn port(&self, name: &str) -> PortId {
        let port = self.instance.port(name).unwrap_or_else(|e| panic!("{e}"));
        PortId(self.ports.iter().position(|p| *p == port).expect("a listed port"))
    }

    fn has_port(&self, name: &str) -> bool {
        self.instance.port(name).is_ok()
    }

    fn write(&mut self, port: PortId, value: Value) {
        let port = self.ports[port.0];
        let info = self.instance.info(port);
        assert!(info.direction == Direction::Input, "`{}` is an output", info.name);
        self.instance.set_words(port, value.words());
        self.settled = false;
    }

    fn read(&mut self, port: PortId) -> Value {
        self.settle();
        let mut words = *Value::ZERO.words();
        self.instance.get_words(self.ports[port.0], &mut words);
        Value::from_words(&words)
    }

    fn cycle(&mut self) {
        if self.traced {
            // The inputs of the cycle with what they cause before the edge, then the edge.
            self.settle();
            self.instance.dump(self.cycles * 2);
        }
        match self.clock {
            Some(clock) => self.instance.cycle(clock),
            None => self.instance.eval(),
        }
        self.settled = true;
        if self.traced {
            self.instance.dump(self.cycles * 2 + 1);
        }
        self.cycles += 1;
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }

    fn back_end(&self) -> &'static str {
        "verilator"
    }
}
