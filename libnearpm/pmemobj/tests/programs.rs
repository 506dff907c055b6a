//! C programs, compiled against PMDK's own headers, run on this library in both modes, and on PMDK
//! where that is installed: it is the oracle for what they check.

use nearpm_pmemobj_programs::{Library, MECHANISMS, Program};

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

/// On a file that is no persistent memory each commit waits for the medium: programs with few of
/// them show that it works.
#[test]
fn ordinary_files() {
    for name in ["pool", "stages", "memory"] {
        let Some(program) = Program::compile(name) else { return };
        program.run(Library::OrdinaryFile, &[]);
    }
}

/// Where neither a card nor persistent memory is: the processor carries the mechanisms out, and the
/// system's calls are the fences.
#[test]
fn ordinary_files_by_each_mechanism() {
    for name in ["pool", "stages", "work", "memory"] {
        let Some(program) = Program::compile(name) else { return };
        for mechanism in MECHANISMS {
            program.run(Library::OrdinaryFile, &[("NEARPM_MECHANISM", mechanism)]);
        }
    }
}

/// Pairs that the environment may ask for and that cannot be had are refused when a pool is made,
/// and nothing is left behind.
#[test]
fn what_cannot_be_had_together_is_refused() {
    let Some(program) = Program::compile("pool") else { return };
    let pairs = [
        ([("NEARPM_MODE", "in-place"), ("NEARPM_MECHANISM", "undo")], "use Mode::WorkingCopy"),
        ([("NEARPM_MODE", "in-place"), ("NEARPM_MECHANISM", "checkpoint")], "use Mode::WorkingCopy"),
        ([("NEARPM_MODE", "in-place"), ("NEARPM_MECHANISM", "shadow")], "use Mode::WorkingCopy"),
        ([("NEARPM_EXECUTOR", "card"), ("NEARPM_MECHANISM", "redo")], "card:NAME/POOL"),
        ([("NEARPM_EXECUTOR", "tape"), ("NEARPM_MECHANISM", "redo")], "auto, cpu or card"),
        ([("NEARPM_DURABILITY", "lazy"), ("NEARPM_MECHANISM", "redo")], "durable or asynchronous"),
    ];
    for (variables, remedy) in pairs {
        let folder = program.folder_for_pools(Library::OrdinaryFile);
        let output = program.start(Library::OrdinaryFile, &folder.path().join("pool"), &[], &variables);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(remedy), "{variables:?}: {text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{variables:?}");
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
    /// Pool sets.
    set,
    /// Objects that move, and identifiers that follow.
    defrag,
    /// Processes that get no more memory.
    no_memory,
    /// Children that have the pools of their parent.
    fork,
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

/// Every setting of PMDK's documentation is taken from the environment and from a file, with the
/// values that it names.
#[test]
fn all_settings_are_taken() {
    let Some(program) = Program::compile("settings") else { return };
    let settings = [
        "prefault.at_create=1",
        "prefault.at_open=n",
        "sds.at_create=0",
        "fallocate.at_create=0",
        "copy_on_write.at_open=0",
        "copy_on_write.at_open=1",
        "tx.debug.skip_expensive_checks=1",
        "tx.debug.verify_user_buffers=1",
        "tx.cache.size=0x10000",
        "tx.cache.threshold=16",
        "tx.post_commit.queue_depth=4",
        "heap.narenas.max=2000",
        "heap.thread.arena_id=1",
        "heap.arena.1.automatic=1",
        "heap.arenas_assignment_type=global",
        "heap.arenas_default_max=4",
        "heap.alloc_class.128.desc=500,0,1000,compact",
        "heap.alloc_class.new.desc=1500,0,100,none",
        "heap.size.granularity=4194304",
        "stats.enabled=both",
        "stats.enabled=1",
        "stats.enabled=disabled",
        "debug.heap.alloc_pattern=-1",
    ];
    let folder = tempfile::tempdir().expect("a folder for the file");
    let file = folder.path().join("settings");
    std::fs::write(&file, settings.join(" ; \n# and\n")).expect("the file is written");
    let all = settings.join(";");
    program.run(Library::WorkingCopy, &[("PMEMOBJ_CONF", &all)]);
    program.run(Library::WorkingCopy, &[("PMEMOBJ_CONF_FILE", file.to_str().expect("a path"))]);
    // PMDK writes behind the value of some of them, so that all at once damage its memory.
    settings.iter().for_each(|setting| program.run(Library::Pmdk, &[("PMEMOBJ_CONF", setting)]));
}

/// What is no setting, or no value of one, is refused as PMDK refuses it: no pool is made.
#[test]
fn other_settings_are_refused() {
    let Some(program) = Program::compile("settings") else { return };
    let settings = [
        "no.such=1",
        "fallocate.at_create=maybe",
        "prefault.at_create=true",
        "stats.enabled=all",
        "heap.size.granularity=5",
        "tx.cache.size=-1",
        "heap.narenas.max=900",
        "tx.post_commit.worker=1",
        "heap.arena.create=1",
        "heap.alloc_class.128.desc=500,0,1000",
        "heap.alloc_class.5.desc=500,0,1000,compact",
        "heap.alloc_class.255.desc=500,0,1000,compact",
        "heap.thread.arena_id=5000",
    ];
    for setting in settings {
        for library in [Library::Pmdk, Library::WorkingCopy] {
            let pools = program.folder_for_pools(library);
            let pool = pools.path().join("pool");
            let output = program.start(library, &pool, &[], &[("PMEMOBJ_CONF", setting)]);
            assert!(library == Library::Pmdk || !pool.exists(), "{setting} is refused, and the pool's file stays");
            // The program says why and ends: a signal refuses nothing.
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{setting} by {library:?}: {}\n{text}", output.status);
        }
    }
}

/// With `copy_on_write.at_open=1` nothing of what a program does reaches the pool's file.
#[test]
fn copies_on_write() {
    run("copy_on_write", &[("PMEMOBJ_CONF", "copy_on_write.at_open=1")]);
}

/// Valgrind's tools see the locks of pools: nothing is reported where they are used, and something
/// where one is left away.
#[test]
fn races_are_seen_by_tools() {
    let Some(program) = Program::compile("races") else { return };
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        return nearpm_pmemobj_programs::skip("valgrind is not installed (Debian: valgrind)");
    }
    for tool in ["helgrind", "drd"] {
        let sound = program.under_valgrind(tool, &[]);
        let text = String::from_utf8_lossy(&sound.stderr);
        assert!(sound.status.success(), "{tool}: {text}");
        // The status that the tool gives for what it found, and not that of a program that fails.
        let racing = program.under_valgrind(tool, &[("RACE", "1")]);
        assert_eq!(racing.status.code(), Some(9), "{tool}: {}", String::from_utf8_lossy(&racing.stderr));
    }
}

/// Senseless values of this library's own variables are refused, not ignored.
#[test]
fn wrong_values_are_refused() {
    let Some(program) = Program::compile("pool") else { return };
    for (name, value) in [("NEARPM_MODE", "sideways"), ("NEARPM_SURVIVES", "everything"), ("PMEMOBJ_CONF", "a=1;")] {
        let output = program.output(Library::WorkingCopy, &[(name, value)]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}={value}: {}\n{text}", output.status);
    }
}

/// This library has no simulated card, and says so instead of making a pool in a file.
#[test]
fn a_card_is_refused() {
    let Some(program) = Program::compile("pool") else { return };
    let output = program.output(Library::WorkingCopy, &[("NEARPM_CARD", "/dev/shm/no-card")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("has no simulated card"), "{}: {text}", output.status);
}

/// With `NEARPM_STATISTICS=1` closing a pool prints its counters, and the mode that it was opened
/// in.
#[test]
fn statistics_are_printed() {
    let Some(program) = Program::compile("work") else { return };
    for (library, mode) in [(Library::WorkingCopy, "working-copy"), (Library::InPlace, "in-place")] {
        let output = program.output(library, &[("NEARPM_STATISTICS", "1")]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("transactions: ") && text.contains("fences: "), "{text}");
        assert!(text.contains(&format!("libpmemobj: mode: {mode}\n")), "{text}");
    }
}

/// A pool that grows, by itself and when it is asked to; PMDK's grow only as directories.
#[test]
fn growth() {
    let Some(program) = Program::compile("growth") else { return };
    for library in [Library::WorkingCopy, Library::InPlace] {
        program.run(library, &[("NEARPM_GROWTH", "1M:96M")]);
    }
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
