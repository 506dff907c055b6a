//! Instructions of the map benchmark's operations: checks that were added since must not make them
//! dearer.

use nearpm_pmemobj_programs::Program;

/// Operations of two runs of each map: the difference is that of so many operations, without the
/// start and the end.
const OPERATIONS: [u64; 2] = [2000, 6000];

/// Instructions of an operation, that of the program included, before transactions, pools and their
/// files were checked as they are now: at commit 7553774, with rustc 1.95.0 and GCC 12.2 on a
/// processor with AVX2. Two runs differ by one at most.
const FORMERLY: [(&str, u64); 4] = [("btree", 7925), ("rbtree", 14484), ("skiplist", 40944), ("hashmap", 11738)];

/// Thousandths that an operation may have more.
const MORE: u64 = 20;

#[test]
fn operations_of_maps_have_hardly_more_instructions_than_before_their_checks() {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: the numbers are those of optimised code (--release)");
        return;
    }
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        return nearpm_pmemobj_programs::skip("valgrind is not installed (Debian: valgrind)");
    }
    let Some(program) = Program::maps() else { return };
    let of_operation = |map: &str| {
        let of_run = |operations: u64| {
            program.instructions(&["--variant", map, "--pool-mib", "64", "--ops", &operations.to_string()])
        };
        let [few, many] = OPERATIONS.map(of_run);
        (many - few) / (OPERATIONS[1] - OPERATIONS[0])
    };
    let now: Vec<(&str, u64, u64)> = FORMERLY.map(|(map, former)| (map, former, of_operation(map))).into();
    eprintln!("instructions of an operation, formerly and now: {now:?}");
    let dearer = now.iter().filter(|&&(_, former, now)| now * 1000 > former * (1000 + MORE)).count();
    assert_eq!(dearer, 0, "dearer than at commit 7553774 by more than is allowed: {now:?}");
}
