//! The C programs: with the floor, with a faulty library, and with PMDK where it is installed.

use std::fs;
use std::path::Path;

use nearpm_bench::case::{Case, MAPS, Selection, groups};
use nearpm_bench::count::{Counts, Method};
use nearpm_bench::library::{Library, Persistence, Rig};
use nearpm_bench::machine;
use nearpm_bench::programs::{Program, Programs, compile, headers_present};
use tempfile::TempDir;

/// Fences and lines of an insertion with PMDK 1.12.1. The lines are those of PMDK's own examples;
/// docs/pmdk-benchmark.md says how their fences were counted, and why fewer are executed.
const PMDK_COUNTS: [(&str, f64, f64); 4] =
    [("btree", 7.5, 24.6), ("rbtree", 18.1, 29.9), ("skiplist", 8.7, 16.3), ("hashmap", 12.8, 24.1)];

/// Small cases of single calls, of every kind.
fn small_calls() -> Vec<Case> {
    groups(&[Selection::Calls], &[300]).concat()
}

/// Says that a test is not tried. Where everything is installed, by the word of whoever runs the
/// tests, that is a failure.
fn skip(what: &str) {
    assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "{what}, and was to be installed");
    eprintln!("SKIPPED: {what}");
}

/// The programs, or `None` where they cannot be built because PMDK's headers are missing.
fn programs() -> Option<Programs> {
    if !headers_present() {
        skip("libpmemobj.h is not installed (libpmemobj-dev)");
        return None;
    }
    Some(Programs::build().expect("the programs build"))
}

fn rig<'a>(programs: &'a Programs, pools: &'a Path) -> Rig<'a> {
    Rig { programs, pools, persistence: Persistence::Instructions }
}

/// A small case of every kind.
fn small_cases() -> Vec<Case> {
    let maps = MAPS.iter().flat_map(|map| {
        let case = Case::map(map, 700);
        [case.clone(), case.clone().on_threads(2), case.in_batches(64)]
    });
    let adds = [(0, 8), (1, 8), (16, 64), (3, 1 << 20)].map(|(adds, bytes)| Case::adds(adds, bytes, 20));
    let allocs = ["atomic", "tx"].into_iter().flat_map(|variant| {
        [8, 100, 64 << 10]
            .map(|bytes| Case::alloc(variant, bytes, 50))
            .into_iter()
            .flat_map(|case| [case.clone(), case.on_threads(2)])
    });
    let persists = [("persist", 64), ("persist", 4 << 10), ("memcpy", 1 << 10), ("memcpy", 64 << 10), ("memset", 100)];
    let persists = persists.map(|(variant, bytes)| Case::persists(variant, bytes, 50));
    maps.chain(adds).chain(allocs).chain(persists).collect()
}

#[test]
fn every_program_verifies_its_result_with_the_floor() {
    let Some(programs) = programs() else { return };
    let pools = machine::memory_folder().expect("a folder in memory");
    let rig = rig(&programs, &pools);
    let floor = Library::in_folder(&programs.floor()).expect("the floor");
    for case in small_cases() {
        let timing = rig.time(&floor, &case).expect("the case runs");
        assert!(timing.wall > 0.0 && timing.processor > 0.0, "{}: {timing:?}", case.title());
    }
    for map in MAPS {
        let counts = rig.count(&floor, &Case::map(map, 100), Method::Breakpoints).expect("the case runs");
        assert!(counts.is_none_or(|counts| counts == Counts::default()), "the floor persists: {counts:?}");
    }
}

/// The floor with a fault in the place of some of its text, in a folder of its own.
fn floor_with(text: &str, fault: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let floor = include_str!("../floor/floor.c");
    assert!(floor.contains(text), "the floor does not have \"{text}\"");
    fs::write(folder.path().join("floor.c"), floor.replace(text, fault)).expect("the source is written");
    compile(folder.path(), "libpmemobj.so.1", &["-shared", "-fPIC", "floor.c"]).expect("it builds");
    folder
}

#[test]
fn what_a_faulty_library_does_is_no_measurement() {
    let Some(programs) = programs() else { return };
    let pools = machine::memory_folder().expect("a folder in memory");
    let rig = rig(&programs, &pools);

    let gives_memory_twice = floor_with("chunk_at += bytes;", "chunk_at += bytes / 2;");
    let library = Library::in_folder(gives_memory_twice.path()).expect("a library");
    for case in
        small_cases().iter().filter(|case| matches!(case.program, Program::Maps | Program::Alloc) && case.bytes < 1024)
    {
        assert!(rig.time(&library, case).is_err(), "{}", case.title());
    }

    let keeps_what_was_released = floor_with("*place = OID_NULL;", "");
    let library = Library::in_folder(keeps_what_was_released.path()).expect("a library");
    let error = rig.time(&library, &Case::alloc("atomic", 8, 5)).expect_err("the fault is seen");
    assert!(format!("{error:#}").contains("pointer is not null"), "{error:#}");

    // What the loader falls back on must not pass for the library that was meant.
    let none = tempfile::tempdir().expect("a folder");
    assert!(Library::in_folder(none.path()).is_err(), "there is no library");
    fs::write(none.path().join("libpmemobj.so.1"), "no library").expect("a file is written");
    let library = Library::in_folder(none.path()).expect("a file of that name");
    assert!(rig.time(&library, &Case::adds(0, 8, 1)).is_err());
}

/// The floor has none of the single calls: PMDK itself has to pass what they check.
#[test]
fn single_calls_verify_their_results_with_pmdk() {
    let Some(programs) = programs() else { return };
    let pools = machine::memory_folder().expect("a folder in memory");
    let rig = rig(&programs, &pools);
    let Ok(pmdk) = Library::installed(&rig) else {
        return skip("libpmemobj1 is not installed");
    };
    for case in small_calls() {
        let timing = rig.time(&pmdk, &case).unwrap_or_else(|error| panic!("{}: {error:#}", case.title()));
        assert!(timing.wall > 0.0, "{}: {timing:?}", case.title());
    }
}

/// Each step of a session is checked and timed, and a session without its last step is no
/// measurement of one.
#[test]
fn a_session_verifies_each_of_its_steps_with_pmdk() {
    let Some(programs) = programs() else { return };
    let pools = machine::memory_folder().expect("a folder in memory");
    let rig = rig(&programs, &pools);
    let Ok(pmdk) = Library::installed(&rig) else {
        return skip("libpmemobj1 is not installed");
    };
    // More than the places that the shortest operations take in turn.
    let steps = Case::session(1500);
    let timings = rig.time_run(&pmdk, &steps).expect("the session runs");
    assert_eq!(timings.len(), steps.len());
    for (step, timing) in steps.iter().zip(timings) {
        assert!(timing.wall > 0.0, "{}: {timing:?}", step.title());
    }
    // Objects of one step do not stand in the way of the next, whichever it is.
    let backwards: Vec<Case> = steps.iter().filter(|step| step.variant != "foreach").rev().cloned().collect();
    rig.time_run(&pmdk, &backwards).expect("the steps run in another order");
}

/// Faults of the program of single calls, as if the library had not done its work: the kind of
/// call, a text, what stands there instead, and what the program says.
const FAULTS: [(&str, &str, &str, &str); 18] = [
    (
        "zalloc",
        "pmemobj_zalloc(calls->pool, &calls->root->object, calls->options->bytes, TYPE_OBJECT)",
        "pmemobj_alloc(calls->pool, &calls->root->object, calls->options->bytes, TYPE_OBJECT, NULL, NULL)",
        "a zeroed object",
    ),
    (
        "zalloc",
        "        zalloc_one(calls);\n        pmemobj_free(&calls->root->object);\n",
        "        zalloc_one(calls);\n",
        "objects, not 0",
    ),
    (
        "realloc",
        "        must(pmemobj_realloc(",
        "        if (op > calls->options->ops)\n            must(pmemobj_realloc(",
        "shorter",
    ),
    ("reserve", "        must(pmemobj_publish(calls->pool, actions, 3));\n", "", "not the last one"),
    ("set-value", "        must(pmemobj_publish(calls->pool, actions, WORDS));\n", "", "not what was published"),
    (
        "list",
        "        must(POBJ_LIST_REMOVE_FREE(calls->pool, &calls->root->list, POBJ_LIST_FIRST(&calls->root->list), links));\n",
        "",
        "other elements",
    ),
    (
        "tx-memcpy",
        "        TX_MEMCPY(place(calls, op), calls->source + op % 251 * calls->options->bytes, calls->options->bytes);\n",
        "        (void)op;\n",
        "a place",
    ),
    (
        "abort",
        "static void abort_one(struct calls *calls, uint64_t op)\n{\n    TX_BEGIN(calls->pool) {\n        pmemobj_tx_add_range_direct(place(calls, op), calls->options->bytes);\n",
        "static void abort_one(struct calls *calls, uint64_t op)\n{\n    TX_BEGIN(calls->pool) {\n",
        "what was taken back",
    ),
    ("abort", "        pmemobj_tx_abort(ECANCELED);\n", "", "was committed"),
    ("tx-lock", "        calls->root->counter++;\n", "", "the counter"),
    (
        "alloc",
        "        alloc_one(calls);\n        pmemobj_free(&calls->root->object);\n",
        "        alloc_one(calls);\n",
        "objects, not 0",
    ),
    (
        "tx-alloc",
        "        tx_free_one(calls, tx_alloc_one(calls));\n",
        "        tx_alloc_one(calls);\n",
        "objects, not 0",
    ),
    (
        "publish",
        "        must(pmemobj_publish(calls->pool, &action, 1));\n        if (op + 1 < calls->options->ops)\n",
        "        if (op > calls->options->ops)\n",
        "objects, not 1",
    ),
    ("persist", "        memset(place(calls, op), filling(op), changed);\n", "        (void)changed;\n", "a place"),
    (
        "memcpy",
        "        pmemobj_memcpy_persist(calls->pool, place(calls, op), calls->source + op % SOURCES * bytes, bytes);\n",
        "        (void)bytes;\n",
        "a place",
    ),
    (
        "increment",
        "        ++*(uint64_t *)place(calls, op);\n        pmemobj_persist(",
        "        pmemobj_persist(",
        "incremented 0 times",
    ),
    (
        "memset",
        "        pmemobj_memset_persist(calls->pool, place(calls, op), filling(op), calls->options->bytes);\n",
        "        (void)op;\n",
        "a place",
    ),
    (
        "add",
        "        memset(place(calls, op), filling(op), calls->options->bytes);\n    } TX_ONABORT {\n",
        "    } TX_ONABORT {\n",
        "a place",
    ),
];

#[test]
fn single_calls_that_did_not_do_their_work_are_no_measurement() {
    if !headers_present() {
        return skip("libpmemobj.h is not installed (libpmemobj-dev)");
    }
    let pools = machine::memory_folder().expect("a folder in memory");
    let folder = tempfile::tempdir().expect("a folder");
    let programs = Programs::build_in(folder.path()).expect("the programs build");
    let rig = rig(&programs, &pools);
    let Ok(pmdk) = Library::installed(&rig) else {
        return skip("libpmemobj1 is not installed");
    };
    let source = include_str!("../programs/calls.c");
    for (kind, text, fault, says) in FAULTS {
        assert_eq!(source.matches(text).count(), 1, "{kind}: \"{text}\"");
        fs::write(folder.path().join("calls.c"), source.replace(text, fault)).expect("the source is written");
        let program = ["calls.c", "common.c", "pool.c", "floor/libpmemobj.so.1"];
        compile(folder.path(), Program::Calls.name(), &program).expect("it builds");
        let steps = Case::session(300).into_iter().map(|step| Case::calls(&step.variant, step.bytes, step.ops));
        let case =
            small_calls().into_iter().chain(steps).find(|case| case.variant == kind).expect("there is such a case");
        let error = rig.time(&pmdk, &case).expect_err("the fault is seen");
        assert!(format!("{error:#}").contains(says), "{kind}: {error:#}");
        // A session checks the same of each of its steps.
        let step = Case { program: Program::Session, ..case };
        let error = rig.time(&pmdk, &step).expect_err("the fault is seen in a session, too");
        assert!(format!("{error:#}").contains(says), "{kind} in a session: {error:#}");
    }
}

#[test]
fn with_pmdk_the_maps_have_the_fences_and_lines_of_its_examples() {
    let Some(programs) = programs() else { return };
    let pools = machine::memory_folder().expect("a folder in memory");
    let rig = rig(&programs, &pools);
    let Ok(pmdk) = Library::installed(&rig) else {
        return skip("libpmemobj1 is not installed");
    };
    for (map, fences, lines) in PMDK_COUNTS {
        let case = Case::map(map, 625);
        let Some(counts) = rig.count(&pmdk, &case, Method::Breakpoints).expect("the case runs") else {
            return eprintln!("SKIPPED: this system does not let a process trace its children");
        };
        let near = |what: &str, counted: u64, wanted: f64| {
            let found = counted as f64 / case.ops as f64;
            assert!((found / wanted - 1.0).abs() < 0.1, "{map}: {found:.2} {what}, not {wanted}");
        };
        near("fences", counts.fences, fences);
        near("lines", counts.lines(), lines);
    }
    // Steps are slow; a few operations must do to see that the other method misses nothing in PMDK.
    let few = Case::map("rbtree", 4);
    let steps = rig.count(&pmdk, &few, Method::Steps).expect("the case runs");
    assert_eq!(steps, rig.count(&pmdk, &few, Method::Breakpoints).expect("the case runs"));
}

/// What was built in a folder runs from there as what was built just now, and a folder that lacks a
/// program, or has those of other sources, is refused by its name.
#[test]
fn programs_that_were_built_before_are_taken_from_their_folder() {
    if programs().is_none() {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    drop(Programs::build_in(folder.path()).expect("the programs build"));
    let built = Programs::built_in(folder.path()).expect("they are there");
    let pools = machine::memory_folder().expect("a folder in memory");
    let floor = Library::in_folder(&built.floor()).expect("the floor");
    rig(&built, &pools).time(&floor, &Case::adds(1, 8, 20)).expect("it runs");
    fs::remove_file(built.path(Program::Alloc)).expect("it is there");
    let error = Programs::built_in(folder.path()).err().expect("one is missing").to_string();
    assert!(error.contains("alloc"), "{error}");
    fs::write(folder.path().join("maps.c"), "// another version\n").expect("it can be written");
    let error = Programs::built_in(folder.path()).err().expect("another source").to_string();
    assert!(error.contains("maps.c") && error.contains("build them again"), "{error}");
}
