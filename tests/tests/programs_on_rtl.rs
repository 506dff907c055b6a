//! The nine programs' traces on the transaction-level card and on the RTL: the same memory, and the same time.

use nearpm::Mechanism;
use nearpm_evaluation::recorded;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::machine::Power;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_sim::profile::Profile;
use nearpm_tests::agreement::{Durations, compare, quantile, within_ten_percent};
use nearpm_tests::replay::Script;
use nearpm_tests::rig::{rtl_cards, thorough};
use nearpm_workloads::programs::Program;

/// Transactions of a trace.
const TRANSACTIONS: usize = 24;
/// A trace's own median of a kind is asserted where it has so many values. Of fewer the median is that of single commands: copies of a page that are posted
/// together take one or two times as long by the order in which memory takes their bursts, and half of ten values may lie on either side. They
/// are printed, and asserted together over all programs.
const ENOUGH: usize = 20;

/// Adds the durations of a trace to those of all.
fn add(all: &mut Durations, of: &Durations) {
    for (kind, cards) in of {
        for (to, from) in all.entry(kind.clone()).or_default().iter_mut().zip(cards) {
            to.extend_from_slice(from);
        }
    }
}

/// Prints times by kind, and gives the medians that are beyond 10 %, with how many values they are of.
fn beyond(name: &str, durations: &mut Durations) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (kind, [rtl, model]) in durations {
        let count = rtl.len();
        let [(r, r99), (m, m99)] = [rtl, model].map(|times| (quantile(times, 0.5), quantile(times, 0.99)));
        println!("  {kind:12} {count:5}: median {r} (RTL) {m} (model), 99th percentile {r99} (RTL) {m99} (model)");
        if !within_ten_percent(r, m) {
            found.push((count, format!("{name}: median of {count} x {kind} {r} (RTL) {m} (model)")));
        }
    }
    found
}

/// All cycles that loads, status lines and commands took.
fn total(durations: &Durations) -> [u64; 2] {
    [0, 1].map(|card| durations.values().flat_map(|cards| &cards[card]).sum())
}

/// From power-up through the opening of the pool and some transactions to the end of the epoch. The program's accesses come at the cycles at which
/// they came to the transaction-level card, so that a trace's length says little more than that no card falls behind: its cycles in loads, status lines and
/// commands are compared, too, and their medians.
#[test]
fn the_traces_of_the_programs_take_as_long_on_the_rtl_and_leave_the_same_memory() {
    let profile = Profile::load("vcu118-300").expect("an embedded profile");
    let cards = rtl_cards(MemoryPorts::One);
    let (mut wrong, mut all) = (Vec::new(), Durations::new());
    for (number, program) in Program::ALL.into_iter().enumerate() {
        for mechanism in Mechanism::ALL {
            // Without the long form each program has one mechanism, in turn.
            if !thorough() && Mechanism::ALL[number % Mechanism::ALL.len()] != mechanism {
                continue;
            }
            let name = format!("{} under {}", program.name(), mechanism.name());
            let recording = recorded::record(&profile, program, mechanism, TRANSACTIONS);
            let recording = recording.unwrap_or_else(|e| panic!("{name}: {e:#}"));
            let script = Script::new(&recording.accesses);
            let model = ModelCard::new(Config::default(), recording.medium.clone());
            let runs = [script.play(cards.power_up(recording.medium)), script.play(Box::new(model))];
            let mut durations = Durations::new();
            let lengths = compare(&name, &script.items(), runs, &mut durations);
            println!("{name}: {lengths:?} cycles, of them {:?} in loads, status lines and commands", total(&durations));
            for (what, [rtl, model]) in [("length", lengths), ("sum", total(&durations))] {
                if !within_ten_percent(rtl, model) {
                    wrong.push(format!("{name}: {what} {rtl} (RTL) {model} (model)"));
                }
            }
            for (count, median) in beyond(&name, &mut durations) {
                println!("  BEYOND 10 %: {median}");
                wrong.extend((count >= ENOUGH).then_some(median));
            }
            add(&mut all, &durations);
        }
    }
    println!("all traces:");
    // Without the long form there may be few of a kind in all of them.
    let medians = beyond("all traces", &mut all).into_iter().filter(|(count, _)| thorough() || *count >= ENOUGH);
    wrong.extend(medians.map(|(_, median)| median));
    assert!(wrong.is_empty(), "beyond 10 %:\n{}", wrong.join("\n"));
}
