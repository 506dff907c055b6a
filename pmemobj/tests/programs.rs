//! C programs, compiled against PMDK's own headers, run on this library in both modes, and on PMDK where that is installed: it is the
//! oracle for what they check.

mod support;

use support::{Library, Program};

/// Runs a program of `tests/c` on PMDK and on this library.
fn run(name: &str, variables: &[(&str, &str)]) {
    if let Some(program) = Program::compile(name) {
        run_everywhere(&program, variables);
    }
}

fn run_everywhere(program: &Program, variables: &[(&str, &str)]) {
    for library in [Library::Pmdk, Library::WorkingCopy, Library::InPlace] {
        program.run(library, variables);
    }
}

/// On a file that is no persistent memory each commit waits for the medium: programs with few of them show that it works.
#[test]
fn ordinary_files() {
    for name in ["pool", "stages", "memory"] {
        let Some(program) = Program::compile(name) else { return };
        program.run(Library::OrdinaryFile, &[]);
    }
}

macro_rules! programs {
    ($( $(#[doc = $doc:literal])* $name:ident ),* $(,)?) => { $(
        $(#[doc = $doc])*
        #[test]
        fn $name() {
            run(stringify!($name), &[]);
        }
    )* };
}

programs! {
    /// Create, open, check, root, iteration, addresses.
    pool,
    /// Stages, nesting, aborts by longjmp, callbacks, errors.
    stages,
    /// Ranges, objects, publications and logs of transactions.
    work,
    /// Allocation outside of transactions, reserve and publish.
    atomic,
    /// Atomic lists.
    list,
    /// Locks and values of one run.
    lock,
    /// Copies and persists, also of a process that dies.
    memory,
    /// `pmemobj_ctl_*`.
    ctl,
    /// Processes that are killed between and in transactions.
    crash,
    /// What has gone wrong in PMDK.
    defects,
    /// Several threads at once.
    threads,
    /// Pools without room: errors, and objects that are freed all the same.
    full,
    /// Senseless arguments, and calls out of their stage.
    misuse,
    /// Many threads in a small pool.
    small_pool,
    /// What calls ask the system for.
    system_calls,
}

/// The maps of the comparison with PMDK, in processes that are killed.
#[test]
fn killed_maps() {
    let maps = ["btree.c", "rbtree.c", "skiplist.c", "hashmap.c", "common.c"];
    if let Some(program) = Program::compile_with("maps_killed", &maps) {
        run_everywhere(&program, &[]);
    }
}

/// The environment configures: values of the process, of the pool, and an allocation class.
#[test]
fn configuration() {
    let queries = "prefault.at_create=1;tx.cache.size=65536;heap.alloc_class.150.desc=5000,0,100,compact;";
    run("ctl", &[("PMEMOBJ_CONF", queries)]);
}

/// Senseless values of this library's own variables are refused, not ignored.
#[test]
fn wrong_values_are_refused() {
    let Some(program) = Program::compile("pool") else { return };
    for (name, value) in [("NEARPM_MODE", "sideways"), ("NEARPM_SURVIVES", "everything"), ("PMEMOBJ_CONF", "a=1;")] {
        let output = program.output(Library::WorkingCopy, &[(name, value)]);
        assert!(!output.status.success(), "{name}={value} was accepted");
    }
}

/// This library has no simulated card, and says so instead of making a pool in a file.
#[test]
fn a_card_is_refused() {
    let Some(program) = Program::compile("pool") else { return };
    let output = program.output(Library::WorkingCopy, &[("NEARPM_CARD", "/dev/shm/no-card")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("has no simulated card"), "{text}");
}

/// With `NEARPM_STATISTICS=1` closing a pool prints its counters.
#[test]
fn statistics_are_printed() {
    let Some(program) = Program::compile("work") else { return };
    let output = program.output(Library::WorkingCopy, &[("NEARPM_STATISTICS", "1")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("transactions: ") && text.contains("fences: "), "{text}");
}

/// With `NEARPM_LINT=1` each fault of a program is told of, and nothing else.
#[test]
fn the_lint_tells_of_faults() {
    let Some(program) = Program::compile("lint") else { return };
    let faults = [
        ("none", None),
        ("unpersisted", Some("stored outside of transactions and never made durable")),
        ("unlogged", Some("changed by a transaction that had not added it")),
        ("redundant", Some("made durable although it was")),
        ("unused", Some("added to a transaction that did not change it")),
    ];
    for library in [Library::WorkingCopy, Library::InPlace] {
        for (fault, text) in faults {
            for (on, told) in [("1", usize::from(text.is_some())), ("0", 0)] {
                let output = program.output(library, &[("NEARPM_LINT", on), ("LINT_FAULT", fault)]);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{fault}: {said}");
                let lines: Vec<_> = said.lines().filter(|line| line.starts_with("nearpm lint: ")).collect();
                assert_eq!(lines.len(), told, "{fault} on {library:?}: {said}");
                assert!(lines.iter().all(|line| line.ends_with(text.unwrap_or_default())), "{said}");
            }
        }
    }
}
