//! Planted faults are found, made small, and repeated from a file.

use std::process::Command;

use nearpm_explorer::explore::{Limits, explore};
use nearpm_explorer::failure::{Case, find};
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

/// No crashes of recoveries: a fault of the program shows without.
const QUICK: Limits = Limits { again_one_in: 0, runs_per_cut: 256, ..Limits::LAZY };

fn program(pool: Kind, leave_out: usize) -> Program {
    Program { leave_out: Some(leave_out), ..Program::random(pool, Structure::Slots, 3, 3, 3) }
}

#[test]
fn a_step_that_is_left_out_is_found_and_repeated_from_a_file() {
    let case = (0..40).find_map(|number| find(program(Kind::InPlace, number), QUICK)).expect("some step is needed");
    let (before, small) = (case.clone(), case.minimise(QUICK));
    let size = |case: &Case| {
        let program = &case.program;
        let operations: usize = program.transactions.iter().map(|tx| tx.operations.len()).sum();
        (program.before.len() + program.transactions.len(), operations)
    };
    println!("from {:?} to {:?}: {}", size(&before), size(&small), small.failure.message);
    assert!(size(&small) < size(&before), "{small:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.json");
    small.write(&file).unwrap();
    assert_eq!(Case::read(&file).unwrap(), small);
    let replay = || Command::new(env!("CARGO_BIN_EXE_nearpm-explorer")).arg("replay").arg(&file).output().unwrap();
    let output = replay();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("it fails: "));
    // The same without the fault.
    Case { program: Program { leave_out: None, ..small.program.clone() }, ..small }.write(&file).unwrap();
    let output = replay();
    assert!(!String::from_utf8(output.stdout).unwrap().starts_with("it fails: "));
}

/// Of every kind of pool many steps are needed in a run of a few transactions. Some are not: where
/// a line is written back twice, or what was forgotten follows with the next transaction before
/// anything depends on it. Those on the way to a card are in `cards.rs`.
#[test]
fn steps_that_are_left_out_are_found_in_every_kind_of_pool() {
    for pool in Kind::ALL.into_iter().filter(|kind| !kind.is_on_card()) {
        let (mut found, mut tried) = (0, 0);
        for number in (0..60).step_by(4) {
            // Beyond the last step.
            let Ok((_, failure)) = explore(&program(pool, number), QUICK) else { break };
            tried += 1;
            found += u32::from(failure.is_some());
        }
        println!("{pool:?}: {found} of {tried} steps that were left out were found");
        // Fences that hand over to another processor cover much where one thread goes on alone.
        let least = u32::from(!pool.is_concurrent());
        assert!(found > least, "{pool:?}: {found} of {tried}");
    }
}
