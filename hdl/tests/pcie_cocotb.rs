//! The bridge against models that are not this project's: cocotbext-pcie's root complex and UltraScale+ block, cocotbext-axi's memories.
//! In the thorough tier.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter with cocotb, if this is the thorough tier.
///
/// # Panics
/// When the tools should be there and are not.
fn python() -> Option<PathBuf> {
    std::env::var_os("NEARPM_THOROUGH")?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    let python = workspace.join(".tools/venv/bin/python");
    let works = |program: &Path, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let there = works(&python, &["-c", "import cocotb, cocotbext.pcie, cocotbext.axi"])
        && works(Path::new("iverilog"), &["-V"]);
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "cocotb or Icarus does not run: ./x test");
    there.then_some(python)
}

/// Runs the tests, or one of them, on a bridge; what they said, and whether all have passed.
fn run(python: &Path, verilog: &str, name: &str, test: Option<&str>) -> (String, bool) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pcie-cocotb-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder for the tests");
    let file = folder.join("bridge.v");
    std::fs::write(&file, verilog).expect("the Verilog is written");
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("cocotb/run.py"))
        .arg(&file)
        .arg(folder.join("simulation"))
        .args(test)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (said.into_owned(), output.status.success())
}

/// Breaks of the protocol: name, a place in the generated Verilog, what stands there instead, a test that must fail.
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
    let (said, passed) = run(&python, &verilog, "bridge", None);
    assert!(passed && said.contains("cocotb: 5 tests, 0 failed"), "{said}");
    for (name, place, instead, test) in FAULTS {
        assert_eq!(verilog.matches(place).count(), 1, "{name}: the place of the fault");
        let (said, passed) = run(&python, &verilog.replace(place, instead), name, Some(test));
        assert!(!passed, "{name} is not seen");
        let seen = said.lines().any(|line| line.contains(test) && line.contains("FAIL"));
        assert!(seen, "{name} is not seen by {test}: {said}");
    }
}
