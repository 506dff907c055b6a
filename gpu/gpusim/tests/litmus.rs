//! The simulator against the model: litmus tests of `nearpm-sbrp` as kernels. What is durable at
//! each moment of a run, on hardware of several kinds and with delays of several lengths, is a
//! state that the model allows.

mod kernel;

use std::collections::BTreeSet;
use std::path::Path;

use nearpm_gpusim::{Config, Policy, Rule};
use nearpm_sbrp::Model;
use nearpm_sbrp::litmus::{Action, Observable, Test, Value, parse};
use nearpm_sbrp::verdict::outcomes;

const SEEDS: u64 = 4;

/// The tests that observe words of PM, and what the model allows these to hold.
fn tests() -> Vec<(String, Test, BTreeSet<Vec<Value>>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sbrp/litmus");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let test = parse(&std::fs::read_to_string(&path).expect("a file")).expect("a test");
        let of_words = |outcome: Vec<Value>| words(&test).map(|(at, _)| outcome[at]).collect::<Vec<_>>();
        let may: BTreeSet<_> = outcomes(&test, Model::Sbrp).into_iter().map(of_words).collect();
        if words(&test).next().is_some() {
            found.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), test, may));
        }
    }
    found
}

/// The observed words: which of the observables, and which word.
fn words(test: &Test) -> impl Iterator<Item = (usize, usize)> {
    test.observables.iter().enumerate().filter_map(|(at, observable)| match observable {
        Observable::Word(word) => Some((at, *word)),
        _ => None,
    })
}

fn hardware() -> Vec<(&'static str, Config)> {
    let mut list = Vec::new();
    for name in ["artifact-sbrp-near", "artifact-sbrp-far", "artifact-improved-near"] {
        let small =
            Config { sms: 4, l1_lines: 64, buffer_entries: 32, launch_cycles: 10, ..Config::named(name).unwrap() };
        let small = Config { budget: 10_000_000, ..small };
        list.push((name, Config { policy: Policy::Eager, ..small.clone() }));
        list.push((name, Config { policy: Policy::Lazy, ..small.clone() }));
        // A slow channel: what is flushed later comes much later.
        list.push((name, Config { pm_write_bytes: 0.5, pm_queue_bytes: 0, ..small.clone() }));
        list.push((name, small));
    }
    // What was tried to make the buffer faster.
    let near = list.iter().rfind(|(name, _)| *name == "artifact-sbrp-near").expect("a configuration").1.clone();
    let slow = Config { pm_write_bytes: 0.5, pm_queue_bytes: 0, ..near.clone() };
    for base in [near, slow] {
        list.push(("generations", Config { generations: true, bypass: 32, ..base.clone() }));
        list.push(("granules", Config { granule: 4, queue_merges: true, ..base }));
    }
    list
}

/// The states that a run passes through; those that the oracle finds allowed are added where it
/// knows all orders of the test.
fn states(test: &Test, config: &Config, seed: u64) -> BTreeSet<Vec<Value>> {
    let run = kernel::run(test, config, seed);
    let orders = |action: &Action| matches!(action, Action::Fence(_) | Action::DFence | Action::Barrier);
    let known = !test.threads.iter().flat_map(|thread| &thread.program).any(|i| orders(&i.action));
    let images = run.images.iter().chain(run.allowed.iter().filter(|_| known));
    images.map(|image| words(test).map(|(_, word)| image[word]).collect()).collect()
}

#[test]
fn what_is_durable_at_any_moment_is_what_the_model_allows() {
    let (mut shown, mut allowed, mut wrong, tests) = (0, 0, Vec::new(), tests());
    assert!(tests.len() >= 120, "{} tests", tests.len());
    for (name, test, may) in tests {
        let mut found = BTreeSet::new();
        for (hardware, config) in hardware() {
            for seed in 0..SEEDS {
                let states = states(&test, &config, seed);
                let other = states.difference(&may).next();
                wrong
                    .extend(other.map(|state| format!("{name} on {hardware}, {:?}, {seed}: {state:?}", config.policy)));
                found.extend(states);
            }
        }
        (shown, allowed) = (shown + found.len(), allowed + may.len());
    }
    println!("{shown} of {allowed} allowed states");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(shown * 2 > allowed, "{shown} of {allowed}: these runs would hardly show anything");
}

/// And with a rule less a state is seen that the model does not allow: this comparison can fail.
#[test]
fn rules_that_are_taken_away_are_missed() {
    let tests = tests();
    for rule in [Rule::Flush, Rule::Fence, Rule::DeviceRelease, Rule::Fifo] {
        let missed = tests.iter().find(|(_, test, may)| {
            hardware().into_iter().any(|(_, config)| {
                let config = Config { without: vec![rule], ..config };
                let run = kernel::run(test, &config, 0);
                run.images.iter().any(|image| !may.contains(&words(test).map(|(_, w)| image[w]).collect::<Vec<_>>()))
            })
        });
        assert!(missed.is_some(), "{rule:?} is missed by no litmus test");
    }
}
