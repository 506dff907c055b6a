//! Random traffic on the simulated cards against the sequential oracle, and against each other.

use nearpm_interface::geometry::{POOLS_BASE, SAVE_BASE, SAVE_BYTES};
use nearpm_interface::status::Status;
use nearpm_sim::bench::provisioned;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::model;
use nearpm_tests::drive::{self, Outcome, Run};
use nearpm_tests::oracle::Oracle;
use nearpm_tests::trace::{self, Mix, POOL, Step, Timed};

fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}

fn medium() -> Medium {
    let bytes = (POOLS_BASE + POOL.bytes) as usize;
    let mut medium = provisioned(bytes, nearpm_firmware::standard().bytes());
    for address in (POOLS_BASE as usize..bytes).step_by(64) {
        medium.bytes[address..address + 64].copy_from_slice(&nearpm_sim::bench::line_pattern(address as u64));
    }
    medium
}

fn model_card() -> Box<dyn CardCore> {
    Box::new(model::ModelCard::new(model::Config::default(), medium()))
}

/// Everything but the save area, which holds order numbers and generations.
fn without_save(medium: &Medium) -> Vec<u8> {
    let mut bytes = medium.bytes.clone();
    bytes[SAVE_BASE as usize..(SAVE_BASE + SAVE_BYTES) as usize].fill(0);
    bytes
}

/// Compares a run with what the same accesses do when each takes effect at once.
fn agrees_with_the_oracle(name: &str, trace: &[Timed], run: &Run) {
    let mut oracle = Oracle::new(medium());
    let mut order = 0;
    for (i, (timed, outcome)) in trace.iter().zip(&run.outcomes).enumerate() {
        match (&timed.step, outcome) {
            (Step::Command(command), Outcome::Command { done, .. }) => {
                assert_eq!(done.status, Status::Ok, "{name}, step {i}: {command:?}");
                assert!(done.order > order, "{name}, step {i}: numbered out of order");
                order = done.order;
                oracle.command(command);
            }
            (Step::Malformed(command), Outcome::Command { done, .. }) => {
                assert!(!done.status.had_side_effects(), "{name}, step {i}: {command:?} gave {:?}", done.status);
            }
            (Step::Host(access), Outcome::Load { data, .. }) => {
                assert_eq!(oracle.host(access).as_ref(), Some(data), "{name}, step {i}: {access:?}");
            }
            (Step::Host(access), Outcome::Store { .. }) => {
                oracle.host(access);
            }
            (step, outcome) => panic!("{name}, step {i}: {step:?} gave {outcome:?}"),
        }
    }
    assert!(without_save(&run.medium) == without_save(&oracle.medium), "{name}: memory differs");
}

#[test]
fn the_model_agrees_with_the_oracle() {
    for seed in 0..if thorough() { 200 } else { 12 } {
        for (mix, steps) in [(Mix::CONFLICTS, 700), (Mix::SPREAD, 500)] {
            let trace = trace::random(seed, steps, mix);
            agrees_with_the_oracle(&format!("seed {seed}, {mix:?}"), &trace, &drive::run(model_card(), &trace));
        }
    }
}
