//! A segment of the log where an object was, of which older records still tell: a cut in the recovery must not lose the segment.

use super::store::{STORE, create, empty, options, poke};
use super::{Allowed, Cuts, DirectPool, Mode, cut_recovery};
use crate::direct::Transaction;
use crate::memory::TestMemory;

const BYTES: usize = 2 << 20;
/// Larger than a chunk.
const OBJECT_BYTES: u64 = 70_000;

/// A transaction that stays open, and whose stores are durable already: only its undo records can take them back.
fn leave_open(pool: &DirectPool, offset: u64) -> Transaction {
    let mut tx = pool.begin().unwrap();
    let range = offset..offset + 64;
    tx.add(pool, range.clone()).unwrap();
    poke(pool, offset, &[0xaa; 64]);
    pool.persist(&[range]).unwrap();
    tx
}

#[test]
fn a_cut_in_the_recovery_finds_every_segment_again() {
    let memory = TestMemory::new(BYTES);
    let pool = create(memory.clone(), &options(Mode::InPlace), 1).unwrap();
    let scratch = pool.root() + STORE - 256;
    // As long as this one is open, no record that follows is dead.
    let first = leave_open(&pool, scratch);
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT_BYTES).unwrap().offset;
    tx.commit(&pool).unwrap();
    let mut tx = pool.begin().unwrap();
    tx.free(&pool, object).unwrap();
    tx.commit(&pool).unwrap();
    let mut open = vec![first];
    let is_segment = |pool: &DirectPool| {
        let shards = pool.lock_all();
        shards.iter().flat_map(|s| &s.lanes).flat_map(|lane| &lane.segments).any(|segment| segment.offset == object)
    };
    // Each new one has a lane of its own, with segments of its own.
    while !is_segment(&pool) {
        assert!(open.len() < 4, "no segment comes to lie where the object was");
        open.push(leave_open(&pool, scratch + 64 * open.len() as u64));
    }
    let cuts = cut_recovery(&memory.durable(), Mode::InPlace, &Allowed(vec![empty()]), Cuts::OneIn(1)).unwrap();
    assert!(cuts > 10, "{cuts} cuts");
}
