//! Snapshots: reads of a pool as it was, beside writers that wait for none of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nearpm::direct::{Mode, Snapshot};
use nearpm::memory::{Event, TestMemory};
use nearpm::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

const MODES: [Mode; 2] = [Mode::WorkingCopy, Mode::InPlace];

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    texts: PBTreeMap<u64, PString>,
    counts: PHashMap<u64, u64>,
    row: PVec<u64>,
}

/// What the root holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    texts: BTreeMap<u64, String>,
    counts: BTreeMap<u64, u64>,
    row: Vec<u64>,
}

fn contents(from: &impl Load) -> Result<Model, Error> {
    let Some(root) = from.root::<Root>()? else { return Ok(Model::default()) };
    let texts = root.texts().iter(from)?.map(|entry| entry.and_then(|(key, text)| Ok((key, text.read(from)?))));
    Ok(Model {
        texts: texts.collect::<Result<_, _>>()?,
        counts: root.counts().iter(from)?.collect::<Result<_, _>>()?,
        row: root.row().to_vec(from)?,
    })
}

/// Changes something, in the pool and in the model.
fn change(tx: &mut impl Store, model: &mut Model, random: &mut impl Rng) -> Result<(), Error> {
    let root = tx.root_or_zeroed::<Root>()?;
    let key = random.random_range(0..60);
    match random.random_range(0..20) {
        0 => {
            root.texts().clear(tx)?;
            model.texts.clear();
        }
        1 => {
            root.row().clear(tx)?;
            model.row.clear();
        }
        2..6 => {
            root.texts().remove(tx, &key)?.map_or(Ok(()), |text| text.release(tx))?;
            model.texts.remove(&key);
        }
        6..12 => {
            let text = "x".repeat(random.random_range(0..3000));
            let kept = PString::with(tx, &text)?;
            root.texts().insert(tx, &key, kept)?.map_or(Ok(()), |text| text.release(tx))?;
            model.texts.insert(key, text);
        }
        12..16 => {
            root.counts().insert(tx, &key, key * 3)?;
            model.counts.insert(key, key * 3);
        }
        _ => {
            root.row().push(tx, key)?;
            model.row.push(key);
        }
    }
    Ok(())
}

fn pool(mode: Mode, bytes: usize) -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(bytes);
    let options = Options::new().mode(mode).id(3);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options).unwrap();
    (memory, pool)
}

/// Random transactions, some of which are taken back, and snapshots that live for some of them.
fn snapshots_stay_what_they_were(mode: Mode, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (_, pool) = pool(mode, 2 << 20);
    let mut model = Model::default();
    let mut alive: Vec<(Snapshot<'_>, Model)> = Vec::new();
    for _ in 0..250 {
        let mut next = model.clone();
        let aborts = random.random_ratio(1, 5);
        let done = pool.tx(|tx| {
            for _ in 0..random.random_range(1..6) {
                change(tx, &mut next, &mut random)?;
            }
            if aborts { Err(Error::abort("no")) } else { Ok(()) }
        });
        assert_eq!(done.is_err(), aborts);
        if !aborts {
            model = next;
        }
        if random.random_ratio(1, 6) {
            alive.push((pool.snapshot().unwrap(), model.clone()));
        }
        if alive.len() > 4 {
            alive.swap_remove(random.random_range(0..alive.len()));
        }
        for (snapshot, was) in &alive {
            assert_eq!(&snapshot.read(|from| contents(from)).unwrap(), was, "{mode:?}, seed {seed}");
        }
    }
    assert!(alive.iter().any(|(snapshot, _)| snapshot.copied_bytes() > 0));
    drop(alive);
    assert_eq!(pool.read(|from| contents(from)).unwrap(), model);
}

#[test]
fn snapshots_stay_what_they_were_whatever_is_committed() {
    for mode in MODES {
        (0..4).for_each(|seed| snapshots_stay_what_they_were(mode, seed));
    }
}

/// Pages that this process has not touched show the file, to which the log may come.
#[test]
fn freed_objects_stay_in_a_snapshot_when_the_log_takes_their_place() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let path = path.to_str().unwrap();
        let options = Options::new().mode(mode).survives(Survives::ProcessCrash);
        let pool = DirectPool::create(path, 4 << 20, &options).unwrap();
        let mut model = Model::default();
        pool.tx(|tx| {
            let root = tx.root_or_zeroed::<Root>()?;
            for key in 0..500 {
                let text = format!("{key} ").repeat(800);
                let kept = PString::with(tx, &text)?;
                root.texts().insert(tx, &key, kept)?;
                model.texts.insert(key, text);
            }
            Ok(())
        })
        .unwrap();
        pool.close().unwrap();
        let pool = DirectPool::open(path, &options).unwrap();
        let snapshot = pool.snapshot().unwrap();
        pool.tx(|tx| tx.root::<Root>()?.unwrap().texts().clear(tx)).unwrap();
        pool.tidy(0).unwrap();
        let row = pool.tx(|tx| Ok(tx.root::<Root>()?.unwrap().row())).unwrap();
        for round in 0..4 {
            pool.tx(|tx| row.extend(tx, &vec![round; 40_000])).unwrap();
            pool.tx(|tx| (0..40_000).try_for_each(|at| row.set(tx, at, !round).map(drop))).unwrap();
            pool.tx(|tx| row.clear(tx)).unwrap();
        }
        assert!(snapshot.read(|from| contents(from)).unwrap() == model, "{mode:?}");
    }
}

#[test]
fn transactions_run_inside_of_a_snapshot_but_none_is_taken_inside_of_one() {
    let (_, pool) = pool(Mode::WorkingCopy, 1 << 20);
    let row = pool.tx(|tx| Ok(tx.root_or_zeroed::<Root>()?.row())).unwrap();
    let snapshot = pool.snapshot().unwrap();
    let seen = snapshot.read(|from| {
        pool.tx(|tx| row.push(tx, 1))?;
        assert_eq!(pool.read(|now| row.len(now))?, 1);
        row.len(from)
    });
    assert_eq!(seen.unwrap(), 0);
    assert!(matches!(pool.tx(|_| pool.snapshot().map(drop)), Err(Error::Nested)));
    assert!(matches!(pool.read(|_| pool.snapshot().map(drop)), Err(Error::Nested)));
    let outside = snapshot.read(|from| from.get(Ptr::<u64>::from_offset(8).unwrap()));
    assert!(matches!(outside, Err(Error::OutOfRange { .. })));
    let empty = snapshot.read(|from| from.read(Ptr::offset(row), &mut []));
    assert!(empty.is_ok());
}

/// A pool grows, and older snapshots still see what there was.
#[test]
fn a_pool_grows_beside_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = Options::new().growth(nearpm::direct::Growth { by: 1 << 20, most: 16 << 20 });
    let pool = DirectPool::create(path.to_str().unwrap(), 1 << 20, &options).unwrap();
    let row = pool.tx(|tx| Ok(tx.root_or_zeroed::<Root>()?.row())).unwrap();
    pool.tx(|tx| row.extend(tx, &[7; 1000])).unwrap();
    let before = pool.snapshot().unwrap();
    for _ in 0..20 {
        pool.tx(|tx| row.extend(tx, &[8; 10_000])).unwrap();
    }
    assert!(pool.bytes() > 1 << 20);
    let after = pool.snapshot().unwrap();
    pool.tx(|tx| row.clear(tx)).unwrap();
    assert_eq!(before.read(|from| row.to_vec(from)).unwrap(), [7; 1000]);
    assert_eq!(after.read(|from| row.len(from)).unwrap(), 201_000);
    assert_eq!(after.read(|from| row.get(from, 200_999)).unwrap(), Some(8));
}

const ACCOUNTS: usize = 600;

/// Longer than a page, so that a snapshot is of several.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Bank {
    locks: [PLock; 2],
    transfers: [u64; 2],
    balances: [u64; ACCOUNTS],
    log: PVec<u64>,
}

fn bank(pool: &DirectPool) -> Ptr<Bank> {
    let made = pool.tx(|tx| {
        let bank = tx.root_or_zeroed::<Bank>()?;
        tx.set(bank.balances(), [100; ACCOUNTS])?;
        Ok(bank)
    });
    made.unwrap()
}

/// Moves money between accounts of one half.
fn transfer(tx: &mut impl Store, bank: Ptr<Bank>, half: usize, round: usize) -> Result<(), Error> {
    let account = |number: usize| bank.balances().at(half * ACCOUNTS / 2 + number % (ACCOUNTS / 2));
    tx.update(account(round), |cents| cents.wrapping_sub(1))?;
    tx.update(account(round * 7 + 3), |cents| cents.wrapping_add(1))?;
    tx.update(bank.transfers().at(half), |count| count + 1).map(drop)
}

/// What holds between transactions. Gives the number of transfers.
fn check(from: &impl Load, bank: Ptr<Bank>) -> Result<u64, Error> {
    let value = from.get(bank)?;
    let sum = value.balances.iter().fold(0, |sum: u64, &cents| sum.wrapping_add(cents));
    assert_eq!(sum, 100 * ACCOUNTS as u64);
    Ok(value.transfers.iter().sum())
}

/// Two threads that hold a lock each, and two that take snapshots.
#[test]
fn several_threads_read_beside_several_that_write() {
    for mode in MODES {
        let (_, pool) = pool(mode, 1 << 20);
        let bank = bank(&pool);
        let ended = AtomicBool::new(false);
        let changes_seen = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut newest = 0;
                    while !ended.load(Ordering::Relaxed) {
                        let snapshot = pool.snapshot().unwrap();
                        let first = snapshot.read(|from| check(from, bank)).unwrap();
                        assert!(first >= newest, "an older state than the last one");
                        changes_seen.fetch_add(u64::from(first > newest), Ordering::Relaxed);
                        newest = first;
                        std::thread::yield_now();
                        // By words, where it was all at once before.
                        let again = snapshot.read(|from| {
                            let sum = bank
                                .balances()
                                .each()
                                .try_fold(0u64, |sum, cents| Ok::<_, Error>(sum.wrapping_add(from.get(cents)?)))?;
                            assert_eq!(sum, 100 * ACCOUNTS as u64);
                            Ok(from.get(bank.transfers())?.iter().sum::<u64>())
                        });
                        assert_eq!(again.unwrap(), first);
                    }
                });
            }
            let writers = [0, 1].map(|half| {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..3000 {
                        let locks = [bank.locks().at(half)];
                        pool.locked(&locks).tx(|tx| transfer(tx, bank, half, round)).unwrap();
                    }
                })
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            ended.store(true, Ordering::Relaxed);
        });
        assert!(changes_seen.into_inner() > 0);
        assert_eq!(pool.read(|from| check(from, bank)).unwrap(), 6000);
    }
}

/// Power fails at every fence of a writer, while another thread reads by snapshots.
#[test]
fn power_cuts_beside_a_reader() {
    for mode in MODES {
        let (memory, pool) = pool(mode, 512 << 10);
        let bank = bank(&pool);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let verdict: Arc<Mutex<(u64, Option<String>)>> = Arc::default();
        let (count, given) = (acknowledged.clone(), verdict.clone());
        memory.probe(move |number, event, survive| {
            if event != Event::Fence {
                return;
            }
            let mut verdict = given.lock().unwrap();
            verdict.0 += 1;
            let image = TestMemory::from_image(survive(number));
            let found = DirectPool::open_in(Box::new(image), &Options::new().mode(mode).id(3)).and_then(|pool| {
                let sum = pool.read(|from| {
                    let value = from.get(bank)?;
                    let transfers = value.transfers[0];
                    let sum = value.balances.iter().fold(0, |sum: u64, &cents| sum.wrapping_add(cents));
                    let log = bank.log().to_vec(from)?;
                    Ok((transfers, sum, log.into_iter().eq(0..transfers)))
                })?;
                Ok(sum)
            });
            let least = count.load(Ordering::Relaxed);
            let most = least + 1;
            match found {
                Ok((transfers, sum, true)) if (least..=most).contains(&transfers) && sum == 100 * ACCOUNTS as u64 => {}
                other => {
                    verdict.1 = Some(format!("event {number}: {least} transfers were acknowledged, and {other:?}"))
                }
            }
        });
        let ended = AtomicBool::new(false);
        let snapshots = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) || snapshots.load(Ordering::Relaxed) == 0 {
                    let snapshot = pool.snapshot().unwrap();
                    let transfers = snapshot.read(|from| check(from, bank)).unwrap();
                    let log = snapshot.read(|from| bank.log().to_vec(from)).unwrap();
                    assert!(log.into_iter().eq(0..transfers));
                    snapshots.fetch_add(1, Ordering::Relaxed);
                }
            });
            for round in 0..60 {
                let done = pool.tx(|tx| {
                    transfer(tx, bank, 0, round)?;
                    bank.log().push(tx, round as u64)
                });
                done.unwrap();
                acknowledged.store(round as u64 + 1, Ordering::Relaxed);
            }
            ended.store(true, Ordering::Relaxed);
        });
        memory.stop_probe();
        let verdict = verdict.lock().unwrap();
        assert_eq!(verdict.1, None, "{mode:?}");
        assert!(verdict.0 >= 60, "{mode:?}: only {} cuts", verdict.0);
    }
}
