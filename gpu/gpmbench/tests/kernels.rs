//! The committed PTX: what the interpreter takes, and what NVRTC makes of the sources.

use std::path::Path;
use std::process::Command;

fn kernels() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"))
}

#[test]
fn the_interpreter_takes_every_kernel() {
    let mut seen = 0;
    for file in std::fs::read_dir(kernels().join("ptx")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let module = nearpm_ptx::Module::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(module.entries().count(), text.matches(".visible .entry").count(), "{}", path.display());
        seen += 1;
    }
    let sources = std::fs::read_dir(kernels()).unwrap().flatten();
    let sources = sources.filter(|file| file.path().extension().is_some_and(|extension| extension == "cu")).count();
    assert_eq!(seen, sources, "each source has its PTX: run ./x kernels");
}

/// Where `./x kernels` has installed NVRTC; elsewhere the test says that it did nothing.
#[test]
fn the_ptx_is_what_nvrtc_makes_of_the_sources() {
    let python = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/venv-nvrtc/bin/python3"));
    if !python.exists() {
        eprintln!("skipped: NVRTC is not installed; ./x kernels does that");
        return;
    }
    let output = Command::new(python).arg(kernels().join("compile.py")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every call of the paper's table 2 that kernels make is in the device header.
#[test]
fn the_device_header_has_the_papers_calls() {
    let header = std::fs::read_to_string(kernels().join("nearpm_gpm.cuh")).unwrap();
    for call in nearpm_gpm::table2::ON_THE_GPU {
        assert!(header.contains(&format!(" {call}(")), "{call} is not in the header");
    }
    assert!(!header.contains("#include"), "the header has no includes, so that NVRTC takes it");
}
