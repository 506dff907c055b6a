//! The VCU118's flow as far as it can be checked without Vivado: it runs under Tcl, and what it connects exists. In the thorough tier.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nearpm_bitstreams::vcu118;
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

/// Runs the whole flow in a folder.
fn whole_flow(work: &Path) -> Output {
    make_verilog(work);
    flow(&folder().join("build.tcl"), work, &work.join("out"))
}

/// What the flow names, by kind.
fn notes(output: &Output) -> BTreeMap<String, BTreeSet<String>> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut notes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (kind, name) = line.split_once(' ').expect("a kind and a name");
        notes.entry(kind.into()).or_default().insert(name.into());
    }
    notes
}

/// Ports of a module: name and whether it is an input.
fn ports(json: &str) -> BTreeMap<String, bool> {
    let description: Value = serde_json::from_str(json).expect("a description of ports");
    let port = |port: &Value| (port["name"].as_str().expect("a name").to_string(), port["direction"] == "input");
    description["ports"].as_array().expect("ports").iter().map(port).collect()
}

#[test]
fn every_port_that_the_flow_connects_exists_and_no_input_is_left_open() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    let notes = notes(&whole_flow(work.path()));
    // What the flow uses it has made.
    for (made, used) in [("cell", "use_cell"), ("port", "use_port"), ("interface_port", "use_interface_port")] {
        assert!(notes[used].is_subset(&notes[made]), "{used}: {:?}", notes[used].difference(&notes[made]));
    }
    for (cell, (_, generated)) in ["card", "bridge"].iter().zip(vcu118::modules()) {
        let ports = ports(&generated.ports_json);
        let named = |kind: &str| -> Vec<String> {
            notes[kind].iter().filter_map(|pin| pin.strip_prefix(&format!("{cell}/"))).map(str::to_owned).collect()
        };
        let mut open: BTreeSet<&String> = ports.iter().filter(|(_, input)| **input).map(|(name, _)| name).collect();
        for pin in named("pin") {
            assert!(ports.contains_key(&pin), "{cell} has no port {pin}");
            open.remove(&pin);
        }
        for bundle in named("interface_pin") {
            let prefix = format!("{bundle}_");
            assert!(ports.keys().any(|port| port.starts_with(&prefix)), "{cell} has no bundle {bundle}");
            open.retain(|port| !port.starts_with(&prefix));
        }
        assert!(open.is_empty(), "inputs of the {cell} are left open: {open:?}");
    }
    // Pins of other cells are of cells that exist.
    for pin in notes["pin"].iter().chain(&notes["interface_pin"]) {
        let (cell, _) = pin.split_once('/').expect("a cell's pin");
        assert!(notes["cell"].contains(cell), "{pin}");
    }
    // Constraints name ports of the wrapper: of an interface, its signals.
    let ports: BTreeSet<_> = notes["port"].iter().chain(&notes["interface_port"]).collect();
    for name in &notes["constrained"] {
        assert!(ports.iter().any(|port| name == *port || name.starts_with(&format!("{port}_"))), "{name}");
    }
    // The table of pins in the documentation is the one of the constraints.
    let page = std::fs::read_to_string(folder().join("../../docs/bitstreams.md")).expect("the page");
    let table: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| pin ")?.split('|').next())
        .map(|pin| pin.trim().to_string())
        .collect();
    assert_eq!(table, notes["pad"]);
}

/// What drives a pin.
fn driver<'a>(notes: &'a BTreeMap<String, BTreeSet<String>>, pin: &str) -> &'a str {
    let mut nets = notes["net"].iter().filter_map(|net| net.split_once(' ')).filter(|(_, to)| *to == pin);
    let (from, _) = nets.next().unwrap_or_else(|| panic!("{pin} is open"));
    assert!(nets.next().is_none(), "{pin} is driven twice");
    from
}

#[test]
fn every_reset_is_in_the_clock_that_it_is_used_with() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    let notes = notes(&whole_flow(work.path()));
    // A reset and a clock that it is used with; of a crossing the one of the side that asks.
    let mut users = vec![
        ("bridge/rst_n".to_string(), "bridge/clk".to_string()),
        ("card/rst_n".to_string(), "card/clk".to_string()),
        ("ddr4_0/c0_ddr4_aresetn".to_string(), "memory_reset_0/slowest_sync_clk".to_string()),
        ("ddr4_1/c0_ddr4_aresetn".to_string(), "memory_reset_1/slowest_sync_clk".to_string()),
    ];
    let crossings = notes["cell"].iter().filter(|cell| cell.starts_with("crossing_"));
    users.extend(crossings.map(|cell| (format!("{cell}/aresetn"), format!("{cell}/aclk"))));
    assert_eq!(users.len(), 10);
    for (reset, clock) in &users {
        let maker = driver(&notes, reset).strip_suffix("/peripheral_aresetn").expect("a reset that is synchronised");
        let (made, used) = (driver(&notes, &format!("{maker}/slowest_sync_clk")), driver(&notes, clock));
        assert_eq!(made, used, "{reset}");
    }
    for number in 0..2 {
        let clock = driver(&notes, &format!("memory_reset_{number}/slowest_sync_clk"));
        assert_eq!(clock, format!("ddr4_{number}/c0_ddr4_ui_clk"));
    }
}

#[test]
fn the_bridge_is_told_of_a_reset_of_the_link_and_of_a_link_that_is_down_and_nothing_else_is() {
    if !wanted() {
        return;
    }
    let work = tempfile::tempdir().expect("a folder");
    let notes = notes(&whole_flow(work.path()));
    let told = |pin: &str| -> Vec<&str> {
        let nets = notes["net"].iter().filter_map(|net| net.split_once(' '));
        nets.filter(|(from, _)| *from == pin).map(|(_, to)| to).collect()
    };
    assert_eq!(told("pcie/user_reset"), ["link_down/Op1"]);
    assert_eq!(told("pcie/user_lnk_up"), ["no_link/Op1"]);
    assert_eq!(told("no_link/Res"), ["link_down/Op2"]);
    assert_eq!(told("link_down/Res"), ["bridge/link_down"]);
    let gates: Vec<_> = notes["gate"].iter().map(String::as_str).collect();
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
