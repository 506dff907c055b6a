//! The back end that is rust-hdl's own simulator.

use super::ports::{PortRow, Ports, Way};
use super::{Dut, PortId, Value};
use rust_hdl::prelude::*;

/// How many update rounds a unit gets to settle. Each level of hierarchy needs a few.
const ROUNDS: usize = 1000;

/// A unit with a list of its ports, whatever it is: what is written for all units is compiled once
/// and not for each.
trait Unit: Block + Ports {}
impl<U: Block + Ports> Unit for U {}

/// A unit on rust-hdl's simulator, stepped directly: its threaded interface is a hundred times
/// slower.
pub struct ModelDut {
    unit: Box<dyn Unit>,
    rows: Vec<PortRow>,
    clock: Option<PortId>,
    settled: bool,
    cycles: u64,
}

impl ModelDut {
    /// Takes a unit that was just made; connects and checks it.
    ///
    /// # Panics
    /// When rust-hdl's checks fail, or when a port of the unit is not
    /// public.
    pub fn new<U: Block + Ports + 'static>(unit: Box<U>) -> Self {
        Self::of(unit)
    }

    fn of(mut unit: Box<dyn Unit>) -> Self {
        unit.connect_all();
        if let Err(error) = check_all(unit.as_ref()) {
            panic!("rust-hdl's checks of the unit fail: {error:?}");
        }
        let mut rows = Vec::new();
        unit.list(&PortRow::root(), &mut rows);
        check_list(unit.as_ref(), &rows);
        let clock = rows.iter().position(|r| r.name == "clock").map(PortId);
        let mut dut = Self { unit, rows, clock, settled: false, cycles: 0 };
        dut.settle();
        dut
    }

    fn settle(&mut self) {
        if !self.settled {
            let unit = self.unit.as_mut();
            let mut rounds = 0..ROUNDS;
            assert!(
                rounds.any(|_| {
                    unit.update_all();
                    !unit.has_changed()
                }),
                "the unit does not settle: a combinational loop, or more than {ROUNDS} rounds deep"
            );
            self.settled = true;
        }
    }

    fn drive(&mut self, port: PortId, value: Value) {
        self.unit.at(&self.rows[port.0].path).drive(value);
        self.settled = false;
    }
}

impl Dut for ModelDut {
    fn port(&self, name: &str) -> PortId {
        let found = self.rows.iter().position(|r| r.name == name).map(PortId);
        found.unwrap_or_else(|| {
            let names: Vec<_> = self.rows.iter().map(|r| r.name.as_str()).collect();
            panic!("no port `{name}`; the ports are: {}", names.join(", "))
        })
    }

    fn has_port(&self, name: &str) -> bool {
        self.rows.iter().any(|r| r.name == name)
    }

    fn write(&mut self, port: PortId, value: Value) {
        let row = &self.rows[port.0];
        assert!(row.way == Way::In, "`{}` is an output", row.name);
        assert!(value.width() <= row.bits, "{value:?} does not fit `{}`: {} bits", row.name, row.bits);
        self.drive(port, value);
    }

    fn read(&mut self, port: PortId) -> Value {
        self.settle();
        self.unit.at(&self.rows[port.0].path).value()
    }

    fn cycle(&mut self) {
        self.settle();
        if let Some(clock) = self.clock {
            for level in [true, false] {
                self.drive(clock, level.into());
                self.settle();
            }
        }
        self.cycles += 1;
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }

    fn back_end(&self) -> &'static str {
        "rust-hdl"
    }
}

/// Collects the names of the top module's ports as the Verilog generator sees them.
#[derive(Default)]
struct TopPorts {
    scopes: usize,
    namespace: Vec<String>,
    names: Vec<String>,
}

impl Probe for TopPorts {
    fn visit_start_scope(&mut self, _: &str, _: &dyn Block) {
        self.scopes += 1;
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.scopes -= 1;
    }
    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.namespace.push(name.to_owned());
    }
    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.namespace.pop();
    }
    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        let port = matches!(signal.kind(), AtomKind::InputParameter | AtomKind::OutputParameter);
        if self.scopes == 1 && port {
            let levels = self.namespace.iter().map(String::as_str).chain([name]);
            self.names.push(levels.collect::<Vec<_>>().join("$"));
        }
    }
}

/// Panics unless the list names each port of the unit exactly once.
fn check_list(unit: &dyn Block, rows: &[PortRow]) {
    let mut top = TopPorts::default();
    unit.accept("top", &mut top);
    let mut listed: Vec<_> = rows.iter().map(|r| r.name.clone()).collect();
    listed.sort();
    top.names.sort();
    assert_eq!(listed, top.names, "the unit's public fields (left) are not its ports (right)");
}
