//! What is left of a heap after a long random run of allocations and frees.

use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::RngExt;

use super::super::DirectPool;
use crate::Survives;
use crate::options::Options;

const POOL_BYTES: u64 = 64 << 20;

/// Sizes as programs ask for them: mostly small, some of several pages.
fn size(random: &mut TestRng) -> u64 {
    match random.random_range(0..100) {
        0..60 => random.random_range(16..256),
        60..90 => random.random_range(256..4096),
        90..99 => random.random_range(4096..20_000),
        _ => random.random_range(20_000..200_000),
    }
}

#[test]
fn a_long_run_wastes_little_and_gives_everything_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = Options::new().survives(Survives::ProcessCrash);
    let pool = DirectPool::create(path.to_str().unwrap(), POOL_BYTES, &options).unwrap();
    let heap = pool.heap().end - pool.heap().start;
    let whole = pool.free_bytes();
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut objects: Vec<(u64, u64)> = Vec::new();
    let (mut live, mut refused, mut worst) = (0, 0, 1.0f64);
    for step in 0..120_000 {
        let mut tx = pool.begin().unwrap();
        // Around three fifths of the heap, with what is in it always changing.
        if live < heap / 5 * 3 && (objects.is_empty() || random.random_range(0..5) > 1) {
            let bytes = size(&mut random);
            match pool.reserve(bytes) {
                Ok(reservation) => {
                    tx.publish(reservation, false);
                    live += bytes;
                    objects.push((reservation.offset, bytes));
                }
                Err(_) => refused += 1,
            }
        } else {
            let (object, bytes) = objects.swap_remove(random.random_range(0..objects.len()));
            tx.free(&pool, object).unwrap();
            live -= bytes;
        }
        tx.commit(&pool).unwrap();
        if step > 40_000 && step % 1000 == 0 {
            worst = worst.min(live as f64 / (whole - pool.free_bytes()) as f64);
        }
    }
    println!(
        "live bytes in taken space: at worst {:.0} % in steady state; {refused} allocations refused",
        worst * 100.0
    );
    assert_eq!(refused, 0, "three fifths of a heap always fit");
    assert!(worst > 0.7, "{worst}");
    for (object, _) in objects {
        let mut tx = pool.begin().unwrap();
        tx.free(&pool, object).unwrap();
        tx.commit(&pool).unwrap();
    }
    // The chunks that a thread has at hand lie in between; all of it is one piece when the pool is
    // opened again.
    pool.cancel(pool.reserve(whole / 10).unwrap());
    pool.close().unwrap();
    let pool = DirectPool::open(path.to_str().unwrap(), &options).unwrap();
    pool.cancel(pool.reserve(whole / 10 * 9).unwrap());
}
