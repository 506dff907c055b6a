//! Several threads on one pool, with power cuts.

use std::sync::{Arc, Mutex};

use super::store::{Model, Operations, STORE, contents, create, fill, options};
use super::{DirectPool, Mode, thorough};
use crate::Mechanism;
use crate::memory::{Image, TestMemory};
use crate::options::Options;

const THREADS: u64 = 4;

/// For each thread the states of its store that may survive now.
type Allowed = Vec<Mutex<Vec<Model>>>;

fn verify(image: Image, options: &Options, allowed: &[Vec<Model>]) -> Result<(), String> {
    let memory = TestMemory::from_image(image);
    let pool = DirectPool::open_in(Box::new(memory), options).map_err(|e| e.to_string())?;
    let found = contents(&pool, THREADS)?;
    for (thread, (found, allowed)) in found.iter().zip(allowed).enumerate() {
        if !allowed.contains(found) {
            return Err(format!("the store of thread {thread} is none of {} states", allowed.len()));
        }
    }
    Ok(())
}

fn work(pool: &DirectPool, thread: u64, seed: u64, mut model: Model, allowed: &Mutex<Vec<Model>>) -> Model {
    let mut operations = Operations::new(seed * THREADS + thread, pool.root() + thread * STORE);
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

fn crash(options: &Options, seed: u64) {
    let memory = TestMemory::new(4 << 20);
    let pool = create(memory.clone(), options, THREADS).unwrap();
    let filled = fill(&pool, THREADS).unwrap();
    let allowed: Arc<Allowed> = Arc::new(filled.iter().map(|model| Mutex::new(vec![model.clone()])).collect());
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let (seen, told, as_before) = (allowed.clone(), failure.clone(), options.clone());
    memory.probe(move |number, _, survive| {
        if number % 97 == 0 && told.lock().unwrap().is_none() {
            // The states first: what becomes durable meanwhile is allowed by them.
            let allowed: Vec<_> = seen.iter().map(|a| a.lock().unwrap().clone()).collect();
            *told.lock().unwrap() = verify(survive(number), &as_before, &allowed).err();
        }
    });
    let models: Vec<Model> = std::thread::scope(|scope| {
        let (pool, allowed) = (&pool, &allowed);
        let start = |(thread, model): (u64, Model)| {
            scope.spawn(move || work(pool, thread, seed, model, &allowed[thread as usize]))
        };
        let threads: Vec<_> = (0..THREADS).zip(filled).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    memory.stop_probe();
    assert_eq!(contents(&pool, THREADS).unwrap(), models);
    pool.close().unwrap();
    let states: Vec<Vec<Model>> = models.into_iter().map(|model| vec![model]).collect();
    verify(memory.durable(), options, &states).unwrap();
    let failure = failure.lock().unwrap().take();
    assert!(failure.is_none(), "{options:?}, seed {seed}: {failure:?}");
}

#[test]
fn threads_do_not_disturb_each_other() {
    for seed in 0..if thorough() { 60 } else { 3 } {
        crash(&options(Mode::WorkingCopy), seed);
        crash(&options(Mode::InPlace), seed);
    }
}

/// Commits by undo logs go by three lanes, one of which two threads share.
#[test]
fn threads_with_lanes_of_their_own_do_not_disturb_each_other() {
    for seed in 0..if thorough() { 120 } else { 12 } {
        crash(&options(Mode::WorkingCopy).mechanism(Mechanism::Undo).lanes(3), seed);
    }
}

/// Who writes the medium past the mechanism has every lane, also those that no thread has opened.
#[test]
fn a_turn_is_that_of_every_lane() {
    let options = options(Mode::WorkingCopy).mechanism(Mechanism::Undo).lanes(3);
    let pool = DirectPool::create_in(Box::new(TestMemory::new(1 << 20)), &options).unwrap();
    let by = pool.by_mechanism.as_ref().expect("it was asked for");
    assert_eq!(by.free_lanes(), 3);
    let turn = by.turn(&pool).unwrap();
    assert_eq!(by.free_lanes(), 0);
    drop(turn);
    assert_eq!(by.free_lanes(), 3);
}
