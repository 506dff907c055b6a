//! The C interface: header, manual, installation, and C programs that are compiled against what was
//! installed.

mod installed;
mod manual;
mod programs;

use std::path::{Path, PathBuf};

use nearpm_cdoc::Interface;

/// The folder of the crate.
fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn interface() -> Interface {
    Interface::read(&library()).expect("the source of the interface can be read")
}

/// `NEARPM_BLESS=1 cargo test -p nearpm-c` writes the header anew.
#[test]
fn the_header_is_fresh() {
    let (path, wanted) = (library().join("include/nearpm.h"), interface().header);
    if std::env::var_os("NEARPM_BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("the header can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "include/nearpm.h is stale: run NEARPM_BLESS=1 cargo test -p nearpm-c");
}

#[test]
fn the_page_of_the_book_is_fresh() {
    let (path, wanted) = (library().join("../../docs/c-manual.md"), interface().book());
    if std::env::var_os("NEARPM_BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/c-manual.md is stale: run NEARPM_BLESS=1 cargo nextest run --release -p nearpm-c");
}

/// Each symbol that the shared library exports is in the header, and the other way round.
#[test]
fn the_header_declares_what_the_library_exports() {
    let output = std::process::Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(installed::get().folder.join("lib/libnearpm.so"))
        .output()
        .expect("nm is installed (Debian: binutils)");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let mut exported: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    exported.retain(|name| name.to_lowercase().starts_with("nearpm_"));
    exported.sort_unstable();
    let interface = interface();
    let mut declared: Vec<&str> = interface.functions().map(|function| function.name.as_str()).collect();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}
