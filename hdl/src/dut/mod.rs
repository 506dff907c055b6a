//! A unit under test, on either of two simulators, behind one trait.
//!
//! rust-hdl simulates the Rust description; Verilator simulates the Verilog that is generated from
//! it. They differ silently in places, and the Verilog is what becomes hardware, so every test of a
//! unit runs on both: [`on_both_back_ends`]. A test bench sees only [`Dut`]: ports by name, values
//! up to 1024 bits, clock cycles.

mod model;
mod ports;
mod run;
mod value;
mod verilated;

pub use model::ModelDut;
pub use nearpm_hdl_derive::{PortValue, Ports};
pub use ports::{PortRow, PortSignal, PortValue, Ports, Way, put_field, take_field};
pub use run::{default_verilog, on_both_back_ends, on_both_back_ends_with, on_rust_hdl, on_verilog, verilog_of};
pub use value::Value;
pub use verilated::VerilatedDut;

/// A resolved port of one [`Dut`]. Resolve once outside of a loop, then use the handle inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortId(usize);

/// A unit under test with one clock.
///
/// Time stands with the clock low. Inputs that are set take effect at once on outputs that depend
/// on them combinationally (the next read settles the unit), and on registers at the next
/// [`cycle`](Dut::cycle). All methods panic on a misuse (unknown port, value too wide, write to an
/// output) with a message that names the port and the unit's ports: in a test that is what is
/// wanted.
pub trait Dut {
    /// Resolves a port by its Verilog name: `araddr`, `m$araddr` in a bundle `m`, `done$3` in an
    /// array, `m$3$araddr` in an array of bundles.
    fn port(&self, name: &str) -> PortId;

    /// Whether there is a port of that name.
    fn has_port(&self, name: &str) -> bool;

    /// Drives an input port.
    fn write(&mut self, port: PortId, value: Value);

    /// Reads a port, input or output, after the unit has settled.
    fn read(&mut self, port: PortId) -> Value;

    /// One clock cycle: settles, rises, settles, falls, settles. Read what the unit shows *before*
    /// the edge (handshakes!) before this call. A unit without a port `clock` only settles.
    fn cycle(&mut self);

    /// How many cycles have passed since the unit was made.
    fn cycles(&self) -> u64;

    /// The name of the simulator: `rust-hdl` or `verilator`.
    fn back_end(&self) -> &'static str;
}

impl dyn Dut + '_ {
    /// Drives the input port of that name.
    pub fn set(&mut self, port: &str, value: impl Into<Value>) {
        let port = self.port(port);
        self.write(port, value.into());
    }

    /// Reads the port of that name.
    pub fn get(&mut self, port: &str) -> Value {
        let port = self.port(port);
        self.read(port)
    }

    /// Reads the port of that name as a number; its value must fit 64 bits.
    pub fn get_u64(&mut self, port: &str) -> u64 {
        self.get(port).to_u64()
    }

    /// Whether the port of that name is not 0.
    pub fn get_bool(&mut self, port: &str) -> bool {
        self.get(port) != Value::ZERO
    }

    /// `count` clock cycles.
    pub fn run(&mut self, count: u64) {
        for _ in 0..count {
            self.cycle();
        }
    }

    /// Holds the port `reset` high for two cycles.
    pub fn reset(&mut self) {
        self.set("reset", true);
        self.run(2);
        self.set("reset", false);
    }

    /// Runs until the port of that name is not 0, and gives the number of cycles that passed.
    ///
    /// # Panics
    /// When that takes more than `limit` cycles.
    pub fn run_until(&mut self, port: &str, limit: u64) -> u64 {
        let id = self.port(port);
        for passed in 0..=limit {
            if self.read(id) != Value::ZERO {
                return passed;
            }
            self.cycle();
        }
        panic!("`{port}` stayed 0 for {limit} cycles, until cycle {}", self.cycles());
    }
}
