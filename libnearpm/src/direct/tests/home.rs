//! What is home, and what only the log holds, when the power fails: each in a run of its own, of
//! which every step is known.

use crate::direct::truncate::Room;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::super::old::MOST_SAVED;
use super::super::records::LONG_RANGE;
use super::super::slot::move_to;
use super::store::{options, peek, poke};
use super::{DirectPool, Mode};
use crate::memory::{Event, Image, TestMemory};

const BYTES: usize = 1 << 20;
const OBJECT_BYTES: u64 = 150_000;

/// A pool in a working copy with one object of zeros, which is the root.
fn pool() -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(Mode::WorkingCopy)).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT_BYTES).unwrap().offset;
    poke(&pool, object, &vec![0; OBJECT_BYTES as usize]);
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    (memory, pool)
}

/// Commits bytes at places of the object.
fn put(pool: &DirectPool, changes: &[(u64, &[u8])]) {
    let mut tx = pool.begin().unwrap();
    for &(at, bytes) in changes {
        let offset = pool.root() + at;
        tx.add(pool, offset..offset + bytes.len() as u64).unwrap();
        poke(pool, offset, bytes);
    }
    tx.commit(pool).unwrap();
}

/// Zeros that go around the cache are durable with the commit that publishes their object, whatever
/// was there; and no byte beside them changes.
#[test]
fn zeros_of_reserved_space_are_durable_with_their_object() {
    const SPACE: u64 = 8000;
    for (mode, ahead, bytes, goes_around) in [
        (Mode::InPlace, 16, 100, false),
        (Mode::InPlace, 64, 512, true),
        (Mode::InPlace, 16, 5000, true),
        (Mode::InPlace, 48, 4096, true),
        (Mode::WorkingCopy, 64, 5000, false),
    ] {
        let memory = TestMemory::new(BYTES);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
        let mut tx = pool.begin().unwrap();
        let former = tx.alloc(&pool, SPACE).unwrap().offset;
        poke(&pool, former, &[1; SPACE as usize]);
        tx.commit(&pool).unwrap();
        let mut tx = pool.begin().unwrap();
        tx.free(&pool, former).unwrap();
        tx.commit(&pool).unwrap();
        truncate(&pool);

        let space = pool.reserve(SPACE).unwrap();
        assert_eq!(space.offset, former, "the space that has bytes already");
        let zeros = space.offset + ahead..space.offset + ahead + bytes;
        assert_eq!(pool.zero_reserved(zeros.clone()).unwrap(), goes_around, "{mode:?}, {bytes} bytes");
        let mut tx = pool.begin().unwrap();
        tx.add_without_snapshot(&pool, space.offset..space.offset + 8).unwrap();
        tx.make_room(&pool, space, false).unwrap();
        tx.publish(space, false);
        tx.set_root(space.offset);
        tx.commit(&pool).unwrap();

        let found = found(memory.durable(), 0, SPACE);
        for (at, &byte) in (space.offset..).zip(&found) {
            let wanted = u8::from(!(goes_around && zeros.contains(&at)));
            assert_eq!(byte, wanted, "byte {} with {bytes} zeros from {ahead} on", at - space.offset);
        }
    }
}

fn truncate(pool: &DirectPool) {
    pool.truncation().and_then(|turn| pool.truncate_beside(&turn)).unwrap();
}

/// Bytes of the object in a pool that is opened anew.
fn found(image: Image, at: u64, bytes: u64) -> Vec<u8> {
    let pool = DirectPool::open_in(Box::new(TestMemory::from_image(image)), &options(Mode::WorkingCopy)).unwrap();
    peek(&pool, pool.root() + at..pool.root() + at + bytes)
}

/// Of a range whose new bytes are logged, and of one whose old bytes are.
#[test]
fn an_older_record_does_not_overwrite_a_long_range() {
    for bytes in [1000, 5000] {
        assert!(bytes as u64 >= LONG_RANGE && (bytes > MOST_SAVED) == (bytes == 5000));
        let (memory, pool) = pool();
        truncate(&pool);
        put(&pool, &[(500, &[1; 40])]);
        put(&pool, &[(0, &vec![2; bytes])]);
        truncate(&pool);
        assert!(found(memory.durable(), 0, bytes as u64) == vec![2; bytes], "{bytes} bytes");
    }
}

#[test]
fn records_of_several_threads_go_home_in_their_order() {
    let (memory, pool) = pool();
    // Each has its log first, since one that gets one has all records carried home.
    for (thread, value) in [(0, 7), (1, 8), (2, 9), (2, 1), (1, 2), (0, 3)] {
        move_to(thread);
        put(&pool, &[(64, &[value; 100])]);
    }
    truncate(&pool);
    assert_eq!(found(memory.durable(), 64, 100), [3; 100]);
}

/// What is in the log and not home is not written over, however many segments it takes.
#[test]
fn segments_that_count_are_not_written_anew() {
    let (memory, pool) = pool();
    let mut expected = vec![0; OBJECT_BYTES as usize];
    for number in 0..800u64 {
        let (at, value) = (number * 184, number as u8 | 1);
        put(&pool, &[(at, &[value; 180])]);
        expected[at as usize..at as usize + 180].fill(value);
        if number % 50 == 0 {
            assert!(found(memory.durable(), 0, OBJECT_BYTES) == expected, "after {number} commits");
        }
    }
    assert!(found(memory.durable(), 0, OBJECT_BYTES) == expected);
}

/// What is committed while a truncation carries home what it took stays in the log, though its
/// segment is otherwise done with.
#[test]
fn a_commit_beside_a_truncation_is_not_written_over() {
    let (memory, pool) = pool();
    truncate(&pool);
    put(&pool, &[(0, &[1; 40])]);
    let turn = pool.truncation().unwrap();
    let (room, mut cut) = {
        let mut shards = pool.lock_all();
        (Room::for_records(&shards, &pool).unwrap(), pool.cut(&mut shards).unwrap())
    };
    put(&pool, &[(100, &[2; 40])]);
    pool.carry_home(&mut cut, room).unwrap();
    pool.settle(&mut pool.lock_all(), cut);
    drop(turn);
    put(&pool, &[(200, &[3; 40])]);
    for (at, value) in [(0, 1), (100, 2), (200, 3)] {
        assert_eq!(found(memory.durable(), at, 40), [value; 40], "at {at}");
    }
}

/// Records that name the same bytes over and over, some of them across pages.
fn put_often(pool: &DirectPool, times: u64) {
    for number in 0..times {
        move_to(number as usize % 3);
        let at = number * 7919 % (OBJECT_BYTES - 300) / 8 * 8 % 20_000;
        put(pool, &[(at, &vec![number as u8; 1 + number as usize % 290])]);
    }
}

/// Whoever carries which part, and in whatever order parts are done: bytes that several records
/// name are as the last one says.
#[test]
fn who_waits_for_a_truncation_helps_to_carry_records_home() {
    const HELPERS: u64 = 3;
    let (memory, pool) = pool();
    // Who is fast leaves nothing to the others.
    for round in 0..200 {
        if pool.carry.helped() >= 8 {
            return;
        }
        put_often(&pool, 700);
        let turn = pool.truncation().unwrap();
        let active = pool.carry.begin();
        let (room, mut cut) = {
            let mut shards = pool.lock_all();
            (Room::for_records(&shards, &pool).unwrap(), pool.cut(&mut shards).unwrap())
        };
        std::thread::scope(|scope| {
            for _ in 0..HELPERS {
                scope.spawn(|| pool.carry.help(&pool.medium));
            }
            while pool.carry.waiting() < HELPERS {
                std::thread::yield_now();
            }
            pool.carry_home(&mut cut, room).unwrap();
            drop(active);
        });
        pool.settle(&mut pool.lock_all(), cut);
        drop(turn);
        let expected = peek(&pool, pool.root()..pool.root() + OBJECT_BYTES);
        assert!(found(memory.durable(), 0, OBJECT_BYTES) == expected, "round {round}");
        // Home, and not only in the log.
        let mut home = vec![0; OBJECT_BYTES as usize];
        pool.medium.load(pool.root(), &mut home);
        assert!(home == expected, "round {round}");
    }
    panic!("hardly anybody has helped");
}

/// A commit in two records, a long one and a short one behind it, which now and then lies in
/// another segment: it is there whole, or not at all.
#[test]
fn a_commit_without_one_of_its_parts_does_not_count() {
    const LONG: usize = 600;
    const WORDS: [u64; 9] = [2000, 2100, 2200, 2300, 2400, 2500, 2600, 2700, 2800];
    let (memory, pool) = pool();
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sink = seen.clone();
    memory.probe(move |_, event, survive| {
        for seed in 0..if event == Event::Fence { 6 } else { 0 } {
            let bytes = found(survive(seed), 0, 3000);
            let words = WORDS.iter().flat_map(|&at| &bytes[at as usize..][..8]);
            assert!(bytes[..LONG].iter().chain(words).all(|&byte| byte == bytes[0]), "torn: {bytes:?}");
            sink.lock().unwrap().push(bytes[0]);
        }
    });
    for number in (1..=250).cycle().take(750) {
        // Lengths differ, so that now and then the first record takes the last room of a segment.
        let long = vec![number; LONG + usize::from(number % 7) * 64];
        let word = [number; 8];
        let words = WORDS.iter().map(|&at| (at, &word[..]));
        put(&pool, &[(0, &long[..])].into_iter().chain(words).collect::<Vec<_>>());
    }
    memory.stop_probe();
    let seen: BTreeSet<u8> = seen.lock().unwrap().iter().copied().collect();
    assert!(seen.len() > 200, "{} of 250 commits were found", seen.len());
}

/// Words that are made durable outside of transactions are there when the call returns, whatever
/// the log held of them before, and each is old or new until then.
#[test]
fn persisted_words_are_home_and_older_records_do_not_come_over_them() {
    let (memory, pool) = pool();
    truncate(&pool);
    let stored = Arc::new(Mutex::new(0u8));
    let seen = stored.clone();
    memory.probe(move |_, _, survive| {
        let new = *seen.lock().unwrap();
        for seed in 0..3 {
            let bytes = found(survive(seed), 64, 512);
            let words = bytes.chunks(8).collect::<Vec<_>>();
            // The value that is on its way, or the one before.
            assert!(words.iter().all(|word| {
                [new, new.saturating_sub(1)].map(|value| [value; 8]).contains(&(*word).try_into().unwrap())
            }));
        }
    });
    let entries = |pool: &DirectPool| pool.statistics().log_entries;
    let store = |value: u8| {
        *stored.lock().unwrap() = value;
        poke(&pool, pool.root() + 64, &[value; 512]);
        pool.root() + 64..pool.root() + 64 + 512
    };
    let check = |memory: &TestMemory, value: u8| assert_eq!(found(memory.durable(), 64, 512), [value; 512]);
    // Nothing of it is in the log: it takes none.
    let before = entries(&pool);
    pool.persist_words(&[store(1)]).unwrap();
    check(&memory, 1);
    assert_eq!(entries(&pool), before, "no record was needed");
    // A commit has it in the log: what goes home now would be overwritten by a recovery.
    let mut tx = pool.begin().unwrap();
    tx.add(&pool, store(2)).unwrap();
    tx.commit(&pool).unwrap();
    pool.persist_words(&[store(3)]).unwrap();
    check(&memory, 3);
    truncate(&pool);
    check(&memory, 3);
    let before = entries(&pool);
    pool.persist_words(&[store(4)]).unwrap();
    check(&memory, 4);
    assert_eq!(entries(&pool), before, "the log is done with it");
}

#[test]
fn pages_go_once_for_each_truncation_whoever_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = crate::options::Options::new().survives(crate::memory::Survives::ProcessCrash);
    let pool = DirectPool::create(path.to_str().unwrap(), 4 << 20, &options).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT_BYTES).unwrap().offset;
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    assert!(!pool.let_pages_go(), "nothing is home yet");
    // The log is full again and again: commits bring home what it holds.
    for value in 1..=30_u8 {
        put(&pool, &[(0, &vec![value; OBJECT_BYTES as usize])]);
    }
    assert!(pool.let_pages_go());
    assert!(!pool.let_pages_go());
    truncate(&pool);
    assert!(pool.let_pages_go() && !pool.let_pages_go());
    assert_eq!(peek(&pool, object..object + OBJECT_BYTES), vec![30; OBJECT_BYTES as usize]);
}
