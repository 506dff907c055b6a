//! Programs on this processor, in files: what they leave, what is said of the place, and how they
//! are measured beside each other.

use std::fs;
use std::path::{Path, PathBuf};

use nearpm::memory::{Flush, Memory, VolatileMemory};
use nearpm::{Mechanism, Options, Statistics, Survives};
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::on_host::{BESIDE, Files, NAME, ORIGIN, Row, Setting, csv, groups, in_turn, parse, stored};
use nearpm_evaluation::place::{self, Place, Timing};
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::report;
use nearpm_evaluation::served::{Alone, EPOCH, RELEASED_TOUCHES, Served};
use nearpm_workloads::programs::{Inputs, Program};
use nearpm_workloads::store::Bare;

/// Transactions: enough that an epoch ends.
const COUNT: usize = 2 * EPOCH + 2;

fn case(program: Program, inputs: Inputs, mechanism: Mechanism) -> Case {
    let case = Scope::TINY.case(NAME, program, mechanism, Configuration::Cpu);
    Case { inputs, count: COUNT, ..case }
}

/// Runs something in a place of this folder.
fn in_place<T>(folder: &Path, survives: Survives, run: impl FnOnce(&Place<'_>) -> T) -> T {
    Files::at(folder).unwrap().with_place(survives, run)
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
        let beside = BESIDE.map(|(mechanism, configuration)| (configuration, mechanism));
        let is_corrected = group[0].inputs == Inputs::Corrected;
        assert_eq!(configurations[1..5], with);
        assert_eq!(&configurations[5..], if is_corrected { &beside[..] } else { &[] });
        for case in group {
            let timing = in_place(folder.path(), Survives::AsPersistentMemory, |place| place::run(place, case));
            let timing = timing.unwrap_or_else(|e| panic!("{e:#}"));
            assert!(timing.ns_per_transaction > 0.0 && timing.processor_ns > 0.0, "{timing:?}");
            let counts = timing.counts;
            assert_eq!(counts.commands, 0, "{case}: there is no card");
            if case.configuration == Configuration::Bare {
                assert_eq!(counts, Statistics::default());
                continue;
            }
            // Each mechanism did what it is there for.
            let is_counted = case.configuration != Configuration::Lean;
            assert!(!is_counted || counts.transactions == COUNT as u64, "{timing:?}");
            assert!(counts.fences > 0 && counts.lines_written_back > 0, "{timing:?}");
            // Under shadow paging that is which page lies where.
            assert!(counts.log_entries > 0, "{timing:?}");
            assert_eq!(counts.shadow_pages > 0, case.mechanism == Mechanism::Shadow, "{timing:?}");
            assert_eq!(counts.epochs > 0, case.mechanism.has_epochs(), "{timing:?}");
            // Without epochs each commit has a fence of its own.
            assert!(case.mechanism.has_epochs() || counts.fences >= COUNT as u64, "{timing:?}");
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
            let options = Options::new().ring_bytes(4 << 20).survives(Survives::ProcessCrash);
            let mut served = Served::prepare(&case, program, &options, location, 32 << 20, 1 << 20).unwrap();
            while served.is_due() {
                served.step().unwrap();
            }
            assert_eq!(served.done(), COUNT);
            let counts = served.counts();
            let epochs = counts.epochs;
            let touches = match mechanism {
                Mechanism::Checkpoint => counts.log_entries,
                _ => counts.shadow_pages,
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
    let options = Options::new().ring_bytes(128 << 10).survives(Survives::ProcessCrash);
    let mut served = Served::prepare(&case, program(), &options, path.to_str().unwrap(), 8 << 20, 0).unwrap();
    while served.is_due() {
        served.step().unwrap();
    }
    served.check().unwrap();
    let (table, bytes) = served.pool.objects().unwrap()[0];
    assert!(bytes > 128, "it is the table of subscribers");
    served.pool.tx(|tx| tx.write(table + 64, &[0xff])).unwrap();
    served.pool.persist().unwrap();
    // The one that is opened anew holds what was there, not what the run remembers.
    let served = served.reopen().unwrap();
    assert_eq!((served.done(), served.counts().transactions), (COUNT, 0));
    let error = format!("{:#}", served.check().expect_err("a byte is another"));
    assert!(error.contains("does not hold what the model says"), "{error}");

    let memory = VolatileMemory::new(4 << 20);
    let mut floor = Alone::prepare(program(), Bare::new(memory)).unwrap();
    while floor.is_due() {
        floor.apply().unwrap();
    }
    floor.check().unwrap();
    // The first object of bare memory.
    floor.store().memory().store(4096 + 64, &[0xff]);
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
    assert_eq!(timings.iter().map(Vec::len).collect::<Vec<_>>(), [3; 4]);
    for (timings, case) in timings.iter().zip(&group) {
        assert!(timings.iter().all(|timing| timing.case == *case));
    }
    // Each round begins with another case.
    let of: Vec<_> = group.iter().map(|case| (case.configuration, case.mechanism)).collect();
    let turns = (0..4).flat_map(|round| (0..4).map(move |place| (round + place) % 4));
    let expected: Vec<_> = turns.map(|number: usize| of[number]).collect();
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

/// What a bench that was killed has left is removed by the next one; what is somebody else's is
/// not.
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
    Options::new().create(&there, 1 << 20).unwrap().close().unwrap();
    for configuration in [Configuration::Bare, Configuration::Cpu] {
        let case = Case { configuration, ..case(Program::Tatp, Inputs::Corrected, Mechanism::Undo) };
        let error = in_place(folder.path(), Survives::ProcessCrash, |place| place::run(place, &case));
        let error = format!("{:#}", error.expect_err("a pool is there"));
        assert!(error.contains("exists already") && error.contains(&case.key()), "{error}");
        assert!(Path::new(&there).exists(), "it was somebody else's");
    }
}

/// A row of a case whose rounds took these times, and what its group's first one took.
fn rows(timings: &[[f64; 3]]) -> Vec<Row> {
    let group = groups(&Scope::TINY, &[Program::Tatp], &[Mechanism::Undo, Mechanism::Shadow], Some(10)).remove(0);
    let timing = |case: &Case, ns: f64| Timing {
        case: case.clone(),
        ns_per_transaction: ns,
        processor_ns: ns / 2.0,
        counts: Statistics { fences: 25, shadow_pages: 1, ..Statistics::default() },
    };
    let timings: Vec<Vec<Timing>> =
        group.iter().zip(timings).map(|(case, ns)| ns.iter().map(|&ns| timing(case, ns)).collect()).collect();
    let setting = Setting {
        commit: "fedcba987654".into(),
        machine: "a processor, of this kind".into(),
        file_system: "tmpfs".into(),
        flush: Flush::Lines,
    };
    Row::all(&timings, &setting).unwrap()
}

#[test]
fn rows_are_ratios_within_a_round_and_read_back_as_they_were_written() {
    // The machine was half as fast in the last round: so were all.
    let rows = rows(&[[10.0, 12.0, 20.0], [20.0, 36.0, 50.0], [40.0, 36.0, 60.0], [20.0, 24.0, 40.0]]);
    let of = |row: &Row| ([row.ns_per_transaction, row.least_ns, row.most_ns], row.over_bare);
    assert_eq!(
        rows.iter().map(of).collect::<Vec<_>>(),
        [([12.0, 10.0, 20.0], 1.0), ([36.0, 20.0, 50.0], 2.5), ([40.0, 36.0, 60.0], 3.0), ([24.0, 20.0, 40.0], 2.0)]
    );
    assert_eq!((rows[1].least_over_bare, rows[1].most_over_bare), (2.0, 3.0));
    assert_eq!((rows[1].fences, rows[1].shadow_pages, rows[1].processor_share), (2.5, 0.1, 0.5));
    let text = csv(&rows).unwrap();
    assert_eq!(parse(&text).unwrap(), rows);
    assert!(text.contains(ORIGIN) && text.contains("cache-line write-backs and fences"), "{text}");

    let [by_program, by_mechanism] = report::on_host(&rows);
    let cells = ["tatp, corrected", "12.0 (10.0..20.0)", "2.50 (2.00..3.00)", "3.00 (3.00..4.00)", "2.00 (2.00..2.00)"];
    assert_eq!(by_program.rows, [cells]);
    // Lean undo is no part of the library's undo logging.
    assert_eq!(by_mechanism.rows[0], ["undo, corrected", "2.50", "2.50", "60.0 %", "0.00", "0.10", "2.50", "0.00"]);
    assert_eq!(by_mechanism.rows[2][..3], ["lean undo, corrected", "2.00", "2.00"]);
    let said = report::described(&rows);
    assert!(said.contains("fedcba987654") && said.contains("a processor, of this kind"), "{said}");
}

#[test]
fn what_is_no_table_of_rows_is_refused() {
    let table = csv(&rows(&[[1.0; 3]; 3])).unwrap();
    for (from, to) in
        [("fences", "fence"), ("tatp", "tatq"), (",bare,", ",bear,"), (ORIGIN, "simulated"), (",10,", ",")]
    {
        assert!(table.contains(from), "{from}");
        assert!(parse(&table.replace(from, to)).is_err(), "{from} as {to}");
    }
    assert!(parse("").is_err());
    assert!(parse(table.lines().next().unwrap()).is_err(), "no rows");
}

/// The stored table is whole: the tables of the documentation are made of it.
#[test]
fn the_stored_rows_are_each_case_of_one_run() {
    let rows = stored().unwrap_or_else(|e| panic!("{e:#}"));
    let cases: Vec<Case> = groups(&Scope { seeds: 1, ..Scope::FULL }, &Program::ALL, &Mechanism::ALL, None).concat();
    let of_case = |case: &Case| (case.program, case.inputs, case.mechanism, case.configuration, case.count, case.seed);
    let of_row = |row: &Row| (row.program, row.inputs, row.mechanism, row.configuration, row.count, row.seed);
    assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), cases.iter().map(of_case).collect::<Vec<_>>());
    for row in &rows {
        let is_of_the_run =
            |other: &Row| (&row.commit, &row.machine, row.rounds) == (&other.commit, &other.machine, other.rounds);
        assert!(is_of_the_run(&rows[0]), "{row:?}");
        assert!(0.0 < row.least_ns && row.least_ns <= row.ns_per_transaction && row.ns_per_transaction <= row.most_ns);
        assert!(row.least_over_bare <= row.over_bare && row.over_bare <= row.most_over_bare, "{row:?}");
        assert_eq!(row.is_bare(), row.fences == 0.0 && row.lines_written_back == 0.0, "{row:?}");
        assert!(!row.commit.contains("changed") && row.commit != "unknown", "{}", row.commit);
    }
}
