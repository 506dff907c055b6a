//! The VCU118's flow as far as it can be checked without Vivado: it runs under Tcl, and what it
//! connects fits. In the thorough tier.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod vendor;

use nearpm_bitstreams::manifest::Manifest;
use nearpm_bitstreams::tools::Tool;
use nearpm_bitstreams::vcu118::{self, Mapped};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, MSIX_BAR, MSIX_BAR_BYTES, PCI_DEVICE, PCI_VENDOR, PM_BAR, REGISTER_BAR,
    REGISTER_BAR_BYTES,
};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vcu118")
}

/// Whether this is the thorough tier and Tcl is there.
fn wanted() -> bool {
    if !nearpm_tier::thorough() {
        return false;
    }
    let there = Command::new("tclsh").arg("/dev/null").output().is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "tclsh does not run: ./x test");
    there
}

/// Runs a script of the flow.
fn run(script: &Path, arguments: &[&Path]) -> Output {
    let mut command = Command::new("tclsh");
    command.arg(folder().join("recorder.tcl")).arg(script).args(arguments);
    command.output().expect("tclsh starts")
}

/// Runs the flow on a folder of Verilog.
fn flow(flow: &Path, verilog: &Path, out: &Path) -> Output {
    run(flow, &[verilog, out])
}

/// Makes the files that the flow looks for; under the recorder nobody reads what they hold.
fn make_verilog(folder: &Path) {
    for name in [nearpm_hdl::MODULE, nearpm_hdl::BRIDGE_MODULE] {
        std::fs::write(folder.join(name).with_extension("v"), "").expect("Verilog");
    }
}

/// What a flow names, by kind and in its order.
struct Notes(BTreeMap<String, Vec<String>>);

impl Notes {
    /// Runs the `build.tcl` of a folder.
    fn of(flow_folder: &Path) -> Self {
        let work = tempfile::tempdir().expect("a folder");
        make_verilog(work.path());
        Self::from(&flow(&flow_folder.join("build.tcl"), work.path(), &work.path().join("out")))
    }

    /// What a run wrote down.
    fn from(output: &Output) -> Self {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let (kind, name) = line.split_once(' ').expect("a kind and a name");
            notes.entry(kind.into()).or_default().push(name.into());
        }
        Self(notes)
    }

    fn all<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a str> {
        self.0.get(kind).into_iter().flatten().map(String::as_str)
    }

    fn set(&self, kind: &str) -> BTreeSet<&str> {
        self.all(kind).collect()
    }

    /// Both ends of the nets of a kind: what drives, and what is driven.
    fn nets<'a>(&'a self, kind: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all(kind).map(|net| net.split_once(' ').expect("two ends"))
    }

    /// What drives a pin.
    fn driver(&self, pin: &str) -> &str {
        self.nets("net").find(|(_, to)| *to == pin).map_or("nothing", |(from, _)| from)
    }

    /// What drives a pin, beyond a slice of it.
    fn origin(&self, pin: &str) -> &str {
        let driver = self.driver(pin);
        driver.strip_suffix("/Dout").map_or(driver, |slice| self.driver(&format!("{slice}/Din")))
    }

    /// A parameter of a cell.
    fn parameter<'a>(&'a self, cell: &str, parameter: &str) -> Option<&'a str> {
        let prefix = format!("{cell} CONFIG.{parameter} ");
        self.all("config").find_map(|config| config.strip_prefix(&prefix))
    }

    /// A number among the parameters of a cell.
    fn number(&self, cell: &str, parameter: &str) -> Option<u64> {
        self.parameter(cell, parameter)?.parse().ok()
    }

    /// The vendor's core that a cell is.
    fn core(&self, cell: &str) -> Option<&str> {
        self.all("core").find_map(|core| core.strip_prefix(cell)?.strip_prefix(' '))
    }

    /// Whether a cell is a gate.
    fn is_gate(&self, cell: &str) -> bool {
        self.core(cell) == Some("util_vector_logic")
    }

    /// The clock of a cell's AXI port.
    fn clock(&self, cell: &str) -> String {
        if cell.starts_with("ddr4_") {
            format!("{cell}/c0_ddr4_ui_clk")
        } else {
            self.driver(&format!("{cell}/clk")).into()
        }
    }

    /// The clocks that what drives a pin is of; of a gate, those of its operands.
    fn clocks(&self, driver: &str) -> BTreeSet<String> {
        let (cell, _) = split(driver);
        match self.core(cell) {
            Some("util_vector_logic") => {
                let operands = self.nets("net").filter(|(_, to)| split(to).0 == cell);
                operands.flat_map(|(from, _)| self.clocks(from)).collect()
            }
            Some("proc_sys_reset") => BTreeSet::from([self.driver(&format!("{cell}/slowest_sync_clk")).into()]),
            Some("pcie4_uscale_plus") => BTreeSet::from(["pcie/user_clk".into()]),
            Some("ddr4") => BTreeSet::from([self.clock(cell)]),
            _ => BTreeSet::new(),
        }
    }

    /// What a pin drives.
    fn driven<'a>(&'a self, pin: &str) -> impl Iterator<Item = &'a str> {
        self.nets("net").filter(move |(from, _)| *from == pin).map(|(_, to)| to)
    }

    fn crossings(&self) -> impl Iterator<Item = &str> {
        self.all("cell").filter(|cell| cell.starts_with("crossing_"))
    }

    /// What a crossing is between.
    fn sides(&self, crossing: &str) -> (&str, &str) {
        let (asks, answers) = (format!("{crossing}/S00_AXI"), format!("{crossing}/M00_AXI"));
        let from = self.nets("interface_net").find(|(_, to)| *to == asks);
        let to = self.nets("interface_net").find(|(from, _)| *from == answers);
        (from.map_or("nothing", |(from, _)| from), to.map_or("nothing", |(_, to)| to))
    }
}

/// A cell and its pin; a port of the whole design is of no cell.
fn split(pin: &str) -> (&str, &str) {
    pin.split_once('/').unwrap_or(("", pin))
}

/// The AXI bundle that a port is of.
fn bundle_of(port: &str) -> Option<&str> {
    let (bundle, _) = port.rsplit_once('_')?;
    ["m_axi_", "m_axil_", "s_axi_", "s_axil_"].iter().any(|prefix| bundle.starts_with(prefix)).then_some(bundle)
}

#[derive(Clone, Copy)]
struct Port {
    input: bool,
    bits: u64,
}

/// Ports of the card, the bridge, the PCIe block and the memory controllers, as `cell/port`.
struct Modules(BTreeMap<String, Port>);

impl Modules {
    fn new() -> Self {
        let ours = ["card", "bridge"].into_iter().zip(vcu118::modules());
        let ours = ours.flat_map(|(cell, (_, generated))| generated_ports(cell, &generated.ports_json));
        Self(ours.chain(vendor::pcie_ports()).chain(vendor::memory_ports()).collect())
    }

    fn has(&self, cell: &str) -> bool {
        self.0.keys().any(|pin| split(pin).0 == cell)
    }

    /// AXI bundles, as `cell/bundle`.
    fn bundles(&self) -> BTreeSet<String> {
        let pins = self.0.keys().map(|pin| split(pin));
        pins.filter_map(|(cell, port)| Some(format!("{cell}/{}", bundle_of(port)?))).collect()
    }

    /// Width of the addresses of a bundle.
    fn address_bits(&self, bundle: &str) -> Option<u64> {
        self.0.get(&format!("{bundle}_awaddr")).map(|port| port.bits)
    }

    /// Signals of a bundle.
    fn signals<'a>(&'a self, bundle: &str) -> BTreeMap<&'a str, Port> {
        let prefix = format!("{bundle}_");
        self.0.iter().filter_map(|(pin, port)| Some((pin.strip_prefix(&prefix)?, *port))).collect()
    }

    /// Width of a pin. What is no port of ours, no constant and no slice is a clock, a reset or a
    /// gate.
    fn bits(&self, notes: &Notes, pin: &str) -> u64 {
        let (cell, name) = split(pin);
        let parameter = match name {
            "dout" => "CONST_WIDTH",
            "Din" => "DIN_WIDTH",
            "Dout" => "DOUT_WIDTH",
            _ => return self.0.get(pin).map_or(1, |port| port.bits),
        };
        notes.number(cell, parameter).unwrap_or_else(|| panic!("{pin} has no width"))
    }
}

fn generated_ports(cell: &str, json: &str) -> Vec<(String, Port)> {
    let description: Value = serde_json::from_str(json).expect("a description of ports");
    let port = |port: &Value| {
        let name = port["name"].as_str().expect("a name");
        let bits = port["bits"].as_u64().expect("a width");
        (format!("{cell}/{name}"), Port { input: port["direction"] == "input", bits })
    };
    description["ports"].as_array().expect("ports").iter().map(port).collect()
}

/// Names of cells, ports and pins that are not there.
fn check_names(notes: &Notes, modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for (made, used) in [("cell", "use_cell"), ("port", "use_port"), ("interface_port", "use_interface_port")] {
        faults.extend(notes.set(used).difference(&notes.set(made)).map(|name| format!("there is no {name}")));
    }
    let (cells, bundles) = (notes.set("cell"), modules.bundles());
    for pin in notes.all("pin").chain(notes.all("interface_pin")).filter(|pin| !cells.contains(split(pin).0)) {
        faults.push(format!("there is no cell of {pin}"));
    }
    for pin in notes.all("pin").filter(|pin| modules.has(split(pin).0) && !modules.0.contains_key(*pin)) {
        faults.push(format!("there is no port {pin}"));
    }
    for pin in notes.all("interface_pin").filter(|pin| ["card", "bridge"].contains(&split(pin).0)) {
        if !bundles.contains(pin) {
            faults.push(format!("there is no bundle {pin}"));
        }
    }
    faults
}

/// Nets from an input, to an output, and between different widths.
fn check_nets(notes: &Notes, modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for (from, to) in notes.nets("net") {
        if modules.0.get(from).is_some_and(|port| port.input) {
            faults.push(format!("{from} is an input and drives {to}"));
        }
        if modules.0.get(to).is_some_and(|port| !port.input) {
            faults.push(format!("{to} is an output and is driven by {from}"));
        }
        let (drives, driven) = (modules.bits(notes, from), modules.bits(notes, to));
        if drives != driven {
            faults.push(format!("{from} has {drives} bits and {to} has {driven}"));
        }
    }
    faults
}

/// Pins that are driven twice or drive and are driven, and inputs that nothing drives.
fn check_drivers(notes: &Notes, modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    let mut drivers: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, to) in notes.nets("net") {
        *drivers.entry(to).or_default() += 1;
    }
    for (pin, times) in drivers.iter().filter(|(_, times)| **times > 1) {
        faults.push(format!("{pin} is driven {times} times"));
    }
    for (pin, _) in notes.nets("net").filter(|(from, _)| drivers.contains_key(from)) {
        faults.push(format!("{pin} drives and is driven"));
    }
    for (pin, _) in modules.0.iter().filter(|(pin, port)| port.input && bundle_of(split(pin).1).is_none()) {
        if !drivers.contains_key(pin.as_str()) {
            faults.push(format!("{pin} is open"));
        }
    }
    faults
}

/// Nets between PCIe block and bridge whose ends have different names.
fn check_streams(notes: &Notes, _: &Modules) -> Vec<String> {
    let name = |pin: &str| {
        let (cell, name) = split(pin);
        let name = name.trim_start_matches("m_axis_").trim_start_matches("s_axis_").replace("user_clk", "clk");
        ["bridge", "pcie"].contains(&cell).then_some(name)
    };
    let ends = notes.nets("net").map(|(_, to)| (notes.origin(to), to));
    let wrong = ends.filter(|(from, to)| name(from).is_some() && name(to).is_some() && name(from) != name(to));
    wrong.map(|(from, to)| format!("{to} is driven by {from}")).collect()
}

/// AXI bundles that are not at one crossing, and crossings between bundles that do not belong
/// together or have different signals.
fn check_bundles(notes: &Notes, modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for bundle in modules.bundles() {
        let nets: Vec<_> = notes.nets("interface_net").filter(|(from, to)| *from == bundle || *to == bundle).collect();
        match nets[..] {
            [] => faults.push(format!("{bundle} is open")),
            [(from, to)] if ![from, to].iter().any(|end| end.starts_with("crossing_")) => {
                faults.push(format!("{bundle} is joined without a crossing"));
            }
            [_] => {}
            _ => faults.push(format!("{bundle} is joined {} times", nets.len())),
        }
    }
    for (from, to) in notes.crossings().map(|crossing| notes.sides(crossing)) {
        match counterpart(from) {
            Some(own) if own == to => faults.extend(check_signals(notes, modules, from, to)),
            Some(own) => faults.push(format!("{from} is joined to {to} instead of {own}")),
            None => faults.push(format!("{from} is no master and is joined to {to}")),
        }
    }
    faults
}

/// What a master is joined to.
fn counterpart(master: &str) -> Option<String> {
    let (cell, stem) = master.split_once("/m_")?;
    let other = if cell == "card" { "bridge" } else { "card" };
    let memory = stem.strip_prefix("axi_mem").map(|number| format!("ddr4_{number}/C0_DDR4_S_AXI"));
    Some(memory.unwrap_or_else(|| format!("{other}/s_{stem}")))
}

/// Signals of a master and of its counterpart that do not fit.
fn check_signals(notes: &Notes, modules: &Modules, master: &str, slave: &str) -> Vec<String> {
    let (asks, answers) = (modules.signals(master), modules.signals(slave));
    let (cell, _) = split(slave);
    if cell.starts_with("ddr4_") {
        let set = [("wdata", "C0.DDR4_AxiDataWidth"), ("awid", "C0.DDR4_AxiIDWidth")];
        let wrong = set.iter().filter(|(signal, parameter)| notes.number(cell, parameter) != Some(asks[signal].bits));
        return wrong
            .map(|(signal, parameter)| format!("{master}_{signal} has not the width of {cell}'s {parameter}"))
            .collect();
    }
    let fits = |signal: &str, port: Port| match answers.get(signal) {
        Some(other) => other.bits == port.bits && other.input != port.input,
        None => !port.input,
    };
    let wrong = asks.iter().filter(|(signal, port)| !fits(signal, **port)).map(|(signal, _)| signal);
    let missing = answers.keys().filter(|signal| !asks.contains_key(*signal));
    wrong.chain(missing).map(|signal| format!("{master}_{signal} does not fit {slave}_{signal}")).collect()
}

/// Clocks of crossings that are not those of their sides.
fn check_clocks(notes: &Notes, _: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for crossing in notes.crossings() {
        let (from, to) = notes.sides(crossing);
        for (pin, side) in [("aclk", from), ("aclk1", to)] {
            let (given, wanted) = (notes.driver(&format!("{crossing}/{pin}")), notes.clock(split(side).0));
            if given != wanted {
                faults.push(format!("{crossing}/{pin} is {given} and {side} is of {wanted}"));
            }
        }
    }
    faults
}

/// Resets that are not made in the clock that they are used with; of a crossing that is the clock
/// of the side that asks.
fn check_resets(notes: &Notes, _: &Modules) -> Vec<String> {
    let cell = |name: &str, reset: &str| (format!("{name}/{reset}"), notes.clock(name));
    let mut resets = vec![cell("bridge", "rst_n"), cell("card", "rst_n")];
    resets.extend(["ddr4_0", "ddr4_1"].map(|name| cell(name, "c0_ddr4_aresetn")));
    let aclk = |crossing: &str| notes.driver(&format!("{crossing}/aclk")).to_string();
    resets.extend(notes.crossings().map(|crossing| (format!("{crossing}/aresetn"), aclk(crossing))));
    let mut faults = Vec::new();
    for (reset, used) in resets {
        let driver = notes.driver(&reset);
        let maker = driver.strip_suffix("/peripheral_aresetn").unwrap_or("nobody");
        let made = notes.driver(&format!("{maker}/slowest_sync_clk"));
        if made != used {
            faults.push(format!("{reset} is {driver}, made in {made} and used in {used}"));
        }
    }
    faults
}

/// Levels that enter another clock other than through one synchroniser with nothing in front of it:
/// what `report_cdc` calls critical (UG906, "CDC Rules Precedence": CDC-10 to CDC-12). What is
/// inside of a core is not seen.
fn check_synchronisers(notes: &Notes, _: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for gate in notes.all("cell").filter(|cell| notes.is_gate(cell)) {
        let clocks = notes.clocks(&format!("{gate}/Res"));
        if clocks.len() > 1 {
            faults.push(format!("{gate} joins {}", clocks.into_iter().collect::<Vec<_>>().join(" and ")));
        }
    }
    for reset in notes.all("cell").filter(|cell| notes.core(cell) == Some("proc_sys_reset")) {
        let into = notes.driver(&format!("{reset}/slowest_sync_clk"));
        let from = notes.driver(&format!("{reset}/ext_reset_in"));
        if notes.clocks(from).iter().all(|clock| clock == into) {
            continue;
        }
        if notes.is_gate(split(from).0) {
            faults.push(format!("{from} is logic in front of {reset}"));
        }
        // A crossing brings its reset into both of its clocks.
        let pins = ["slowest_sync_clk", "aclk", "aclk1"];
        let enters = |to: &&str| pins.iter().any(|pin| notes.driver(&format!("{}/{pin}", split(to).0)) == into);
        let times = notes.driven(from).filter(enters).count();
        if times > 1 {
            faults.push(format!("{from} enters {into} {times} times"));
        }
    }
    faults
}

/// Bytes of a range such as `64K`.
fn bytes(range: &str) -> u128 {
    let digits = range.trim_end_matches(|unit: char| unit.is_ascii_uppercase());
    let unit = range[digits.len()..].chars().next().map_or(0, |unit| 1 + "KMGTPE".find(unit).expect("a unit"));
    digits.parse::<u128>().expect("a number") << (10 * unit)
}

/// Masters that cannot address their slaves as they do: from 0, the window and each memory as large
/// as the memory is, and of the others all that both ends can say.
fn check_addresses(notes: &Notes, modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    let memory = u128::from(notes.number("constant_pm_bytes", "CONST_VAL").expect("a size of the memory"));
    for (from, to) in notes.crossings().map(|crossing| notes.sides(crossing)) {
        let segment = match split(to) {
            (cell, _) if cell.starts_with("ddr4_") => format!("{cell}/C0_DDR4_MEMORY_MAP/C0_DDR4_ADDRESS_BLOCK"),
            _ => format!("{to}/reg0"),
        };
        let mine = notes.all("address").filter_map(|address| address.strip_prefix(from)?.strip_prefix(' '));
        let mine: Vec<_> = mine.collect();
        let [address] = mine[..] else {
            faults.push(format!("{from} has {} addresses", mine.len()));
            continue;
        };
        let [given, offset, range] = address.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a segment, an offset and a range: {address}");
        };
        let widths = [from, to].into_iter().filter_map(|bundle| modules.address_bits(bundle));
        let most = 1u128 << widths.min().expect("a width");
        let wanted = match split(from).1 {
            "m_axi_host" => memory,
            "m_axi_mem0" | "m_axi_mem1" => memory / 2,
            _ => most,
        };
        if (given, offset) != (segment.as_str(), "0x0") {
            faults.push(format!("{from} has {given} at {offset} instead of {segment} at 0"));
        }
        if bytes(range) != wanted || wanted > most {
            faults.push(format!("{from} has {range} of {given}, {wanted} bytes are wanted and {most} can be said"));
        }
    }
    faults
}

/// BARs and numbers of the PCIe block that are not those of the interface.
fn check_function(notes: &Notes, _: &Modules) -> Vec<String> {
    let memory = notes.number("constant_pm_bytes", "CONST_VAL").expect("a size of the memory");
    let bars = [
        (REGISTER_BAR, REGISTER_BAR_BYTES as u64),
        (MSIX_BAR, MSIX_BAR_BYTES as u64),
        (COMMAND_BAR, COMMAND_BAR_BYTES as u64),
        (PM_BAR, memory),
    ];
    let size = |bar: usize| {
        let scale = match notes.parameter("pcie", &format!("pf0_bar{bar}_scale"))? {
            "Kilobytes" => 1 << 10,
            "Megabytes" => 1 << 20,
            "Gigabytes" => 1 << 30,
            _ => return None,
        };
        Some(scale * notes.number("pcie", &format!("pf0_bar{bar}_size"))?)
    };
    let wrong = bars.into_iter().filter(|(bar, wanted)| size(*bar) != Some(*wanted));
    let mut faults: Vec<_> = wrong.map(|(bar, wanted)| format!("BAR {bar} has not {wanted} bytes")).collect();
    for (parameter, wanted) in [("vendor_id", PCI_VENDOR), ("PF0_DEVICE_ID", PCI_DEVICE)] {
        let wanted = format!("{wanted:04x}");
        if notes.parameter("pcie", parameter) != Some(wanted.as_str()) {
            faults.push(format!("{parameter} is not {wanted}"));
        }
    }
    faults
}

/// Cores and parameters that are seen nowhere in public.
fn check_parameters(notes: &Notes, _: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for config in notes.all("config") {
        let (cell, rest) = config.split_once(" CONFIG.").expect("a cell and a parameter");
        let (name, _) = rest.split_once(' ').expect("a parameter and its value");
        let core = notes.core(cell).unwrap_or("a port");
        let known: &[&str] = match vendor::CORES.iter().find(|known| known.name == core) {
            Some(known) => known.parameters,
            None if core == "a port" => &vendor::OF_PORTS,
            None => &[],
        };
        if !known.contains(&name) {
            faults.push(format!("{core} has no parameter {name}"));
        }
    }
    faults
}

/// Cores that `synth_design` would not see, and resets of the memories.
fn check_cores(notes: &Notes, _: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    let generated: Vec<_> = notes.all("generated").collect();
    if generated != ["nearpm_vcu118.bd None"] {
        faults.push(format!("synth_design sees black boxes: {generated:?}"));
    }
    for memory in ["ddr4_0", "ddr4_1"] {
        let (constant, _) = split(notes.driver(&format!("{memory}/sys_rst")));
        if notes.core(constant) != Some("xlconstant") || notes.number(constant, "CONST_VAL") != Some(0) {
            faults.push(format!("{memory} can be reset by {constant}"));
        }
    }
    faults
}

/// All that is wrong with a flow.
fn faults(notes: &Notes, modules: &Modules) -> Vec<String> {
    let checks = [
        check_names,
        check_nets,
        check_drivers,
        check_streams,
        check_bundles,
        check_clocks,
        check_resets,
        check_synchronisers,
        check_addresses,
        check_function,
        check_parameters,
        check_cores,
    ];
    checks.iter().flat_map(|check| check(notes, modules)).collect()
}

#[test]
fn what_the_flow_connects_fits() {
    if !wanted() {
        return;
    }
    assert_eq!(faults(&Notes::of(&folder()), &Modules::new()), Vec::<String>::new());
}

/// Faults to plant in the design: the text, what stands in its place, and what the checks have to
/// say.
const PLANTED: [(&str, &str, &str); 44] = [
    ("[get_bd_cells reference]", "[get_bd_cells buffer]", "there is no buffer"),
    ("card_clock/locked", "clock/locked", "there is no cell of clock/locked"),
    ("card/power_fail", "card/power_failed", "there is no port card/power_failed"),
    ("crossing_cmd bridge/m_axi_cmd", "crossing_cmd bridge/m_axi_command", "there is no bundle bridge/m_axi_command"),
    (
        "[get_bd_ports power_fail] [get_bd_pins card/power_fail]",
        "[get_bd_pins card/power_fail] [get_bd_ports power_fail]",
        "card/power_fail is an input and drives power_fail",
    ),
    (
        "[get_bd_pins card/save_done] [get_bd_ports save_done]",
        "[get_bd_ports save_done] [get_bd_pins card/save_done]",
        "card/save_done is an output and is driven by save_done",
    ),
    ("pm_bytes 64 ", "pm_bytes 32 ", "constant_pm_bytes/dout has 32 bits and card/pm_bytes has 64"),
    ("cq_np_req 2}", "cq_np_req 1}", "constant_pcie_cq_np_req/dout has 1 bits and pcie/pcie_cq_np_req has 2"),
    (
        "pcie/m_axis_${stream}_$signal",
        "pcie/m_axis_[string map {cq rc rc cq} $stream]_$signal",
        "pcie/m_axis_rc_tuser has 161 bits and bridge/cq_tuser has 183",
    ),
    ("ready_$stream/Din", "bridge/${stream}_tready", "pcie/s_axis_cc_tready has 4 bits and bridge/cc_tready has 1"),
    (
        "[get_bd_pins pcie/user_clk] [get_bd_pins bridge/clk]",
        "[get_bd_pins pcie/user_clk] [get_bd_pins card/clk]",
        "card/clk is driven 2 times",
    ),
    (
        "[get_bd_pins pcie/user_clk] [get_bd_pins bridge/clk]",
        "[get_bd_pins pcie/user_clk] [get_bd_pins card/clk]",
        "bridge/clk is open",
    ),
    (
        "[get_bd_pins $clock] [get_bd_pins $name/slowest_sync_clk]",
        "[get_bd_pins $name/slowest_sync_clk] [get_bd_pins $clock]",
        "card_clock/clk_out1 drives and is driven",
    ),
    (
        "[get_bd_pins pcie/$signal]",
        "[get_bd_pins pcie/[string map {mask enable enable mask} $signal]]",
        "bridge/cfg_interrupt_msix_mask is driven by pcie/cfg_interrupt_msix_enable",
    ),
    (
        "[get_bd_pins pcie/s_axis_${stream}_tready]",
        "[get_bd_pins pcie/s_axis_[string map {cc rq rq cc} $stream]_tready]",
        "bridge/cc_tready is driven by pcie/s_axis_rq_tready",
    ),
    ("{cfg_flr_in_process cfg_function_status", "{cfg_function_status", "bridge/cfg_flr_in_process is open"),
    ("[get_bd_pins pcie/cfg_flr_done]", "[get_bd_pins pcie/cfg_flr_in_process]", "pcie/cfg_flr_done is open"),
    ("    nearpm_crossing crossing_ctrl", "    list crossing_ctrl", "bridge/m_axil_ctrl is open"),
    ("    nearpm_crossing crossing_ctrl", "    list crossing_ctrl", "card/s_axil_ctrl is open"),
    ("crossing_cmd bridge/m_axi_cmd", "crossing_cmd bridge/m_axi_host", "bridge/m_axi_host is joined 2 times"),
    (
        "    nearpm_crossing crossing_cpl",
        "    connect_bd_intf_net [get_bd_intf_pins card/m_axi_cpl] [get_bd_intf_pins bridge/s_axi_cpl]; list crossing_cpl",
        "card/m_axi_cpl is joined without a crossing",
    ),
    (
        "[get_bd_intf_pins $name/M00_AXI] [get_bd_intf_pins $to]",
        "[get_bd_intf_pins $name/M00_AXI] [get_bd_intf_pins [string map {axi_host axi_cmd axi_cmd axi_host} $to]]",
        "bridge/m_axi_host is joined to card/s_axi_cmd instead of card/s_axi_host",
    ),
    (
        "ddr4_$number/C0_DDR4_S_AXI",
        "ddr4_[expr {1 - $number}]/C0_DDR4_S_AXI",
        "card/m_axi_mem0 is joined to ddr4_1/C0_DDR4_S_AXI instead of ddr4_0/C0_DDR4_S_AXI",
    ),
    (
        "crossing_cpl card/m_axi_cpl bridge/s_axi_cpl",
        "crossing_cpl bridge/s_axi_cpl card/m_axi_cpl",
        "bridge/s_axi_cpl is no master and is joined to card/m_axi_cpl",
    ),
    (
        "DDR4_AxiDataWidth {512}",
        "DDR4_AxiDataWidth {256}",
        "card/m_axi_mem0_wdata has not the width of ddr4_0's C0.DDR4_AxiDataWidth",
    ),
    (
        "[get_bd_pins $to_clock] [get_bd_pins $name/aclk1]",
        "[get_bd_pins $from_clock] [get_bd_pins $name/aclk1]",
        "crossing_host/aclk1 is pcie/user_clk and card/s_axi_host is of card_clock/clk_out1",
    ),
    (
        "$card $link card_reset",
        "$link $card card_reset",
        "crossing_cpl/aclk is pcie/user_clk and card/m_axi_cpl is of card_clock/clk_out1",
    ),
    (
        "bridge_reset pcie/user_clk",
        "bridge_reset card_clock/clk_out1",
        "bridge/rst_n is bridge_reset/peripheral_aresetn, made in card_clock/clk_out1 and used in pcie/user_clk",
    ),
    (
        "[get_bd_pins calibrated_$number/peripheral_aresetn] [get_bd_pins calibrated/$operand]",
        "[get_bd_pins ddr4_$number/c0_init_calib_complete] [get_bd_pins calibrated/$operand]",
        "calibrated joins ddr4_0/c0_ddr4_ui_clk and ddr4_1/c0_ddr4_ui_clk",
    ),
    (
        "[get_bd_pins calibrated_$number/peripheral_aresetn] [get_bd_pins calibrated/$operand]",
        "[get_bd_pins ddr4_0/c0_init_calib_complete] [get_bd_pins calibrated/$operand]",
        "calibrated/Res is logic in front of card_reset",
    ),
    (
        "card_reset/peripheral_reset 1",
        "card_reset/peripheral_aresetn 0",
        "card_reset/peripheral_aresetn enters pcie/user_clk 2 times",
    ),
    ("[get_bd_pins $name/sys_rst]", "[get_bd_pins $name/c0_ddr4_aresetn]", "ddr4_0/sys_rst is open"),
    ("[get_bd_pins $name/sys_rst]", "[get_bd_pins $name/system_rst]", "there is no port ddr4_1/system_rst"),
    (
        "CONFIG.CONST_WIDTH 1 CONFIG.CONST_VAL 0]",
        "CONFIG.CONST_WIDTH 1 CONFIG.CONST_VAL 1]",
        "ddr4_0 can be reset by constant_sys_rst_0",
    ),
    ("    nearpm_address bridge/m_axi_cmd ", "    list bridge/m_axi_cmd ", "bridge/m_axi_cmd has 0 addresses"),
    (
        "-offset 0x0",
        "-offset 0x10000",
        "card/m_axi_cpl has bridge/s_axi_cpl/reg0 at 0x10000 instead of bridge/s_axi_cpl/reg0 at 0",
    ),
    (
        "ddr4_$number/C0_DDR4_MEMORY_MAP",
        "ddr4_0/C0_DDR4_MEMORY_MAP",
        "card/m_axi_mem1 has ddr4_0/C0_DDR4_MEMORY_MAP/C0_DDR4_ADDRESS_BLOCK at 0x0 instead of \
         ddr4_1/C0_DDR4_MEMORY_MAP/C0_DDR4_ADDRESS_BLOCK at 0",
    ),
    (
        "card/s_axi_host/reg0 4G",
        "card/s_axi_host/reg0 2G",
        "bridge/m_axi_host has 2G of card/s_axi_host/reg0, 4294967296 bytes are wanted and 1099511627776 can be said",
    ),
    (
        "card/s_axi_cmd/reg0 64K",
        "card/s_axi_cmd/reg0 128K",
        "bridge/m_axi_cmd has 128K of card/s_axi_cmd/reg0, 65536 bytes are wanted and 65536 can be said",
    ),
    ("pf0_bar4_scale {Gigabytes}", "pf0_bar4_scale {Megabytes}", "BAR 4 has not 4294967296 bytes"),
    ("PF0_DEVICE_ID {9e38}", "PF0_DEVICE_ID {9e39}", "PF0_DEVICE_ID is not 9e38"),
    ("CONFIG.NUM_CLKS 2", "CONFIG.NUM_CLOCKS 2", "smartconnect has no parameter NUM_CLOCKS"),
    (
        "CONFIG.PF0_DEV_CAP_FUNCTION_LEVEL_RESET_CAPABLE",
        "CONFIG.pf0_dev_cap_function_level_reset_capable",
        "pcie4_uscale_plus has no parameter pf0_dev_cap_function_level_reset_capable",
    ),
    (
        "    set_property synth_checkpoint_mode None $file\n    generate_target all $file\n",
        "    generate_target all $file\n    set_property synth_checkpoint_mode None $file\n",
        "synth_design sees black boxes: [\"nearpm_vcu118.bd Hierarchical\"]",
    ),
];

/// The flow with a fault planted in the design.
fn planted(text: &str, instead: &str) -> Notes {
    let work = tempfile::tempdir().expect("a folder");
    for name in ["build.tcl", "pins.xdc"] {
        std::fs::copy(folder().join(name), work.path().join(name)).expect("a copy");
    }
    let design = std::fs::read_to_string(folder().join("design.tcl")).expect("the design");
    assert_eq!(design.matches(text).count(), 1, "{text}");
    std::fs::write(work.path().join("design.tcl"), design.replace(text, instead)).expect("a copy");
    Notes::of(work.path())
}

/// Ports to make narrower by a bit, and what the checks have to say.
const NARROWED: [(&str, &str); 4] = [
    ("bridge/cq_tuser", "pcie/m_axis_cq_tuser has 183 bits and bridge/cq_tuser has 182"),
    ("bridge/cfg_function_status", "pcie/cfg_function_status has 16 bits and bridge/cfg_function_status has 15"),
    ("card/s_axi_host_wdata", "bridge/m_axi_host_wdata does not fit card/s_axi_host_wdata"),
    ("card/m_axi_mem1_awid", "card/m_axi_mem1_awid has not the width of ddr4_1's C0.DDR4_AxiIDWidth"),
];

#[test]
fn faults_that_are_planted_are_found() {
    if !wanted() {
        return;
    }
    let found = |faults: &[String], fault: &str| {
        assert!(faults.iter().any(|found| found == fault), "not found: {fault}\nfound: {faults:#?}");
    };
    let mut modules = Modules::new();
    for (text, instead, fault) in PLANTED {
        found(&faults(&planted(text, instead), &modules), fault);
    }
    let notes = Notes::of(&folder());
    for (pin, fault) in NARROWED {
        let port = modules.0.get_mut(pin).expect("a port");
        port.bits -= 1;
        found(&faults(&notes, &modules), fault);
    }
}

#[test]
fn constraints_are_of_ports_that_exist_and_place_them_where_the_board_has_them() {
    if !wanted() {
        return;
    }
    let notes = Notes::of(&folder());
    // Of an interface, its signals.
    let ports: Vec<_> = notes.all("port").chain(notes.all("interface_port")).collect();
    for name in notes.all("constrained") {
        assert!(ports.iter().any(|port| name == *port || name.starts_with(&format!("{port}_"))), "{name}");
    }
    let page = std::fs::read_to_string(folder().join("../../docs/bitstreams.md")).expect("the page");
    let placed: BTreeSet<_> =
        vendor::PLACED.iter().map(|(port, pad, level, _)| format!("{port} {pad} {level}")).collect();
    assert_eq!(notes.all("placed").map(String::from).collect::<BTreeSet<_>>(), placed);
    for (port, pad, _, name) in vendor::PLACED {
        let row = format!("| pin {pad} | `{port}` | `{name}` |");
        assert!(page.contains(&row), "{row} is not on the page");
    }
    assert_eq!(page.matches("\n| pin ").count(), vendor::PLACED.len());
    // The board's flash: two chips of eight bits and 256 MiB together.
    let flash: Vec<_> = notes.all("flash").collect();
    let [flash] = flash[..] else { panic!("one set of files for the flash: {flash:?}") };
    assert!(flash.starts_with("SPIx8 256 up 0x00000000 ") && flash.ends_with("/nearpm_vcu118.bit"), "{flash}");
}

#[test]
fn every_core_has_a_source() {
    for core in vendor::CORES {
        assert!(!core.source.is_empty() && !core.parameters.is_empty(), "{}", core.name);
        assert!(core.parameters.is_sorted(), "{}", core.name);
    }
}

#[test]
fn the_cards_clock_is_what_was_asked_for_or_an_error() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    make_verilog(work.path());
    let (build, out) = (folder().join("build.tcl"), work.path().join("out"));
    let at = |mhz: &str| run(&build, &[work.path(), &out, Path::new(mhz)]);
    let modules = Modules::new();
    for mhz in ["300", "250", "200"] {
        let notes = Notes::from(&at(mhz));
        let asked = notes.parameter("card_clock", "CLKOUT1_REQUESTED_OUT_FREQ");
        assert_eq!(asked, Some(format!("{mhz}.000").as_str()));
        // The link's and the memories' stay as they are.
        assert_eq!(notes.number("pcie", "axisten_freq"), Some(250));
        assert_eq!(notes.number("ddr4_1", "C0.DDR4_TimePeriod"), Some(833));
        assert_eq!(faults(&notes, &modules), Vec::<String>::new());
    }
    let without = Notes::of(&folder());
    assert_eq!(without.parameter("card_clock", "CLKOUT1_REQUESTED_OUT_FREQ"), Some("300.000"));
    for mhz in ["0", "299", "350", "fast"] {
        let output = at(mhz);
        let said = String::from_utf8_lossy(&output.stderr);
        let error = format!("the card's clock is 300, 250 or 200 MHz, and not {mhz}");
        assert!(!output.status.success() && said.contains(&error), "{said}");
        assert!(output.stdout.is_empty(), "{mhz} is refused before anything is made");
    }
}

#[test]
fn a_board_is_loaded_with_what_the_flow_writes() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    make_verilog(work.path());
    let (program, out) = (folder().join("program.tcl"), work.path().join("out"));
    let load = |what: &str| run(&program, &[&out, Path::new(what)]);
    for (what, missing) in [("part", "nearpm_vcu118.bit is missing"), ("flash", "nearpm_vcu118_primary.mcs is missing")]
    {
        let output = load(what);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(missing), "{said}");
        assert!(output.stdout.is_empty(), "nothing is touched");
    }
    assert!(!load("everything").status.success());
    Notes::from(&flow(&folder().join("build.tcl"), work.path(), &out));
    let part = Notes::from(&load("part"));
    assert_eq!(part.all("step").collect::<Vec<_>>(), ["program_hw_devices"]);
    assert_eq!(part.all("loaded").collect::<Vec<_>>(), [out.join("nearpm_vcu118.bit").display().to_string()]);
    let flash = Notes::from(&load("flash"));
    assert_eq!(flash.all("step").collect::<Vec<_>>(), ["program_hw_devices", "program_hw_cfgmem", "boot_hw_device"]);
    let both = ["primary", "secondary"].map(|chip| out.join(format!("nearpm_vcu118_{chip}.mcs")).display().to_string());
    assert_eq!(flash.all("loaded").collect::<Vec<_>>(), [both.join(" ")]);
}

#[test]
fn the_bridge_is_told_of_a_reset_of_the_link_and_of_a_link_that_is_down_and_nothing_else_is() {
    if !wanted() {
        return;
    }
    let notes = Notes::of(&folder());
    let told = |pin: &str| notes.driven(pin).collect::<Vec<_>>();
    assert_eq!(told("pcie/user_reset"), ["link_down/Op1"]);
    assert_eq!(told("pcie/user_lnk_up"), ["no_link/Op1"]);
    assert_eq!(told("no_link/Res"), ["link_down/Op2"]);
    assert_eq!(told("link_down/Res"), ["bridge/link_down"]);
    let gates: BTreeSet<_> = notes.all("config").filter(|config| config.contains(" CONFIG.C_OPERATION ")).collect();
    let gates: Vec<_> = gates.iter().map(|gate| gate.replace("CONFIG.C_OPERATION ", "")).collect();
    assert_eq!(gates, ["calibrated and", "link_down or", "no_link not"]);
}

#[test]
fn a_path_that_is_late_and_a_critical_crossing_are_errors() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    make_verilog(work.path());
    let found = [
        ("proc get_property {args} { return -0.25 }", "misses its setup time by 0.25 ns"),
        (
            "proc get_cdc_violations {option filter} {\n\
             if {$option eq {-filter} && $filter eq {SEVERITY == Critical}} { return {CDC-1#1 CDC-4#2} }\n}",
            "2 crossings between clocks are critical (CDC-1#1, CDC-4#2)",
        ),
    ];
    for (answer, error) in found {
        let answered = work.path().join("answered.tcl");
        let build = folder().join("build.tcl");
        std::fs::write(&answered, format!("{answer}\nsource {{{}}}\n", build.display())).expect("a file");
        let output = flow(&answered, work.path(), &work.path().join("out"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(error), "{said}");
    }
}

#[test]
fn a_flow_that_uses_what_is_not_there_is_an_error() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    let output = flow(&folder().join("build.tcl"), work.path(), &work.path().join("out"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("nearpm_card.v is missing"), "{said}");
    let wrong = work.path().join("wrong.tcl");
    std::fs::write(&wrong, "open_everything {").expect("a file");
    assert!(!flow(&wrong, work.path(), work.path()).status.success());
}

/// What the manifest says of the modules, which must be those of today.
fn measured() -> BTreeMap<String, Mapped> {
    let measured = Manifest::read().expect("the manifest").vcu118;
    let modules = vcu118::modules();
    assert!(measured.keys().map(String::as_str).eq(BTreeMap::from(modules.clone()).keys().copied()));
    for (name, generated) in modules {
        let source = vcu118::source(&generated.verilog, name);
        assert_eq!(measured[name].source, source, "{name} has changed: ./x synthesise makes the manifest anew");
    }
    measured
}

#[test]
fn what_the_manifest_says_is_of_todays_hardware_and_on_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bitstreams.md");
    let page = std::fs::read_to_string(path).expect("the page");
    for (name, mapped) in measured() {
        let [beyond, registers] = mapped.beyond();
        let Mapped { luts, flip_flops, block_rams, levels, .. } = mapped;
        let share = |[used, of]: [u64; 2]| format!("{used} ({:.2} %)", 100.0 * used as f64 / of as f64);
        let [luts, flip_flops, block_rams] = [luts, flip_flops, block_rams].map(share);
        let row = format!("| `{name}` | {luts} | {flip_flops} | {block_rams} | {levels} | {beyond} of {registers} |");
        assert!(page.contains(&row), "{row} is not on the page");
    }
}

#[test]
fn the_bridge_maps_as_the_manifest_says() {
    let there = Tool::Yosys.path().is_ok();
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "yosys is missing: ./x test");
    if !nearpm_tier::thorough() || !there {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vcu118-bridge");
    let [.., (name, bridge)] = vcu118::modules();
    let mapped = Mapped::map(&bridge.verilog, name, &folder).expect("yosys runs");
    assert_eq!(mapped, measured()[name]);
}
