//! Pools on a card: what the explorer takes for possible, against what the driver's mock leaves;
//! and faults on the way to the card.

mod common;

use std::collections::{BTreeMap, HashSet};
use std::process;
use std::sync::Arc;

use common::{single, thorough};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_explorer::arena::Arena;
use nearpm_explorer::card;
use nearpm_explorer::choices::Choices;
use nearpm_explorer::crash::{CrashMemory, Start};
use nearpm_explorer::explore::Limits;
use nearpm_explorer::failure::{Case, find};
use nearpm_explorer::image::hash;
use nearpm_explorer::media::{PossibleMedia, PossibleMedium};
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};
use nearpm_explorer::trace::Event;
use nearpm_interface::command::{Command, Opcode};

/// No crashes of recoveries: a fault of the program shows without.
const QUICK: Limits = Limits { again_one_in: 0, runs_per_cut: 24, ..Limits::LAZY };

fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.is_on_card())
}

/// Changes a word, and gives an object's place away. The third transaction ends an epoch, where
/// there are such.
fn program(pool: Kind) -> Program {
    Program {
        pool,
        structure: Structure::Slots,
        before: vec![single(0, 1)],
        transactions: vec![single(5, 77), single(2, 0), single(5, 78)],
        leave_out: None,
        schedule: Vec::new(),
        reader: None,
    }
}

/// Every image that a crash in this medium leaves, by hash.
fn images(possible: &PossibleMedium, mut arena: Arena, found: &mut HashSet<u64>) -> Arena {
    let mut choices = Choices::default();
    loop {
        let medium = &possible.medium;
        let open = medium.possible();
        let start = Start {
            durable: medium.durable(),
            open,
            choices,
            tears: u32::MAX,
            unknown: Arc::default(),
            one_domain: false,
        };
        let memory = CrashMemory::new(arena, start);
        memory.decide(None);
        found.insert(memory.hash(medium.durable(), medium.hash()));
        let (run, whole) = memory.end();
        (choices, arena) = (run.choices, whole);
        if !choices.advance() {
            return arena;
        }
    }
}

/// Every image that a crash of the program leaves.
fn explored(program: &Program) -> HashSet<u64> {
    let recorded = program.record().unwrap();
    let trace = &recorded.trace;
    let mut media = PossibleMedia::new(trace.after_power_up(vec![0; recorded.words]), 64);
    let (mut found, mut arena) = (HashSet::new(), Arena::new(recorded.words));
    for index in 0..=trace.steps.len() {
        let step = trace.steps.get(index);
        if trace.allowed(index).is_some() && step.is_none_or(|step| media.are_narrowed_by(step)) {
            arena = media.crashed().fold(arena, |arena, possible| images(&possible, arena, &mut found));
        }
        step.into_iter().for_each(|step| media.take(step));
    }
    assert!(!media.is_cut_short);
    found
}

/// A card that evicts lines, and lets things arrive, as its seed says. The explorer's evicts
/// nothing.
fn hostile(pool: Kind, seed: u64, cut_after: Option<u64>) -> MockCard {
    let options = card::options(pool.rules().expect("it is on a card"));
    MockCard::new(MockOptions { seed, cut_after, evict_one_in: 2 + seed % 4, lazy: false, ..options })
}

/// The mock draws what happens, and has its own cache and link. Whatever it leaves, the explorer
/// must have known of.
#[test]
fn what_the_mock_leaves_is_among_what_is_explored() {
    for pool in kinds() {
        let program = program(pool);
        let explored = explored(&program);
        let accesses = |program: &Program, seed| {
            let card = hostile(pool, seed, None);
            program.record_on(card.clone()).unwrap();
            card.accesses()
        };
        let (mut left, mut cuts) = (HashSet::new(), 0);
        for seed in 0..if thorough() { 60 } else { 3 } {
            // Without its transactions the program ends where crashes begin, and closes the pool.
            let begin = accesses(&Program { transactions: Vec::new(), ..program.clone() }, seed);
            for cut_after in begin..accesses(&program, seed) {
                let card = hostile(pool, seed, Some(cut_after));
                // It fails where the card has gone.
                let _ = program.record_on(card.clone());
                let medium = card.power_cut();
                let words = medium[card::address_of(0) as usize..].as_chunks().0;
                let image = hash(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>());
                assert!(explored.contains(&image), "{pool:?}, seed {seed}, cut after {cut_after} accesses");
                left.insert(image);
                cuts += 1;
            }
        }
        println!("{pool:?}: {cuts} cuts left {} of {} images", left.len(), explored.len());
        // To close a direct pool takes accesses, too, so that its cuts begin late.
        let least = if pool.is_direct() { 1 } else { 3 };
        assert!(left.len() > least, "{pool:?}: the mock leaves {} images", left.len());
    }
}

/// What a step is called in the table of faults.
fn name(event: &Event) -> String {
    match event {
        Event::WriteBack(..) => "write-back".into(),
        Event::Fence => "fence".into(),
        Event::Command(_, line) => {
            let command = Command::decode(line).expect("the library posts whole commands");
            format!("{:?}", Opcode::from_code(command.opcode).expect("the library knows them"))
        }
        Event::Push => "read that pushes".into(),
        Event::Ended(..) => "wait for a command".into(),
        Event::Store(_) | Event::Stream(_) => unreachable!("nobody forgets to store"),
    }
}

/// The steps that may be left out of a program, by number.
fn steps(program: &Program) -> Vec<Event> {
    let trace = program.record().unwrap().trace;
    let begin = trace.bounds[0].0;
    trace.steps.into_iter().skip(begin).map(|step| step.event).filter(Event::is_asked_for).collect()
}

/// What nobody misses when power fails: no mapping survives that.
const HARMLESS: [&str; 1] = ["Unmap"];

/// A command is lost that the library takes for accepted, a fence is forgotten, a line is not
/// written back, a commit is acknowledged that nothing has pushed: each is found. Not every single
/// one is needed: a word that is changed alone needs no log, some lines are dropped and not written
/// back, and what the recovery does again may be lost.
#[test]
fn each_kind_of_fault_on_the_way_to_a_card_is_found() {
    let mut all: BTreeMap<String, u32> = BTreeMap::new();
    // Where commits are not waited for, less is needed.
    let is_durable = |pool: &Kind| !matches!(pool, Kind::CardUndoAsynchronous | Kind::CardRedoAsynchronous);
    for pool in kinds().filter(|pool| thorough() || is_durable(pool)) {
        let mut found: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for (number, event) in steps(&program(pool)).iter().enumerate() {
            let is_found = find(Program { leave_out: Some(number), ..program(pool) }, QUICK).is_some();
            let counts = found.entry(name(event)).or_default();
            *counts = (counts.0 + u32::from(is_found), counts.1 + 1);
            *all.entry(name(event)).or_default() += u32::from(is_found);
        }
        println!("{pool:?}: found of tried {found:?}");
    }
    let missed: Vec<_> =
        all.iter().filter(|(what, found)| **found == 0 && !HARMLESS.contains(&what.as_str())).collect();
    assert!(missed.is_empty(), "nothing was found without any {missed:?}");
}

#[test]
fn a_lost_command_is_repeated_from_a_file() {
    let lost = |number: &usize| matches!(steps(&program(Kind::CardUndo))[*number], Event::Command(..));
    let with = |number| Program { leave_out: Some(number), ..program(Kind::CardUndo) };
    let case = (0..).filter(lost).find_map(|number| find(with(number), QUICK)).expect("some command is needed");
    let small = case.minimise(QUICK);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.json");
    small.write(&file).unwrap();
    assert_eq!(Case::read(&file).unwrap(), small);
    let output =
        process::Command::new(env!("CARGO_BIN_EXE_nearpm-explorer")).arg("replay").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("it fails: "));
}
