//! Both designs are linearizable, and durably so; each hole of the paper's, and each mistake that ours could have, is found.

use nearpm_gphash::{Design, Layout, Op};
use nearpm_gphashbench::campaign::{Tally, history};
use nearpm_gphashbench::exhaust::{self, Bounds, Gone};
use nearpm_gphashbench::growing;
use nearpm_gphashbench::trial::{Shape, Subject, Trial};

fn sound(subject: &Subject, seeds: u64) {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        history(subject, seed, 2, &mut tally).unwrap_or_else(|error| panic!("{error:#}"));
    }
    eprintln!("{tally:?}");
    assert!(tally.histories == seeds && tally.crashes > seeds);
}

#[test]
fn levels_are_durably_linearizable() {
    sound(&Subject::small(Design::Levels), 40);
}

#[test]
fn tags_are_durably_linearizable() {
    sound(&Subject::small(Design::Tags), 40);
}

#[test]
fn batches_of_levels_are_durably_linearizable() {
    sound(&Subject::small(Design::Levels).batched(), 40);
}

#[test]
fn batches_of_tags_are_durably_linearizable() {
    sound(&Subject::small(Design::Tags).batched(), 40);
}

#[test]
fn tables_with_a_cache_are_durably_linearizable() {
    for design in [Design::Levels, Design::Tags] {
        // Behind one turn the cache is being filled, behind two it is in use.
        sound(&Subject::small(design).cached(1), 15);
        sound(&Subject::small(design).cached(2), 15);
    }
}

#[test]
fn growing_tables_lose_nothing() {
    for design in [Design::Levels, Design::Tags] {
        let mut tally = Tally::default();
        for seed in 0..6 {
            growing::history(&Subject::small(design).growing(), seed, 4, &mut tally)
                .unwrap_or_else(|error| panic!("{error:#}"));
        }
        assert!(tally.crashes > 10, "{tally}");
    }
}

#[test]
fn pairs_that_the_papers_resize_drops_are_missed() {
    for design in [Design::Levels, Design::Tags] {
        let subject = Subject::small(design).with_holes(LOST).growing();
        let shown = (0..300).find_map(|seed| growing::history(&subject, seed, 4, &mut Tally::default()).err());
        let shown = format!("{:#}", shown.expect("a pair is lost"));
        assert!(shown.contains("key") && shown.contains("has None") || shown.contains("ended with Absent"), "{shown}");
    }
}

/// `GPH_HOLE_FENCE` and its like.
const FENCE: u32 = 1;
const READERS: u32 = 2;
const TWICE: u32 = 4;
const REUSE: u32 = 8;
const OVERWRITE: u32 = 16;
const LOST: u32 = 64;
const STALE: u32 = 128;

/// The number of seeds after which the hole shows.
fn found(subject: &Subject, seeds: u64) {
    let shown = (0..seeds).find(|&seed| history(subject, seed, 6, &mut Tally::default()).is_err());
    eprintln!("hole {} of {:?}: {shown:?}", subject.holes, subject.layout.design);
    assert!(shown.is_some(), "hole {} does not show in {seeds} histories", subject.holes);
}

#[test]
fn the_holes_of_the_papers_table_are_found() {
    let levels = Subject::small(Design::Levels);
    for hole in [FENCE, READERS, TWICE] {
        found(&levels.clone().with_holes(hole), 500);
    }
}

#[test]
fn mistakes_in_tags_are_found() {
    let tags = Subject::small(Design::Tags);
    for hole in [FENCE, TWICE] {
        found(&tags.clone().with_holes(hole), 500);
    }
}

#[test]
fn a_cache_that_is_written_behind_the_table_is_found() {
    for design in [Design::Levels, Design::Tags] {
        for turns in [1, 2] {
            found(&Subject::small(design).with_holes(STALE).cached(turns), 500);
        }
    }
}

/// A trial, gone through with one preemption.
fn gone_through(
    subject: &Subject,
    shape: Shape,
    ops: &[(Op, u64)],
    before: &[u64],
    crashes: bool,
) -> anyhow::Result<Gone> {
    let trial = Trial::of(subject, shape, ops.to_vec(), before.to_vec())?;
    let mut gone = Gone::default();
    let bounds = Bounds { preemptions: 1, limit: 20_000, crashes };
    exhaust::one(&trial, shape.warps, bounds, &mut gone)?;
    Ok(gone)
}

/// The trial shows the hole, and nothing without it.
fn shows(subject: &Subject, hole: u32, shape: Shape, ops: &[(Op, u64)], before: &[u64], crashes: bool) {
    let gone = gone_through(subject, shape, ops, before, crashes).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(gone.complete == 1, "{gone:?}");
    let Err(error) = gone_through(&subject.clone().with_holes(hole), shape, ops, before, crashes) else {
        panic!("hole {hole} does not show in {gone:?}");
    };
    eprintln!("hole {hole} of {:?}: {error:#}", subject.layout.design);
}

/// A reader has found its pair's slot and not yet read it; the pair is deleted, and another gets the slot.
#[test]
fn slots_that_are_used_again_at_once_are_found() {
    let shape = Shape { warps: 2, lanes: 1, rounds: 2, keys: 9 };
    let ops = [(Op::Get, 1), (Op::Get, 1), (Op::Delete, 1), (Op::Insert, 9)];
    for design in [Design::Levels, Design::Tags] {
        // The bucket is full, so that the new pair has no other slot.
        shows(&Subject::small(design).one_bucket(), REUSE, shape, &ops, &[1, 2, 3, 4, 5, 6, 7, 8], false);
    }
}

/// A reader answers by a key whose writer has not persisted it; power fails, and its answer has arrived.
#[test]
fn readers_of_what_has_not_persisted_are_found() {
    let shape = Shape { warps: 2, lanes: 1, rounds: 1, keys: 1 };
    for design in [Design::Levels, Design::Tags] {
        shows(&Subject::small(design).one_bucket(), READERS, shape, &[(Op::Insert, 1), (Op::Get, 1)], &[], true);
    }
}

/// An update gives way to one that finds no cell, and is lost with it.
#[test]
fn updates_that_give_way_to_none_are_found() {
    let shape = Shape { warps: 2, lanes: 2, rounds: 1, keys: 3 };
    let tags = Subject::small(Design::Tags).one_bucket().batched();
    let tags = Subject { layout: Layout { spares: 1, ..tags.layout }, ..tags };
    shows(&tags, OVERWRITE, shape, &[(Op::Update, 1), (Op::Update, 2), (Op::Update, 2), (Op::Get, 3)], &[1, 2], false);
}

#[test]
fn two_threads_on_one_bucket_are_linearizable_in_every_order() {
    for design in [Design::Levels, Design::Tags] {
        let bounds = Bounds { preemptions: 1, limit: 20_000, crashes: false };
        let gone =
            exhaust::all(&Subject::small(design).one_bucket(), 2, bounds).unwrap_or_else(|error| panic!("{error:#}"));
        eprintln!("{design:?}: {gone:?}");
        assert!(gone.trials == 28 && gone.complete == 28, "{gone:?}");
    }
}
