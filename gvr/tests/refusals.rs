//! Bad input is refused on every rank, in time, and nothing that was closed is lost.

use std::time::{Duration, Instant};

use nearpm_gvr::persist::{Folder, Holder, Memories, describe, scrub_folder};
use nearpm_gvr::rma::local::{self, Schedule};
use nearpm_gvr::rma::shm::Shm;
use nearpm_gvr::{Error, Flush, Job, Keep, Op, Options, Result, World};

const WINDOW: u64 = 1 << 20;

fn on_shm<T: Send>(ranks: usize, body: impl Fn(&World) -> T + Sync) -> Vec<T> {
    let handles = Shm::threads(ranks, WINDOW).unwrap();
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = handles.into_iter().map(|shm| scope.spawn(move || body(&World::new(shm)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn an_index_out_of_range_is_an_error_on_every_rank() {
    for layout in [Options::flat(), Options::log(64)] {
        let ends = on_shm(3, |world| -> Result<()> {
            let array = world.array::<u32>(&[10, 10], layout)?;
            array.put([0..10, 0..10], &[5; 100])?;
            // All put the same.
            array.version_inc("good")?;
            if world.rank() == 1 {
                assert!(matches!(array.put([0..2, 9..11], &[1; 4]), Err(Error::OutOfRange { .. })));
                assert!(matches!(array.get([3..3, 0..1], &mut []), Err(Error::OutOfRange { .. })));
                assert!(matches!(array.put([0..2, 0..2], &[1; 3]), Err(Error::Buffer { given: 3, wanted: 4 })));
            }
            assert!(matches!(array.version_inc("bad"), Err(Error::Elsewhere { rank: 1, .. })));
            assert_eq!(array.version_inc("again")?, 1);
            assert_eq!(array.get_vec([0..10, 0..10])?, [5; 100]);
            world.barrier()
        });
        ends.into_iter().for_each(|end| end.unwrap());
    }
}

#[test]
fn ranks_that_ask_for_different_arrays_are_all_told() {
    let ends = on_shm(3, |world| {
        let dims = [if world.rank() == 1 { 20 } else { 10 }];
        let other = world.array::<u32>(&dims, Options::log(64)).map(drop);
        assert!(matches!(other, Err(Error::BadOption { .. })), "{other:?}");
        let none = world.array::<u32>(if world.rank() == 2 { &[0] } else { &[10] }, Options::log(64)).map(drop);
        assert!(matches!(none, Err(Error::BadOption { .. })), "{none:?}");
        // Nothing was taken, and the ranks go on together.
        let array = world.array::<u32>(&[10], Options::log(64))?;
        let twice = nearpm_gvr::version_inc_all(&[array.face(), array.face()], "");
        assert!(matches!(twice, Err(Error::BadOption { .. })), "{twice:?}");
        array.version_inc("").map(drop)
    });
    ends.into_iter().for_each(|end| end.unwrap());
}

#[test]
fn sizes_that_no_memory_has_are_refused_on_every_rank() {
    let most = Keep::Last(1 << 16);
    let huge = [
        (1_u64 << 47, Options { keep: most, ..Options::flat() }),
        (1 << 47, Options { keep: most, ..Options::log(8) }),
        (1 << 47, Options { keep: most, ..Options::log(1 << 24) }),
        (100, Options { log_blocks: u64::MAX, ..Options::log(8) }),
        (100, Options { log_blocks: (1 << 61) + 40, ..Options::log(64) }),
    ];
    let ends = on_shm(2, |world| {
        for (count, options) in huge {
            let refused = world.array::<u64>(&[count], options).map(drop);
            assert!(matches!(refused, Err(Error::BadOption { .. })), "{refused:?}");
        }
        // More than the ranks have is another error, and neither takes anything.
        let full = world.array::<u64>(&[1 << 44], Options::flat()).map(drop);
        assert!(matches!(full, Err(Error::NoMemory { .. })), "{full:?}");
        let none = Job::create(world, &Memories::default(), 0).map(drop);
        assert!(matches!(none, Err(Error::BadOption { .. })), "{none:?}");
        let array = world.array::<u64>(&[10], Options::log(64))?;
        let none = array.at(0).map(drop).unwrap_err().to_string();
        assert_eq!(none, "version 0 is not kept; none was closed yet");
        array.version_inc("").map(drop)
    });
    ends.into_iter().for_each(|end| end.unwrap());
}

#[test]
fn a_full_log_is_an_error_and_a_version_makes_room() {
    let ends = on_shm(2, |world| -> Result<()> {
        // Eight blocks a rank, and room for sixteen beside the reserve.
        let options = Options { keep: Keep::Last(1), log_blocks: 24, ..Options::log(64) };
        let array = world.array::<u64>(&[128], options)?;
        let mine = array.part(world.rank());
        for round in 0..20 {
            array.put(mine.clone(), &[round; 64])?;
            array.version_inc("")?;
        }
        let old = array.at(19)?;
        array.put(mine.clone(), &[100; 64])?;
        array.version_inc("")?;
        // The cursor holds a version more than there is room for.
        let full = array.put(mine.clone(), &[101; 64]);
        assert!(matches!(full, Err(Error::LogFull { .. })), "{full:?}");
        let mut seen = [0; 128];
        old.get(0..128, &mut seen)?;
        assert_eq!(seen, [19; 128]);
        drop(old);
        array.acknowledge();
        world.barrier()?;
        array.version_inc("")?;
        array.put(mine, &[102; 64])?;
        array.version_inc("")?;
        assert_eq!(array.get_vec(0..128)?, [102; 128]);
        world.barrier()
    });
    ends.into_iter().for_each(|end| end.unwrap());
}

#[test]
fn a_rank_that_is_gone_is_an_error_on_every_other_within_ten_seconds() {
    let started = Instant::now();
    let ends = on_shm(3, |world| -> Result<()> {
        let array = world.array::<u64>(&[100], Options::log(64))?;
        if world.rank() == 2 {
            return Ok(());
        }
        array.put(0..100, &[1; 100])?;
        array.version_inc("").map(drop)
    });
    for end in &ends[..2] {
        assert!(matches!(end, Err(Error::DeadRank { rank: 2, ranks: 3 })), "{end:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_missing_pool_and_another_type_are_errors_on_every_rank_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let wanted: Vec<f32> = (0..64).map(|at| at as f32).collect();
    on_shm(2, |world| {
        let job = Job::create(world, &Folder::new(path), 1 << 20).unwrap();
        let array = job.array::<f32>("a", &[64], Options::log(64)).unwrap();
        if world.rank() == 0 {
            array.put(0..64, &wanted).unwrap();
        }
        array.version_inc("only").unwrap();
        drop(array);
        job.close().unwrap();
    });
    let (pool, aside) = (path.join("1-rank-1.pool"), path.join("aside"));
    std::fs::rename(&pool, &aside).unwrap();
    for ranks in [2, 3] {
        let ends = on_shm(ranks, |world| Job::open(world, &Folder::new(path)).map(drop));
        for end in ends {
            let missing = matches!(end, Err(Error::MissingPool { rank: 1, ranks: 2, .. }));
            assert!(missing || matches!(&end, Err(Error::Elsewhere { what: "a pool that is missing", .. })), "{end:?}");
        }
    }
    std::fs::rename(&aside, &pool).unwrap();
    for ranks in [2, 3] {
        on_shm(ranks, |world| {
            let job = Job::open(world, &Folder::new(path)).unwrap();
            let other = job.array::<f64>("a", &[64], Options::default()).map(drop);
            assert!(matches!(other, Err(Error::OtherType { .. })), "{other:?}");
            assert!(matches!(job.array::<f32>("a", &[65], Options::default()).map(drop), Err(Error::OtherType { .. })));
            let again = Job::create(world, &Folder::new(path), 1 << 20).map(drop);
            assert!(matches!(again, Err(Error::Job { .. })), "{again:?}");
            let array = job.array::<f32>("a", &[64], Options::default()).unwrap();
            assert_eq!(array.get_vec(0..64).unwrap(), wanted);
            assert_eq!(array.versions()[0].label, "only");
            world.barrier().unwrap();
        });
    }
}

/// Versions of all, of one, of every other and of scattered blocks, some of them mended: a pool
/// that has room for ten of the largest takes three hundred.
#[test]
fn versions_that_are_kept_no_more_give_their_space_back() {
    const BLOCKS: u64 = 128;
    const WORDS: u64 = 64;
    const ROUNDS: u64 = 300;
    let changed = |round: u64, block: u64| match round % 5 {
        0 | 1 => true,
        2 => block == round % BLOCKS,
        3 => block.is_multiple_of(2),
        _ => (block * 7 + round) % 11 < 4,
    };
    let row =
        |round: u64, block: u64| (0..WORDS).map(move |at| (round << 32 | block << 8 | at).wrapping_mul(0x9e37_79b9));
    let storage = Memories::default();
    let options = Options { keep: Keep::Last(2), ..Options::log(8 * WORDS) };
    on_shm(1, |world| {
        let job = Job::create(world, &storage, 1 << 20).unwrap();
        let array = job.array::<u64>("a", &[WORDS * BLOCKS], options).unwrap();
        let mut mended = 0;
        for round in 0..ROUNDS {
            for block in (0..BLOCKS).filter(|block| changed(round, *block)) {
                let data: Vec<u64> = row(round, block).collect();
                array.put(WORDS * block..WORDS * (block + 1), &data).unwrap();
            }
            array.version_inc("").unwrap();
            if round % 3 == 0 && job.damage(round * 31 + 5, 3).unwrap() {
                mended += job.scrub().unwrap().mended_in_pool;
            }
        }
        assert!(mended > 50, "{mended}");
        assert_eq!(job.scrub().unwrap().mended_in_pool, 0);
    });
    on_shm(1, |world| {
        let job = Job::open(world, &storage).unwrap();
        let array = job.array::<u64>("a", &[WORDS * BLOCKS], options).unwrap();
        for block in 0..BLOCKS {
            let newest = (0..ROUNDS).rfind(|round| changed(*round, block)).unwrap();
            assert!(array.get_vec(WORDS * block..WORDS * (block + 1)).unwrap().into_iter().eq(row(newest, block)));
        }
    });
}

#[test]
fn a_pool_without_room_fails_the_version_on_every_rank_and_keeps_the_last_one() {
    let memories = Memories::default();
    let (ends, _) = local::run(2, 1 << 23, &Schedule::of_seed(4), |local| -> Result<(u64, Vec<u64>)> {
        let world = World::new(local);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[1 << 15], Options { keep: Keep::Last(50), ..Options::log(1024) })?;
        for round in 0..50 {
            // The first rank's pool alone has no room for all of it.
            if world.rank() == 0 {
                let data: Vec<u64> = (0..1 << 14).map(|at| at ^ round << 20 ^ round << 50).collect();
                array.put(0..1 << 14, &data)?;
            }
            if array.version_inc("").is_err() {
                return Ok((array.version(), array.get_vec(0..1)?));
            }
        }
        Ok((50, Vec::new()))
    });
    let ends: Vec<_> = ends.into_iter().map(|end| end.unwrap()).collect();
    assert!(ends[0].0 > 0 && ends[0].0 < 50 && ends[0].0 == ends[1].0, "{ends:?}");
    let (after, _) = local::run(1, 1 << 25, &Schedule::of_seed(5), |local| {
        let world = World::new(local);
        let job = Job::open(&world, &memories).unwrap();
        let array = job.array::<u64>("a", &[1 << 15], Options::default()).unwrap();
        (array.version(), array.get_vec(1..2).unwrap())
    });
    let newest = ends[0].0 - 1;
    assert_eq!(after[0], (newest + 1, vec![1 ^ newest << 20 ^ newest << 50]));
}

#[test]
fn old_versions_are_read_and_restored_and_their_labels_kept() {
    let ends = on_shm(2, |world| -> Result<()> {
        let array = world.array::<f64>(&[4, 6, 5], Options { keep: Keep::Last(3), ..Options::log(64) })?;
        for round in 0..5_u32 {
            if world.rank() == 0 {
                array.put([1..3, 2..5, 0..5], &[f64::from(round); 30])?;
            }
            array.accumulate([0..1, 0..1, 0..1], &[1.0], Op::Sum)?;
            array.version_inc(&format!("round {round}"))?;
        }
        let labels: Vec<String> = array.versions().into_iter().map(|version| version.label).collect();
        assert_eq!(labels, ["round 2", "round 3", "round 4"]);
        assert!(matches!(array.at(1).map(drop), Err(Error::NoVersion { version: 1, oldest: 2, newest: 4 })));
        let mut seen = [0.0; 2];
        array.version_dec(1)?.get([2..3, 4..5, 3..5], &mut seen)?;
        assert_eq!(seen, [3.0; 2]);
        array.restore(2)?;
        assert_eq!(array.get_vec([1..2, 2..3, 0..2])?, [2.0; 2]);
        assert_eq!(array.get_vec([0..1, 0..1, 0..1])?, [6.0], "both ranks added in three rounds");
        world.barrier()
    });
    ends.into_iter().for_each(|end| end.unwrap());
}

#[test]
fn flipped_bits_are_found_and_mended() {
    for seed in 0..40 {
        let covered = nearpm_gvr::campaign::flips::play(seed, 12).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(covered.flips >= 6, "{covered:?}");
    }
}

/// A job with partner copies on two ranks: three versions of an array, of which each changes
/// everything.
fn with_partners(storage: &Memories) -> Vec<u64> {
    local::run(2, 1 << 20, &Schedule::of_seed(8), |local| {
        let world = World::new(local);
        let job = Job::create(&world, storage, 1 << 20).unwrap();
        let array = job.array::<u64>("a", &[64], Options { keep: Keep::Last(2), ..Options::log(64) }).unwrap();
        for round in 0..3 {
            let mine = array.part(world.rank());
            array.put(mine.clone(), &mine.map(|at| 1000 * round + at).collect::<Vec<_>>()).unwrap();
            array.version_inc("").unwrap();
        }
        drop(array);
        job.close().unwrap();
    });
    (0..64).map(|at| 2000 + at).collect()
}

#[test]
fn a_lost_pool_is_made_again_from_its_partners_copy() {
    for ranks in [1, 2, 3] {
        for (lost, holder) in [(0, Holder::Owner), (1, Holder::Owner), (1, Holder::Partner)] {
            let storage = Memories::default().with_partners();
            let wanted = with_partners(&storage);
            storage.lose(lost, holder);
            let from_partners = u64::from(holder == Holder::Owner);
            assert_eq!(describe(&storage).unwrap().1.from_partners, from_partners);
            // Twice, so that what was made again is read, too.
            for life in 0..2 {
                local::run(ranks, 1 << 21, &Schedule::of_seed(9 + life), |local| {
                    let world = World::new(local);
                    let job = Job::open(&world, &storage).unwrap();
                    let array = job.array::<u64>("a", &[64], Options::default()).unwrap();
                    assert_eq!(array.get_vec(0..64).unwrap(), wanted);
                    let mut before = [0; 64];
                    array.at(1).unwrap().get(0..64, &mut before).unwrap();
                    assert!(before.into_iter().eq(1000..1064));
                    assert_eq!(job.report().from_partners, if life == 0 { from_partners } else { 0 });
                    world.barrier().unwrap();
                });
            }
        }
    }
}

#[test]
fn a_pool_that_is_lost_with_its_copy_is_refused() {
    let storage = Memories::default().with_partners();
    with_partners(&storage);
    storage.lose(1, Holder::Owner);
    storage.lose(1, Holder::Partner);
    let (ends, _) =
        local::run(2, 1 << 20, &Schedule::of_seed(1), |local| Job::open(&World::new(local), &storage).map(drop));
    assert!(ends.iter().all(|end| matches!(end, Err(Error::MissingPool { rank: 1, .. }))), "{ends:?}");
}

#[test]
fn a_block_that_is_damaged_in_memory_and_in_its_pool_is_mended_from_the_partners_copy() {
    let storage = Memories::default().with_partners();
    let (ends, _) = local::run(3, 1 << 20, &Schedule::of_seed(3), |local| -> Result<u64> {
        let world = World::new(local);
        let job = Job::create(&world, &storage, 1 << 20)?;
        let array = job.array::<u64>("a", &[24], Options::log(64))?;
        // A block a rank, so that what is damaged is the same one.
        array.put(array.part(world.rank()), &[7 + world.rank() as u64; 8])?;
        array.version_inc("")?;
        if world.rank() == 1 {
            assert!(array.damage(0, 0, 5, 1)? && job.damage(0, 3)?);
        }
        let scrubbed = job.scrub()?;
        let again = job.scrub()?;
        assert_eq!(again.mended_in_memory + again.mended_in_pool, 0);
        assert_eq!(array.get_vec(8..16)?, [8; 8]);
        world.barrier()?;
        Ok(scrubbed.mended_in_memory + scrubbed.mended_in_pool)
    });
    let mended: Vec<u64> = ends.into_iter().map(|end| end.unwrap()).collect();
    assert_eq!(mended, [0, 2, 0], "memory and pool of the rank");
}

#[test]
fn a_version_that_cannot_be_sealed_in_the_background_is_told_to_every_rank_and_is_kept_in_memory() {
    let memories = Memories::default();
    let (ends, _) = local::run(2, 1 << 23, &Schedule::of_seed(4), |local| -> Result<(u64, u64)> {
        let world = World::new(local);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[1 << 15], Options { keep: Keep::Last(50), ..Options::log(1024) })?;
        job.set_flush(Flush::Background)?;
        for round in 0..50 {
            // The first rank's pool alone has no room for all of it.
            if world.rank() == 0 {
                let data: Vec<u64> = (0..1 << 14).map(|at| at ^ round << 20 ^ round << 50).collect();
                array.put(0..1 << 14, &data)?;
            }
            if array.version_inc("").is_err() {
                // The one before is not durable, and no other is made.
                assert!(job.version_wait().is_err() && array.version_wait().is_err());
                assert!(array.version_inc("").is_err());
                let newest = array.version() - 1;
                let mut seen = [0];
                array.at(newest)?.get(1..2, &mut seen)?;
                assert_eq!(seen, [1 ^ newest << 20 ^ newest << 50]);
                drop(array);
                assert!(job.close().is_err());
                return Ok((round, newest));
            }
        }
        Ok((50, 50))
    });
    let ends: Vec<_> = ends.into_iter().map(|end| end.unwrap()).collect();
    assert!(ends[0].0 > 1 && ends[0].0 < 50 && ends[0] == ends[1], "{ends:?}");
    let (after, _) = local::run(1, 1 << 25, &Schedule::of_seed(5), |local| {
        let world = World::new(local);
        let job = Job::open(&world, &memories).unwrap();
        let array = job.array::<u64>("a", &[1 << 15], Options::default()).unwrap();
        (array.version(), array.get_vec(1..2).unwrap())
    });
    // All that was told to be durable.
    let durable = ends[0].1 - 1;
    assert_eq!(after[0], (durable + 1, vec![1 ^ durable << 20 ^ durable << 50]));
}

/// Versions 0 to 3 of a job whose first rank's pool was damaged in version 0, which is folded when
/// version 3 is sealed.
fn damaged_on_the_way(act: impl Fn(&Job) -> Result<()> + Sync) -> Vec<Result<()>> {
    let memories = Memories::default();
    let (ends, _) = local::run(2, 1 << 20, &Schedule::of_seed(6), |local| -> Result<()> {
        let world = World::new(local);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[64], Options { keep: Keep::Last(2), ..Options::log(64) })?;
        job.set_flush(Flush::Background)?;
        let first = array.part(world.rank()).start;
        for round in 0..4 {
            // A word of a block: kept as a difference, which folding has to read.
            array.put(first..=first, &[round + 1])?;
            array.version_inc("")?;
            if round == 1 {
                job.version_wait()?;
                assert!(world.rank() != 0 || job.damage(0, 3)?);
            }
        }
        let ended = act(&job);
        job.version_wait()?;
        assert_eq!(array.get_vec(first..=first)?, [4]);
        drop(array);
        job.close()?;
        ended
    });
    ends
}

#[test]
fn damage_that_a_flush_in_the_background_meets_is_told_to_every_rank() {
    let calls: [fn(&Job) -> Result<()>; 3] =
        [Job::version_wait, |job| job.set_flush(Flush::Wait), |job| job.scrub().map(drop)];
    for call in calls {
        let ends = damaged_on_the_way(call);
        assert!(matches!(ends[0], Err(Error::Damaged { block: 0, version: 0, .. })), "{ends:?}");
        assert!(matches!(ends[1], Err(Error::Elsewhere { rank: 0, .. })), "{ends:?}");
    }
}

#[test]
fn a_log_with_little_room_is_sealed_before_the_version_is_closed() {
    // Eight blocks a rank, and room for eight beside the reserve: a version holds no other one.
    let options = Options { keep: Keep::Last(1), log_blocks: 24, ..Options::log(64) };
    let folder = tempfile::tempdir().unwrap();
    let ends = on_shm(2, |world| -> Result<()> {
        let job = Job::create(world, &Folder::new(folder.path()), 1 << 20)?;
        let array = job.array::<u64>("a", &[128], options)?;
        job.set_flush(Flush::Background)?;
        for round in 0..20 {
            array.put(array.part(world.rank()), &[round; 64])?;
            array.version_inc("")?;
        }
        job.version_wait()?;
        assert_eq!(array.get_vec(0..128)?, [19; 128]);
        drop(array);
        job.close()
    });
    ends.into_iter().for_each(|end| end.unwrap());
}

#[test]
fn a_folder_is_scrubbed_without_its_ranks() {
    let storage = Memories::default().with_partners();
    let (ends, _) = local::run(2, 1 << 20, &Schedule::of_seed(3), |local| -> Result<bool> {
        let world = World::new(local);
        let job = Job::create(&world, &storage, 1 << 20)?;
        let array = job.array::<u64>("a", &[64], Options::log(64))?;
        for round in 0..3 {
            array.put(array.part(world.rank()), &[round; 32])?;
            array.version_inc("")?;
        }
        let damaged = job.damage(5, 3)?;
        drop(array);
        job.close().map(|()| damaged)
    });
    assert!(ends.into_iter().all(|end| end.unwrap()));
    let scrubbed = scrub_folder(&storage).unwrap();
    assert!(scrubbed.in_pool >= 4 * 8 && scrubbed.mended_in_pool == 2, "{scrubbed:?}");
    assert_eq!(scrub_folder(&storage).unwrap().mended_in_pool, 0);
    local::run(2, 1 << 20, &Schedule::of_seed(4), |local| {
        let job = Job::open(&World::new(local), &storage).unwrap();
        assert_eq!(job.array::<u64>("a", &[64], Options::default()).unwrap().get_vec(0..64).unwrap(), [2; 64]);
        job.world().barrier().unwrap();
    });
}
