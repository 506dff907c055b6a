//! The link to a card is not coherent (contract, C9): each write-back, invalidate and fence of the library is left out in turn, in front of a
//! cache that evicts and loads ahead of time as it likes, and some run must fail.
//!
//! The card and the cache are the driver's mock: a line is evicted, and one that was touched or dropped lately is fetched, at any access; what is
//! written back travels at any moment until the fence; commands are carried out late and in any order that does not conflict.

#[path = "../../../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests of the whole library use more of it")]
mod common;
mod runs;

use std::path::Path;

use runs::Scenario;

use super::planted::{self, Site, Step};

/// Steps that no run misses, beside this file: file, what is in their line, and why they are there, with bars in between.
const NOT_REQUIRED: &str = "libnearpm/src/memory/card_tests/not_required.txt";

/// The code of the library that works on a card by commands.
const CARD_PATH: &[&str] =
    &["/executor/", "/mechanism/", "/pool/on_card.rs", "/page_cache.rs", "/primitives.rs", "/lane.rs", "/lane/ring.rs"];

fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}

/// Seeds of each scenario.
fn seeds() -> std::ops::Range<u64> {
    0..if thorough() { 48 } else { 6 }
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

/// The reason for a step that is not required, by its file, and its line or the number of that among equal ones.
fn why_not_required(site: &Site) -> Option<String> {
    let line = line_of(site);
    let above = read(site.1).lines().take(site.2 as usize).filter(|text| text.trim() == line).count();
    let named = [line.clone(), format!("{line} #{above}")];
    let table = read(NOT_REQUIRED);
    let mut entries = table.lines().map(|entry| entry.splitn(3, " | ").collect::<Vec<_>>());
    let entry =
        entries.find(|entry| entry.len() == 3 && site.1.ends_with(entry[0]) && named.iter().any(|n| n == entry[1]));
    entry.map(|entry| entry[2].to_owned())
}

/// Whether a run fails without a step.
fn is_seen(site: Site) -> bool {
    let breaks = |(scenario, seed): (Scenario, u64)| {
        planted::leave_out(Some(site));
        // A pool that is broken enough panics instead of answering.
        let outcome = std::panic::catch_unwind(|| scenario.run(seed));
        planted::leave_out(None);
        outcome.map_or(true, |result| result.is_err())
    };
    // All scenarios by turns, as any may be the one.
    seeds().flat_map(|seed| Scenario::ALL.map(|scenario| (scenario, seed))).any(breaks)
}

#[test]
fn each_step_on_the_way_to_a_card_is_needed() {
    planted::leave_out(None);
    planted::seen();
    for (scenario, seed) in seeds().flat_map(|seed| Scenario::ALL.map(|scenario| (scenario, seed))) {
        scenario.run(seed).unwrap_or_else(|e| panic!("{scenario:?} {seed} fails with every step: {e}"));
    }
    // The executor's own steps take seconds; all of the library's take minutes.
    let tried = if thorough() { CARD_PATH } else { &CARD_PATH[..1] };
    let sites: Vec<Site> =
        planted::seen().into_iter().filter(|(_, file, _)| tried.iter().any(|part| file.contains(part))).collect();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (seen, missed): (Vec<Site>, Vec<Site>) = sites.into_iter().partition(|&site| is_seen(site));
    std::panic::set_hook(quiet);
    for site in &seen {
        println!("killed: {site:?}: {}", line_of(site));
    }
    for site in &missed {
        println!(
            "not required: {site:?}: {}: {}",
            line_of(site),
            why_not_required(site).as_deref().unwrap_or("NOBODY KNOWS WHY")
        );
    }
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
