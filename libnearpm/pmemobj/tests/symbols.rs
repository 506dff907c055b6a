//! The shared library's symbols: those of PMDK's, under its version node, and the soname.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Exported symbols with their version and kind (`DF` function, `DO` object, `D` thread-local).
fn exported(library: &Path) -> BTreeSet<(String, String, String)> {
    let output = Command::new("objdump").arg("-T").arg(library).output().expect("objdump runs");
    assert!(output.status.success(), "objdump fails on {}", library.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let symbol = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "g", kind, section, _, version, name] = words[..] else { return None };
        (section != "*ABS*" && section != "*UND*").then(|| (name.to_owned(), version.to_owned(), kind.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

#[test]
fn the_list_is_what_is_exported() {
    let listed: BTreeSet<_> = include_str!("../symbols.txt").lines().map(str::to_owned).collect();
    let exported = exported(&nearpm_pmemobj_programs::library());
    assert!(exported.iter().all(|(_, version, _)| version == "LIBPMEMOBJ_1.0"), "{exported:?}");
    assert_eq!(exported.into_iter().map(|(name, ..)| name).collect::<BTreeSet<_>>(), listed);
    assert_eq!(listed.len(), 109);
}

#[test]
fn the_soname_is_that_of_pmdk() {
    let output =
        Command::new("objdump").arg("-p").arg(nearpm_pmemobj_programs::library()).output().expect("objdump runs");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["SONAME", "libpmemobj.so.1"])), "{text}");
}

/// Executables have a copy of this variable, so that the library must ask the loader where it is.
#[test]
fn the_variable_that_programs_copy_is_reached_by_the_global_offset_table() {
    let output =
        Command::new("objdump").arg("-R").arg(nearpm_pmemobj_programs::library()).output().expect("objdump runs");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|l| l.contains("GLOB_DAT") && l.contains("_pobj_cache_invalidate")), "{text}");
}

#[test]
fn pmdk_exports_the_same() {
    let Some(pmdk) = nearpm_pmemobj_programs::pmdk() else { return };
    assert_eq!(exported(&nearpm_pmemobj_programs::library()), exported(&pmdk));
}
