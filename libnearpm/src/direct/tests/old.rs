//! Transactions that add much: their old bytes are in the log, and power fails at every event.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::super::Transaction;
use super::super::old::MOST_SAVED;
use super::super::slot::move_to;
use super::store::{options, peek, poke};
use super::{DirectPool, Mode};
use crate::memory::{Image, TestMemory};
use crate::planted::{Fault, plant};

const BYTES: usize = 1 << 20;
/// Ranges of the object that a transaction changes, and what lies between two of them.
const RANGE: u64 = 3000;
const APART: u64 = 3200;
const RANGES: u64 = 5;
/// Bytes at its end that others change.
const BESIDE: u64 = RANGES * APART;
const OBJECT: u64 = BESIDE + 256;

fn pool() -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(Mode::WorkingCopy)).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, OBJECT).unwrap().offset;
    poke(&pool, object, &[0; OBJECT as usize]);
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    pool.tidy(0).unwrap();
    (memory, pool)
}

fn open(image: Image) -> DirectPool {
    DirectPool::open_in(Box::new(TestMemory::from_image(image)), &options(Mode::WorkingCopy)).unwrap()
}

/// The byte that fills all ranges, and the one beside them; `None` if some are others.
fn state(pool: &DirectPool) -> Option<(u8, u8)> {
    let bytes = peek(pool, pool.root()..pool.root() + OBJECT);
    let beside = bytes[BESIDE as usize];
    let ranges = (0..RANGES).flat_map(|at| &bytes[(at * APART) as usize..][..RANGE as usize]);
    let between = (0..RANGES).flat_map(|at| &bytes[(at * APART + RANGE) as usize..((at + 1) * APART) as usize]);
    let is_whole = ranges.clone().all(|&byte| byte == bytes[0])
        && between.clone().all(|&byte| byte == 0)
        && bytes[BESIDE as usize..].iter().all(|&byte| byte == beside);
    is_whole.then_some((bytes[0], beside))
}

/// Commits on another thread's log, of bytes beside the ranges.
fn beside(pool: &DirectPool, value: u8) {
    move_to(1);
    let mut tx = pool.begin().unwrap();
    let at = pool.root() + BESIDE;
    tx.add(pool, at..at + 256).unwrap();
    poke(pool, at, &[value; 256]);
    tx.commit(pool).unwrap();
    move_to(0);
}

/// States that were found behind cuts, and the first cut that was not survived.
type Seen = (BTreeSet<(u8, u8)>, Option<String>);

/// Runs transactions with cuts at every event: ranges one by one and together, some taken back,
/// with a truncation and other commits while one is open. Gives the states that were found, or the
/// first cut that was not survived.
fn cuts() -> Result<BTreeSet<(u8, u8)>, String> {
    let (memory, pool) = pool();
    let allowed: Arc<Mutex<BTreeSet<(u8, u8)>>> = Arc::new(Mutex::new([(0, 0)].into()));
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let (may, sink) = (allowed.clone(), seen.clone());
    memory.probe(move |number, event, survive| {
        let mut seen = sink.lock().unwrap();
        for draw in 0..if seen.1.is_none() { 2 } else { 0 } {
            let found = state(&open(survive(number * 2 + draw)));
            match found.filter(|found| may.lock().unwrap().contains(found)) {
                Some(found) => {
                    seen.0.insert(found);
                }
                None => seen.1 = Some(format!("{found:?} at event {number}, {event:?}")),
            }
        }
    });
    let (mut main, mut other) = (0, 0);
    for round in 1..=24u8 {
        if round % 4 == 1 {
            // What is in the log and not at home names bytes of the first range.
            let mut tx = pool.begin().unwrap();
            let at = pool.root();
            tx.add(&pool, at..at + 100).unwrap();
            poke(&pool, at, &[main; 100]);
            tx.commit(&pool).unwrap();
        }
        let mut tx = pool.begin().unwrap();
        let ranges: Vec<_> = (0..RANGES).map(|at| pool.root() + at * APART).map(|at| at..at + RANGE).collect();
        if round % 3 == 0 {
            tx.add_all(&pool, &ranges).unwrap();
        }
        for (number, range) in ranges.iter().enumerate() {
            tx.add(&pool, range.clone()).unwrap();
            poke(&pool, range.start, &[round; RANGE as usize]);
            if number == 3 && round % 2 == 0 {
                allowed.lock().unwrap().insert((main, round));
                beside(&pool, round);
                other = round;
                *allowed.lock().unwrap() = [(main, other)].into();
                pool.tidy(0).unwrap();
            }
        }
        assert!(!tx.state().old.ranges.is_empty(), "old bytes go to the log");
        if round % 5 == 0 {
            tx.abort(&pool).unwrap();
        } else {
            allowed.lock().unwrap().insert((round, other));
            tx.commit(&pool).unwrap();
            main = round;
            *allowed.lock().unwrap() = [(main, other)].into();
        }
        assert_eq!(state(&pool), Some((main, other)), "what the program sees");
        if let Some(failure) = seen.lock().unwrap().1.take() {
            memory.stop_probe();
            std::mem::forget(pool);
            return Err(failure);
        }
    }
    memory.stop_probe();
    pool.close().unwrap();
    assert_eq!(state(&open(memory.durable())), Some((main, other)), "what a close leaves");
    Ok(std::mem::take(&mut seen.lock().unwrap().0))
}

#[test]
fn a_transaction_that_adds_much_is_whole_or_not_there() {
    plant(None);
    let seen = cuts().unwrap();
    assert!(seen.len() > 20, "{} states", seen.len());
}

/// What a recovery would replay over new bytes at home is brought home first.
#[test]
fn records_beneath_are_brought_home_first() {
    plant(Some(Fault::LeavesRecordsBeneath));
    let found = cuts();
    plant(None);
    assert!(found.is_err(), "cuts find nothing");
}

/// The log has each byte once, and memory none of them; the places of a transaction that was taken
/// back serve the next one.
#[test]
fn old_bytes_are_logged_once() {
    let (_, pool) = pool();
    let fill = |value: u8, commits: bool| {
        let before = pool.statistics();
        let mut tx = pool.begin().unwrap();
        for at in (0..RANGES).map(|at| pool.root() + at * APART) {
            tx.add(&pool, at..at + RANGE).unwrap();
            poke(&pool, at, &[value; RANGE as usize]);
        }
        assert!(tx.state().saved.len() <= MOST_SAVED);
        if commits { tx.commit(&pool) } else { tx.abort(&pool) }.unwrap();
        pool.statistics().bytes_logged - before.bytes_logged
    };
    fill(1, true);
    let free = pool.heap_state().free_bytes;
    for value in 2..60 {
        let logged = fill(value, value % 3 > 0);
        assert!((RANGES * RANGE..RANGES * RANGE * 11 / 10).contains(&logged), "{logged} bytes");
    }
    assert_eq!(pool.heap_state().free_bytes, free, "the log does not grow");
    assert_eq!(state(&pool), Some((59, 0)));
}

/// Where the log has no room for old bytes, they are kept in memory, as long as the commit finds
/// room for the new ones; an addition beyond is refused.
#[test]
fn a_full_pool_keeps_old_bytes_in_memory() {
    plant(None);
    for commits in [false, true] {
        let (_, pool) = pool();
        let mut tx = pool.begin().unwrap();
        let object = tx.alloc(&pool, 64 * APART).unwrap().offset;
        poke(&pool, object, &[0; 64 * APART as usize]);
        tx.commit(&pool).unwrap();
        pool.tidy(0).unwrap();
        let mut held = Vec::new();
        while let Ok(reserved) = pool.reserve(4096) {
            held.push(reserved);
        }
        let mut tx = pool.begin().unwrap();
        let mut filled = Vec::new();
        loop {
            let at = object + filled.len() as u64 * APART;
            match tx.add(&pool, at..at + RANGE) {
                Ok(()) => poke(&pool, at, &[9; RANGE as usize]),
                Err(crate::Error::Full { .. }) => break,
                Err(other) => panic!("{other}"),
            }
            filled.push(at..at + RANGE);
        }
        assert!(!tx.state().old.ranges.is_empty() && tx.state().saved.len() > MOST_SAVED);
        if commits { tx.commit(&pool).map(drop) } else { tx.abort(&pool) }.unwrap();
        let value = if commits { 9 } else { 0 };
        for range in filled {
            assert!(peek(&pool, range).iter().all(|&byte| byte == value), "committed: {commits}");
        }
        held.into_iter().for_each(|reserved| pool.cancel(reserved));
    }
}

/// A long record fits nowhere behind a short one, and goes to another segment; an abort goes back
/// to behind the short one. Nothing may have come to that segment meanwhile, although a truncation
/// has brought the short one home.
#[test]
fn what_an_abort_goes_back_to_is_nobodys() {
    const LONG: u64 = 8000;
    const SHORT: u64 = 3000;
    plant(None);
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(Mode::WorkingCopy)).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, 5 * LONG).unwrap().offset;
    poke(&pool, object, &[0; 5 * LONG as usize]);
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    pool.tidy(0).unwrap();
    let change = |tx: &mut Transaction, at: u64, bytes: u64, value: u8| {
        tx.add(&pool, object + at..object + at + bytes).unwrap();
        assert!(tx.state().old.ranges.covers(&(object + at..object + at + bytes)), "old bytes go to the log");
        poke(&pool, object + at, &vec![value; bytes as usize]);
    };
    // The lane has three segments for all that comes, each with room for two long records.
    let mut tx = pool.begin().unwrap();
    (0..5).for_each(|part| change(&mut tx, part * LONG, LONG, 9));
    tx.abort(&pool).unwrap();
    let mut tx = pool.begin().unwrap();
    change(&mut tx, 0, LONG, 1);
    change(&mut tx, LONG, SHORT, 1);
    tx.commit(&pool).unwrap();
    let mut tx = pool.begin().unwrap();
    change(&mut tx, 2 * LONG, LONG, 9);
    pool.tidy(0).unwrap();
    change(&mut tx, 3 * LONG, LONG, 9);
    change(&mut tx, 4 * LONG, LONG, 9);
    tx.abort(&pool).unwrap();
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let sink = failure.clone();
    memory.probe(move |number, event, survive| {
        for draw in 0..4 {
            let memory = Box::new(TestMemory::from_image(survive(number * 4 + draw)));
            let found = DirectPool::open_in(memory, &options(Mode::WorkingCopy)).map_err(|error| error.to_string());
            let found = found.map(|pool| peek(&pool, pool.root()..pool.root() + SHORT));
            let is_filled = |value: u8| found.as_ref().is_ok_and(|bytes| bytes.iter().all(|&byte| byte == value));
            if !is_filled(1) && !is_filled(2) {
                let found = found.map(|_| "neither the old bytes nor the new ones");
                sink.lock().unwrap().get_or_insert(format!("{found:?} at event {number}, {event:?}"));
            }
        }
    });
    let mut tx = pool.begin().unwrap();
    change(&mut tx, 0, SHORT, 2);
    tx.commit(&pool).unwrap();
    memory.stop_probe();
    assert_eq!(failure.lock().unwrap().take(), None);
}
