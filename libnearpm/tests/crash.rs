//! Power cuts at every fence, under every mechanism, with and without eviction, and again during
//! the recovery.
//!
//! The oracle: what recovers must be the state after some transaction between the last that was
//! acknowledged when the power failed and the one that was running.

mod common;

use std::sync::{Arc, Mutex};

use common::{Model, apply, check_leaks, contents, create, operations};
use nearpm::memory::{Event, Image, TestMemory};
use nearpm::{Durability, Error, Mechanism, Options, Problem};
use nearpm_interface::media::{RING_EPOCH, RING_EXTENT};

const POOL_BYTES: usize = 512 * 1024;

/// States that may survive a cut at this moment.
#[derive(Default)]
struct Oracle {
    /// State after each transaction, from the empty store.
    states: Vec<Model>,
    /// Index of the last acknowledged one.
    acknowledged: usize,
}

/// A small ring, so that it runs full and around within a few transactions.
fn options(mechanism: Mechanism) -> Options {
    let ring_bytes = if mechanism == Mechanism::Checkpoint { 64 * 1024 } else { 16 * 1024 };
    Options::new().mechanism(mechanism).lanes(1).ring_bytes(ring_bytes).epoch_ops(5).id(7)
}

/// Opens what survived and checks it against the oracle.
fn recover(mechanism: Mechanism, memory: TestMemory, oracle: &Oracle) -> Result<(), String> {
    let pool = options(mechanism).open_in(Box::new(memory)).map_err(|e| e.to_string())?;
    let found = contents(&pool).map_err(|e| e.to_string())?;
    let allowed = &oracle.states[oracle.acknowledged..];
    if !allowed.contains(&found) {
        let last = allowed.last();
        return Err(format!("recovered {found:?}\nwhich is none of {} states; the last is {last:?}", allowed.len()));
    }
    check_leaks(&pool, &found).map_err(|e| e.to_string())
}

/// Cuts during the recovery of an image, at each of its fences, and recovers what that leaves.
fn cut_recovery(mechanism: Mechanism, image: Image, oracle: &Oracle) -> Result<(), String> {
    let memory = TestMemory::from_image(image);
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let sink = images.clone();
    memory.probe(move |number, event, survive| {
        if event == Event::Fence {
            sink.lock().unwrap().push(survive(number));
        }
    });
    drop(options(mechanism).open_in(Box::new(memory.clone())).map_err(|e| e.to_string())?);
    memory.stop_probe();
    let images = std::mem::take(&mut *images.lock().unwrap());
    images.into_iter().try_for_each(|image| recover(mechanism, TestMemory::from_image(image), oracle))
}

/// How often power was cut, and the first cut that was not survived. Nothing panics inside a probe:
/// the pool's own code would unwind through the memory.
#[derive(Default)]
struct Verdict {
    cuts: u64,
    failure: Option<String>,
}

fn crash_everywhere(mechanism: Mechanism, durability: Durability, evict_one_in: u64, seed: u64) {
    let memory = TestMemory::new(POOL_BYTES).evict(evict_one_in, seed);
    let pool = options(mechanism).durability(durability).create_in(Box::new(memory.clone())).unwrap();
    create(&pool).unwrap();
    pool.persist().unwrap();
    let mut model = Model::new();
    let oracle = Arc::new(Mutex::new(Oracle { states: vec![model.clone()], acknowledged: 0 }));

    let shared = oracle.clone();
    let verdict: Arc<Mutex<Verdict>> = Arc::default();
    let given = verdict.clone();
    let every = if mechanism.has_epochs() { 5 } else { 23 };
    memory.probe(move |number, event, survive| {
        // With eviction other moments are interesting too, and with epochs fences are rare.
        let sampled = (evict_one_in > 0 || mechanism.has_epochs()) && number % every == 0;
        let mut verdict = given.lock().unwrap();
        if verdict.failure.is_some() || !(event == Event::Fence || sampled) {
            return;
        }
        verdict.cuts += 1;
        let oracle = shared.lock().unwrap();
        for flavour in 0..2 {
            let image = survive(number * 2 + flavour);
            let mut result = recover(mechanism, TestMemory::from_image(image.clone()), &oracle);
            if number % 7 == 0 && flavour == 0 {
                result = result.and_then(|()| cut_recovery(mechanism, image, &oracle));
            }
            verdict.failure = result.err().map(|e| format!("event {number}: {e}"));
            if verdict.failure.is_some() {
                return;
            }
        }
    });
    for operation in operations(seed, 40, 300) {
        // The running transaction's outcome is allowed from its start: it may pass its commit point
        // any time.
        let mut next = model.clone();
        operation.done_to(&mut next);
        oracle.lock().unwrap().states.push(next.clone());
        apply(&pool, &mut model, &operation).unwrap();
        assert_eq!(model, next);
        let statistics = pool.statistics();
        let mut oracle = oracle.lock().unwrap();
        if statistics.acknowledged == statistics.transactions {
            oracle.acknowledged = oracle.states.len() - 1;
        }
    }
    assert_eq!(contents(&pool).unwrap(), model);
    // Closing is cut too, and afterwards only the last state may survive, whatever the caches do.
    pool.close().unwrap();
    memory.stop_probe();
    let what = format!("{mechanism:?}, {durability:?}, eviction {evict_one_in}, seed {seed}");
    let verdict = verdict.lock().unwrap();
    assert!(verdict.failure.is_none(), "{what}: {}", verdict.failure.as_ref().unwrap());
    assert!(verdict.cuts > 40, "{what}: only {} cuts", verdict.cuts);
    let mut last = oracle.lock().unwrap();
    last.acknowledged = last.states.len() - 1;
    for cut in 0..4 {
        let survivor = TestMemory::from_image(memory.surviving(cut));
        recover(mechanism, survivor, &last).unwrap_or_else(|e| panic!("{what}, after the close: {e}"));
    }
}

#[test]
fn durable_undo() {
    crash_everywhere(Mechanism::Undo, Durability::Durable, 0, 1);
    crash_everywhere(Mechanism::Undo, Durability::Durable, 3, 2);
}

#[test]
fn asynchronous_undo() {
    crash_everywhere(Mechanism::Undo, Durability::Asynchronous, 0, 3);
    crash_everywhere(Mechanism::Undo, Durability::Asynchronous, 3, 4);
}

#[test]
fn durable_redo() {
    crash_everywhere(Mechanism::Redo, Durability::Durable, 0, 5);
    crash_everywhere(Mechanism::Redo, Durability::Durable, 3, 6);
}

#[test]
fn asynchronous_redo() {
    crash_everywhere(Mechanism::Redo, Durability::Asynchronous, 0, 7);
    crash_everywhere(Mechanism::Redo, Durability::Asynchronous, 3, 8);
}

#[test]
fn checkpoint() {
    crash_everywhere(Mechanism::Checkpoint, Durability::Durable, 0, 9);
    crash_everywhere(Mechanism::Checkpoint, Durability::Durable, 3, 10);
}

#[test]
fn shadow() {
    crash_everywhere(Mechanism::Shadow, Durability::Durable, 0, 11);
    crash_everywhere(Mechanism::Shadow, Durability::Durable, 3, 12);
}

/// Power fails in the middle of a transaction, the pool is opened with another mechanism and used,
/// and power fails again: what the first one left must not come back.
#[test]
fn a_pool_may_be_opened_with_another_mechanism_each_time() {
    let options = |mechanism| options(mechanism).ring_bytes(64 * 1024);
    let mut memory = TestMemory::new(POOL_BYTES).evict(5, 1);
    create(&options(Mechanism::Undo).create_in(Box::new(memory.clone())).unwrap()).unwrap();
    let mut model = Model::new();
    // Every mechanism follows every other one.
    for round in 0..32usize {
        let mechanism = Mechanism::ALL[(round + round / 4 * (round / 16)) % 4];
        let pool = options(mechanism).open_in(Box::new(memory.clone())).unwrap();
        assert_eq!(contents(&pool).unwrap(), model, "round {round}, {mechanism:?}");
        check_leaks(&pool, &model).unwrap();
        for operation in operations(round as u64, 12, 400) {
            apply(&pool, &mut model, &operation).unwrap();
        }
        pool.persist().unwrap();
        let mut image = memory.surviving(round as u64);
        if round % 3 > 0 {
            let cut: Result<(), Error> = pool.tx(|tx| {
                for key in 0..4 {
                    common::put(tx, key, &[round as u8; 200])?;
                }
                image = memory.surviving(round as u64);
                Err(Error::abort("the power has failed"))
            });
            assert!(matches!(cut, Err(Error::Aborted(_))), "{cut:?}");
        }
        memory = TestMemory::from_image(image).evict(5, round as u64);
    }
}

/// Old values are restored newest first: a range that was logged twice gets its first value back.
#[test]
fn a_range_that_was_logged_twice_gets_its_oldest_value_back() {
    let options = Options::new().lanes(2).id(7);
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options.create_in(Box::new(memory.clone())).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(4096)).unwrap();
    for value in 1..5u8 {
        pool.undolog_create(0, object + 8 * u64::from(value), 64).unwrap();
        pool.store(object + 8 * u64::from(value), &[value; 64]).unwrap();
        pool.ckpoint_create(0, object, 4096).unwrap();
        pool.flush(object, 4096).unwrap();
        let reopened = options.open_in(Box::new(TestMemory::from_image(memory.surviving(1)))).unwrap();
        assert_eq!(reopened.tx(|tx| tx.read_vec(object, 4096)).unwrap(), [0; 4096], "after {value} logs");
    }
    pool.abort_log(0).unwrap();
    assert_eq!(pool.tx(|tx| tx.read_vec(object, 4096)).unwrap(), [0; 4096]);
    let reopened = options.open_in(Box::new(TestMemory::from_image(memory.durable()))).unwrap();
    assert_eq!(reopened.recovery().undone, 0);
}

/// A creation that is cut leaves a pool that is whole or one that is refused, whatever lay there
/// before.
#[test]
fn a_creation_that_is_cut_leaves_a_whole_pool_or_none() {
    let memory = TestMemory::from_image(vec![0xa5; POOL_BYTES]);
    let outcomes = Arc::new(Mutex::new((0, 0)));
    let sink = outcomes.clone();
    memory.probe(move |number, event, survive| {
        // At a fence everything is open that it should have kept apart: many outcomes, few of which
        // show a fault.
        let outcomes_here = if event == Event::Fence { 200 } else { 2 };
        for seed in 0..outcomes_here {
            let opened =
                options(Mechanism::Undo).open_in(Box::new(TestMemory::from_image(survive(number << 8 | seed))));
            let sound = match opened {
                Ok(pool) => pool.root().is_ok_and(|root| root == 0) && pool.objects().is_ok_and(|o| o.is_empty()),
                Err(Error::Pool { problem, .. }) => matches!(
                    problem,
                    Problem::Foreign { .. }
                        | Problem::Unfinished
                        | Problem::Newer { .. }
                        | Problem::Corrupt { what: "the checksum of the head does not hold", .. }
                ),
                Err(_) => false,
            };
            let mut outcomes = sink.lock().unwrap();
            outcomes.0 += u32::from(sound);
            outcomes.1 += 1;
        }
    });
    drop(options(Mechanism::Undo).create_in(Box::new(memory.clone())).unwrap());
    memory.stop_probe();
    let (sound, all) = *outcomes.lock().unwrap();
    assert_eq!(sound, all);
    assert!(all > 500, "only {all} cuts");
}

/// Recovery makes the extent of a ring small again. Whoever reads the small extent must find the
/// epoch word that makes what lies behind it worthless.
#[test]
fn the_extent_shrinks_only_behind_the_epoch_word() {
    let options = options(Mechanism::Checkpoint).epoch_ops(0);
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options.create_in(Box::new(memory.clone())).unwrap();
    let object = pool.tx(|tx| tx.alloc(32 * 1024)).unwrap();
    pool.persist().unwrap();
    pool.tx(|tx| tx.write(object, &[1; 20 * 1024])).unwrap();
    let memory = TestMemory::from_image(memory.surviving(1));
    drop(pool);
    let words = |image: &Image| {
        let ring = nearpm_interface::media::PAGE_BYTES as usize;
        let word = |at: u64| u64::from_le_bytes(image[ring + at as usize..][..8].try_into().unwrap());
        (word(RING_EXTENT), word(RING_EPOCH))
    };
    let (extent, epoch) = words(&memory.durable());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    memory.probe(move |number, _, survive| {
        sink.lock().unwrap().extend((0..16).map(|n| words(&survive(16 * number + n))));
    });
    drop(options.open_in(Box::new(memory.clone())).unwrap());
    memory.stop_probe();
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|w| w.0 == extent && w.1 == epoch));
    let last = *seen.last().unwrap();
    assert!(last.0 != extent && last.1 != epoch, "the extent was large, and an epoch was open");
    assert!(seen.iter().all(|w| w.0 == extent || w.1 == last.1), "a small extent with the old epoch word");
}

/// What one large transaction writes back, and what is left at each cut while the log is made
/// larger before it.
#[test]
fn a_log_that_was_reserved_does_not_grow_and_a_cut_meanwhile_loses_nothing() {
    let options = Options::new().mechanism(Mechanism::Undo).lanes(1).ring_bytes(128 * 1024).id(7);
    let lines = |reserve: bool| {
        let memory = TestMemory::new(POOL_BYTES);
        let pool = options.create_in(Box::new(memory.clone())).unwrap();
        let object = pool.tx(|tx| tx.alloc_zeroed(32 * 1024)).unwrap();
        pool.tx(|tx| tx.write_u64(object, 7)).unwrap();
        let left: Arc<Mutex<Vec<Image>>> = Arc::default();
        let sink = left.clone();
        memory.probe(move |number, _, survive| sink.lock().unwrap().push(survive(number)));
        if reserve {
            pool.reserve_log(64 * 1024).unwrap();
            pool.reserve_log(16 * 1024).unwrap();
        }
        memory.stop_probe();
        let left = std::mem::take(&mut *left.lock().unwrap());
        assert_eq!(left.len() > 10, reserve, "{} events", left.len());
        for image in left {
            let pool = options.open_in(Box::new(TestMemory::from_image(image))).unwrap();
            assert_eq!(pool.tx(|tx| tx.read_u64(object)).unwrap(), 7);
        }
        let before = pool.statistics().lines_written_back;
        pool.tx(|tx| tx.write(object, &[1; 32 * 1024])).unwrap();
        pool.statistics().lines_written_back - before
    };
    let (grows, reserved) = (lines(false), lines(true));
    assert!(reserved + 200 < grows, "{reserved} lines where the log was reserved, {grows} where it was not");
}

/// A pool is made where another one was, with the same identifier: what is left of that one's log
/// must not count.
#[test]
fn entries_of_a_former_pool_do_not_count() {
    let memory = TestMemory::new(1 << 20);
    let options = Options::new().mechanism(Mechanism::Undo).lanes(1).id(3);
    for ring_bytes in [16384, 65536] {
        let options = options.clone().ring_bytes(ring_bytes);
        let former = options.create_in(Box::new(memory.clone())).unwrap();
        let object = former.tx(|tx| tx.alloc_zeroed(8192)).unwrap();
        for n in 1..30 {
            former.tx(|tx| tx.write_u64(object, n)).unwrap();
        }
        former.tx(|tx| (0..40).try_for_each(|n| tx.write_u64(object + 128 * n, 7777))).unwrap();
        former.close().unwrap();
        let pool = options.create_in(Box::new(memory.clone())).unwrap();
        let object = pool
            .tx(|tx| {
                let object = tx.alloc(8192)?;
                tx.write(object, &[9; 8192])?;
                tx.set_root(object)?;
                Ok(object)
            })
            .unwrap();
        std::mem::forget(pool);
        let again = options.open_in(Box::new(TestMemory::from_image(memory.durable()))).unwrap();
        assert_eq!(again.tx(|tx| tx.read_vec(object, 8192)).unwrap(), [9; 8192], "{:?}", again.recovery());
    }
}
