//! New objects that are written once, as on a file: power cuts at every kind of event, and faults that these must find.

use super::store::{Operations, contents, create, empty, options, peek, poke};
use super::{Cuts, Mode, POOL_BYTES, Run, thorough};
use crate::direct::{DirectOptions, DirectPool};
use crate::memory::TestMemory;
use crate::planted::{Fault, plant};
use crate::{Durability, Statistics};

fn run(durability: Durability, seed: u64) -> Run {
    Run {
        mode: Mode::WorkingCopy,
        seed,
        transactions: 40,
        evict_one_in: [0, 7, 14, 1, 3][seed as usize % 5],
        cuts: Cuts::OneIn(12),
        durability,
        mechanism: None,
        pool_bytes: POOL_BYTES,
        one_domain: true,
    }
}

#[test]
fn objects_that_are_written_once_survive_cuts() {
    let seeds = if thorough() { 200 } else { 5 };
    for durability in [Durability::Durable, Durability::Asynchronous] {
        let cuts: u64 = (0..seeds).map(|seed| run(durability, seed).make().unwrap()).sum();
        assert!(cuts > 200, "{durability:?}: {cuts} cuts");
    }
}

/// Whether the cuts of some run find out that something is done wrong.
fn is_found(fault: Fault) -> bool {
    plant(Some(fault));
    let broken = |(durability, seed): (Durability, u64)| {
        let made = std::panic::catch_unwind(|| run(durability, seed).make());
        let found = made.map_or(Some("a panic".to_owned()), Result::err);
        if let Some(found) = &found {
            println!("{fault:?}: {durability:?}, seed {seed}: {found}");
        }
        found.is_some()
    };
    let both = |seed| [(Durability::Durable, seed), (Durability::Asynchronous, seed)];
    let found = (0..40).flat_map(both).any(broken);
    plant(None);
    found
}

#[test]
fn cuts_find_what_is_done_wrong() {
    for fault in Fault::WRITTEN_ONCE {
        assert!(is_found(fault), "no cut finds that the library {fault:?}");
    }
}

/// A pool as on a file.
fn pool(durability: Durability) -> (TestMemory, DirectPool) {
    let memory = TestMemory::from_image(vec![0; POOL_BYTES]).one_domain();
    let options = DirectOptions { durability, ..options(Mode::WorkingCopy) };
    let pool = create(memory.clone(), &options, 1).unwrap();
    (memory, pool)
}

/// What an action counts.
fn counted(pool: &DirectPool, act: impl FnOnce()) -> Statistics {
    let before = pool.statistics();
    act();
    pool.statistics().since(&before)
}

/// Makes an object of so many bytes the root's first, and frees the one before.
fn replace(pool: &DirectPool, bytes: u64) {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, bytes).unwrap().offset;
    poke(pool, object, &(bytes - 8).to_le_bytes());
    poke(pool, object + 8, &vec![7; bytes as usize - 8]);
    let place = pool.root()..pool.root() + 8;
    tx.add(pool, place.clone()).unwrap();
    let old = u64::from_le_bytes(peek(pool, place.clone()).try_into().unwrap());
    if old != 0 {
        tx.free(pool, old).unwrap();
    }
    poke(pool, place.start, &object.to_le_bytes());
    tx.commit(pool).unwrap();
}

#[test]
fn a_new_object_takes_one_synchronisation_and_is_not_in_the_log() {
    let (memory, pool) = pool(Durability::Durable);
    replace(&pool, 20_000);
    for _ in 0..20 {
        let counts = counted(&pool, || replace(&pool, 20_000));
        assert_eq!(counts.fences, 1);
        assert!(counts.bytes_logged <= 256, "{} bytes", counts.bytes_logged);
    }
    let image = memory.durable();
    let memory = TestMemory::from_image(image);
    let again = DirectPool::open_in(Box::new(memory), &options(Mode::WorkingCopy)).unwrap();
    let found = contents(&again, 1).unwrap().remove(0);
    assert_eq!(found.0[0].as_deref(), Some(&[7; 19_992][..]));
}

#[test]
fn space_that_is_not_known_to_be_free_serves_others_where_there_is_no_other() {
    let (_, pool) = pool(Durability::Asynchronous);
    // Many times the pool, and nobody waits.
    for _ in 0..60 {
        replace(&pool, 40_000);
    }
    pool.wait_durable().unwrap();
    assert_eq!(contents(&pool, 1).unwrap()[0].0[0].as_ref().map(Vec::len), Some(39_992));
}

/// The bytes of an object change while its record is in the log: neither a recovery nor one that was cut compares them with the checksum.
#[test]
fn an_object_may_change_when_its_record_is_known() {
    let (memory, pool) = pool(Durability::Durable);
    let mut operations = Operations::new(3, pool.root());
    let mut model = empty();
    for _ in 0..30 {
        let (tx, after, _) = operations.transaction(&pool, &model).unwrap();
        tx.commit(&pool).unwrap();
        model = after;
    }
    let image = memory.durable();
    let open = |image| DirectPool::open_in(Box::new(TestMemory::from_image(image)), &options(Mode::WorkingCopy));
    assert_eq!(contents(&open(image).unwrap(), 1).unwrap(), [model]);
}
