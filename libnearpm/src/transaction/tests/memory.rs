//! In the processor's memory: power cuts at random events, of which each processor's fence is its
//! own.

use std::sync::{Arc, Mutex};

use super::{Oracle, clear, contents, create, drive, options};
use crate::memory::TestMemory;
use crate::{Durability, Mechanism};

const BYTES: usize = 512 << 10;

/// What has been cut, and the first cut that was not survived.
#[derive(Default)]
struct Verdict {
    cuts: u64,
    failure: Option<String>,
}

fn run(mechanism: Mechanism, durability: Durability, seed: u64) -> u64 {
    let what = format!("{mechanism:?}, {durability:?}, seed {seed}");
    let memory = TestMemory::new(BYTES).evict(if seed.is_multiple_of(2) { 0 } else { 9 }, seed);
    let pool = options(mechanism).durability(durability).create_in(Box::new(memory.clone())).unwrap();
    create(&pool).unwrap();
    let free = pool.free_bytes().unwrap();
    let oracle = Arc::new(Mutex::new(Oracle::new()));
    let verdict: Arc<Mutex<Verdict>> = Arc::default();
    let (shared, given) = (oracle.clone(), verdict.clone());
    memory.probe(move |number, _, survive| {
        let mut verdict = given.lock().unwrap();
        if verdict.failure.is_some() || !(number + seed).is_multiple_of(23) {
            return;
        }
        verdict.cuts += 1;
        let image = TestMemory::from_image(survive(number));
        let found = options(mechanism).open_in(Box::new(image)).map_err(|e| e.to_string());
        let judged = found.and_then(|pool| contents(&pool)).and_then(|found| {
            let oracle = shared.lock().unwrap();
            oracle.judge(mechanism, &found)
        });
        verdict.failure = judged.err().map(|e| format!("event {number}: {e}"));
    });
    let goes_on = || verdict.lock().unwrap().failure.is_none();
    let done = drive(pool.shared(), &pool, (&oracle, durability), (seed, 400), &goes_on).unwrap();
    let Verdict { cuts, failure } = std::mem::take(&mut *verdict.lock().unwrap());
    assert_eq!(failure, None, "{what}");
    assert!(done.commits > 40 && done.aborts > 5 && done.beside > 20, "{what}: {done:?}");
    memory.stop_probe();
    let last = *oracle.lock().unwrap().states.last().unwrap();
    assert_eq!(contents(&pool).unwrap(), last, "{what}");
    pool.close().unwrap();
    let pool = options(mechanism).open_in(Box::new(TestMemory::from_image(memory.durable()))).unwrap();
    assert_eq!(contents(&pool).unwrap(), last, "{what}");
    assert_eq!(clear(&pool).unwrap(), free, "{what}: nothing is lost");
    cuts
}

fn cuts(mechanism: Mechanism, durability: Durability) {
    let seeds = if nearpm_tier::thorough() { 60 } else { 6 };
    let cuts: u64 = (0..seeds).map(|seed| run(mechanism, durability, seed)).sum();
    assert!(cuts > 20 * seeds, "only {cuts} cuts");
}

#[test]
fn undo_beside_others_survives_cuts() {
    cuts(Mechanism::Undo, Durability::Durable);
    cuts(Mechanism::Undo, Durability::Asynchronous);
}

#[test]
fn redo_beside_others_survives_cuts() {
    cuts(Mechanism::Redo, Durability::Durable);
    cuts(Mechanism::Redo, Durability::Asynchronous);
}

#[test]
fn checkpoints_beside_others_survive_cuts() {
    cuts(Mechanism::Checkpoint, Durability::Durable);
}

#[test]
fn shadow_pages_beside_others_survive_cuts() {
    cuts(Mechanism::Shadow, Durability::Durable);
}
