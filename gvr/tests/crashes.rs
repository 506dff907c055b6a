//! Whatever stops the ranks, the newest cut that all had sealed is there again, on any number of
//! ranks.

use nearpm_gvr::array::Fault;
use nearpm_gvr::campaign::crash::{Covered, Program, play};
use nearpm_gvr::persist::{Memories, describe};
use nearpm_gvr::rma::local::{self, Schedule};
use nearpm_gvr::{Error, Flush, Job, Keep, Options, Result, World};

#[test]
fn what_was_durable_is_there_after_any_stop() {
    let mut covered = Covered::default();
    for seed in 0..100 {
        covered += play(&Program { seed, fault: None }).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    eprintln!("{covered:?}");
    assert!(
        covered.stops > 70 && covered.moved > 70 && covered.taken_back > 0 && covered.lost > 15 && covered.flown > 150,
        "the sample is too tame: {covered:?}"
    );
}

#[test]
fn a_cut_that_is_called_committed_too_early_is_found() {
    let wrong = |seed| play(&Program { seed, fault: Some(Fault::CommitBeforeAllreduce) }).err();
    assert!((0..300).filter_map(wrong).any(|wrong| wrong.contains("is committed on one rank")));
}

/// What a power cut leaves of a cut that the first rank was just told to be durable: its number.
fn survives(seed: u64, fault: Option<Fault>) -> u64 {
    let memories = Memories::default();
    let options = Options { fault, ..Options::log(64) };
    let (cuts, _) = local::run(2, 1 << 16, &Schedule::of_seed(seed), |local| -> Result<u64> {
        let world = World::new(local);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[64], options)?;
        job.set_flush(Flush::Background)?;
        let part = array.part(world.rank());
        array.put(part.clone(), &part.collect::<Vec<_>>())?;
        array.version_inc("")?;
        job.version_wait()?;
        let cut = describe(&memories.surviving(seed))?.1.cut;
        world.barrier()?;
        Ok(cut)
    });
    cuts.into_iter().map(|cut| cut.unwrap()).min().unwrap()
}

#[test]
fn a_cut_that_is_called_durable_before_all_have_sealed_it_is_found() {
    for seed in 0..40 {
        assert_eq!(survives(seed, None), 1, "seed {seed}");
    }
    assert!((0..100).any(|seed| survives(seed, Some(Fault::AgreeBeforeSealed)) == 0));
}

/// What an element is in a version that changes a word of every block: so little that a wrong block
/// is taken for the one before.
fn element(at: u64, version: u64) -> u64 {
    let changed = (0..=version).rev().find(|version| at % 8 == version % 8);
    changed.map_or(0, |version| version + 1)
}

/// Versions of which each puts all blocks again, in a log that has room for two. Gives what is
/// there in the newest version when the job is opened again.
fn differences(seed: u64, fault: Option<Fault>) -> Result<Vec<u64>> {
    let memories = Memories::default();
    let options = Options { keep: Keep::Last(1), log_blocks: 40, fault, ..Options::log(64) };
    let (ends, _) = local::run(2, 1 << 17, &Schedule::of_seed(seed), |local| -> Result<()> {
        let world = World::new(local);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[256], options)?;
        job.set_flush(Flush::Background)?;
        let part = array.part(world.rank());
        for version in 0..12 {
            array.put(part.clone(), &part.clone().map(|at| element(at, version)).collect::<Vec<_>>())?;
            array.version_inc("")?;
        }
        drop(array);
        job.close()
    });
    ends.into_iter().collect::<Result<Vec<()>>>()?;
    let (mut read, _) = local::run(1, 1 << 17, &Schedule::of_seed(seed), |local| -> Result<Vec<u64>> {
        let job = Job::open(&World::new(local), &memories)?;
        job.array::<u64>("a", &[256], options)?.get_vec(0..256)
    });
    read.remove(0)
}

#[test]
fn a_block_that_is_used_again_before_it_was_sealed_is_found() {
    let wanted: Vec<u64> = (0..256).map(|at| element(at, 11)).collect();
    for seed in 0..10 {
        assert_eq!(differences(seed, None).unwrap(), wanted, "seed {seed}");
    }
    let found = |seed| differences(seed, Some(Fault::ReuseBeforeSealed));
    assert!((0..20).any(|seed| matches!(found(seed), Err(Error::Damaged { .. }))));
}
