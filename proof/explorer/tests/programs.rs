//! The nine programs of the paper's evaluation: under each mechanism they survive every kind of
//! crash, and a step that is left out is found.

use nearpm_explorer::explore::{Limits, Report, explore};
use nearpm_explorer::failure::{Case, find};
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

/// The mechanisms, with durable and with asynchronous commits.
const MECHANISMS: [Kind; 6] =
    [Kind::Undo, Kind::UndoAsynchronous, Kind::Redo, Kind::RedoAsynchronous, Kind::Checkpoint, Kind::Shadow];

/// Random transactions of a program; none is taken back.
fn program(pool: Kind, structure: Structure, seed: u64, transactions: usize) -> Program {
    let mut program = Program::random(pool, structure, seed, transactions, 2);
    program.before.iter_mut().chain(&mut program.transactions).for_each(|tx| tx.aborts = false);
    program
}

fn survive(pool: Kind) {
    let (seeds, transactions, limits) = match nearpm_tier::thorough() {
        true => (5, 3, Limits::LAZY),
        false => (1, 2, Limits { runs_per_cut: 48, again_one_in: 256, ..Limits::LAZY }),
    };
    let mut total = Report::default();
    for structure in Structure::PROGRAMS {
        for seed in 0..seeds {
            let program = program(pool, structure, seed, transactions);
            let refused = program.record().unwrap().refused;
            assert_eq!(refused, 0, "{program:?}: transactions that did not fit say nothing");
            let (report, failure) = explore(&program, limits).unwrap_or_else(|e| panic!("{program:?}: {e}"));
            if let Some(failure) = failure {
                panic!("{:?}", Case { program, failure }.minimise(limits));
            }
            assert!(report.states > 20, "{structure:?}: {report}");
            total += report;
        }
    }
    println!("{pool:?}, nine programs: {total}");
}

#[test]
fn programs_survive_under_undo_logging() {
    survive(Kind::Undo);
}

#[test]
fn programs_survive_under_undo_logging_with_asynchronous_commits() {
    survive(Kind::UndoAsynchronous);
}

#[test]
fn programs_survive_under_redo_logging() {
    survive(Kind::Redo);
}

#[test]
fn programs_survive_under_redo_logging_with_asynchronous_commits() {
    survive(Kind::RedoAsynchronous);
}

#[test]
fn programs_survive_under_checkpointing() {
    survive(Kind::Checkpoint);
}

#[test]
fn programs_survive_under_shadow_paging() {
    survive(Kind::Shadow);
}

/// A fault of the program shows without crashes of recoveries.
const QUICK: Limits = Limits { again_one_in: 0, runs_per_cut: 64, ..Limits::LAZY };

/// Of each mechanism a write-back or fence that is left out under a program is found; the program
/// differs from one mechanism to the next.
#[test]
fn a_step_that_is_left_out_is_found_under_every_mechanism() {
    let programs = [
        Structure::Btree,
        Structure::Memcached,
        Structure::Tpcc,
        Structure::Redis,
        Structure::Hashmap,
        Structure::Tatp,
    ];
    for (pool, structure) in MECHANISMS.into_iter().zip(programs) {
        let with = |number| Program { leave_out: Some(number), ..program(pool, structure, 3, 3) };
        let found = (0..60).find_map(|number| find(with(number), QUICK));
        let case = found.unwrap_or_else(|| panic!("{pool:?}, {structure:?}: nothing is found"));
        println!("{pool:?}, {structure:?}: without step {:?}: {}", case.program.leave_out, case.failure.message);
        // It is the step that is missed: with it nothing is wrong.
        let whole = Program { leave_out: None, ..case.program };
        assert_eq!(explore(&whole, QUICK).unwrap().1, None, "{whole:?}");
    }
}

#[test]
fn a_failure_of_a_program_is_made_small_and_repeats_from_its_file() {
    let with = |number| Program { leave_out: Some(number), ..program(Kind::Undo, Structure::Rbtree, 3, 3) };
    let case = (0..60).find_map(|number| find(with(number), QUICK)).expect("some step is needed");
    let before = case.program.clone();
    let small = case.minimise(QUICK);
    assert!(small.program.transactions.len() < before.transactions.len(), "{small:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.json");
    small.write(&file).unwrap();
    assert!(Case::read(&file).unwrap().replay().unwrap().is_some());
}
