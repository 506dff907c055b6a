//! Both designs are linearizable, and durably so; each hole of the paper's, and each mistake that
//! ours could have, is found.

use std::rc::Rc;

use nearpm_gphash::{Design, Layout, Op, Operations, Outcome, Table};
use nearpm_gphashbench::campaign::{Tally, history};
use nearpm_gphashbench::exhaust::{self, Bounds, By, Gone, Survivors};
use nearpm_gphashbench::growing;
use nearpm_gphashbench::subject::Subject;
use nearpm_gphashbench::trial::{Shape, Trial};
use nearpm_gpu::{Buffer, Device, Interpreted, Medium, PmRegion};

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

/// What the paper's warps are compared with is no less sound than they.
#[test]
fn levels_with_a_thread_an_operation_are_durably_linearizable() {
    sound(&Subject::alone(), 40);
    sound(&Subject::alone().batched(), 20);
}

/// Keys behind the values: of figure 9's first two versions, and of ours.
#[test]
fn tables_of_wide_keys_are_durably_linearizable() {
    for subject in [Subject::alone(), Subject::small(Design::Levels), Subject::small(Design::Tags)] {
        sound(&subject.clone().wide(), 30);
        sound(&subject.wide().batched(), 20);
    }
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
const RESERVED: u32 = 32;
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

/// What a trial's threads do.
struct Told<'t> {
    shape: Shape,
    ops: &'t [(Op, u64)],
    before: &'t [u64],
    /// Instructions behind which a thread is held up.
    steps: std::ops::Range<u64>,
}

impl Told<'_> {
    fn gone_through(&self, subject: &Subject) -> anyhow::Result<Gone> {
        let trial = Trial::of(subject, self.shape, self.ops.to_vec(), self.before.to_vec())?;
        let mut gone = Gone::default();
        exhaust::held(&trial, self.shape.warps, self.steps.clone(), false, &mut gone)?;
        Ok(gone)
    }

    /// The trial shows the hole, and nothing without it.
    fn shows(&self, subject: &Subject, hole: u32) {
        let gone = self.gone_through(subject).unwrap_or_else(|error| panic!("{error:#}"));
        let Err(error) = self.gone_through(&subject.clone().with_holes(hole)) else {
            panic!("hole {hole} does not show in {gone:?}");
        };
        eprintln!("hole {hole} of {:?}: {error:#}", subject.layout.design);
    }
}

/// A reader has found its pair's slot and not yet read it; the pair is deleted, and another gets
/// the slot.
#[test]
fn slots_that_are_used_again_at_once_are_found() {
    let shape = Shape { warps: 2, lanes: 1, rounds: 2, keys: 9 };
    let ops = [(Op::Get, 1), (Op::Get, 1), (Op::Delete, 1), (Op::Insert, 9)];
    // The bucket is full, so that the new pair has no other slot.
    let told = Told { shape, ops: &ops, before: &[1, 2, 3, 4, 5, 6, 7, 8], steps: 200..360 };
    for design in [Design::Levels, Design::Tags] {
        told.shows(&Subject::small(design).one_bucket(), REUSE);
    }
}

/// The race by which tables that do not look for each other's claims come to have a key twice
/// (WarpSpeed, ALENEX 2026): an insert has chosen its slot and is held up; the other thread deletes
/// a key that lies before that, and inserts the same one.
#[test]
fn an_insert_beside_a_delete_and_an_insert_makes_no_duplicate() {
    let shape = Shape { warps: 2, lanes: 1, rounds: 2, keys: 9 };
    let ops = [(Op::Insert, 9), (Op::Get, 9), (Op::Delete, 1), (Op::Insert, 9)];
    let told = Told { shape, ops: &ops, before: &[1, 2, 3, 4, 5, 6], steps: 150..400 };
    for design in [Design::Levels, Design::Tags] {
        let gone = told.gone_through(&Subject::small(design).one_bucket()).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(gone.tally.histories, 500);
    }
}

/// A reader answers by a key whose writer has not persisted it; power fails, and its answer has
/// arrived.
#[test]
fn readers_of_what_has_not_persisted_are_found() {
    let shape = Shape { warps: 2, lanes: 1, rounds: 1, keys: 1 };
    let [levels, tags] =
        [Design::Levels, Design::Tags].map(|design| Subject::small(design).one_bucket().with_holes(READERS));
    let ops = vec![(Op::Insert, 1), (Op::Get, 1)];
    let of = |subject| Trial::of(subject, shape, ops.clone(), vec![]).unwrap();
    let mut gone = Gone::default();
    let in_levels = exhaust::one(&of(&levels), shape.warps, BY_STATES, &mut gone);
    // The writer is held up between its store and the fence behind it: some 780 instructions from
    // its beginning.
    let in_tags = exhaust::held(&of(&tags), 1, 740..820, true, &mut gone);
    for shown in [in_levels.map(drop), in_tags] {
        let shown = format!("{:#}", shown.expect_err("an answer is taken back"));
        assert!(shown.contains("no order explains"), "{shown}");
        eprintln!("{gone:?} {shown}");
    }
}

/// An update gives way to one that finds no cell, and is lost with it.
#[test]
fn updates_that_give_way_to_none_are_found() {
    let shape = Shape { warps: 2, lanes: 2, rounds: 1, keys: 3 };
    let tags = Subject::small(Design::Tags).one_bucket().batched();
    let tags = Subject { layout: Layout { spares: 1, ..tags.layout }, ..tags };
    let ops = [(Op::Update, 1), (Op::Update, 2), (Op::Update, 2), (Op::Get, 3)];
    let told = Told { shape, ops: &ops, before: &[1, 2], steps: 470..520 };
    told.shows(&tags, OVERWRITE);
}

const BY_STATES: Bounds =
    Bounds { preemptions: 1, limit: u64::MAX, crashes: Some(Survivors::OfThreads), by: By::States };

fn gone_through(subject: &Subject, threads: u32, bounds: Bounds, trials: &[exhaust::Ops]) -> anyhow::Result<Gone> {
    let mut gone = Gone::default();
    exhaust::all(subject, threads, bounds, trials, &mut gone)?;
    Ok(gone)
}

#[test]
fn two_threads_on_one_bucket_are_durably_linearizable_in_every_order() {
    for design in [Design::Levels, Design::Tags] {
        let gone = gone_through(&Subject::small(design).one_bucket(), 2, BY_STATES, &exhaust::trials(2));
        let gone = gone.unwrap_or_else(|error| panic!("{error:#}"));
        eprintln!("{design:?}: {gone:?}");
        assert!(gone.trials == 28 && gone.complete == 28 && gone.tally.crashes > 1000, "{gone:?}");
    }
}

/// The same with three threads: some of the trials.
#[test]
fn three_threads_on_one_bucket_are_durably_linearizable() {
    for design in [Design::Levels, Design::Tags] {
        let bounds = Bounds { limit: 2000, ..BY_STATES };
        let trials: Vec<_> = exhaust::trials(3).into_iter().step_by(9).collect();
        let gone = gone_through(&Subject::small(design).one_bucket(), 3, bounds, &trials);
        let gone = gone.unwrap_or_else(|error| panic!("{error:#}"));
        assert!(gone.trials == 8 && gone.tally.crashes > 100, "{gone:?}");
    }
}

/// By states or by schedules: the same images are left, by ends and by crashes.
#[test]
fn states_leave_all_that_schedules_leave() {
    for design in [Design::Levels, Design::Tags] {
        let subject = Subject::small(design).one_bucket();
        for (ops, is_there) in [(vec![Op::Insert, Op::Put], false), (vec![Op::Update, Op::Delete], true)] {
            let shape = Shape { warps: 2, lanes: 1, rounds: 1, keys: 1 };
            let ops = ops.into_iter().map(|op| (op, 1)).collect();
            let trial = Trial::of(&subject, shape, ops, if is_there { vec![1] } else { vec![] }).unwrap();
            let [by_states, by_schedules] = [By::States, By::Schedules]
                .map(|by| exhaust::one(&trial, 2, Bounds { by, ..BY_STATES }, &mut Gone::default()).unwrap());
            assert!(
                by_states.len() > 20 && by_states == by_schedules,
                "{} and {}",
                by_states.len(),
                by_schedules.len()
            );
        }
    }
}

/// What a hole makes of a table on one bucket.
fn told_of(hole: u32) -> &'static str {
    if hole == TWICE { "2 keys twice" } else { "no order explains" }
}

/// Each hole that a bound of one preemption shows by schedules, states show, too.
#[test]
fn states_show_the_holes() {
    let levels = Subject::small(Design::Levels).one_bucket();
    for hole in [FENCE, READERS, TWICE] {
        let shown = gone_through(&levels.clone().with_holes(hole), 2, BY_STATES, &exhaust::trials(2));
        let shown = format!("{:#}", shown.expect_err("a hole"));
        assert!(shown.contains(told_of(hole)), "{shown}");
    }
    let tags = Subject::small(Design::Tags).one_bucket();
    // A value and its key are one thread's: some of what it has stored survives.
    let any = Bounds { crashes: Some(Survivors::Any), ..BY_STATES };
    for hole in [FENCE, TWICE] {
        let shown = gone_through(&tags.clone().with_holes(hole), 2, any, &exhaust::trials(2));
        let shown = format!("{:#}", shown.expect_err("a hole"));
        assert!(shown.contains(told_of(hole)), "{shown}");
    }
    // The writer waits behind its store, and so does the reader behind its look at the tags.
    let twice = Bounds { preemptions: 2, ..BY_STATES };
    let shown = gone_through(&tags.with_holes(READERS), 2, twice, &[(vec![Op::Get, Op::Update], true)]);
    let shown = format!("{:#}", shown.expect_err("a hole"));
    assert!(shown.contains(told_of(READERS)), "{shown}");
}

/// A key that stands for a mark is put in, and recovery takes it for one: the paper's table does
/// not look.
#[test]
fn reserved_keys_that_are_not_refused_are_lost() {
    for (design, key) in [(Design::Levels, 0xffff_ffff_0000_0005), (Design::Tags, 0)] {
        let left = |holes: u32| -> (Outcome, u32) {
            let subject = Subject::small(design).with_holes(holes);
            let device: Rc<dyn Device> = Rc::new(Interpreted::new(8 << 20));
            let bytes = (subject.layout.bytes() + (1 << 16)).next_multiple_of(4096);
            let region = PmRegion::create_in(device.clone(), Medium::of_bytes(vec![0; bytes as usize])).unwrap();
            drop(Table::create(&region, "table", &subject.layout, 1).unwrap());
            let table = Table::open_with(&region, "table", &subject.module).unwrap();
            table.plant(holes).unwrap();
            let values = Buffer::zeroed(&device, 16).unwrap();
            let batch = Operations::new(&device, Op::Insert, &[key]).unwrap().with_values(values);
            table.run(&batch).unwrap();
            let outcome = table.outcomes(&batch).unwrap()[0];
            drop(table);
            (outcome, Table::open(&region, "table").unwrap().found().live)
        };
        assert_eq!(left(0), (Outcome::Reserved, 0));
        assert_eq!(left(RESERVED), (Outcome::Done, 0), "the pair is gone, and nobody was told");
    }
}
