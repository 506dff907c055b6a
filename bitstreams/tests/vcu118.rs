//! The VCU118's flow as far as it can be checked without Vivado: it runs under Tcl, and what it connects fits. In the thorough tier.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nearpm_bitstreams::manifest::Manifest;
use nearpm_bitstreams::tools::Tool;
use nearpm_bitstreams::vcu118::{self, Mapped};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vcu118")
}

/// Whether this is the thorough tier and Tcl is there.
fn wanted() -> bool {
    if std::env::var_os("NEARPM_THOROUGH").is_none() {
        return false;
    }
    let there = Command::new("tclsh").arg("/dev/null").output().is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "tclsh does not run: ./x test");
    there
}

/// Runs the flow on a folder of Verilog.
fn flow(flow: &Path, verilog: &Path, out: &Path) -> Output {
    let mut command = Command::new("tclsh");
    command.arg(folder().join("recorder.tcl")).arg(flow).arg(verilog).arg(out);
    command.output().expect("tclsh starts")
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
        let output = flow(&flow_folder.join("build.tcl"), work.path(), &work.path().join("out"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let (kind, name) = line.split_once(' ').expect("a kind and a name");
            notes.entry(kind.into()).or_default().push(name.into());
        }
        Self(notes)
    }

    fn all<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a str> {
        self.0[kind].iter().map(String::as_str)
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

    /// A number among the parameters of a cell.
    fn number(&self, cell: &str, parameter: &str) -> Option<u64> {
        let prefix = format!("{cell} CONFIG.{parameter} ");
        self.all("config").find_map(|config| config.strip_prefix(&prefix)?.parse().ok())
    }

    /// The clock of a cell's AXI port.
    fn clock(&self, cell: &str) -> String {
        if cell.starts_with("ddr4_") {
            format!("{cell}/c0_ddr4_ui_clk")
        } else {
            self.driver(&format!("{cell}/clk")).into()
        }
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

/// Ports of the card, the bridge and the PCIe block, as `cell/port`.
struct Modules(BTreeMap<String, Port>);

impl Modules {
    fn new() -> Self {
        let ours = ["card", "bridge"].into_iter().zip(vcu118::modules());
        let ours = ours.flat_map(|(cell, (_, generated))| generated_ports(cell, &generated.ports_json));
        Self(ours.chain(pcie_ports()).collect())
    }

    fn has(&self, cell: &str) -> bool {
        self.0.keys().any(|pin| split(pin).0 == cell)
    }

    /// AXI bundles, as `cell/bundle`.
    fn bundles(&self) -> BTreeSet<String> {
        let pins = self.0.keys().map(|pin| split(pin));
        pins.filter_map(|(cell, port)| Some(format!("{cell}/{}", bundle_of(port)?))).collect()
    }

    /// Signals of a bundle.
    fn signals<'a>(&'a self, bundle: &str) -> BTreeMap<&'a str, Port> {
        let prefix = format!("{bundle}_");
        self.0.iter().filter_map(|(pin, port)| Some((pin.strip_prefix(&prefix)?, *port))).collect()
    }

    /// Width of a pin. What is no port of ours, no constant and no slice is a clock, a reset or a gate.
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

/// Ports of the PCIe block with an interface of 512 bits that the flow has to connect.
///
/// Sources: PG213 (v1.3), pages "Completer Request Interface", "Completer Completion Interface", "Requester Request Interface", "Requester
/// Completion Interface" and "MSI-X Interrupt External Interface"; for the other widths, and the four bits of `tready`, the component that
/// Vivado writes for `pcie4_uscale_plus` 1.1. cocotbext-pcie 0.2.16 (`xilinx/us/interface.py`, `usp_model.py`) has the same widths of `tuser`
/// and `cfg_*`.
fn pcie_ports() -> Vec<(String, Port)> {
    const STREAMS: [(&str, bool, u64, u64); 4] = [
        ("m_axis_cq", false, 183, 1),
        ("m_axis_rc", false, 161, 1),
        ("s_axis_cc", true, 81, 4),
        ("s_axis_rq", true, 137, 4),
    ];
    const OTHERS: [(&str, bool, u64); 15] = [
        ("user_clk", false, 1),
        ("user_reset", false, 1),
        ("user_lnk_up", false, 1),
        ("sys_clk", true, 1),
        ("sys_clk_gt", true, 1),
        ("sys_reset", true, 1),
        ("cfg_function_status", false, 16),
        ("cfg_flr_in_process", false, 4),
        ("cfg_flr_done", true, 4),
        ("cfg_interrupt_msix_enable", false, 4),
        ("cfg_interrupt_msix_mask", false, 4),
        ("cfg_link_training_enable", true, 1),
        ("cfg_config_space_enable", true, 1),
        ("cfg_power_state_change_ack", true, 1),
        ("pcie_cq_np_req", true, 2),
    ];
    let streams = STREAMS.iter().flat_map(|&(stream, input, tuser, tready)| {
        let with = [("tdata", 512), ("tkeep", 16), ("tuser", tuser), ("tlast", 1), ("tvalid", 1)];
        let with = with.map(|(signal, bits)| (signal, Port { input, bits }));
        let signals = with.into_iter().chain([("tready", Port { input: !input, bits: tready })]);
        signals.map(move |(signal, port)| (format!("pcie/{stream}_{signal}"), port))
    });
    let others = OTHERS.iter().map(|&(name, input, bits)| (format!("pcie/{name}"), Port { input, bits }));
    streams.chain(others).collect()
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

/// AXI bundles that are not at one crossing, and crossings between bundles that do not belong together or have different signals.
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

/// Resets that are not made in the clock that they are used with; of a crossing that is the clock of the side that asks.
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

/// All that is wrong with a flow.
fn faults(notes: &Notes, modules: &Modules) -> Vec<String> {
    let checks = [check_names, check_nets, check_drivers, check_streams, check_bundles, check_clocks, check_resets];
    checks.iter().flat_map(|check| check(notes, modules)).collect()
}

#[test]
fn what_the_flow_connects_fits() {
    if !wanted() {
        return;
    }
    assert_eq!(faults(&Notes::of(&folder()), &Modules::new()), Vec::<String>::new());
}

/// Faults to plant in the design: the text, what stands in its place, and what the checks have to say.
const PLANTED: [(&str, &str, &str); 28] = [
    ("[get_bd_cells reference]", "[get_bd_cells buffer]", "there is no buffer"),
    ("card_clock/locked", "clock/locked", "there is no cell of clock/locked"),
    ("card/power_fail", "card/power_failed", "there is no port card/power_failed"),
    ("bridge/m_axi_cmd", "bridge/m_axi_command", "there is no bundle bridge/m_axi_command"),
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
    ("bridge/m_axi_cmd", "bridge/m_axi_host", "bridge/m_axi_host is joined 2 times"),
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
        "card/m_axi_cpl bridge/s_axi_cpl",
        "bridge/s_axi_cpl card/m_axi_cpl",
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
fn constraints_are_of_ports_that_exist_and_the_page_lists_their_pads() {
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
    let pads = page.lines().filter_map(|line| line.strip_prefix("| pin ")?.split('|').next());
    assert_eq!(pads.map(str::trim).collect::<BTreeSet<_>>(), notes.set("pad"));
}

#[test]
fn the_bridge_is_told_of_a_reset_of_the_link_and_of_a_link_that_is_down_and_nothing_else_is() {
    if !wanted() {
        return;
    }
    let notes = Notes::of(&folder());
    let told =
        |pin: &str| -> Vec<&str> { notes.nets("net").filter(|(from, _)| *from == pin).map(|(_, to)| to).collect() };
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
    if std::env::var_os("NEARPM_THOROUGH").is_none() || !there {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vcu118-bridge");
    let [.., (name, bridge)] = vcu118::modules();
    let mapped = Mapped::map(&bridge.verilog, name, &folder).expect("yosys runs");
    assert_eq!(mapped, measured()[name]);
}
