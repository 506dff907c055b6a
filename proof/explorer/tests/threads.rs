//! Two threads on a pool, by every schedule with few switches, each with its crashes.

#[path = "common/growing.rs"]
mod growing;

use growing::{CHUNK, growths, objects};
use nearpm_explorer::explore::{Limits, Report, explore, explore_schedules};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Operation, Program, Random, Structure, Transaction};
use nearpm_explorer::trace::{Event, Trace};
use nearpm_tier::thorough;

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
    let (switches, most) = if thorough() { (2, 1500) } else { (1, 60) };
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

#[test]
fn two_threads_beside_each_other_by_offsets_survive_every_schedule() {
    by_every_schedule(Kind::UndoConcurrent);
}

fn survives(program: &Program, limits: Limits) -> Report {
    let (report, failure) = explore(program, limits).unwrap_or_else(|e| panic!("{program:?}: {e}"));
    if let Some(failure) = failure {
        panic!("{}", serde_json::to_string_pretty(&Case { program: program.clone(), failure }).unwrap());
    }
    report
}

/// Random programs on every kind of pool that takes threads, each by one schedule that is drawn:
/// short ones, of which most states are explored, and some that truncate the log. Where a mechanism
/// brings commits home each takes longer: in each run a third of the structures, the short ones.
#[test]
fn two_threads_survive_random_programs() {
    for (number, pool) in Kind::ALL.into_iter().filter(|kind| kind.takes_threads()).enumerate() {
        let mut total = Report::default();
        let is_sampled = (pool.brings_home().is_some() || pool.is_concurrent()) && !thorough();
        let seeds = if thorough() { 100 } else { 2 - u64::from(is_sampled) };
        let forms: &[(usize, u64)] = if is_sampled { &[(2, 1)] } else { &[(2, 1), (4, 3)] };
        let (first, step) = if is_sampled { (number % 3, 3) } else { (0, 1) };
        for structure in Structure::LIBRARY.into_iter().skip(first).step_by(step) {
            for (seed, &(transactions, operations)) in
                (0..seeds).flat_map(|seed| forms.iter().map(move |of| (seed, of)))
            {
                let program = Program::random_by_two(pool, structure, seed, transactions, operations);
                let limits = Limits { runs_per_cut: if operations == 1 && !is_sampled { 512 } else { 48 }, ..LIMITS };
                total += survives(&program, limits);
            }
        }
        println!("{pool:?}: random programs of two threads: {total}");
    }
}

/// Two threads on a small pool: the first makes it grow by objects of a chunk, the second, and then
/// both, do something that is drawn.
fn filling(pool: Kind, seed: u64) -> Program {
    let random = Program::random_by_two(pool, Structure::Slots, seed, 2, 1);
    let mut transactions = random.transactions;
    transactions[0] = objects(&[(2, CHUNK), (3, CHUNK), (4, CHUNK)]);
    // Its commit is to lie beside the growth.
    transactions[1] = transaction(1, 5, seed as u32);
    Program { before: vec![objects(&[(0, CHUNK), (1, CHUNK)])], transactions, schedule: Vec::new(), ..random }
}

/// Steps of the other thread while one makes the pool larger: behind its fence ahead of the tables
/// of what comes, up to the one that waits for the word which says where the pool ends.
fn beside_growth(trace: &Trace) -> usize {
    let beside = |word: usize| {
        let grower = trace.steps[word].processor;
        let is_own_fence = |&at: &usize| trace.steps[at].processor == grower && trace.steps[at].event == Event::Fence;
        let ahead = (0..word).rev().filter(is_own_fence).nth(1).unwrap_or_default();
        let behind = (word..trace.steps.len()).find(is_own_fence).expect("the word is waited for");
        trace.steps[ahead..behind].iter().filter(|step| ![0, grower].contains(&step.processor)).count()
    };
    growths(trace).map(beside).sum()
}

/// A pool grows because one thread finds no room, and a switch lets the other one write meanwhile:
/// schedules with one switch there, and some with a second one.
#[test]
fn two_threads_survive_the_growth_of_their_pool() {
    let (seeds, seconds, one_in) = if thorough() { (12, 6, 1) } else { (1, 1, 6) };
    for pool in [Kind::Growing, Kind::InPlaceGrowing] {
        let (mut total, mut met) = (Report::default(), 0);
        for seed in 0..seeds {
            let program = filling(pool, seed);
            let by = |schedule: Vec<usize>| Program { schedule, ..program.clone() };
            let alone = program.record().unwrap();
            assert!(growths(&alone.trace).count() > 0, "it grows");
            let mut random = Random(seed);
            for first in (random.below(one_in) as usize..alone.turns).step_by(one_in as usize) {
                let recorded = by(vec![first]).record().unwrap();
                if beside_growth(&recorded.trace) == 0 {
                    continue;
                }
                met += 1;
                total += survives(&by(vec![first]), LIMITS);
                for _ in 0..seconds {
                    let second = first + 1 + random.below(30) as usize;
                    total += survives(&by(vec![first, second]), LIMITS);
                }
            }
        }
        println!("{pool:?}: {met} schedules with a switch in the growth: {total}");
        assert!(met >= 3 * seeds, "{met} schedules switch while the pool grows");
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
