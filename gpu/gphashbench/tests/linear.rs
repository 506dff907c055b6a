//! Both designs are linearizable, and durably so; each hole of the paper's, and each mistake that ours could have, is found.

use nearpm_gphash::Design;
use nearpm_gphashbench::campaign::{Tally, history};
use nearpm_gphashbench::trial::Subject;

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

/// No fence between pointer and key; readers of what has not persisted; duplicates.
const FENCE: u32 = 1;
const READERS: u32 = 2;
const TWICE: u32 = 4;

/// The number of seeds after which the hole shows.
fn found(subject: &Subject, holes: u32, seeds: u64) {
    let subject = subject.clone().with_holes(holes);
    let shown = (0..seeds).find(|&seed| history(&subject, seed, 6, &mut Tally::default()).is_err());
    eprintln!("hole {holes} of {:?}: {shown:?}", subject.layout.design);
    assert!(shown.is_some(), "hole {holes} does not show in {seeds} histories");
}

#[test]
fn the_holes_of_the_papers_table_are_found() {
    let levels = Subject::small(Design::Levels);
    for hole in [FENCE, READERS, TWICE] {
        found(&levels, hole, 500);
    }
}

#[test]
fn mistakes_in_tags_are_found() {
    let tags = Subject::small(Design::Tags);
    for hole in [FENCE, TWICE] {
        found(&tags, hole, 500);
    }
}
