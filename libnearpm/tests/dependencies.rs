//! What a program builds that uses the library: as many crates as its page says, and none of the
//! driver's for cards in a machine unless it asks for them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The crates that a program builds with the library, itself included.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "-p", "nearpm", "-e", "normal,build", "--prefix", "none", "-f", "{p}"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("names are text");
    lines.lines().filter_map(|line| line.split(" (").next()).map(str::to_owned).collect()
}

/// The number in a row of the page.
fn told(row: &str) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rust.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let line = page.lines().find(|line| line.starts_with(row)).expect("the page has the row");
    line.trim_end_matches(" |").rsplit("| ").next().and_then(|cell| cell.parse().ok()).expect("a number")
}

#[test]
fn a_program_builds_as_many_crates_as_the_page_says() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        eprintln!("SKIPPED: elsewhere other crates are built");
        return;
    }
    let (plain, cards) = (crates(&[]), crates(&["--features", "vfio"]));
    let has = |crates: &BTreeSet<String>, name: &str| crates.iter().any(|found| found.starts_with(&format!("{name} ")));
    for name in ["pci-driver", "nix", "volatile-register"] {
        assert!(!has(&plain, name) && has(&cards, name), "{name}: {plain:?}, for cards {cards:?}");
    }
    assert_eq!(plain.len(), told("| now |"), "{plain:?}");
    assert_eq!(cards.len(), told("| with `vfio` |"), "{cards:?}");
    // One version of each.
    let names: BTreeSet<&str> = cards.iter().filter_map(|found| found.split(' ').next()).collect();
    assert_eq!(names.len(), cards.len(), "{cards:?}");
}
