//! Runs tests in Python, against models of AXI and PCIe that are not this project's (cocotb,
//! Icarus). In the thorough tier.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter with cocotb, if this is the thorough tier.
///
/// # Panics
/// When the tools should be there and are not.
pub fn python() -> Option<PathBuf> {
    nearpm_tier::thorough().then_some(())?;
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

/// A module under test.
pub struct Bench<'a> {
    /// Interpreter.
    pub python: &'a Path,
    /// Top module.
    pub top: &'a str,
    /// Module of the tests, in `hdl/cocotb`.
    pub tests: &'a str,
    /// What the tests are told, as JSON.
    pub case: String,
}

impl Bench<'_> {
    /// Runs the tests, or one of them, on a Verilog text; what they said, and whether all have
    /// passed.
    pub fn run(&self, verilog: &str, name: &str, test: Option<&str>) -> (String, bool) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cocotb-{}-{name}", self.tests));
        std::fs::create_dir_all(&folder).expect("a folder for the tests");
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("a file of the tests is written");
            file
        };
        let output = Command::new(self.python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("cocotb/run.py"))
            .arg(write("design.v", verilog))
            .args([self.top, self.tests])
            .arg(folder.join("simulation"))
            .args(test)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NEARPM_CASE", write("case.json", &self.case))
            .output()
            .expect("Python starts");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (said.into_owned(), output.status.success())
    }

    /// Plants breaks of the protocol: name, a place in the Verilog, what stands there instead, a
    /// test that must fail.
    pub fn faults_are_seen(&self, verilog: &str, faults: &[(&str, &str, &str, &str)]) {
        for (name, place, instead, test) in faults {
            assert_eq!(verilog.matches(place).count(), 1, "{name}: the place of the fault");
            let (said, passed) = self.run(&verilog.replace(place, instead), name, Some(test));
            assert!(!passed, "{name} is not seen");
            let seen = said.lines().any(|line| line.contains(test) && line.contains("FAIL"));
            assert!(seen, "{name} is not seen by {test}: {said}");
        }
    }
}
