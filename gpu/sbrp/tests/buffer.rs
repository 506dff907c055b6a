//! The persist buffer against the model: no state that the model does not allow, and every rule
//! counts.

use std::collections::BTreeSet;
use std::path::Path;

use nearpm_sbrp::Model;
use nearpm_sbrp::buffer::{Answer, BufferRule, BufferRules, Flush, Kind, PersistBuffer, Sizes, explore};
use nearpm_sbrp::litmus::{Test, parse};
use nearpm_sbrp::outcome::Outcome;
use nearpm_sbrp::verdict::outcomes;

const BOUND: usize = 3_000_000;
/// Small, so that full buffers and counters are among the states.
const SMALL: Sizes = Sizes { entries: 3, outstanding: 2 };

/// Rules that no litmus test misses, and why.
const MORE_THAN_THE_MODEL: &[BufferRule] = &[
    // Progress, not order: `a_dfence_ends_though_others_persist` is about it.
    BufferRule::HoldsTheHead,
    // Likewise: `a_warp_that_waits_for_a_line_goes_on_though_others_persist`.
    BufferRule::OrderFrees,
];

fn tests() -> Vec<(String, Test, BTreeSet<Outcome>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let mut names: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    names.sort();
    let read = |path: std::path::PathBuf| {
        let test = parse(&std::fs::read_to_string(&path).expect("a file")).expect("a test");
        let may = outcomes(&test, Model::Sbrp);
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), test, may)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn every_state_of_the_buffer_is_allowed_and_nothing_comes_to_a_stand() {
    let (mut shown, mut allowed, mut states) = (0, 0, 0);
    for (name, test, may) in tests() {
        let found = explore(&test, BufferRules::all(), SMALL, BOUND, |_| false).expect("small");
        let wrong: Vec<_> = found.outcomes.difference(&may).collect();
        assert!(wrong.is_empty(), "{name}: {:?} {wrong:?}", test.observed);
        assert!(!found.stuck, "{name} comes to a stand");
        (shown, allowed, states) = (shown + found.outcomes.len(), allowed + may.len(), states + found.states);
    }
    println!("{shown} of {allowed} allowed states, {states} states of buffers");
    assert!(shown * 10 > allowed * 7, "{shown} of {allowed}: the buffer would hardly buffer");
}

#[test]
fn each_rule_is_missed_by_a_litmus_test() {
    let tests = tests();
    for rule in BufferRule::ALL {
        let missed = tests.iter().find(|(_, test, may)| {
            let found = explore(test, BufferRules::without(*rule), SMALL, BOUND, |outcome| !may.contains(outcome));
            let found = found.expect("small");
            found.stuck || !found.outcomes.is_subset(may)
        });
        println!("{:<26} {}", rule.name(), missed.map_or("(by none)", |(name, ..)| name));
        assert_eq!(missed.is_none(), MORE_THAN_THE_MODEL.contains(rule), "{rule:?}");
    }
}

/// What another warp persists meanwhile does not keep a `dFence` from its end (its counter would
/// never be zero).
#[test]
fn a_dfence_ends_though_others_persist() {
    let ends = |rules: BufferRules| {
        let mut buffer = PersistBuffer::new(rules, Sizes { entries: 8, outstanding: 4 });
        assert_eq!(buffer.persist(0, 0), Answer::Accepted);
        assert_eq!(buffer.order(0, Kind::DFence), Answer::Held);
        let mut under_way = 0u32;
        (0..10_000).find(|turn| {
            // Another warp persists a line in each turn; memory takes a while for each and answers
            // one at a time.
            buffer.persist(1, 1 + turn % 7);
            let sent = buffer.flush();
            under_way += u32::from(matches!(sent, Flush::Line(_)));
            if under_way > 2 || under_way > 0 && sent == Flush::Nothing {
                buffer.acknowledge();
                under_way -= 1;
            }
            !buffer.holds(0)
        })
    };
    assert!(ends(BufferRules::all()).is_some_and(|turns| turns < 20));
    assert_eq!(ends(BufferRules::without(BufferRule::HoldsTheHead)), None, "starvation, as the paper's text has it");
}

/// Nor a warp that waits for a line which lies before its own order.
#[test]
fn a_warp_that_waits_for_a_line_goes_on_though_others_persist() {
    let goes_on = |rules: BufferRules| {
        let mut buffer = PersistBuffer::new(rules, Sizes { entries: 8, outstanding: 4 });
        buffer.persist(0, 0);
        buffer.order(0, Kind::OFence);
        assert_eq!(buffer.persist(0, 0), Answer::Refused);
        let mut under_way = 0u32;
        (0..10_000).find(|turn| {
            // As above: with two lines always under way the counter is never zero.
            buffer.persist(1, 1 + turn % 7);
            under_way += u32::from(matches!(buffer.flush(), Flush::Line(_)));
            if under_way > 2 {
                buffer.acknowledge();
                under_way -= 1;
            }
            !buffer.holds(0)
        })
    };
    assert!(goes_on(BufferRules::all()).is_some_and(|turns| turns < 20));
    assert_eq!(goes_on(BufferRules::without(BufferRule::OrderFrees)), None, "starvation, as the paper's text has it");
}

/// A warp that waits for a line (EDM) always goes on: the head never waits for a warp, only for
/// memory.
#[test]
fn the_head_waits_for_memory_only() {
    let mut buffer = PersistBuffer::new(BufferRules::all(), Sizes { entries: 4, outstanding: 1 });
    buffer.persist(0, 0);
    buffer.order(1, Kind::OFence);
    buffer.order(0, Kind::OFence);
    buffer.persist(1, 1);
    assert_eq!(buffer.persist(0, 0), Answer::Refused);
    assert!(buffer.holds(0));
    let mut acknowledged = 0;
    while !buffer.is_drained() {
        if buffer.flush() == Flush::Nothing {
            buffer.acknowledge();
            acknowledged += 1;
        }
        assert!(acknowledged < 10, "{buffer:?}");
    }
    assert!(!buffer.holds(0));
}

#[test]
fn fences_share_an_entry_only_side_by_side() {
    let mut buffer = PersistBuffer::new(BufferRules::all(), Sizes { entries: 8, outstanding: 4 });
    buffer.order(0, Kind::OFence);
    buffer.order(1, Kind::OFence);
    buffer.persist(0, 0);
    buffer.order(2, Kind::OFence);
    let warps: Vec<u32> = buffer.entries().map(|entry| entry.warps).collect();
    assert_eq!(warps, [0b011, 0b001, 0b100]);
}

#[test]
fn random_programs_show_nothing_that_the_model_forbids() {
    let (mut looked_at, mut shown) = (0, 0);
    for seed in 0..400 {
        let trial = nearpm_sbrp::random::trial(seed);
        let Ok(found) = explore(&trial.test, BufferRules::all(), SMALL, 60_000, |_| false) else { continue };
        let may = outcomes(&trial.test, Model::Sbrp);
        let wrong: Vec<_> = found.outcomes.difference(&may).collect();
        assert!(wrong.is_empty(), "seed {seed}\n{}\n{wrong:?}", trial.text);
        assert!(!found.stuck, "seed {seed} comes to a stand\n{}", trial.text);
        looked_at += 1;
        shown += found.outcomes.len();
    }
    println!("{looked_at} programs, {shown} outcomes");
    assert!(looked_at > 350, "{looked_at} of 400 are small enough");
}
