//! Random traffic on the simulated cards against the sequential oracle, and against each other.

use nearpm_interface::status::Status;
use nearpm_sim::core::CardCore;
use nearpm_sim::machine::Power;
use nearpm_sim::model;
use nearpm_tests::drive::{self, Outcome, Run};
use nearpm_tests::oracle::Oracle;
use nearpm_tests::rig::{medium, rtl_cards, thorough, without_save};
use nearpm_tests::trace::{self, Mix, Step, Timed};

fn model_card() -> Box<dyn CardCore> {
    Box::new(model::ModelCard::new(model::Config::default(), medium()))
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

#[test]
fn the_rtl_agrees_with_the_oracle() {
    let cards = rtl_cards();
    for seed in 0..if thorough() { 40 } else { 3 } {
        for (mix, steps) in [(Mix::CONFLICTS, 700), (Mix::SPREAD, 300)] {
            let trace = trace::random(seed, steps, mix);
            let run = drive::run(cards.power_up(medium()), &trace);
            agrees_with_the_oracle(&format!("seed {seed}, {mix:?}"), &trace, &run);
        }
    }
}

/// Cycles from acceptance to completion record of every accepted command, sorted.
fn command_cycles(run: &Run) -> Vec<u64> {
    let mut cycles: Vec<u64> = run
        .outcomes
        .iter()
        .filter_map(|o| match o {
            Outcome::Command { accepted, done } if done.status == Status::Ok => {
                Some(done.cycle.saturating_sub(*accepted))
            }
            _ => None,
        })
        .collect();
    cycles.sort_unstable();
    cycles
}

/// Statuses and order numbers must be equal. Times are printed and not compared: the model's latencies are those of the
/// architecture page and have not been fitted to the RTL.
#[test]
fn rtl_and_model_answer_alike() {
    let cards = rtl_cards();
    for seed in 1000..if thorough() { 1020 } else { 1002 } {
        let trace = trace::random(seed, 500, Mix::CONFLICTS);
        let (rtl, model) = (drive::run(cards.power_up(medium()), &trace), drive::run(model_card(), &trace));
        for (i, pair) in rtl.outcomes.iter().zip(&model.outcomes).enumerate() {
            match pair {
                (Outcome::Command { done: a, .. }, Outcome::Command { done: b, .. }) => {
                    assert_eq!((a.status, a.order), (b.status, b.order), "seed {seed}, step {i}: {:?}", trace[i].step);
                }
                (Outcome::Load { data: a, .. }, Outcome::Load { data: b, .. }) => {
                    assert_eq!(a, b, "seed {seed}, step {i}")
                }
                (Outcome::Store { .. }, Outcome::Store { .. }) => {}
                other => panic!("seed {seed}, step {i}: {other:?}"),
            }
        }
        assert!(without_save(&rtl.medium) == without_save(&model.medium), "seed {seed}: memory differs");
        let (r, m) = (command_cycles(&rtl), command_cycles(&model));
        let (median, p99) = (r.len() / 2, r.len() * 99 / 100);
        println!(
            "seed {seed}: median {} (RTL) {} (model), 99th percentile {} {}, whole trace {} {} cycles",
            r[median], m[median], r[p99], m[p99], rtl.cycles, model.cycles
        );
    }
}
