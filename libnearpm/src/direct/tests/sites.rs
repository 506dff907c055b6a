//! Every write-back and fence is needed: each is left out in turn, and the power cuts must find out.

use super::{Cuts, Mode, Run};
use crate::memory::planted::{self, Site};

/// A step that nothing fails without, and why it is there.
const NOT_SEEN: [(&str, &str); 0] = [];

fn run(mode: Mode, seed: u64) -> Run {
    Run { mode, seed, transactions: 120, evict_one_in: 0, cuts: Cuts::AfterOmissions }
}

/// The steps of direct pools that runs in a mode ask for.
fn sites(mode: Mode) -> Vec<Site> {
    planted::leave_out(None);
    planted::seen();
    run(mode, 1).make().unwrap();
    planted::seen().into_iter().filter(|(_, file, _)| file.contains("direct")).collect()
}

/// Whether the cuts of some run find out that a step is left out.
fn is_seen(mode: Mode, site: Site) -> bool {
    planted::leave_out(Some(site));
    // A pool that is broken enough panics instead of answering.
    let broken = |seed| std::panic::catch_unwind(|| run(mode, seed).make()).map_or(true, |result| result.is_err());
    let seen = (1..4).any(broken);
    planted::leave_out(None);
    seen
}

fn each_step_is_needed(mode: Mode) {
    let sites = sites(mode);
    let (seen, missed): (Vec<Site>, Vec<Site>) = sites.into_iter().partition(|&site| is_seen(mode, site));
    for site in &seen {
        println!("{mode:?}: without {site:?} a cut is not survived");
    }
    let unexplained: Vec<_> = missed
        .iter()
        .filter(|(step, file, line)| !NOT_SEEN.iter().any(|(s, _)| *s == format!("{step:?} {file}:{line}")))
        .collect();
    assert!(seen.len() > 10, "only {} steps were tried", seen.len());
    assert!(unexplained.is_empty(), "nothing fails without {unexplained:#?}");
}

#[test]
fn each_step_of_a_working_copy_is_needed() {
    each_step_is_needed(Mode::WorkingCopy);
}

#[test]
fn each_step_in_place_is_needed() {
    each_step_is_needed(Mode::InPlace);
}
