//! Two threads on a direct pool, by every schedule with few switches, each with its crashes.

use nearpm_explorer::explore::{Limits, Report, explore, explore_schedules};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Operation, Program, Structure, Transaction};

/// A transaction of a thread, on objects of its own; both allocate from one heap.
fn transaction(thread: usize, kind: u8, value: u32) -> Transaction {
    Transaction { thread, operations: vec![Operation { kind, key: 0, value }], aborts: false }
}

fn program(pool: Kind, leave_out: Option<usize>) -> Program {
    Program {
        pool,
        structure: Structure::Slots,
        before: Vec::new(),
        transactions: vec![transaction(0, 0, 1), transaction(1, 0, 2), transaction(0, 2, 0), transaction(1, 5, 9)],
        leave_out,
        schedule: Vec::new(),
        reader: None,
    }
}

/// Crashes of recoveries are the same as with one thread.
const LIMITS: Limits = Limits { again_one_in: 0, runs_per_cut: 48, ..Limits::LAZY };

fn by_every_schedule(pool: Kind) {
    let (switches, most) = if nearpm_tier::thorough() { (2, 1500) } else { (1, 60) };
    let (report, schedules, failure) = explore_schedules(&program(pool, None), LIMITS, switches, most).unwrap();
    if let Some((program, failure)) = failure {
        panic!("{}", serde_json::to_string_pretty(&Case { program, failure }).unwrap());
    }
    println!("{pool:?}: {schedules:?} of two threads: {report}");
    assert!(schedules.explored > 10 && schedules.run() < most, "{schedules:?}: at {most} some are left out");
}

#[test]
fn two_threads_on_a_working_copy_survive_every_schedule() {
    by_every_schedule(Kind::WorkingCopy);
}

#[test]
fn two_threads_in_place_survive_every_schedule() {
    by_every_schedule(Kind::InPlace);
}

/// Random programs on every kind of pool that takes threads, each by one schedule that is drawn:
/// short ones, of which most states are explored, and some that truncate the log.
#[test]
fn two_threads_survive_random_programs() {
    let seeds = if nearpm_tier::thorough() { 100 } else { 2 };
    // The campaign has those, too: growing takes many events.
    let are_short = |kind: &Kind| kind.takes_threads() && !kind.grows() && !kind.writes_once();
    for pool in Kind::ALL.into_iter().filter(are_short) {
        let mut total = Report::default();
        for structure in Structure::LIBRARY {
            for (seed, (transactions, operations)) in (0..seeds).flat_map(|seed| [(seed, (2, 1)), (seed, (4, 3))]) {
                let program = Program::random_by_two(pool, structure, seed, transactions, operations);
                let limits = Limits { runs_per_cut: if operations == 1 { 512 } else { 48 }, ..LIMITS };
                let (report, failure) = explore(&program, limits).unwrap();
                total += report;
                if let Some(failure) = failure {
                    panic!("{}", serde_json::to_string_pretty(&Case { program, failure }).unwrap());
                }
            }
        }
        println!("{pool:?}: random programs of two threads: {total}");
    }
}

/// A switch changes what happens when, and without a wait for a lock of the library a schedule
/// repeats to the event.
#[test]
fn schedules_decide_the_order() {
    let record = |schedule: Vec<usize>| {
        let recorded = Program { schedule, ..program(Kind::InPlace, None) }.record().unwrap();
        let order: Vec<u32> = recorded.trace.steps.iter().map(|step| step.processor).collect();
        (recorded.turns, order)
    };
    let first = record(Vec::new());
    for _ in 0..5 {
        assert_eq!(record(Vec::new()), first);
    }
    assert_ne!(record(vec![4]).1, first.1);
}

/// A fence that one thread forgets is found with two threads, too.
#[test]
fn a_forgotten_step_of_one_thread_is_found() {
    let fails =
        |leave_out| explore_schedules(&program(Kind::InPlace, Some(leave_out)), LIMITS, 0, 1).unwrap().2.is_some();
    let found = (0..12).filter(|&leave_out| fails(leave_out)).count();
    println!("{found} of 12 steps are found");
    assert!(found > 2);
}
