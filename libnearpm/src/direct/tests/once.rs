//! New objects that are written once, as on a file: power cuts at every kind of event, and faults
//! that these must find.

use std::sync::{Arc, Mutex};

use nearpm_interface::media::CHUNK_BYTES;

use super::store::{Operations, contents, create, empty, options, peek, poke};
use super::{Allowed, Cuts, Mode, POOL_BYTES, Run, cut_recovery, thorough, verify};
use crate::direct::{DirectPool, Reservation};
use crate::memory::{Image, TestMemory};
use crate::planted::{Fault, plant};
use crate::{Durability, Statistics};

fn run(durability: Durability, seed: u64) -> Run {
    Run {
        mode: Mode::WorkingCopy,
        seed,
        transactions: 30,
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
    let seeds = if thorough() { 200 } else { 3 };
    for durability in [Durability::Durable, Durability::Asynchronous] {
        let cuts: u64 = (0..seeds).map(|seed| run(durability, seed).make().unwrap()).sum();
        assert!(cuts > 100, "{durability:?}: {cuts} cuts");
    }
}

/// Whether something fails with a fault.
fn is_found(fault: Fault, tries: impl IntoIterator<Item = (Durability, u64)>, make: Scenario) -> bool {
    plant(Some(fault));
    // A pool that is broken enough panics instead of answering.
    let mut made =
        tries.into_iter().map(|of| std::panic::catch_unwind(|| make(of)).unwrap_or(Err("a panic".to_owned())));
    let found = made.find_map(Result::err);
    plant(None);
    found.inspect(|why| println!("{fault:?}: {why}")).is_some()
}

/// Something that is to hold, by durability and seed.
type Scenario = fn((Durability, u64)) -> Result<(), String>;

fn at_random((durability, seed): (Durability, u64)) -> Result<(), String> {
    run(durability, seed).make().map(drop)
}

/// The states of a pool whose first object is replaced by others that have one byte all over.
fn states(contents: &[(u8, usize)]) -> Allowed {
    let state = |&(fill, bytes): &(u8, usize)| {
        let mut model = empty();
        model.0[0] = Some(vec![fill; bytes]);
        model
    };
    Allowed(contents.iter().map(state).collect())
}

/// A record that was waited for, and of which no other says so, is changed at home by a truncation
/// that is cut.
fn truncation_over_what_is_not_shown(_: (Durability, u64)) -> Result<(), String> {
    let (memory, pool) = pool(Durability::Asynchronous);
    replace(&pool, 9, 5_000);
    let mut tx = pool.begin().unwrap();
    let object = first(&pool);
    tx.add(&pool, object + 8..object + 5_000).unwrap();
    poke(&pool, object + 8, &[8; 4_992]);
    tx.commit(&pool).unwrap();
    pool.wait_durable().unwrap();
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let sink = images.clone();
    memory.probe(move |number, _, survive| sink.lock().unwrap().push(survive(number)));
    pool.truncation().and_then(|turn| pool.truncate_beside(&turn)).unwrap();
    memory.stop_probe();
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 10, "{} cuts", images.len());
    images.into_iter().try_for_each(|image| verify(image, Mode::WorkingCopy, &states(&[(8, 4_992)])))
}

/// A record does not count, and those before it are replayed by a recovery that is cut.
fn recovery_before_a_torn_record(_: (Durability, u64)) -> Result<(), String> {
    let (memory, pool) = pool(Durability::Asynchronous);
    replace(&pool, 9, 5_000);
    pool.wait_durable().unwrap();
    let object = first(&pool);
    let mut tx = pool.begin().unwrap();
    tx.add(&pool, object + 8..object + 108).unwrap();
    poke(&pool, object + 8, &[9; 100]);
    tx.commit(&pool).unwrap();
    pool.wait_durable().unwrap();
    replace(&pool, 7, 6_000);
    let allowed = states(&[(9, 4_992), (7, 5_992)]);
    (0..40).try_for_each(|draw| {
        let image = memory.surviving(draw);
        verify(image.clone(), Mode::WorkingCopy, &allowed)?;
        cut_recovery(&image, Mode::WorkingCopy, &allowed, Cuts::OneIn(3)).map(drop)
    })
}

#[test]
fn cuts_find_what_is_done_wrong() {
    let seeds = (0..20).flat_map(|seed| [(Durability::Durable, seed), (Durability::Asynchronous, seed)]);
    for fault in Fault::WRITTEN_ONCE {
        let once = (Durability::Asynchronous, 0);
        let found = match fault {
            Fault::LeavesRecordsUnconfirmed => is_found(fault, [once], truncation_over_what_is_not_shown),
            Fault::LeavesTornRecords => is_found(fault, [once], recovery_before_a_torn_record),
            _ => is_found(fault, seeds.clone(), at_random),
        };
        assert!(found, "no cut finds that the library {fault:?}");
    }
    for (name, scenario) in
        [("a truncation", truncation_over_what_is_not_shown as Scenario), ("a recovery", recovery_before_a_torn_record)]
    {
        scenario((Durability::Asynchronous, 0)).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

/// A pool as on a file.
fn pool(durability: Durability) -> (TestMemory, DirectPool) {
    let memory = TestMemory::from_image(vec![0; POOL_BYTES]).one_domain();
    let options = options(Mode::WorkingCopy).durability(durability);
    let pool = create(memory.clone(), &options, 1).unwrap();
    (memory, pool)
}

/// What an action counts.
fn counted(pool: &DirectPool, act: impl FnOnce()) -> Statistics {
    let before = pool.statistics();
    act();
    pool.statistics().since(&before)
}

/// The object in the first place of the root.
fn first(pool: &DirectPool) -> u64 {
    u64::from_le_bytes(peek(pool, pool.root()..pool.root() + 8).try_into().unwrap())
}

/// Makes an object of so many bytes, all alike, the root's first, and frees the one before.
fn replace(pool: &DirectPool, fill: u8, bytes: u64) {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, bytes).unwrap().offset;
    poke(pool, object, &(bytes - 8).to_le_bytes());
    poke(pool, object + 8, &vec![fill; bytes as usize - 8]);
    tx.add(pool, pool.root()..pool.root() + 8).unwrap();
    let old = first(pool);
    if old != 0 {
        tx.free(pool, old).unwrap();
    }
    poke(pool, pool.root(), &object.to_le_bytes());
    tx.commit(pool).unwrap();
}

#[test]
fn a_new_object_takes_one_synchronisation_and_is_not_in_the_log() {
    let (memory, pool) = pool(Durability::Durable);
    replace(&pool, 7, 20_000);
    for _ in 0..20 {
        let counts = counted(&pool, || replace(&pool, 7, 20_000));
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
        replace(&pool, 7, 40_000);
    }
    pool.wait_durable().unwrap();
    assert_eq!(contents(&pool, 1).unwrap()[0].0[0].as_ref().map(Vec::len), Some(39_992));
}

/// The bytes of an object change while its record is in the log: neither a recovery nor one that
/// was cut compares them with the checksum.
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

/// Two new objects side by side have one checksum. What lies between others is another
/// transaction's: its bytes do not go home with them.
#[test]
fn what_lies_between_new_objects_stays_as_it_is() {
    let (memory, pool) = pool(Durability::Durable);
    let (mut ours, mut theirs) = (pool.begin().unwrap(), pool.begin().unwrap());
    let mut make = |fill: u8, is_ours: bool| {
        let tx = if is_ours { &mut ours } else { &mut theirs };
        let object = tx.alloc(&pool, 5_000).unwrap().offset;
        poke(&pool, object, &[fill; 5_000]);
        object as usize
    };
    let are_ours = [true, false, true, true, true, false];
    let objects: Vec<usize> = (1..).zip(are_ours).map(|(fill, is_ours)| make(fill, is_ours)).collect();
    let place = objects[1] - objects[0];
    // Two runs of three places each.
    let side_by_side = |run: &[usize]| run.is_sorted_by(|one, next| one + place == *next);
    assert!((5_000..6_000).contains(&place) && objects.chunks(3).all(side_by_side), "{objects:?}");
    ours.commit(&pool).unwrap();
    let home = memory.current();
    for ((fill, is_ours), object) in (1..).zip(are_ours).zip(objects) {
        let expected = if is_ours { fill } else { 0 };
        assert!(home[object..object + 5_000].iter().all(|&byte| byte == expected), "{fill}");
    }
    theirs.commit(&pool).unwrap();
}

/// Objects of many sizes take each other's space again and again: runs of one and of several
/// chunks, and whole chunks over what were runs.
#[test]
fn the_end_of_a_place_is_that_of_what_is_taken_there() {
    let (_, pool) = pool(Durability::Durable);
    let mut taken: Vec<Reservation> = Vec::new();
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    for round in 0..200 {
        let sizes = [700, 5_000, 8_192, 9_000, 20_000, 24_576, 16_384, 30_000, 40_000];
        while let Ok(one) = pool.reserve(sizes[(draw(3) + round % 3 * 3) as usize]) {
            taken.push(one);
        }
        for one in &taken {
            // Chunks of an object's own are nobody's to join.
            let end = (!one.bytes.is_multiple_of(CHUNK_BYTES)).then_some(one.offset + one.bytes);
            for at in (one.offset..one.offset + one.bytes).step_by(512).chain([one.offset + one.bytes - 1]) {
                assert_eq!(pool.heap.place_end(at), end, "round {round}: {at:#x} in {one:?}");
            }
        }
        let kept = draw(4);
        taken.retain(|&one| {
            draw(10) < kept || {
                pool.cancel(one);
                assert!(pool.heap.place_end(one.offset).is_none_or(|end| end > one.offset), "{one:?}, which is free");
                false
            }
        });
    }
}
