//! Small pools with many threads: what threads have at hand gives way to those that need it. The
//! threads are slots that one thread takes in turn, so that each run is the same.

use super::super::slot::SHARDS;
use super::super::{DirectPool, Mode, Reservation, Transaction};
use super::move_to;
use super::store::{peek, poke};
use crate::error::Error;
use crate::memory::TestMemory;
use crate::options::Options;

const THREADS: usize = 256;
const MODES: [Mode; 2] = [Mode::WorkingCopy, Mode::InPlace];

fn pool(mode: Mode, bytes: usize) -> DirectPool {
    let options = Options::new().mode(mode);
    DirectPool::create_in(Box::new(TestMemory::new(bytes)), &options).unwrap()
}

/// An object of the thread's own size, whose first bytes are changed, instead of the one that it
/// had.
fn exchange(pool: &DirectPool, tx: &mut Transaction, thread: usize, former: Option<u64>) -> u64 {
    if let Some(former) = former {
        tx.add(pool, former..former + 8).unwrap();
        tx.free(pool, former).unwrap();
    }
    tx.alloc(pool, 116 + thread as u64).unwrap().offset
}

#[test]
fn each_of_many_threads_keeps_an_object_in_a_small_pool() {
    for mode in MODES {
        let pool = pool(mode, 8 << 20);
        let mut objects = [None; THREADS];
        for round in 0..20 {
            for (thread, object) in objects.iter_mut().enumerate() {
                move_to(thread);
                let mut tx = pool.begin().unwrap();
                *object = Some(exchange(&pool, &mut tx, thread, *object));
                tx.commit(&pool).unwrap_or_else(|error| panic!("{mode:?}, round {round}, {thread}: {error}"));
            }
        }
        pool.close().unwrap();
    }
}

#[test]
fn transactions_that_are_open_at_the_same_time_share_a_small_pool() {
    for mode in MODES {
        let pool = pool(mode, 8 << 20);
        let mut objects = [None; THREADS];
        for _ in 0..4 {
            let begin = |thread| {
                move_to(thread);
                let mut tx = pool.begin().unwrap();
                objects[thread] = Some(exchange(&pool, &mut tx, thread, objects[thread]));
                tx
            };
            let open: Vec<Transaction> = (0..THREADS).map(begin).collect();
            for (thread, tx) in open.into_iter().enumerate() {
                move_to(thread);
                tx.commit(&pool).unwrap();
            }
        }
        pool.close().unwrap();
    }
}

/// Takes objects of so many bytes until there is no space.
fn fill(pool: &DirectPool, bytes: u64) -> Vec<Reservation> {
    let mut taken = Vec::new();
    loop {
        match pool.reserve(bytes) {
            Ok(reservation) => taken.push(reservation),
            Err(Error::Full { .. }) => return taken,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_others_have_at_hand_is_there_for_objects_and_for_the_log() {
    for mode in MODES {
        let pool = pool(mode, 16 << 20);
        let whole = {
            let taken = fill(&pool, 100_000);
            taken.iter().for_each(|&one| pool.cancel(one));
            taken.len()
        };
        let mut last = 0;
        for thread in 0..SHARDS {
            move_to(thread);
            let mut tx = pool.begin().unwrap();
            last = exchange(&pool, &mut tx, thread, None);
            tx.commit(&pool).unwrap();
        }
        move_to(0);
        let large = fill(&pool, 100_000);
        // Their runs with their objects are all that is missing, in pieces that do not count.
        assert!(large.len() + 24 >= whole, "{mode:?}: {} of {whole}", large.len());
        let small = fill(&pool, 64);
        assert!(small.len() < 512 * 100, "what is left are pieces");
        // The pool is full, and every thread can free all the same.
        for thread in 0..SHARDS {
            move_to(thread);
            let mut tx = pool.begin().unwrap();
            tx.add(&pool, last..last + 8).unwrap();
            tx.commit(&pool).unwrap_or_else(|error| panic!("{mode:?}, {thread}: {error}"));
        }
        large.iter().chain(&small).for_each(|&one| pool.cancel(one));
        pool.close().unwrap();
    }
}

#[test]
fn a_transaction_in_place_that_finds_no_room_for_its_log_is_taken_back() {
    let pool = pool(Mode::InPlace, 1 << 19);
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, 16_000).unwrap().offset;
    tx.commit(&pool).unwrap();
    fill(&pool, 16_000);
    let mut tx = pool.begin().unwrap();
    // Records of one line each, which fill every segment to its end.
    let refused = (0..2000).map(|n| tx.add(&pool, object + 8 * n..object + 8 * n + 8)).find_map(Result::err);
    assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
    tx.abort(&pool).unwrap();
    pool.begin().unwrap().commit(&pool).unwrap();
}

#[test]
fn a_full_pool_that_is_opened_again_can_be_emptied() {
    for mode in MODES {
        let options = Options::new().mode(mode);
        let memory = TestMemory::new(1 << 20);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options).unwrap();
        let grow = |pool: &DirectPool| -> Result<u64, Error> {
            let mut tx = pool.begin()?;
            match tx.alloc(pool, 16_000) {
                Ok(taken) => tx.commit(pool).map(|()| taken.offset),
                Err(error) => tx.abort(pool).and(Err(error)),
            }
        };
        let objects: Vec<u64> = std::iter::from_fn(|| grow(&pool).ok()).collect();
        std::mem::forget(pool);
        let pool = DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &options).unwrap();
        while grow(&pool).is_ok() {}
        for object in objects {
            let mut tx = pool.begin().unwrap();
            tx.free(&pool, object).unwrap();
            tx.commit(&pool).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        }
    }
}

/// Objects of so many bytes, until there is no space for one more.
fn filled(pool: &DirectPool, bytes: u64) -> Vec<u64> {
    let mut objects = Vec::new();
    loop {
        let mut tx = pool.begin().unwrap();
        match tx.alloc(pool, bytes) {
            Ok(reservation) => objects.push(reservation.offset),
            Err(Error::Full { .. }) => break tx.abort(pool).unwrap(),
            Err(error) => panic!("{error}"),
        }
        tx.commit(pool).unwrap();
    }
    objects
}

/// Who asks for more than the log has room for is told by that call, and what was asked for before
/// is committed.
#[test]
fn a_transaction_that_is_too_large_for_its_log_is_refused_before_its_commit() {
    for mode in MODES {
        for (bytes, with_snapshots) in [(4000, true), (4000, false), (100, true), (200_000, true)] {
            let pool = pool(mode, 4 << 20);
            let objects = filled(&pool, bytes);
            let mut tx = pool.begin().unwrap();
            let add = |tx: &mut Transaction, object: u64| match with_snapshots {
                true => tx.add(&pool, object..object + bytes),
                false => tx.add_without_snapshot(&pool, object..object + bytes),
            };
            let added = objects.iter().take_while(|&&object| match add(&mut tx, object) {
                Ok(()) => true,
                Err(Error::Full { .. }) => false,
                Err(error) => panic!("{error}"),
            });
            let added = added.count();
            // In place what needs no snapshot is in no log.
            assert_eq!(added == objects.len(), mode == Mode::InPlace && !with_snapshots, "{mode:?}, {bytes}: {added}");
            for object in &objects[..added] {
                poke(&pool, *object, &[1]);
            }
            tx.commit(&pool).unwrap_or_else(|error| panic!("{mode:?}, {added} times {bytes}: {error}"));
            assert!(objects[..added].iter().all(|&object| peek(&pool, object..object + 1) == [1]));
            // What was kept for it is free again.
            for some in objects.chunks(1000) {
                let mut next = pool.begin().unwrap();
                some.iter().for_each(|&object| next.free(&pool, object).unwrap());
                next.commit(&pool).unwrap();
            }
            assert!(filled(&pool, bytes).len() + 8 >= objects.len(), "{mode:?}, {bytes}");
            pool.close().unwrap();
        }
    }
}

/// The same for objects, while other threads take what there is.
#[test]
fn allocations_and_the_log_of_a_large_transaction_do_not_take_each_others_room() {
    for mode in MODES {
        let pool = pool(mode, 8 << 20);
        let objects: Vec<u64> = filled(&pool, 2000);
        let mut freed = pool.begin().unwrap();
        objects.iter().skip(1).step_by(2).for_each(|&object| freed.free(&pool, object).unwrap());
        freed.commit(&pool).unwrap();
        move_to(0);
        let mut tx = pool.begin().unwrap();
        let mut refused = 0;
        for (at, &object) in objects.iter().step_by(2).enumerate() {
            let done = match at % 3 {
                0 => tx.alloc(&pool, 300).map(drop),
                _ => tx.add(&pool, object..object + 2000),
            };
            match done {
                Ok(()) => {}
                Err(Error::Full { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
            if at % 50 == 0 {
                move_to(1);
                let mut other = pool.begin().unwrap();
                // There may be no space for it.
                let _ = other.alloc(&pool, 60_000);
                other.abort(&pool).unwrap();
                move_to(0);
            }
        }
        assert!(refused > 0, "{mode:?}: the log is meant to be too small");
        tx.commit(&pool).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        pool.close().unwrap();
    }
}

/// A transaction that grows looks at what it has a few times, not every few kilobytes, also where
/// the log has had its share of the pool long ago: twice as many objects take a few looks more, not
/// twice as many.
#[test]
fn a_transaction_that_fills_the_pool_looks_at_itself_a_few_times() {
    for mib in [16, 64] {
        let pool = pool(Mode::WorkingCopy, mib << 20);
        let mut tx = pool.begin().unwrap();
        let (mut objects, mut looks, mut room) = (0, 0, tx.room());
        while tx.alloc(&pool, 200).is_ok() {
            objects += 1;
            looks += u64::from(tx.room() != std::mem::replace(&mut room, tx.room()));
        }
        assert!(objects > 2000 * mib && looks < 120, "{mib} MiB: {objects} objects, {looks} looks");
        tx.commit(&pool).unwrap();
        pool.close().unwrap();
    }
}
