//! Instructions of operations of the comparison with PMDK: checks that were added since must not
//! make maps dearer, and what allocations have more than they had does not grow.

use nearpm_pmemobj_programs::Program;

/// Operations of two runs of each map: the difference is that of so many operations, without the
/// start and the end.
const OPERATIONS: [u64; 2] = [2000, 6000];

/// Instructions of an operation, that of the program included, before transactions, pools and their
/// files were checked as they are now: at commit 7553774, with rustc 1.95.0 and GCC 12.2 on a
/// processor with AVX2. Two runs differ by one at most.
const FORMERLY: [(&str, u64); 4] = [("btree", 7925), ("rbtree", 14484), ("skiplist", 40944), ("hashmap", 11738)];

/// The same of an allocation and its release, by variant of `alloc.c` and size: at commit 7553774,
/// and what it has since (docs/pmdk-benchmark.md says why).
const PAIRS: [(&str, &str, u64, u64); 3] =
    [("atomic", "64", 7492, 8777), ("tx", "64", 6423, 7132), ("tx", "4096", 12_661, 8207)];

/// Thousandths that an operation may have more.
const MORE: u64 = 20;

/// Instructions of an operation of a program.
fn of_operation(program: &Program, arguments: &[&str]) -> u64 {
    let of_run = |operations: u64| {
        program.instructions(&[arguments, &["--pool-mib", "64", "--ops", &operations.to_string()]].concat())
    };
    let [few, many] = OPERATIONS.map(of_run);
    (many - few) / (OPERATIONS[1] - OPERATIONS[0])
}

/// Whether they cannot be counted here; says so.
fn is_not_counted() -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: the numbers are those of optimised code (--release)");
        return true;
    }
    let has_valgrind = std::process::Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        nearpm_pmemobj_programs::skip("valgrind is not installed (Debian: valgrind)");
    }
    !has_valgrind
}

#[test]
fn pairs_of_allocation_and_release_have_no_more_instructions_than_is_known() {
    if is_not_counted() {
        return;
    }
    let Some(program) = Program::pairs() else { return };
    let now = PAIRS.map(|(variant, bytes, former, known)| {
        let now = of_operation(&program, &["--variant", variant, "--bytes", bytes]);
        (variant, bytes, former, known, now)
    });
    eprintln!("instructions of a pair, formerly, known and now: {now:?}");
    let dearer = now.iter().filter(|&&(.., known, now)| now * 1000 > known * (1000 + MORE)).count();
    assert_eq!(dearer, 0, "dearer than is known by more than is allowed: {now:?}");
}

#[test]
fn operations_of_maps_have_hardly_more_instructions_than_before_their_checks() {
    if is_not_counted() {
        return;
    }
    let Some(program) = Program::maps() else { return };
    let now: Vec<(&str, u64, u64)> =
        FORMERLY.map(|(map, former)| (map, former, of_operation(&program, &["--variant", map]))).into();
    eprintln!("instructions of an operation, formerly and now: {now:?}");
    let dearer = now.iter().filter(|&&(_, former, now)| now * 1000 > former * (1000 + MORE)).count();
    assert_eq!(dearer, 0, "dearer than at commit 7553774 by more than is allowed: {now:?}");
}
