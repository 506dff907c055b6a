//! Every write-back and fence is needed: each is left out in turn, and the power cuts must find
//! out.

use super::{Cuts, Mode, POOL_BYTES, Run, thorough};
use crate::memory::planted::{self, Site};
use crate::{Durability, Mechanism};

/// Lines above a step, or of it, in which a comment may say why no cut shows that it is needed.
const REASON_LINES: usize = 4;

/// Whether the source says "Unseen:" and why.
fn is_explained(&(_, file, line): &Site) -> bool {
    let source = match file.rsplit('/').next() {
        Some("lifetime.rs") => include_str!("../lifetime.rs"),
        Some("truncate.rs") => include_str!("../truncate.rs"),
        Some("by_mechanism.rs") => include_str!("../by_mechanism.rs"),
        Some("shadow.rs") => include_str!("../../mechanism/shadow.rs"),
        Some("pages.rs") => include_str!("../../recovery/pages.rs"),
        Some("segments.rs") => include_str!("../../recovery/segments.rs"),
        _ => return false,
    };
    let line = line as usize;
    source.lines().take(line).skip(line.saturating_sub(REASON_LINES)).any(|text| text.contains("// Unseen"))
}

/// Asynchronous commits are those of a third kind of run, and those that a mechanism brings home of
/// a fourth.
type Kind = (Mode, Durability, Option<Mechanism>);

fn run((mode, durability, mechanism): Kind, seed: u64, cuts: Cuts) -> Run {
    Run {
        mode,
        seed,
        // Pages that have moved come home at each opening, and each cut is one.
        transactions: if mechanism == Some(Mechanism::Shadow) { 16 } else { 60 },
        evict_one_in: [9, 0, 2][seed as usize % 3],
        cuts,
        durability,
        mechanism,
        pool_bytes: POOL_BYTES,
        one_domain: durability == Durability::Asynchronous,
    }
}

/// The steps of direct pools that runs in a mode ask for.
fn sites(kind: Kind) -> Vec<Site> {
    planted::leave_out(None);
    planted::seen();
    // What fails with a step left out holds with all of them.
    runs(kind).for_each(|run| {
        run.make().unwrap();
    });
    // The steps of a transaction show within seconds; all of them take minutes.
    let all = ["/direct/", "/recovery/segments.rs", "/recovery/home.rs"];
    let tried = match kind.2 {
        Some(Mechanism::Shadow) => &["/direct/by_mechanism.rs", "/mechanism/", "/recovery/pages.rs"],
        // Those of records, and of the recovery, are tried without.
        Some(_) => &["/direct/by_mechanism.rs", "/mechanism/"][..],
        None if thorough() => &all,
        None => &["direct/transaction.rs", "direct/once.rs"],
    };
    planted::seen().into_iter().filter(|(_, file, _)| tried.iter().any(|part| file.contains(part))).collect()
}

/// The runs that look for a fault, the likely ones first.
fn runs(kind: Kind) -> impl Iterator<Item = Run> {
    let aimed = (0..4).map(move |seed| run(kind, seed, Cuts::AfterOmissions));
    let patient = (0..if thorough() { 8 } else { 0 }).map(move |seed| run(kind, seed, Cuts::OneIn(10)));
    aimed.chain(patient)
}

/// Whether the cuts of some run find out that a step is left out.
fn is_seen(kind: Kind, site: Site) -> bool {
    planted::leave_out(Some(site));
    // A pool that is broken enough panics instead of answering.
    let broken = |run: Run| std::panic::catch_unwind(|| run.make()).map_or(true, |result| result.is_err());
    let seen = runs(kind).any(broken);
    planted::leave_out(None);
    seen
}

fn each_step_is_needed(kind: Kind) {
    let sites = sites(kind);
    let (seen, missed): (Vec<Site>, Vec<Site>) = sites.into_iter().partition(|&site| is_seen(kind, site));
    for site in &seen {
        println!("{kind:?}: without {site:?} a cut is not survived");
    }
    let (explained, unexplained): (Vec<Site>, Vec<Site>) = missed.into_iter().partition(is_explained);
    for site in &explained {
        println!("{kind:?}: without {site:?} no cut shows it; the source says why");
    }
    // Where a drain is that of all, new objects need none of their own.
    let least = if kind.2.is_some() || kind.1 == Durability::Asynchronous && !thorough() {
        1
    } else if thorough() {
        20
    } else {
        2
    };
    assert!(seen.len() > least, "only {} steps were tried", seen.len());
    assert!(unexplained.is_empty(), "nothing fails without {unexplained:#?}");
}

#[test]
fn each_step_of_a_working_copy_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Durable, None));
}

#[test]
fn each_step_in_place_is_needed() {
    each_step_is_needed((Mode::InPlace, Durability::Durable, None));
}

#[test]
fn each_step_of_asynchronous_commits_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Asynchronous, None));
}

#[test]
fn each_step_of_commits_by_undo_logs_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Durable, Some(Mechanism::Undo)));
}

#[test]
fn each_step_of_commits_by_redo_logs_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Durable, Some(Mechanism::Redo)));
}

#[test]
fn each_step_of_commits_by_checkpoints_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Durable, Some(Mechanism::Checkpoint)));
}

#[test]
fn each_step_of_commits_by_shadow_pages_is_needed() {
    each_step_is_needed((Mode::WorkingCopy, Durability::Durable, Some(Mechanism::Shadow)));
}
