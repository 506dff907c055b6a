//! Power cuts at every fence, under every mechanism, with and without eviction, and again during the recovery.
//!
//! The oracle: what recovers must be the state after some transaction between the last that was
//! acknowledged when the power failed and the one that was running.

mod common;

use std::sync::{Arc, Mutex};

use common::{Model, apply, check_leaks, contents, create, operations};
use nearpm::memory::{Event, Image, TestMemory};
use nearpm::{Durability, Mechanism, PoolOptions};

const POOL_BYTES: usize = 512 * 1024;

/// States that may survive a cut at this moment.
#[derive(Default)]
struct Oracle {
    /// State after each transaction, from the empty store.
    states: Vec<Model>,
    /// Index of the last acknowledged one.
    acknowledged: usize,
}

fn options(mechanism: Mechanism) -> PoolOptions {
    PoolOptions::new().mechanism(mechanism).lanes(1).ring_bytes(64 * 1024).epoch_ops(5).id(7)
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

/// How often power was cut, and the first cut that was not survived. Nothing panics inside a probe: the pool's own code
/// would unwind through the memory.
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
        // The running transaction's outcome is allowed from its start: it may pass its commit point any time.
        let mut next = model.clone();
        if let common::Operation::Put { key, bytes, fill } = operation {
            next.insert(key, vec![fill; bytes]);
        } else if let common::Operation::Remove { key } = operation {
            next.remove(&key);
        }
        oracle.lock().unwrap().states.push(next.clone());
        apply(&pool, &mut model, &operation).unwrap();
        assert_eq!(model, next);
        let statistics = pool.statistics();
        let mut oracle = oracle.lock().unwrap();
        if statistics.acknowledged == statistics.transactions {
            oracle.acknowledged = oracle.states.len() - 1;
        }
    }
    memory.stop_probe();
    let what = format!("{mechanism:?}, {durability:?}, eviction {evict_one_in}, seed {seed}");
    let verdict = verdict.lock().unwrap();
    assert!(verdict.failure.is_none(), "{what}: {}", verdict.failure.as_ref().unwrap());
    assert!(verdict.cuts > 40, "{what}: only {} cuts", verdict.cuts);
    assert_eq!(contents(&pool).unwrap(), model);
    // After the last persist only the last state may survive, whatever the caches do.
    pool.persist().unwrap();
    let mut last = oracle.lock().unwrap();
    last.acknowledged = last.states.len() - 1;
    for cut in 0..4 {
        let survivor = TestMemory::from_image(memory.surviving(cut));
        recover(mechanism, survivor, &last).unwrap_or_else(|e| panic!("{what}, after the last persist: {e}"));
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

#[test]
fn a_pool_may_be_opened_with_another_mechanism_each_time() {
    let mut memory = TestMemory::new(POOL_BYTES).evict(5, 1);
    create(&options(Mechanism::Undo).create_in(Box::new(memory.clone())).unwrap()).unwrap();
    let mut model = Model::new();
    for round in 0..24 {
        let mechanism = Mechanism::ALL[round % 4];
        let pool = options(mechanism).open_in(Box::new(memory.clone())).unwrap();
        for operation in operations(round as u64, 12, 400) {
            apply(&pool, &mut model, &operation).unwrap();
        }
        pool.persist().unwrap();
        // Power fails without a close.
        let image = memory.surviving(round as u64);
        memory = TestMemory::from_image(image).evict(5, round as u64);
        let pool = options(mechanism).open_in(Box::new(memory.clone())).unwrap();
        assert_eq!(contents(&pool).unwrap(), model, "round {round}, {mechanism:?}");
        check_leaks(&pool, &model).unwrap();
    }
}
