//! The mode that a pool is opened in, by how its last program has used it.

use nearpm_interface::record::POOL_USE;

use super::store::{options, peek, poke};
use super::{DirectPool, Mode};
use crate::check;
use crate::memory::{Image, TestMemory};
use crate::options::Options;

const OBJECT: u64 = 64 << 10;

fn open(memory: &TestMemory, options: &Options) -> DirectPool {
    DirectPool::open_in(Box::new(memory.clone()), options).unwrap()
}

fn persists(pool: &DirectPool, bytes: u64) {
    for round in 0..bytes.div_ceil(OBJECT) {
        poke(pool, pool.root(), &[round as u8; OBJECT as usize]);
        pool.persist_written(pool.root()..pool.root() + OBJECT).unwrap();
    }
}

fn transactions(pool: &DirectPool, count: u8) {
    for number in 0..count {
        let mut tx = pool.begin().unwrap();
        tx.add(pool, pool.root()..pool.root() + 8).unwrap();
        poke(pool, pool.root(), &[number; 8]);
        tx.commit(pool).unwrap();
    }
}

#[test]
fn a_pool_is_opened_in_the_mode_that_its_last_program_would_have_liked() {
    let memory = TestMemory::new(1 << 20);
    let by_use = options(Mode::WorkingCopy).mode_by_use(true);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &by_use).unwrap();
    assert_eq!(pool.mode(), Mode::WorkingCopy);
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT).unwrap().offset;
    poke(&pool, object, &[0; OBJECT as usize]);
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    persists(&pool, 2 << 20);
    pool.close().unwrap();
    let pool = open(&memory, &by_use);
    assert_eq!(pool.mode(), Mode::InPlace);
    assert_eq!(peek(&pool, object..object + OBJECT), [31; OBJECT as usize]);
    // Little says nothing.
    transactions(&pool, 3);
    pool.close().unwrap();
    let pool = open(&memory, &by_use);
    assert_eq!(pool.mode(), Mode::InPlace);
    persists(&pool, 2 << 20);
    transactions(&pool, 250);
    pool.close().unwrap();
    let pool = open(&memory, &by_use);
    assert_eq!((pool.mode(), peek(&pool, object..object + 8)), (Mode::WorkingCopy, vec![249; 8]));
    persists(&pool, 4 << 20);
    pool.close().unwrap();
    // Who does not ask for the choice has none, nor where the medium allows no other mode; what is
    // damaged says nothing.
    assert_eq!(open(&memory, &options(Mode::WorkingCopy)).mode(), Mode::WorkingCopy);
    let file = TestMemory::from_image(memory.durable()).one_domain();
    assert_eq!(open(&file, &by_use).mode(), Mode::WorkingCopy);
    let mut image = memory.durable();
    assert_eq!(open(&TestMemory::from_image(image.clone()), &by_use).mode(), Mode::InPlace);
    let said = |image: &Image| {
        let memory = TestMemory::from_image(image.clone());
        check::Image::open_in(&memory).info().unwrap().mode_of_last_use
    };
    assert_eq!(said(&image), Some("in-place"));
    image[POOL_USE as usize + 3] ^= 4;
    assert_eq!(said(&image), None);
    assert_eq!(open(&TestMemory::from_image(image), &by_use).mode(), Mode::WorkingCopy);
}
