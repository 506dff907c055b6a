//! Power cuts under a C program: at every fence of a short run, and at random events of longer
//! ones. What survives a cut besides what was fenced is drawn by a seed; lines are evicted at
//! random. After each cut the program must find what it acknowledged, or one operation more.
//!
//! The fast form makes some cuts; with `NEARPM_THOROUGH` set it makes 10 000.

use nearpm_pmemobj_programs::rig::{End, Rig, draw};
use nearpm_pmemobj_programs::{Library, MECHANISMS};
use nearpm_tier::thorough;

const MODES: [Library; 2] = [Library::WorkingCopy, Library::InPlace];

/// Cuts at the first, second, third ... fence, until there is none left.
#[test]
fn at_every_fence() {
    let operations = if thorough() { 100 } else { 10 };
    for library in MODES {
        let Some(rig) = Rig::new("power_cut", library) else { return };
        let mut fence = 1;
        while rig.cut(1, operations, &format!("fence={fence},seed={fence},evict=8")) == End::Cut {
            fence += 1;
        }
        assert!(fence > operations, "each operation has a fence: {fence}");
    }
}

#[test]
fn at_random_events() {
    at_random_events_of(Library::WorkingCopy, |seed| 1 + seed % 20);
}

#[test]
fn at_random_events_in_place() {
    // Each eviction looks for stores in the whole pool: few runs have many.
    at_random_events_of(Library::InPlace, |seed| if seed % 32 == 0 { 1 } else { 20 + seed % 20 });
}

fn at_random_events_of(library: Library, evict_one_in: impl Fn(u64) -> u64) {
    let (cuts, operations) = if thorough() { (5000, 200) } else { (30, 60) };
    let Some(rig) = Rig::new("power_cut", library) else { return };
    let End::Whole(events) = rig.cut(2, operations, "fence=0") else { panic!("power was cut without being told") };
    let (mut made, mut seed) = (0, 2);
    while made < cuts {
        let event = 1 + draw(seed) % events;
        // Another seed is another sequence with about as many events: some cuts come too late, and
        // do not count.
        let end = rig.cut(seed, operations, &format!("event={event},seed={seed},evict={}", evict_one_in(seed)));
        made += u64::from(end == End::Cut);
        seed += 1;
        assert!(seed < 2 * cuts, "only {made} of {seed} runs were cut");
    }
}

/// The same with commits that a mechanism brings home, carried out by the processor: on persistent
/// memory, and on a file of which sectors survive.
#[test]
fn by_each_mechanism() {
    let (operations, cuts) = if thorough() { (40, 500) } else { (6, 8) };
    for mechanism in MECHANISMS {
        let Some(rig) = Rig::by("power_cut", Library::WorkingCopy, mechanism) else { return };
        let mut fence = 1;
        while rig.cut(1, operations, &format!("fence={fence},seed={fence},evict=8")) == End::Cut {
            fence += 1;
        }
        assert!(fence > operations, "{mechanism}: each operation has a fence: {fence}");
        for torn in ["", ",torn=1"] {
            let whole = rig.cut(3, operations, &format!("fence=0{torn}"));
            let End::Whole(events) = whole else { panic!("power was cut without being told") };
            for seed in 3..3 + cuts {
                let event = 1 + draw(seed) % events;
                rig.cut(seed, operations, &format!("event={event},seed={seed},evict={}{torn}", 1 + seed % 20));
            }
        }
    }
}

/// Transactions that do not wait for the medium: what is found is a prefix, some of what has
/// returned is missing, and never what a call outside of transactions made.
#[test]
fn asynchronous_commits_leave_a_prefix() {
    let (operations, cuts) = if thorough() { (60, 300) } else { (20, 12) };
    let mut lost = 0;
    for mechanism in MECHANISMS {
        let Some(rig) = Rig::waiting("power_cut", Library::WorkingCopy, mechanism, "asynchronous") else { return };
        let whole = rig.cut_and_lost(3, operations, "fence=0");
        let (End::Whole(events), 0) = whole else { panic!("{mechanism}: {whole:?} of a pool that was closed") };
        for seed in 3..3 + cuts {
            let event = 1 + draw(seed) % events;
            lost += rig.cut_and_lost(seed, operations, &format!("event={event},seed={seed},evict=8")).1;
        }
    }
    assert!(lost > 0, "no transaction that had returned was lost");
}

/// Large transactions and publications from a working copy, cut at each fence, and at events all
/// along.
#[test]
fn large_changes() {
    let (operations, cuts) = if thorough() { (45, 200) } else { (10, 30) };
    let Some(rig) = Rig::new("defects_cut", Library::WorkingCopy) else { return };
    let mut fence = 1;
    while rig.cut(fence, operations, &format!("fence={fence},seed={fence},evict=50")) == End::Cut {
        fence += 1;
    }
    assert!(fence > operations, "each operation has a fence: {fence}");
    large_changes_at_events(&rig, operations, cuts);
}

/// As above in place, where the image looks for what the program has stored at each of many
/// thousand events: a run takes half a minute, so that only thorough runs have it.
#[test]
fn large_changes_in_place() {
    if !thorough() {
        eprintln!("SKIPPED: NEARPM_THOROUGH is not set");
        return;
    }
    let Some(rig) = Rig::new("defects_cut", Library::InPlace) else { return };
    large_changes_at_events(&rig, 5, 4);
}

fn large_changes_at_events(rig: &Rig, operations: u64, cuts: u64) {
    let End::Whole(events) = rig.cut(1, operations, "fence=0") else { panic!("power was cut without being told") };
    for seed in 1..=cuts {
        let event = seed * events / (cuts + 1);
        rig.cut(seed, operations, &format!("event={event},seed={seed},evict={}", 20 + seed));
    }
}
