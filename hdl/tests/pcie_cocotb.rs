//! The bridge against models that are not this project's: cocotbext-pcie's root complex and
//! UltraScale+ block, cocotbext-axi's memories. In the thorough tier.

mod cocotb_bench;

use cocotb_bench::{Bench, python};
use nearpm_hdl::BRIDGE_MODULE;

/// Breaks of the protocol: name, a place in the generated Verilog, what stands there instead, a
/// test that must fail.
const FAULTS: [(&str, &str, &str, &str); 3] = [
    (
        "byte-count",
        "bytes = {dwords, 2'd0} - {11'd0, offset} - {11'd0, spare};",
        "bytes = {dwords, 2'd0};",
        "writes_and_reads_of_all_shapes",
    ),
    ("tag", "request[103:96]", "{request[103:97], 1'b0}", "requests_of_ports_are_refused"),
    ("status", "2'd0, status, 5'd0", "2'd0, 3'd0, 5'd0", "requests_of_ports_are_refused"),
];

#[test]
fn the_bridge_satisfies_other_peoples_models_and_breaks_of_the_protocol_do_not() {
    let Some(python) = python() else { return };
    let verilog = nearpm_hdl::generate_bridge().verilog;
    let bench = Bench { python: &python, top: BRIDGE_MODULE, tests: "pcie_bridge", case: "{}".into() };
    let (said, passed) = bench.run(&verilog, "sound", None);
    assert!(passed && said.contains("cocotb: 5 tests, 0 failed"), "{said}");
    bench.faults_are_seen(&verilog, &FAULTS);
}
