//! Values that are written once, pools that grow, and readers of snapshots beside a writer:
//! programs that come to each of these, and a fault of each that is found.

#[path = "common/growing.rs"]
mod growing;

use growing::{CHUNK, growths, objects};
use nearpm_explorer::explore::{Limits, Report, explore, explore_schedules};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Operation, Program, Reader, Structure, Transaction};
use nearpm_explorer::trace::{Event, LINE, Trace};
use nearpm_interface::media::POOL_GROWN;
use nearpm_tier::thorough;

/// Numbers of sizes of the slots: 200 and 700 bytes.
const MIDDLE: u32 = 5;
const LONG: u32 = 6;

fn program(pool: Kind, before: Vec<Transaction>, transactions: Vec<Transaction>) -> Program {
    Program {
        pool,
        structure: Structure::Slots,
        before,
        transactions,
        leave_out: None,
        schedule: Vec::new(),
        reader: None,
    }
}

fn survives(program: &Program, limits: Limits) -> Report {
    let (report, failure) = explore(program, limits).unwrap_or_else(|e| panic!("{program:?}: {e}"));
    if let Some(failure) = failure {
        panic!("{}", serde_json::to_string_pretty(&Case { program: program.clone(), failure }).unwrap());
    }
    report
}

/// No crashes of recoveries: the tests of every kind of pool have those.
const LIMITS: Limits = Limits { again_one_in: 0, runs_per_cut: 64, ..Limits::LAZY };

/// Steps since crashes began, each with its number among those that could be left out.
fn steps(trace: &Trace) -> impl Iterator<Item = (Option<usize>, &Event)> {
    let begin = trace.bounds.first().map_or(0, |first| first.0);
    let mut asked_for = 0;
    trace.steps[begin..].iter().map(move |step| {
        let number = step.event.is_asked_for().then_some(asked_for);
        asked_for += usize::from(step.event.is_asked_for());
        (number, &step.event)
    })
}

fn is_found(program: &Program, leave_out: usize) -> bool {
    let faulty = Program { leave_out: Some(leave_out), ..program.clone() };
    explore(&faulty, LIMITS).unwrap().1.is_some()
}

#[test]
fn values_that_are_written_once_survive_every_kind_of_crash() {
    for pool in [Kind::WrittenOnce, Kind::WrittenOnceAsynchronous] {
        let mut total = Report::default();
        // An object in the place of one that was freed, two side by side, and one beside changes
        // that are logged.
        let made = [
            vec![objects(&[(0, LONG)]), objects(&[(0, LONG)]), objects(&[(0, MIDDLE)])],
            vec![objects(&[(0, LONG), (1, LONG)]), objects(&[(1, MIDDLE), (2, MIDDLE)])],
            vec![objects(&[(3, CHUNK)]), objects(&[(3, CHUNK)])],
        ];
        for transactions in made {
            total += survives(&program(pool, vec![objects(&[(4, LONG)])], transactions), LIMITS);
        }
        for seed in 0..if thorough() { 100 } else { 4 } {
            let limits = Limits { again_one_in: 64, ..LIMITS };
            total += survives(&Program::random(pool, Structure::Slots, seed, 3, 3), limits);
        }
        println!("{pool:?}: {total}");
        assert!(total.states > 300 && total.again > 0, "{total}");
    }
}

/// The planted fault of values that are written once: their bytes are not on the way to the medium
/// when the commit waits.
#[test]
fn a_value_that_is_not_written_back_is_found() {
    let program = program(Kind::WrittenOnce, vec![objects(&[(4, LONG)])], vec![objects(&[(0, LONG)])]);
    let recorded = program.record().unwrap();
    let lines = |event: &Event| if let Event::WriteBack(first, end) = event { end - first } else { 0 };
    // Nothing but the object has so many lines: it is not in the log.
    let long: Vec<usize> =
        steps(&recorded.trace).filter(|(_, event)| lines(event) * LINE >= 700).filter_map(|step| step.0).collect();
    assert_eq!(long.len(), 1, "the object is written once");
    survives(&program, LIMITS);
    assert!(is_found(&program, long[0]));
}

/// Makes objects of a chunk each until the pool is full.
fn filled(pool: Kind) -> Program {
    program(pool, vec![objects(&[(0, CHUNK), (1, CHUNK)])], vec![objects(&[(2, CHUNK), (3, CHUNK), (4, CHUNK)])])
}

#[test]
fn growth_survives_every_kind_of_crash() {
    for pool in [Kind::Growing, Kind::InPlaceGrowing] {
        let (mut total, mut grown) = (Report::default(), 0);
        let random = (0..if thorough() { 60 } else { 3 }).map(|seed| {
            let program = Program::random(pool, Structure::Slots, seed, 2, 3);
            Program {
                before: filled(pool).before,
                transactions: [filled(pool).transactions, program.transactions].concat(),
                ..program
            }
        });
        for program in [filled(pool)].into_iter().chain(random) {
            grown += u64::from(growths(&program.record().unwrap().trace).count() > 0);
            total += survives(&program, Limits { again_one_in: 64, ..LIMITS });
        }
        println!("{pool:?}: {grown} programs grow; {total}");
        assert!(grown == total.executions && total.states > 100 && total.again > 0, "{grown}: {total}");
    }
}

/// A step of a growth that could be left out.
#[derive(Debug)]
struct Omission {
    name: &'static str,
    number: usize,
    /// In this program it waits for nothing that another fence would not wait for in time.
    made_up_for: bool,
}

/// The fence ahead of the word that says where the pool ends, the write-back of its line, and the
/// fence behind that. The pool has ended at `former`.
fn of_growth(trace: &Trace, former: u64) -> [Omission; 3] {
    let begin = trace.bounds.first().map_or(0, |first| first.0);
    let end = growths(trace).next_back().expect("it grows") - begin;
    let line = POOL_GROWN / LINE;
    let all: Vec<(Option<usize>, &Event)> = steps(trace).collect();
    let fence_from = |at: usize| (at..all.len()).find(|&at| *all[at].1 == Event::Fence);
    let holds = |event: &Event| matches!(event, Event::WriteBack(first, end) if (*first..*end).contains(&line));
    let ahead = (0..end).rfind(|&at| *all[at].1 == Event::Fence).expect("what it takes in is durable ahead of it");
    let written = (end..all.len()).find(|&at| holds(all[at].1)).expect("its line is written back");
    let behind = fence_from(written).expect("it is waited for");
    let omission = |name, at: usize, made_up_for| Omission { name, number: all[at].0.expect("asked for"), made_up_for };
    // What the fence ahead waits for is of the growth where it lies in the new room. Here nothing
    // does: the pool grows within a zone, whose tables are there.
    let fenced = (0..ahead).rfind(|&at| *all[at].1 == Event::Fence).map_or(0, |at| at + 1);
    let in_new_room = all[fenced..ahead].iter().any(|(_, event)| match event {
        Event::Store(parts) | Event::Stream(parts) => parts.iter().any(|part| part.word as u64 * 8 >= former),
        _ => false,
    });
    // Behind it the commit goes on: its own next fence does as well where nothing is acknowledged
    // before that.
    let acknowledged = |next: usize| trace.bounds.iter().any(|(at, _)| (behind + 1..=next).contains(&(at - begin)));
    [
        omission("the fence ahead of the word", ahead, !in_new_room),
        omission("the write-back of its line", written, false),
        omission("the fence behind it", behind, fence_from(behind + 1).is_some_and(|next| !acknowledged(next))),
    ]
}

/// The planted faults of growth, one at a time: each is found unless another step makes up for it,
/// and the write-back is found.
#[test]
fn steps_that_a_growth_forgets_are_found() {
    let mut missed = Vec::new();
    for pool in [Kind::Growing, Kind::InPlaceGrowing] {
        let program = filled(pool);
        survives(&program, LIMITS);
        for omission in of_growth(&program.record().unwrap().trace, pool.bytes()) {
            let is_found = is_found(&program, omission.number);
            println!("{pool:?}: {omission:?}, found: {is_found}");
            if !is_found && !omission.made_up_for {
                missed.push((pool, omission.name));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Some objects, a word, and one that is freed, beside a reader.
fn beside(pool: Kind, reader: Reader) -> Program {
    let made = |kind, key, value| Operation { kind, key, value };
    let replaced =
        Transaction { operations: vec![made(0, 0, 0x700 | MIDDLE), made(5, 0, 9)], ..Transaction::default() };
    let freed = Transaction { operations: vec![made(2, 1, 0), made(4, 0, 0x900)], ..Transaction::default() };
    let before = vec![objects(&[(0, MIDDLE), (1, 2)])];
    Program { reader: Some(reader), ..program(pool, before, vec![replaced, freed]) }
}

/// A reader that holds a snapshot sees one version, whatever is committed, and the steps that
/// crashes cut are those that are there without it.
fn by_every_schedule(pool: Kind) {
    let program = beside(pool, Reader::Snapshots);
    let (switches, most) = if thorough() { (2, 10_000) } else { (1, 400) };
    let (report, schedules, failure) = explore_schedules(&program, LIMITS, switches, most).unwrap();
    assert!(failure.is_none(), "{failure:?}");
    println!("{pool:?}: {schedules:?} beside a reader: {report}");
    assert!(schedules.run() > 30 && schedules.run() < most, "{schedules:?}: at {most} some are left out");
    assert_eq!(schedules.explored, report.executions);
    // With an empty schedule the reader begins when the writer is done. Many times, since a
    // writer's thread may be given the part of the log that the main thread has.
    let record =
        |schedule: &[usize]| Program { schedule: schedule.to_vec(), ..program.clone() }.record().unwrap().trace;
    let alone: Vec<Trace> = (0..70).map(|_| record(&[])).collect();
    for schedule in [&[5][..], &[5, 20], &[12, 40], &[2, 9, 17, 30], &[25, 26, 27, 28, 29]] {
        let beside = record(schedule);
        assert!(
            alone.iter().any(|alone| alone.shape() == beside.shape()),
            "a snapshot has changed where something is stored"
        );
    }
}

#[test]
fn a_reader_beside_a_writer_sees_one_version() {
    by_every_schedule(Kind::WorkingCopy);
}

#[test]
fn a_reader_beside_a_writer_in_place_sees_one_version() {
    by_every_schedule(Kind::InPlace);
}

/// Every structure of the library, on every kind of pool that takes threads, the schedules drawn.
#[test]
fn readers_beside_random_programs_see_one_version() {
    let seeds = if thorough() { 100 } else { 4 };
    for pool in Kind::ALL.into_iter().filter(|kind| kind.has_snapshots()) {
        let (mut total, mut overlapped) = (Report::default(), 0);
        for structure in Structure::LIBRARY {
            for seed in 0..seeds {
                let program = Program::random_beside_reader(pool, structure, seed, 2, 3);
                let limits = Limits { runs_per_cut: 8, ..LIMITS };
                overlapped += program.record().unwrap().overlapped;
                total += survives(&program, limits);
            }
        }
        println!("{pool:?}, {overlapped} snapshots with a commit beside them: {total}");
        assert_eq!(total.executions, 9 * seeds);
        assert!(overlapped > 0, "{pool:?}: no snapshot has met a commit");
    }
}

/// The planted fault of readers: loads that are of the pool itself, each in a transaction of its
/// own.
#[test]
fn a_reader_without_a_snapshot_is_found() {
    for pool in [Kind::WorkingCopy, Kind::InPlace] {
        let program = beside(pool, Reader::Loads);
        let turns = program.record().map_or(60, |recorded| recorded.turns);
        let tried =
            || (0..turns).flat_map(|first| (first + 1..turns.min(first + 24)).map(move |second| vec![first, second]));
        let violates =
            |e: &String| e.contains("one snapshot shows") || e.contains("a snapshot shows none of the states");
        let found =
            tried().find_map(|schedule| Program { schedule, ..program.clone() }.record().err().filter(violates));
        let found = found.unwrap_or_else(|| panic!("{pool:?}: no schedule of {} shows two versions", tried().count()));
        println!("{pool:?}: {found}");
    }
}
