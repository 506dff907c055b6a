//! Over several memories behind links.

use std::sync::{Arc, Mutex};

use super::{Oracle, clear, contents, create, drive, options};
use crate::pool::striped_tests::links::{Links, Random};
use crate::{Durability, Mechanism};

/// Two stripes for the heap.
const BYTES: usize = (2 << 20) + (640 << 10);

fn run(members: usize, mechanism: Mechanism, durability: Durability, seed: u64) -> u64 {
    let what = format!("{members} members, {mechanism:?}, {durability:?}, seed {seed}");
    let links = Links::new(members, BYTES, seed);
    let pool = options(mechanism).durability(durability).create_striped(links.memories()).unwrap();
    create(&pool).unwrap();
    let free = pool.free_bytes().unwrap();
    let oracle = Arc::new(Mutex::new(Oracle::new()));
    let verdict = Arc::new(Mutex::new((0, None::<String>)));
    let (shared, given, mut random) = (oracle.clone(), verdict.clone(), Random(seed));
    links.probe(move |number, survive| {
        let mut verdict = given.lock().unwrap();
        if verdict.1.is_some() || random.below(60) > 0 {
            return;
        }
        verdict.0 += 1;
        let survivors = Links::from_images(survive(number), number);
        let found = options(mechanism).open_striped(survivors.memories()).map_err(|e| e.to_string());
        let judged = found.and_then(|pool| contents(&pool)).and_then(|found| {
            let oracle = shared.lock().unwrap();
            oracle.judge(mechanism, &found)
        });
        verdict.1 = judged.err().map(|e| format!("event {number}: {e}"));
    });
    let goes_on = || verdict.lock().unwrap().1.is_none();
    let done = drive(pool.shared(), &pool, (&oracle, durability), (seed, 300), &goes_on).unwrap();
    let (cuts, failure) = std::mem::take(&mut *verdict.lock().unwrap());
    assert_eq!(failure, None, "{what}");
    assert!(done.commits > 30 && done.aborts > 3 && done.beside > 15, "{what}: {done:?}");
    links.stop_probe();
    let last = *oracle.lock().unwrap().states.last().unwrap();
    pool.close().unwrap();
    let next = Links::from_images(links.surviving(seed), seed);
    let pool = options(mechanism).open_striped(next.memories()).unwrap();
    assert_eq!(contents(&pool).unwrap(), last, "{what}");
    assert_eq!(clear(&pool).unwrap(), free, "{what}: nothing is lost");
    cuts
}

#[test]
fn transactions_beside_each_other_over_several_members_survive_cuts() {
    let seeds = if nearpm_tier::thorough() { 20 } else { 2 };
    for mechanism in Mechanism::ALL {
        for durability in [Durability::Durable, Durability::Asynchronous] {
            let runs = [2, 3].into_iter().flat_map(|members| (0..seeds).map(move |seed| (members, seed)));
            let cuts: u64 = runs.map(|(members, seed)| run(members, mechanism, durability, seed)).sum();
            assert!(cuts > 20 * seeds, "{mechanism:?}, {durability:?}: only {cuts} cuts");
        }
    }
}
