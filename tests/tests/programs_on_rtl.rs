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
const TRANSACTIONS: usize = 12;
/// Kinds that a median is asserted of have so many values at least.
const ENOUGH: usize = 5;

/// Prints the times of a trace, and gives what is beyond 10 %.
fn beyond(name: &str, [rtl, model]: [u64; 2], durations: &mut Durations) -> Vec<String> {
    println!("{name}: {rtl} cycles (RTL), {model} (model)");
    let mut found = Vec::new();
    if !within_ten_percent(rtl, model) {
        found.push(format!("{name}: length {rtl} (RTL) {model} (model)"));
    }
    for (kind, [rtl, model]) in durations {
        let count = rtl.len();
        let [(r, r99), (m, m99)] = [rtl, model].map(|times| (quantile(times, 0.5), quantile(times, 0.99)));
        println!("  {kind:12} {count:5}: median {r} (RTL) {m} (model), 99th percentile {r99} (RTL) {m99} (model)");
        if count >= ENOUGH && !within_ten_percent(r, m) {
            found.push(format!("{name}: median of {count} x {kind} {r} (RTL) {m} (model)"));
        }
    }
    found
}

/// From power-up through the opening of the pool and some transactions to the end of the epoch. The program's accesses come at the cycles at which
/// they came to the transaction-level card.
#[test]
fn the_traces_of_the_programs_take_as_long_on_the_rtl_and_leave_the_same_memory() {
    let profile = Profile::load("vcu118-300").expect("an embedded profile");
    let cards = rtl_cards(MemoryPorts::One);
    let mut found = Vec::new();
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
            let cycles = compare(&name, &script.items(), runs, &mut durations);
            found.extend(beyond(&name, cycles, &mut durations));
        }
    }
    assert!(found.is_empty(), "beyond 10 %:\n{}", found.join("\n"));
}
