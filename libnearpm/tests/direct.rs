//! Direct pools: power cuts at every store, write-back and fence, in both modes, and again in the recovery.

mod direct_support;

use std::sync::{Arc, Mutex};

use direct_support::{Model, Operations, contents, create, empty, options};
use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::{Event, Image, TestMemory};

const POOL_BYTES: usize = 1 << 20;

/// States that may survive a cut at this moment.
#[derive(Clone)]
struct Allowed(Vec<Model>);

fn open(image: Image, mode: Mode) -> Result<(TestMemory, DirectPool), String> {
    let memory = TestMemory::from_image(image);
    let pool = DirectPool::open_in(Box::new(memory.clone()), &options(mode)).map_err(|e| e.to_string())?;
    Ok((memory, pool))
}

fn verify(image: Image, mode: Mode, allowed: &Allowed) -> Result<(), String> {
    let (_, pool) = open(image, mode)?;
    let found = contents(&pool)?;
    if allowed.0.contains(&found) { Ok(()) } else { Err(format!("none of {} states: {found:?}", allowed.0.len())) }
}

/// Cuts at each fence of a recovery, and recovers from that.
fn cut_recovery(image: &Image, mode: Mode, allowed: &Allowed) -> Result<(), String> {
    let memory = TestMemory::from_image(image.clone());
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let sink = images.clone();
    memory.probe(move |number, event, survive| {
        if event == Event::Fence {
            sink.lock().unwrap().push(survive(number));
        }
    });
    drop(DirectPool::open_in(Box::new(memory.clone()), &options(mode)).map_err(|e| e.to_string())?);
    memory.stop_probe();
    let images = std::mem::take(&mut *images.lock().unwrap());
    images.into_iter().try_for_each(|image| verify(image, mode, allowed))
}

/// Cuts that were made, and the first that was not survived.
#[derive(Default)]
struct Verdict {
    cuts: u64,
    failure: Option<String>,
}

/// Runs random transactions and cuts at about one event in `every`.
fn crash(mode: Mode, seed: u64, transactions: usize, evict_one_in: u64, every: u64) -> u64 {
    let memory = TestMemory::new(POOL_BYTES).evict(evict_one_in, seed);
    let pool = create(memory.clone(), mode).unwrap();
    let mut operations = Operations::new(seed);
    let mut model = empty();
    let allowed = Arc::new(Mutex::new(Allowed(vec![model.clone()])));
    let verdict: Arc<Mutex<Verdict>> = Arc::default();
    let (seen, given) = (allowed.clone(), verdict.clone());
    memory.probe(move |number, _, survive| {
        if (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % every != 0 {
            return;
        }
        let mut verdict = given.lock().unwrap();
        if verdict.failure.is_some() {
            return;
        }
        let allowed = seen.lock().unwrap().clone();
        for pick in 0..2 {
            verdict.cuts += 1;
            let image = survive(number * 2 + pick);
            let result = verify(image.clone(), mode, &allowed);
            let result =
                if number % 5 == 0 { result.and_then(|()| cut_recovery(&image, mode, &allowed)) } else { result };
            verdict.failure = result.err().map(|e| format!("seed {seed}, cut at event {number}: {e}"));
        }
    });
    for _ in 0..transactions {
        if operations.once_in(4) {
            let before = model.clone();
            let range = operations.persist(&pool, &mut model);
            // The store itself may be evicted.
            allowed.lock().unwrap().0 = vec![before, model.clone()];
            pool.persist(&[range]).unwrap();
        } else {
            let (tx, after, commits) = operations.transaction(&pool, &model).unwrap();
            if commits {
                allowed.lock().unwrap().0 = vec![model.clone(), after.clone()];
                tx.commit(&pool).unwrap();
                model = after;
            } else {
                tx.abort(&pool).unwrap();
            }
        }
        allowed.lock().unwrap().0 = vec![model.clone()];
        assert_eq!(contents(&pool).unwrap(), model, "seed {seed}");
    }
    memory.stop_probe();
    drop(pool);
    verify(memory.durable(), mode, &Allowed(vec![model])).expect("an orderly end keeps everything");
    let verdict = verdict.lock().unwrap();
    if let Some(failure) = &verdict.failure {
        panic!("{mode:?}: {failure}");
    }
    verdict.cuts
}

#[test]
fn a_working_copy_survives_cuts() {
    let cuts: u64 = (0..6).map(|seed| crash(Mode::WorkingCopy, seed, 80, seed % 3 * 7, 3)).sum();
    assert!(cuts > 800, "{cuts} cuts");
}

#[test]
fn in_place_survives_cuts() {
    let cuts: u64 = (0..6).map(|seed| crash(Mode::InPlace, seed, 80, seed % 3 * 7, 3)).sum();
    assert!(cuts > 800, "{cuts} cuts");
}

#[test]
fn a_long_run_fills_the_log_many_times() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        crash(mode, 77, 900, 0, 400);
    }
}
