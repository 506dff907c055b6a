//! The nine programs' traces on the transaction-level card and on the RTL: the same memory, and the
//! same time.

use nearpm::Mechanism;
use nearpm_evaluation::recorded;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::machine::Power;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_sim::profile::Profile;
use nearpm_statistics::quantile;
use nearpm_tests::agreement::{Durations, compare, within_ten_percent};
use nearpm_tests::replay::Script;
use nearpm_tests::rig::{rtl_cards, thorough};
use nearpm_workloads::programs::Program;

/// Transactions of a trace.
const TRANSACTIONS: usize = 24;
/// A trace's own median of a kind is asserted where it has so many values. Of fewer the median is
/// that of single commands: copies of a page that are posted together take one or two times as long
/// by the order in which memory takes their bursts, and half of ten values may lie on either side.
/// They are printed, and asserted together over all programs.
const ENOUGH: usize = 20;

/// Traces with a kind whose median is beyond 10 %, as it is printed. Several commands are posted
/// together there, and each takes a shorter or a longer time by the order in which memory takes
/// their bursts, which the model keeps less finely. Both cards have both times; their medians fall
/// on different sides, never further apart than [`KNOWN_RATIO`].
const KNOWN: [(&str, &str); 4] = [
    ("tpcc under undo", "Commit"),
    ("memcached under undo", "UndoLog"),
    ("memcached under redo", "Apply"),
    ("pmemkv under redo", "Commit"),
];

/// The slower of two medians that are known to differ, over the faster.
const KNOWN_RATIO: f64 = 1.4;

/// What is beyond 10 %.
struct Beyond {
    kind: String,
    /// The slower median over the faster.
    ratio: f64,
    values: usize,
    text: String,
}

/// Adds the durations of a trace to those of all.
fn add(all: &mut Durations, of: &Durations) {
    for (kind, cards) in of {
        for (to, from) in all.entry(kind.clone()).or_default().iter_mut().zip(cards) {
            to.extend_from_slice(from);
        }
    }
}

/// Prints times by kind, and gives the medians that are beyond 10 %.
fn beyond(name: &str, durations: &mut Durations) -> Vec<Beyond> {
    let mut found = Vec::new();
    for (kind, [rtl, model]) in durations {
        let values = rtl.len();
        let [(r, rest_r), (m, rest_m)] =
            [rtl, model].map(|times| (quantile(times, 0.5), [0.25, 0.75, 0.99].map(|share| quantile(times, share))));
        println!(
            "  {kind:12} {values:5}: median {r} (RTL) {m} (model); quartiles and 99th percentile {rest_r:?} {rest_m:?}"
        );
        if !within_ten_percent(r, m) {
            let text = format!("{name}: median of {values} x {kind} {r} (RTL) {m} (model)");
            println!("  BEYOND 10 %: {text}");
            let ratio = r.max(m) as f64 / r.min(m) as f64;
            found.push(Beyond { kind: kind.clone(), ratio, values, text });
        }
    }
    found
}

/// All cycles that loads, status lines and commands took.
fn total(durations: &Durations) -> [u64; 2] {
    [0, 1].map(|card| durations.values().flat_map(|cards| &cards[card]).sum())
}

/// From power-up through the opening of the pool and some transactions to the end of the epoch. The
/// program's accesses come at the cycles at which they came to the transaction-level card, so that
/// a trace's length says little more than that no card falls behind: its cycles in loads, status
/// lines and commands are compared, too, and their medians.
#[test]
fn the_traces_of_the_programs_take_as_long_on_the_rtl_and_leave_the_same_memory() {
    let profile = Profile::load("vcu118-300").expect("an embedded profile");
    let cards = rtl_cards(MemoryPorts::One);
    let (mut wrong, mut all, mut met) = (Vec::new(), Durations::new(), 0);
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
            let mut beyond = beyond(&name, &mut durations);
            beyond.retain(|found| found.values >= ENOUGH);
            let known = |found: &Beyond| KNOWN.contains(&(&name, &found.kind));
            met += beyond.iter().filter(|found| known(found)).count();
            beyond.retain(|found| !known(found) || found.ratio > KNOWN_RATIO);
            wrong.extend(beyond.into_iter().map(|found| found.text));
            add(&mut all, &durations);
        }
    }
    println!("all traces:");
    // Without the long form there may be few of a kind in all of them.
    let enough = |found: &Beyond| thorough() || found.values >= ENOUGH;
    wrong.extend(beyond("all traces", &mut all).into_iter().filter(enough).map(|found| found.text));
    assert!(!thorough() || met == KNOWN.len(), "{met} of {KNOWN:?} are beyond 10 %: the others need no exemption");
    assert!(wrong.is_empty(), "beyond 10 %:\n{}", wrong.join("\n"));
}
