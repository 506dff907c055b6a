//! The C interface: the header says what the library exports, and a C program works with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nearpm::capi::Code;

const HEADER: &str = include_str!("../include/nearpm.h");
const SOURCE: &str = include_str!("../src/capi.rs");

fn functions(text: &str, start: &str) -> Vec<String> {
    let mut names: Vec<String> = text
        .match_indices(start)
        .filter_map(|(at, _)| {
            let rest = &text[at..];
            let name = rest.find("NearPM_")?;
            let end = rest[name..].find('(')?;
            Some(rest[name..name + end].to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let exported = functions(SOURCE, "extern \"C\" fn ");
    let code: String = HEADER
        .lines()
        .filter(|l| l.ends_with(");") || l.contains("NearPM_redolog_create("))
        .collect::<Vec<_>>()
        .join("\n");
    let declared: Vec<String> = functions(&code, "NearPM_");
    assert_eq!(exported, declared);
    assert!(exported.len() > 15);
}

#[test]
fn the_header_has_the_error_codes_of_the_library() {
    for (code, name, meaning) in Code::ALL {
        let start = format!("NEARPM_{name} = {},", *code as i32);
        let line =
            HEADER.lines().find(|l| l.trim().starts_with(&start)).unwrap_or_else(|| panic!("{start} is missing"));
        assert!(line.contains(meaning.trim()), "{line}");
    }
    assert_eq!(HEADER.matches("    NEARPM_").count(), Code::ALL.len());
}

/// Compiles the example against the library that stands beside this test.
fn compile(folder: &Path) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let program = folder.join("counter");
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_DEFAULT_SOURCE"])
        .arg("-I")
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("examples/counter.c"))
        .arg("-L")
        .arg(&libraries)
        .arg("-lnearpm")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler is installed as cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, pool: &Path, crash: bool) -> Output {
    let mut command = Command::new(program);
    // cargo's own path may lead to a library of an earlier build.
    command.arg(pool).env_remove("LD_LIBRARY_PATH");
    if crash {
        command.arg("crash");
    }
    command.output().unwrap()
}

#[test]
fn a_c_program_keeps_its_counters_equal_whenever_it_dies() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path());
    let pool = folder.path().join("c.pool");
    for round in 1..=4 {
        let died = run(&program, &pool, true);
        assert_eq!(died.status.code(), Some(3), "{}", String::from_utf8_lossy(&died.stderr));
        let output = run(&program, &pool, false);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.trim(), format!("undo {round}, redo {round}, checkpoint {round}, shadow {round}"));
    }
}
