//! A segment of the log where an object was, of which older records still tell: a cut in the
//! recovery must not lose the segment.

use nearpm_interface::media::CHUNK_BYTES;

use super::store::{Model, STORE, create, empty, options, poke};
use super::{Allowed, Cuts, DirectPool, Mode, cut_recovery};
use crate::direct::Transaction;
use crate::memory::TestMemory;

const BYTES: usize = 2 << 20;
/// Larger than a chunk, and of no class: it has whole chunks.
const OBJECT_BYTES: u64 = 80_000;

/// A transaction that stays open, and whose stores are durable already: only its undo records can
/// take them back.
fn leave_open(pool: &DirectPool, offset: u64) -> Transaction {
    let mut tx = pool.begin().unwrap();
    let range = offset..offset + 64;
    tx.add(pool, range.clone()).unwrap();
    poke(pool, offset, &[0xaa; 64]);
    pool.persist(&[range]).unwrap();
    tx
}

/// Commits an object whose place is the first slot of the store.
fn put_object(pool: &DirectPool, model: &mut Model, data: &[u8]) -> u64 {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, data.len() as u64 + 8).unwrap().offset;
    poke(pool, object, &(data.len() as u64).to_le_bytes());
    poke(pool, object + 8, data);
    let place = pool.root();
    tx.add(pool, place..place + 8).unwrap();
    poke(pool, place, &object.to_le_bytes());
    tx.commit(pool).unwrap();
    model.0[0] = Some(data.to_vec());
    object
}

/// With a segment in the chunk of a former object, its first or a later one.
fn cut_with_segment_in(chunk: u64) {
    let memory = TestMemory::new(BYTES);
    let pool = create(memory.clone(), &options(Mode::InPlace), 1).unwrap();
    let mut model = empty();
    let scratch = pool.root() + STORE - 256;
    // As long as this one is open, no record that follows is dead.
    let first = leave_open(&pool, scratch);
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT_BYTES).unwrap().offset;
    tx.commit(&pool).unwrap();
    let mut tx = pool.begin().unwrap();
    tx.free(&pool, object).unwrap();
    tx.commit(&pool).unwrap();
    if chunk > 0 {
        // Of a class of its own, which needs a new chunk.
        assert_eq!(put_object(&pool, &mut model, &[3; 4000]), object, "the first chunk is used otherwise");
    }
    let mut open = vec![first];
    let is_segment = |pool: &DirectPool| {
        let shards = pool.lock_all();
        let mut segments = shards.iter().flat_map(|s| &s.lanes).flat_map(|lane| &lane.segments);
        segments.any(|segment| segment.offset == object + chunk * CHUNK_BYTES)
    };
    // Each new one has a lane of its own, with segments of its own.
    while !is_segment(&pool) {
        assert!(open.len() < 4, "no segment comes to lie where the object was");
        open.push(leave_open(&pool, scratch + 64 * open.len() as u64));
    }
    let cuts = cut_recovery(&memory.durable(), Mode::InPlace, &Allowed(vec![model]), Cuts::OneIn(1)).unwrap();
    assert!(cuts > 10, "{cuts} cuts");
}

#[test]
fn a_cut_in_the_recovery_finds_every_segment_again() {
    cut_with_segment_in(0);
}

#[test]
fn also_one_that_lies_behind_the_word_of_a_large_object() {
    cut_with_segment_in(1);
}
