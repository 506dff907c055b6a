//! Commits that the ring of a pool's mechanism has no room for: they go by records, in a log that
//! takes its segments while the mechanism has pages elsewhere, logs to apply and epochs open.

use std::sync::{Arc, Mutex};

use super::store::{options, peek, poke};
use super::{DirectPool, Mode};
use crate::Mechanism;
use crate::memory::{Event, Image, TestMemory};
use crate::options::Options;

const BYTES: usize = 1 << 20;
const RING_BYTES: u32 = 16 << 10;
/// Ranges of the large transactions, and bytes of each.
const RANGES: u64 = 16;
const RANGE_BYTES: u64 = 5000;

/// Neither the ring nor the spare pages have room for a large transaction.
fn by(mechanism: Mechanism) -> Options {
    options(Mode::WorkingCopy).mechanism(mechanism).ring_bytes(RING_BYTES).spare_pages(16)
}

/// A small transaction: the tables change by the mechanism, which moves pages that it shadows.
fn allocate(pool: &DirectPool) {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, 64).unwrap().offset;
    poke(pool, object, &[7; 64]);
    tx.commit(pool).unwrap();
}

/// The first byte of each range of the root object.
fn found(image: Image) -> Vec<u8> {
    let pool = DirectPool::open_in(Box::new(TestMemory::from_image(image)), &options(Mode::WorkingCopy)).unwrap();
    let ranges = (0..RANGES).map(|range| peek(&pool, at(&pool, range)..at(&pool, range) + RANGE_BYTES));
    ranges
        .map(|bytes| {
            assert!(bytes.iter().all(|&byte| byte == bytes[0]), "a range is stored in part");
            bytes[0]
        })
        .collect()
}

fn at(pool: &DirectPool, range: u64) -> u64 {
    pool.root() + range * RANGE_BYTES
}

#[test]
fn large_commits_are_whole_at_every_cut() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint, Mechanism::Shadow] {
        let memory = TestMemory::new(BYTES);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &by(mechanism)).unwrap();
        let mut tx = pool.begin().unwrap();
        let object = tx.alloc(&pool, RANGES * RANGE_BYTES).unwrap().offset;
        tx.set_root(object);
        tx.commit(&pool).unwrap();
        for value in 1..=2 {
            allocate(&pool);
            let images: Arc<Mutex<Vec<Image>>> = Arc::default();
            let sink = images.clone();
            memory.probe(move |number, event, survive| {
                if event == Event::Fence {
                    sink.lock().unwrap().extend((0..4).map(|draw| survive(number * 4 + draw)));
                }
            });
            let mut tx = pool.begin().unwrap();
            for range in 0..RANGES {
                tx.add(&pool, at(&pool, range)..at(&pool, range) + RANGE_BYTES).unwrap();
                poke(&pool, at(&pool, range), &[value; RANGE_BYTES as usize]);
            }
            tx.commit(&pool).unwrap();
            memory.stop_probe();
            assert_eq!(found(memory.durable()), [value; RANGES as usize], "{mechanism:?}: acknowledged");
            let images = std::mem::take(&mut *images.lock().unwrap());
            assert!(images.len() >= 8, "{mechanism:?}: {} cuts", images.len());
            for (number, image) in images.into_iter().enumerate() {
                let found = found(image);
                let whole = [value - 1, value].iter().any(|&value| found == [value; RANGES as usize]);
                assert!(whole, "{mechanism:?}, transaction {value}, cut {number}: {found:?}");
            }
        }
    }
}
