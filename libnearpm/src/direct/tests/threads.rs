//! Several threads on one pool, with power cuts.

use std::sync::{Arc, Mutex};

use super::store::{Model, Operations, STORE, contents, create, empty, options};
use super::{DirectPool, Mode, thorough};
use crate::memory::{Image, TestMemory};

const THREADS: u64 = 4;

/// For each thread the states of its store that may survive now.
type Allowed = Vec<Mutex<Vec<Model>>>;

fn verify(image: Image, mode: Mode, allowed: &[Vec<Model>]) -> Result<(), String> {
    let memory = TestMemory::from_image(image);
    let pool = DirectPool::open_in(Box::new(memory), &options(mode)).map_err(|e| e.to_string())?;
    let found = contents(&pool, THREADS)?;
    for (thread, (found, allowed)) in found.iter().zip(allowed).enumerate() {
        if !allowed.contains(found) {
            return Err(format!("the store of thread {thread} is none of {} states", allowed.len()));
        }
    }
    Ok(())
}

fn work(pool: &DirectPool, thread: u64, seed: u64, allowed: &Mutex<Vec<Model>>) -> Model {
    let mut operations = Operations::new(seed * THREADS + thread, pool.root() + thread * STORE);
    let mut model = empty();
    for _ in 0..60 {
        let (tx, after, commits) = operations.transaction(pool, &model).unwrap();
        if commits {
            *allowed.lock().unwrap() = vec![model, after.clone()];
            tx.commit(pool).unwrap();
            model = after;
        } else {
            tx.abort(pool).unwrap();
        }
        *allowed.lock().unwrap() = vec![model.clone()];
    }
    model
}

fn crash(mode: Mode, seed: u64) {
    let memory = TestMemory::new(4 << 20);
    let pool = create(memory.clone(), &options(mode), THREADS).unwrap();
    let allowed: Arc<Allowed> = Arc::new((0..THREADS).map(|_| Mutex::new(vec![empty()])).collect());
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let (seen, told) = (allowed.clone(), failure.clone());
    memory.probe(move |number, _, survive| {
        if number % 97 == 0 && told.lock().unwrap().is_none() {
            // The states first: what becomes durable meanwhile is allowed by them.
            let allowed: Vec<_> = seen.iter().map(|a| a.lock().unwrap().clone()).collect();
            *told.lock().unwrap() = verify(survive(number), mode, &allowed).err();
        }
    });
    let models: Vec<Model> = std::thread::scope(|scope| {
        let (pool, allowed) = (&pool, &allowed);
        let start = |thread| scope.spawn(move || work(pool, thread, seed, &allowed[thread as usize]));
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    memory.stop_probe();
    assert_eq!(contents(&pool, THREADS).unwrap(), models);
    pool.close().unwrap();
    let states: Vec<Vec<Model>> = models.into_iter().map(|model| vec![model]).collect();
    verify(memory.durable(), mode, &states).unwrap();
    let failure = failure.lock().unwrap().take();
    assert!(failure.is_none(), "{mode:?}, seed {seed}: {failure:?}");
}

#[test]
fn threads_do_not_disturb_each_other() {
    for seed in 0..if thorough() { 60 } else { 3 } {
        crash(Mode::WorkingCopy, seed);
        crash(Mode::InPlace, seed);
    }
}
