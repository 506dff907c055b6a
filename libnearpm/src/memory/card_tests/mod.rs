//! The link to a card is not coherent (contract, C9): each write-back, invalidate and fence of the library is left out in turn, in front of a
//! cache that evicts and loads ahead of time as it likes, and some run must fail.
//!
//! The card and the cache are the driver's mock: a line is evicted, and one that was touched or dropped lately is fetched, at any access; what is
//! written back travels at any moment until the fence; commands are carried out late and in any order that does not conflict.

#[path = "../../../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests of the whole library use more of it")]
mod common;
mod runs;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use runs::Scenario;

use super::planted::{self, Site, Step};

/// Steps that no run misses, beside this file: file, what is in their line, and why they are there, with bars in between.
const NOT_REQUIRED: &str = "libnearpm/src/memory/card_tests/not_required.txt";

/// Files of the library whose steps are not tried, and why.
const NOT_TRIED: [(&str, &str); 2] = [
    ("/memory/", "it hands on what others ask for"),
    (
        "/direct/",
        "no command works on direct pools, so that a card is to them as any memory: `direct/tests/sites.rs` tries their steps",
    ),
];

/// What each run of the tests tries; the thorough form tries all files.
const FAST: &str = "/executor/";

fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}

/// So many seeds of each scenario try what is explained: a step that no run misses costs every run.
const SEEDS_OF_EXPLAINED: u64 = 1;

/// A file of the workspace.
fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    std::fs::read_to_string(root.join(file)).expect("the source is where it was compiled")
}

/// What is in the line of a step.
fn line_of(&(_, file, line): &Site) -> String {
    read(file).lines().nth(line as usize - 1).expect("the file has that line").trim().to_owned()
}

/// The reason for a step that is not required, by its file, and its line, the number of that among equal ones, or the step that its line asks for.
fn why_not_required(site: &Site) -> Option<String> {
    let line = line_of(site);
    let above = read(site.1).lines().take(site.2 as usize).filter(|text| text.trim() == line).count();
    let step = site.0;
    let named = [line.clone(), format!("{line} #{above}"), format!("{step:?} of {line}")];
    let table = read(NOT_REQUIRED);
    let mut entries = table.lines().map(|entry| entry.splitn(3, " | ").collect::<Vec<_>>());
    let entry =
        entries.find(|entry| entry.len() == 3 && site.1.ends_with(entry[0]) && named.iter().any(|n| n == entry[1]));
    entry.map(|entry| entry[2].to_owned())
}

/// All scenarios by turns, as any may be the one that misses a step.
fn runs() -> impl Iterator<Item = (Scenario, u64)> {
    let most = Scenario::ALL.into_iter().map(|scenario| scenario.seeds()).max().unwrap_or(0);
    let all = (0..most).flat_map(|seed| Scenario::ALL.map(|scenario| (scenario, seed)));
    all.filter(|(scenario, seed)| *seed < scenario.seeds())
}

/// The run that fails without a step, of those that ask for it, and how.
fn failure_without(site: Site, runs: &[Seen]) -> Option<String> {
    let breaks = |&((scenario, seed), _): &Seen| {
        planted::leave_out(Some(site));
        // A pool that is broken enough panics instead of answering.
        let outcome = std::panic::catch_unwind(|| scenario.run(seed));
        planted::leave_out(None);
        let error = outcome.unwrap_or_else(|_| Err("a panic".to_owned())).err()?;
        Some(format!("{scenario:?} {seed}: {error}"))
    };
    let seeds = if why_not_required(&site).is_some() { SEEDS_OF_EXPLAINED } else { u64::MAX };
    runs.iter().filter(|((_, seed), seen)| *seed < seeds && seen.contains(&site)).find_map(breaks)
}

/// A run, and the steps that it asks for.
type Seen = ((Scenario, u64), BTreeSet<Site>);

/// Every run with all its steps.
///
/// # Panics
/// If one fails.
fn seen_by_runs() -> Vec<Seen> {
    let runs: Vec<_> = runs().collect();
    let outcomes = on_each_processor(&runs, |&(scenario, seed)| {
        planted::leave_out(None);
        planted::seen();
        let done = scenario.run(seed).map_err(|e| format!("{scenario:?} {seed}: {e}"));
        (done.err(), planted::seen())
    });
    let failures: Vec<_> = outcomes.iter().filter_map(|(failure, _)| failure.as_ref()).collect();
    assert!(failures.is_empty(), "with every step fail {failures:#?}");
    runs.into_iter().zip(outcomes.into_iter().map(|(_, seen)| seen)).collect()
}

/// Does work on as many threads as there are processors, and gives the results in the order of the work.
fn on_each_processor<W: Sync, R: Send>(work: &[W], does: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let taken = std::iter::from_fn(|| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            Some((number, work.get(number)?))
        });
        taken.map(|(number, work)| (number, does(work))).collect::<Vec<_>>()
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run fails with every step")).collect()
    });
    done.sort_by_key(|&(number, _)| number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn each_step_on_the_way_to_a_card_is_needed() {
    // The executor's own steps take seconds; all of the library's take minutes.
    let tried = |file: &str| {
        if thorough() { NOT_TRIED.iter().all(|(part, _)| !file.contains(part)) } else { file.contains(FAST) }
    };
    let runs = seen_by_runs();
    let sites: BTreeSet<Site> = runs.iter().flat_map(|(_, seen)| seen).copied().collect();
    let sites: Vec<Site> = sites.into_iter().filter(|(_, file, _)| tried(file)).collect();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let killed = on_each_processor(&sites, |&site| {
        let failure = failure_without(site, &runs);
        match &failure {
            Some(failure) => {
                println!("killed: {site:?}: {}: {}", line_of(&site), &failure[..failure.floor_char_boundary(120)]);
            }
            None => {
                let why = why_not_required(&site);
                println!(
                    "not required: {site:?}: {}: {}",
                    line_of(&site),
                    why.as_deref().unwrap_or("NOBODY KNOWS WHY")
                );
            }
        }
        failure.is_some()
    });
    std::panic::set_hook(quiet);
    let all = sites.into_iter().zip(killed);
    let (seen, missed): (Vec<_>, Vec<_>) = all.partition(|&(_, killed)| killed);
    let [seen, missed] = [seen, missed].map(|part| part.into_iter().map(|(site, _)| site).collect::<Vec<Site>>());
    println!("Of {} sites {} are killed", seen.len() + missed.len(), seen.len());
    assert!(seen.iter().any(|site| site.0 == Step::Invalidate), "no invalidate was tried");
    assert!(seen.len() > 5, "only {} steps were tried", seen.len());
    let stale: Vec<_> = seen.iter().filter(|site| why_not_required(site).is_some()).collect();
    assert!(stale.is_empty(), "{NOT_REQUIRED} says that no run misses {stale:#?}");
    // Fewer seeds miss more.
    if thorough() {
        let unexplained: Vec<_> = missed.iter().filter(|site| why_not_required(site).is_none()).collect();
        assert!(unexplained.is_empty(), "nothing fails without {unexplained:#?}");
    }
}
