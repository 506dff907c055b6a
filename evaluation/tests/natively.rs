//! Programs on this processor, in files: what they leave, what is said of the place, and how they are measured beside each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nearpm::memory::{Flush, Memory, VolatileMemory};
use nearpm::{Mechanism, PoolOptions, Survives};
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::natively::{Files, NAME, groups, in_turn};
use nearpm_evaluation::place::{self, Place, Timing};
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::served::{EPOCH, Floor, RELEASED_TOUCHES, Served};
use nearpm_workloads::programs::{Inputs, Program};

/// Transactions: enough that an epoch ends.
const COUNT: usize = 2 * EPOCH + 2;

fn case(program: Program, inputs: Inputs, mechanism: Mechanism) -> Case {
    let case = Scope::TINY.case(NAME, program, mechanism, Configuration::Cpu);
    Case { inputs, count: COUNT, ..case }
}

/// Runs something in a place of this folder.
fn in_place<T>(folder: &Path, survives: Survives, run: impl FnOnce(&Place<'_>) -> T) -> T {
    let files = Files::at(folder).unwrap();
    let start = Instant::now();
    run(&Place {
        name: NAME,
        location: &|_| files.location(),
        now_ns: &|| start.elapsed().as_nanos() as u64,
        room: u64::MAX,
        units: 0,
        survives,
        is_prepared: true,
    })
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn all_nine_programs_run_with_every_mechanism_and_none_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let groups = groups(&Scope::TINY, &Program::ALL, &Mechanism::ALL, Some(COUNT));
    assert_eq!(groups.len(), 9 * 2);
    for group in &groups {
        let configurations: Vec<_> = group.iter().map(|case| (case.configuration, case.mechanism)).collect();
        let with = Mechanism::ALL.map(|mechanism| (Configuration::Cpu, mechanism));
        assert_eq!(configurations[0].0, Configuration::Bare);
        assert_eq!(configurations[1..], with);
        for case in group {
            let timing = in_place(folder.path(), Survives::AsPersistentMemory, |place| place::run(place, case));
            let timing = timing.unwrap_or_else(|e| panic!("{e:#}"));
            assert!(timing.ns_per_transaction > 0.0 && timing.processor_ns > 0.0, "{timing:?}");
            assert_eq!(timing.commands, 0, "{case}: there is no card");
            let is_bare = case.configuration == Configuration::Bare;
            assert_eq!(timing.fences == 0 && timing.lines == 0, is_bare, "{timing:?}");
            // Without epochs each commit has a fence of its own.
            let has_commits = !is_bare && !case.mechanism.has_epochs();
            assert!(!has_commits || timing.fences >= COUNT as u64, "{timing:?}");
        }
    }
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn epochs_end_by_the_rules_of_the_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let location = path.to_str().unwrap();
    for mechanism in [Mechanism::Checkpoint, Mechanism::Shadow] {
        for inputs in Inputs::ALL {
            let case = case(Program::Tpcc, inputs, mechanism);
            let program = case.program.make(&case.setup(case.count, 0));
            let options = PoolOptions::new().ring_bytes(4 << 20).survives(Survives::ProcessCrash);
            let mut served = Served::prepare(&case, program, &options, location, 32 << 20, 1 << 20).unwrap();
            while served.is_due() {
                served.step().unwrap();
            }
            assert_eq!(served.done(), COUNT);
            let (after, before) = (served.pool.statistics(), served.before);
            let epochs = after.epochs - before.epochs;
            let touches = match mechanism {
                Mechanism::Checkpoint => after.log_entries - before.log_entries,
                _ => after.shadow_pages - before.shadow_pages,
            };
            match inputs {
                Inputs::Corrected => assert_eq!(epochs, (COUNT / EPOCH) as u64, "{case}"),
                // The last ones end no epoch.
                Inputs::Released => {
                    assert!(epochs > (COUNT / EPOCH) as u64, "{case}: {epochs} epochs of {touches} first touches");
                    assert!(touches >= RELEASED_TOUCHES * epochs, "{case}: {epochs} epochs of {touches} first touches");
                }
            }
            served.check().unwrap();
            served.pool.close().unwrap();
            fs::remove_file(&path).unwrap();
        }
    }
}

/// A run whose pool or memory does not hold what the program's model says is an error.
#[test]
fn contents_that_differ_from_the_model_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let case = case(Program::Tatp, Inputs::Corrected, Mechanism::Undo);
    let program = || case.program.make(&case.setup(case.count, 0));
    let options = PoolOptions::new().ring_bytes(128 << 10).survives(Survives::ProcessCrash);
    let mut served = Served::prepare(&case, program(), &options, path.to_str().unwrap(), 8 << 20, 0).unwrap();
    while served.is_due() {
        served.step().unwrap();
    }
    served.check().unwrap();
    let (table, bytes) = served.pool.objects().unwrap()[0];
    assert!(bytes > 128, "it is the table of subscribers");
    served.pool.tx(|tx| tx.write(table + 64, &[0xff])).unwrap();
    let error = format!("{:#}", served.check().expect_err("a byte is another"));
    assert!(error.contains("does not hold what the model says"), "{error}");

    let memory = VolatileMemory::new(4 << 20);
    let mut floor = Floor::prepare(program(), memory).unwrap();
    while floor.is_due() {
        floor.apply().unwrap();
    }
    floor.check().unwrap();
    // The first object of bare memory.
    floor.memory().store(4096 + 64, &[0xff]);
    let error = format!("{:#}", floor.check().expect_err("a byte is another"));
    assert!(error.contains("does not hold what the model says"), "{error}");
}

#[test]
fn cases_are_run_in_turn_behind_a_round_that_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let group = groups(&Scope::TINY, &[Program::Tatp], &[Mechanism::Undo, Mechanism::Shadow], Some(16)).remove(0);
    let mut order = Vec::new();
    let tell = &mut |timing: &Timing| order.push((timing.case.configuration, timing.case.mechanism));
    let timings = in_place(folder.path(), Survives::ProcessCrash, |place| in_turn(place, &group, 3, tell));
    let timings = timings.unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(timings.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
    for (timings, case) in timings.iter().zip(&group) {
        assert!(timings.iter().all(|timing| timing.case == *case));
    }
    // Each round begins with another case.
    let of: Vec<_> = group.iter().map(|case| (case.configuration, case.mechanism)).collect();
    let expected: Vec<_> = [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2].into_iter().map(|number: usize| of[number]).collect();
    assert_eq!(order, expected);
}

#[test]
fn what_is_no_place_for_pools_is_refused_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| format!("{:#}", Files::at(path).err().expect("it is no place"));
    let taken = folder.path().join("taken");
    fs::write(&taken, "something").unwrap();
    assert!(refused(&taken).contains("is there already"), "{}", refused(&taken));
    assert!(refused(Path::new("/nowhere/at/all")).contains("there is no folder /nowhere/at"));
    assert!(refused(Path::new("card:a/b")).contains("--card"));
    // More than any file system has.
    let files = Files::at(folder.path()).unwrap();
    let error = format!("{:#}", files.try_out(1 << 54, Survives::ProcessCrash).expect_err("there is no room"));
    assert!(error.contains("not that many free") && error.contains(&folder.path().display().to_string()), "{error}");
    // Where the system lets nobody make a file.
    let system = Path::new("/sys/kernel");
    if system.is_dir() {
        let error = Files::at(system).unwrap().try_out(1 << 20, Survives::ProcessCrash).expect_err("nobody can");
        assert!(format!("{error:#}").contains("/sys/kernel cannot be written"), "{error:#}");
    }
    assert_eq!(files_in(folder.path()), [taken]);
}

#[test]
fn a_place_says_how_stores_become_durable_and_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path().to_owned(), folder.path().join("a.pool")] {
        let files = Files::at(&place).unwrap();
        assert_eq!(files.folder(), folder.path());
        assert_eq!(files.try_out(1 << 20, Survives::ProcessCrash).unwrap(), Flush::Never);
        assert_ne!(files.try_out(1 << 20, Survives::PowerCut).unwrap(), Flush::Never);
    }
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}

/// What a bench that was killed has left is removed by the next one; what is somebody else's is not.
#[test]
fn leftovers_are_removed_and_files_of_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    // Above what identifiers of processes can be.
    let left = folder.path().join(".unfinished-4294967295-bench.pool");
    let mine = folder.path().join("mine");
    fs::write(&left, "left").unwrap();
    fs::write(&mine, "mine").unwrap();
    let files = Files::at(folder.path()).unwrap();
    assert_eq!(files_in(folder.path()), std::slice::from_ref(&mine));
    // Somebody makes a file there at the last moment.
    let there = files.location();
    PoolOptions::new().create(&there, 1 << 20).unwrap().close().unwrap();
    for configuration in [Configuration::Bare, Configuration::Cpu] {
        let case = Case { configuration, ..case(Program::Tatp, Inputs::Corrected, Mechanism::Undo) };
        let error = in_place(folder.path(), Survives::ProcessCrash, |place| place::run(place, &case));
        let error = format!("{:#}", error.expect_err("a pool is there"));
        assert!(error.contains("exists already") && error.contains(&case.key()), "{error}");
        assert!(Path::new(&there).exists(), "it was somebody else's");
    }
}
