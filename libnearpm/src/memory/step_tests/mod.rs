//! Each step that makes bytes durable, or lets others see them, is left out in turn, and some run
//! must fail: in front of a card (`card.rs`), and in front of the processor's own memory
//! (`memory.rs`).

#[path = "../../../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests of the whole library use more of it")]
mod common;

mod card;
mod memory;
mod object;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm_tier::thorough;

use super::planted::{self, Site, Step};
use crate::Error;

/// Files of the library whose steps are not tried, and why.
const NOT_TRIED: [(&str, &str); 4] = [
    ("/memory/", "it hands on what others ask for"),
    (
        "/direct/",
        "their own steps are those of any memory, which `direct/tests/sites.rs` tries; a mechanism has its steps in its own files",
    ),
    ("/recovery/segments.rs", "the log of direct pools: `direct/tests/sites.rs` tries its steps"),
    ("/recovery/home.rs", "as for `/recovery/segments.rs`"),
];

/// What each run of the tests tries; the thorough form tries all files.
const FAST: &str = "/executor/";

/// So many seeds of each scenario try what is explained: a step that no run misses costs every run.
const SEEDS_OF_EXPLAINED: u64 = 1;

/// What runs may do that reach memory in one way, and go wrong when a step is missing.
trait Scenario: Copy + Debug + Send + Sync + std::panic::RefUnwindSafe + 'static {
    /// Steps that no run misses: a file of the workspace with the step's file, what is in its line,
    /// and why it is there, with bars in between.
    const NOT_REQUIRED: &'static str;
    /// Nothing has to be invalidated, as all see what is in the cache.
    const COHERENT: bool;
    /// Every scenario.
    fn all() -> Vec<Self>;
    /// How many runs there are of it, each with a seed of its own.
    fn seeds(self) -> u64;
    /// Makes a run, the same for the same seed.
    ///
    /// # Errors
    /// What has gone wrong.
    fn run(self, seed: u64) -> Result<(), String>;
}

fn say(error: Error) -> String {
    error.to_string()
}

fn same<T: PartialEq + Debug>(found: T, expected: T, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} instead of {expected:?}")) }
}

/// A file of the workspace.
fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    std::fs::read_to_string(root.join(file)).expect("the source is where it was compiled")
}

/// What is in the line of a step.
fn line_of(&(_, file, line): &Site) -> String {
    read(file).lines().nth(line as usize - 1).expect("the file has that line").trim().to_owned()
}

/// An entry of [`Scenario::NOT_REQUIRED`].
struct Entry {
    /// The end of its file's path, folder and all.
    file: String,
    /// Its line, the number of that among equal ones, or the step that its line asks for.
    line: String,
    why: String,
}

impl Entry {
    fn is_of(&self, site: &Site) -> bool {
        let line = line_of(site);
        let above = read(site.1).lines().take(site.2 as usize).filter(|text| text.trim() == line).count();
        let step = site.0;
        let named = [line.clone(), format!("{line} #{above}"), format!("{step:?} of {line}")];
        site.1.ends_with(&format!("/{}", self.file)) && named.contains(&self.line)
    }
}

/// What is said of steps that are not required.
///
/// # Panics
/// If a line has another form.
fn entries<S: Scenario>() -> Vec<Entry> {
    let entry = |text: &str| match text.splitn(3, " | ").collect::<Vec<_>>()[..] {
        [file, line, why] => Entry { file: file.to_owned(), line: line.to_owned(), why: why.to_owned() },
        _ => panic!("{} has a line without a reason: {text}", S::NOT_REQUIRED),
    };
    read(S::NOT_REQUIRED).lines().map(entry).collect()
}

/// The reason for a step that is not required.
fn why_not_required<S: Scenario>(site: &Site) -> Option<String> {
    entries::<S>().into_iter().find(|entry| entry.is_of(site)).map(|entry| entry.why)
}

/// All scenarios by turns, as any may be the one that misses a step.
fn runs<S: Scenario>() -> Vec<(S, u64)> {
    let most = S::all().into_iter().map(Scenario::seeds).max().unwrap_or(0);
    let all = (0..most).flat_map(|seed| S::all().into_iter().map(move |scenario| (scenario, seed)));
    all.filter(|(scenario, seed)| *seed < scenario.seeds()).collect()
}

/// The run that fails without a step, of those that ask for it, and how.
fn failure_without<S: Scenario>(site: Site, runs: &[Seen<S>]) -> Option<String> {
    let breaks = |&((scenario, seed), _): &Seen<S>| {
        planted::leave_out(Some(site));
        // A pool that is broken enough panics instead of answering.
        let outcome = std::panic::catch_unwind(|| scenario.run(seed));
        planted::leave_out(None);
        let error = outcome.unwrap_or_else(|_| Err("a panic".to_owned())).err()?;
        Some(format!("{scenario:?} {seed}: {error}"))
    };
    let seeds = if why_not_required::<S>(&site).is_some() { SEEDS_OF_EXPLAINED } else { u64::MAX };
    runs.iter().filter(|((_, seed), seen)| *seed < seeds && seen.contains(&site)).find_map(breaks)
}

/// A run, and the steps that it asks for.
type Seen<S> = ((S, u64), BTreeSet<Site>);

/// Every run with all its steps.
///
/// # Panics
/// If one fails.
fn seen_by_runs<S: Scenario>() -> Vec<Seen<S>> {
    let runs = runs::<S>();
    let outcomes = on_all_workers(&runs, |&(scenario, seed)| {
        planted::leave_out(None);
        planted::seen();
        let done = scenario.run(seed).map_err(|e| format!("{scenario:?} {seed}: {e}"));
        (done.err(), planted::seen())
    });
    let failures: Vec<_> = outcomes.iter().filter_map(|(failure, _)| failure.as_ref()).collect();
    assert!(failures.is_empty(), "with every step fail {failures:#?}");
    runs.into_iter().zip(outcomes.into_iter().map(|(_, seen)| seen)).collect()
}

/// Does work on as many threads as are asked for, without that as there are processors, and gives
/// the results in the order of the work.
fn on_all_workers<W: Sync, R: Send>(work: &[W], does: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let threads = nearpm_tier::jobs(1);
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

/// Leaves out each step that the runs ask for in a file that is tried; gives those without which
/// some run fails.
///
/// # Panics
/// If nothing fails without a step, and nobody says why; or if somebody says so of one without
/// which a run fails.
fn each_step_is_needed<S: Scenario>(tried: impl Fn(&str) -> bool) -> Vec<Site> {
    let runs = seen_by_runs::<S>();
    let sites: BTreeSet<Site> = runs.iter().flat_map(|(_, seen)| seen).copied().collect();
    let tried = |file: &str| tried(file) && NOT_TRIED.iter().all(|(part, _)| !file.contains(part));
    let acts = |step: Step| !(S::COHERENT && step == Step::Invalidate);
    let sites: Vec<Site> = sites.into_iter().filter(|&(step, file, _)| acts(step) && tried(file)).collect();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let killed = on_all_workers(&sites, |&site| {
        let failure = failure_without(site, &runs);
        match &failure {
            Some(failure) => {
                println!("killed: {site:?}: {}: {}", line_of(&site), &failure[..failure.floor_char_boundary(120)]);
            }
            None => {
                let why = why_not_required::<S>(&site);
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
    let stale: Vec<_> = seen.iter().filter(|site| why_not_required::<S>(site).is_some()).collect();
    assert!(stale.is_empty(), "{} says that no run misses {stale:#?}", S::NOT_REQUIRED);
    // Fewer seeds miss more.
    if thorough() {
        let unexplained: Vec<_> = missed.iter().filter(|site| why_not_required::<S>(site).is_none()).collect();
        assert!(unexplained.is_empty(), "nothing fails without {unexplained:#?}");
        let entries = entries::<S>();
        let idle = entries.iter().filter(|entry| !missed.iter().any(|site| entry.is_of(site)));
        let idle: Vec<_> = idle.map(|entry| format!("{} | {}", entry.file, entry.line)).collect();
        assert!(idle.is_empty(), "{} names no step that the runs ask for by {idle:#?}", S::NOT_REQUIRED);
        let (all, noticed) = (seen.len() + missed.len(), seen.len());
        println!(r#"{{"counts":{{"steps":{all},"noticed":{noticed},"explained":{},"violations":0}}}}"#, missed.len());
    }
    seen
}

#[test]
fn each_step_on_the_way_to_a_card_is_needed() {
    // The executor's own steps take seconds; all of the library's take minutes.
    let seen = each_step_is_needed::<card::Scenario>(|file| thorough() || file.contains(FAST));
    assert!(seen.iter().any(|site| site.0 == Step::Invalidate), "no invalidate was tried");
    assert!(seen.len() > 5, "only {} steps were tried", seen.len());
}

#[test]
fn each_step_on_the_way_to_memory_is_needed() {
    let seen = each_step_is_needed::<memory::Scenario>(|file| thorough() || file.contains(FAST));
    assert!(seen.len() > 5, "only {} steps were tried", seen.len());
}
