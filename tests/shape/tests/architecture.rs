//! The shape of the workspace, held by tests: dependencies point one way, the library stays
//! free of the hardware's tool chain, and comments are narrow enough to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What each crate may use of the workspace, directly. A crate that is not listed is an error.
const MAY_USE: &[(&str, &[&str])] = &[
    ("nearpm-interface", &[]),
    ("nearpm-verilate", &[]),
    ("nearpm-ppo", &[]),
    ("nearpm-firmware", &["nearpm-interface"]),
    ("nearpm-hdl-derive", &[]),
    ("nearpm-hdl", &["nearpm-hdl-derive", "nearpm-interface", "nearpm-verilate"]),
    // What tests of the hardware share; a GPU's persist buffer runs beside the machine of its
    // model.
    ("nearpm-hdl-bench", &["nearpm-firmware", "nearpm-hdl", "nearpm-interface", "nearpm-sbrp", "nearpm-verilate"]),
    ("nearpm-driver", &["nearpm-interface"]),
    ("nearpm-derive", &[]),
    ("nearpm-newfile", &[]),
    ("nearpm", &["nearpm-interface", "nearpm-driver", "nearpm-derive", "nearpm-newfile"]),
    // Where programs that know paths have their pools.
    ("nearpm-place", &["nearpm", "nearpm-newfile"]),
    // Cards of this machine, and of other processes.
    ("nearpm-address", &["nearpm-driver", "nearpm-firmware"]),
    ("nearpm-c", &["nearpm", "nearpm-address", "nearpm-place"]),
    ("nearpm-sim", &["nearpm-interface", "nearpm-firmware", "nearpm-driver", "nearpm-verilate", "nearpm-hdl"]),
    // Simulated cards by name, and computers that have one.
    ("nearpm-cards", &["nearpm", "nearpm-driver", "nearpm-firmware", "nearpm-hdl", "nearpm-interface", "nearpm-sim"]),
    ("nearpm-workloads", &["nearpm"]),
    ("nearpm-text", &[]),
    // What measurements are told by.
    ("nearpm-statistics", &[]),
    ("nearpm-tier", &[]),
    // Workloads under power cuts: for the command line, and for whoever else cuts the power of a
    // program.
    (
        "nearpm-cuts",
        &[
            "nearpm",
            "nearpm-cards",
            "nearpm-driver",
            "nearpm-interface",
            "nearpm-sim",
            "nearpm-text",
            "nearpm-workloads",
        ],
    ),
    // The driver for its mock, which is the card of the pools that are explored; the tier for the
    // number of workers.
    (
        "nearpm-explorer",
        &[
            "nearpm",
            "nearpm-c",
            "nearpm-driver",
            "nearpm-interface",
            "nearpm-subjects",
            "nearpm-tier",
            "nearpm-workloads",
        ],
    ),
    // What tests of several packages share.
    ("nearpm-subjects", &["nearpm"]),
    ("nearpm-pmemobj-programs", &["nearpm"]),
    ("nearpm-bitstreams", &["nearpm-hdl"]),
    ("nearpm-proofs", &["nearpm-hdl"]),
    ("nearpm-pmemobj", &["nearpm", "nearpm-interface", "nearpm-place"]),
    ("nearpm-cdoc", &[]),
    // The libraries for programs with a simulated card in them: the ordinary ones have none.
    (
        "nearpm-plug",
        &[
            "nearpm",
            "nearpm-driver",
            "nearpm-firmware",
            "nearpm-interface",
            "nearpm-newfile",
            "nearpm-place",
            "nearpm-sim",
        ],
    ),
    ("nearpm-c-card", &["nearpm-c", "nearpm-plug"]),
    ("nearpm-pmemobj-card", &["nearpm-plug", "nearpm-pmemobj"]),
    ("nearpm-bench", &["nearpm-statistics", "nearpm-text"]),
    ("nearpm-stores", &["nearpm", "nearpm-statistics"]),
    // Programs of GPUs: below the library's formats, and of nothing that simulates hardware.
    ("nearpm-ptx", &[]),
    ("nearpm-gpu", &["nearpm", "nearpm-interface", "nearpm-newfile", "nearpm-ptx"]),
    ("nearpm-gpm", &["nearpm-gpu", "nearpm-interface"]),
    ("nearpm-gpmbench", &["nearpm-gpm", "nearpm-gpu", "nearpm-interface", "nearpm-ptx", "nearpm-statistics"]),
    // The persistency model of GPUs; the form of litmus tests is that of the card's model.
    ("nearpm-sbrp", &["nearpm-ppo", "nearpm-ptx"]),
    ("nearpm-gphash", &["nearpm-gpm", "nearpm-gpu", "nearpm-interface"]),
    ("nearpm-gpm-c", &["nearpm-gphash", "nearpm-gpm", "nearpm-gpu"]),
    // What is measured is told as the other programs of a GPU tell it.
    (
        "nearpm-gphashbench",
        &["nearpm-gphash", "nearpm-gpmbench", "nearpm-gpu", "nearpm-statistics", "nearpm-workloads"],
    ),
    ("nearpm-gpusim", &["nearpm-ptx"]),
    ("nearpm-sbrpbench", &["nearpm-gpusim", "nearpm-ptx", "nearpm-statistics"]),
    ("nearpm-mutants", &[]),
    ("nearpm-shape", &[]),
    ("nearpm-verification", &["nearpm-proofs"]),
    ("nearpm-ycsb", &["nearpm-workloads"]),
    ("nearpm-gvr", &["nearpm", "nearpm-newfile"]),
    ("nearpm-serve", &["nearpm", "nearpm-ycsb"]),
    // What is measured on a processor is told with the machine, as the comparison with PMDK is.
    (
        "nearpm-evaluation",
        &[
            "nearpm-interface",
            "nearpm-firmware",
            "nearpm-driver",
            "nearpm",
            "nearpm-sim",
            "nearpm-workloads",
            "nearpm-bench",
            "nearpm-statistics",
            "nearpm-text",
        ],
    ),
    (
        "nearpm-cli",
        &[
            "nearpm-interface",
            "nearpm-firmware",
            "nearpm-address",
            "nearpm-driver",
            "nearpm",
            "nearpm-hdl",
            "nearpm-sim",
            "nearpm-cards",
            "nearpm-cuts",
            "nearpm-statistics",
            "nearpm-text",
            "nearpm-workloads",
            "nearpm-bench",
            "nearpm-serve",
            "nearpm-ycsb",
            "nearpm-evaluation",
            "nearpm-broker",
            "nearpm-gvr",
            "nearpm-gpmbench",
            "nearpm-sbrp",
            "nearpm-gphashbench",
            "nearpm-sbrpbench",
        ],
    ),
    ("nearpm-endpoint", &["nearpm-interface", "nearpm-driver"]),
    ("nearpm-broker", &["nearpm-interface", "nearpm-driver", "nearpm-endpoint"]),
    // The simulated card as a process.
    (
        "nearpm-simcard",
        &["nearpm", "nearpm-cards", "nearpm-endpoint", "nearpm-interface", "nearpm-newfile", "nearpm-sim"],
    ),
    // The guest test runs the card and the command line as programs.
    ("nearpm-guest", &["nearpm-driver", "nearpm", "nearpm-firmware", "nearpm-interface", "nearpm-workloads"]),
    (
        "nearpm-tests",
        &[
            "nearpm-interface",
            "nearpm-firmware",
            "nearpm-driver",
            "nearpm",
            "nearpm-hdl",
            "nearpm-sim",
            "nearpm-workloads",
            "nearpm-verilate",
            "nearpm-ppo",
            "nearpm-statistics",
            "nearpm-tier",
        ],
    ),
];

/// Crates of the workspace with their direct workspace dependencies (not those for tests).
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let names: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    packages
        .iter()
        .map(|p| {
            let used = p["dependencies"]
                .as_array()
                .expect("a list of dependencies")
                .iter()
                .filter(|d| d["kind"].as_str() != Some("dev"))
                .filter_map(|d| d["name"].as_str())
                .filter(|n| names.contains(n))
                .map(str::to_string)
                .collect();
            (p["name"].as_str().expect("a name").to_string(), used)
        })
        .collect()
}

/// Breaches of [`MAY_USE`] in a dependency table.
fn breaches(table: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut found = Vec::new();
    for (name, used) in table {
        let Some(may) = allowed.get(name.as_str()) else {
            found.push(format!("{name} has no place in the table of dependencies"));
            continue;
        };
        found.extend(used.iter().filter(|u| !may.contains(&u.as_str())).map(|u| format!("{name} must not use {u}")));
    }
    found
}

#[test]
fn dependencies_point_one_way() {
    assert_eq!(breaches(&dependencies()), Vec::<String>::new());
}

#[test]
fn a_planted_breach_is_found() {
    let mut table = dependencies();
    table.get_mut("nearpm").expect("the library").insert("nearpm-sim".into());
    assert_eq!(breaches(&table), ["nearpm must not use nearpm-sim"]);
}

/// Files that git has, by their paths from the workspace's root, which is given with them.
fn tracked() -> (&'static Path, Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace");
    let output = Command::new("git").args(["ls-files"]).current_dir(root).output().expect("git runs");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    (root, String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn nothing_lies_in_the_tree_that_a_build_makes() {
    let made = |f: &&String| {
        let suffix = Path::new(f).extension().and_then(|e| e.to_str()).unwrap_or_default();
        ["vcd", "fst", "bak", "orig", "swp", "log", "o", "so", "bit"].contains(&suffix) || f.starts_with("target/")
    };
    assert_eq!(tracked().1.iter().filter(made).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Columns that a comment has at most. The width of code is rustfmt's, `rustfmt.toml`.
const COLUMNS: usize = 100;

/// What begins a comment in a file of this name; empty where nobody counts.
fn marks(file: &str) -> &'static [&'static str] {
    match Path::new(file).extension().and_then(|suffix| suffix.to_str()) {
        Some("rs") => &["//"],
        Some("c" | "h" | "cc" | "cpp" | "cu" | "cuh") => &["//", "/*", "* "],
        Some("sh" | "py" | "toml" | "tcl") => &["# "],
        None if ["x", "link", "install"].contains(&file.rsplit('/').next().unwrap_or_default()) => &["# "],
        _ => &[],
    }
}

/// Numbers of the lines, from 1, that are a comment alone and wider than [`COLUMNS`]. A row of a
/// table and what stands between fences cannot be broken, and is not counted; nor are long strings,
/// and a file that a program has written.
fn wide_comments(file: &str, text: &str) -> Vec<usize> {
    if marks(file).is_empty() || text.lines().take(4).any(|line| line.contains("Do not edit")) {
        return Vec::new();
    }
    let (mut is_code, mut is_string) = (false, false);
    let is_wide = |line: &str| {
        // Programs in other languages, which tests and builders have as strings.
        is_string = match is_string {
            true => !line.contains("\"#"),
            false => line.rsplit_once("r#\"").is_some_and(|(_, rest)| !rest.contains("\"#")),
        };
        if is_string {
            return false;
        }
        let trimmed = line.trim_start();
        if !marks(file).iter().any(|mark| trimmed.starts_with(mark)) {
            is_code = false;
            return false;
        }
        let inside = trimmed.trim_start_matches(['/', '!', '#', '*']).trim_start();
        let is_fence = inside.starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code && !inside.starts_with("| ") && line.chars().count() > COLUMNS
    };
    let wide: Vec<bool> = text.lines().map(is_wide).collect();
    (1..).zip(wide).filter_map(|(number, wide)| wide.then_some(number)).collect()
}

#[test]
fn comments_are_narrow_enough_to_be_read() {
    let (root, files) = tracked();
    let mut wide = Vec::new();
    let mut read = 0;
    for file in files.iter().filter(|file| !marks(file).is_empty()) {
        // What was taken away and not committed yet is still in git's list.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        read += 1;
        wide.extend(wide_comments(file, &text).into_iter().map(|number| format!("{file}:{number}")));
    }
    assert!(read > 500, "{read} files");
    assert!(wide.is_empty(), "comments of more than {COLUMNS} columns: {wide:#?}");
}

#[test]
fn a_planted_wide_comment_is_found() {
    let wide = "w".repeat(COLUMNS - 3);
    let comments = format!("/// {wide}\nlet a = 1; // {wide}\n    //! {wide}\n// {}\n", &wide[1..]);
    assert_eq!(wide_comments("a/src/lib.rs", &comments), [1, 3]);
    assert_eq!(wide_comments("a/README.md", &comments), Vec::<usize>::new());
    let kept = format!("/// | {wide} |\n/// ```text\n/// {wide}\n/// ```\n/// {wide}\n");
    assert_eq!(wide_comments("a.rs", &kept), [5]);
    let string = format!("let a = r#\"\n// {wide}1\n\"#;\n/// {wide}\nlet b = r#\"b\"#;\n/// {wide}\n");
    assert_eq!(wide_comments("a.rs", &string), [4, 6]);
    assert_eq!(wide_comments("x", &format!("#!/bin/{wide}\n# {wide}\n#{wide}b\n")), Vec::<usize>::new());
    assert_eq!(wide_comments("x", &format!("# {wide}12\n")), [1]);
    assert_eq!(wide_comments("a.c", &format!("/* {wide}1\n * {wide}2 */\n")), [1, 2]);
    assert_eq!(wide_comments("a.h", &format!("/* Made. Do not edit. */\n// {wide}12\n")), Vec::<usize>::new());
}
