//! The lint: each fault, planted, is told of; a clean program hears nothing.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::TestMemory;
use nearpm::{Fault, Lint, LintReport, Options};

type Reports = Arc<Mutex<Vec<LintReport>>>;

const MODES: [Mode; 2] = [Mode::WorkingCopy, Mode::InPlace];

/// A program: what it does with a pool and an object of 256 bytes.
type Program = fn(&DirectPool, u64);

fn store(pool: &DirectPool, offset: u64, value: u8) {
    // SAFETY: the offset lies in an object of this test.
    unsafe { pool.base().add(offset as usize).write_bytes(value, 8) };
}

fn persist(pool: &DirectPool, range: Range<u64>) {
    pool.persist(std::slice::from_ref(&range)).unwrap();
}

fn allocate(pool: &DirectPool, bytes: u64) -> u64 {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, bytes).unwrap().offset;
    // SAFETY: the object is this transaction's own.
    unsafe { pool.base().add(object as usize).write_bytes(0x11, bytes as usize) };
    tx.set_root(object);
    tx.commit(pool).unwrap();
    object
}

/// Runs a program and closes the pool; gives what the lint told, and the object.
fn run(mode: Mode, program: Program) -> (Vec<LintReport>, u64) {
    let reports = Reports::default();
    let told = reports.clone();
    let lint = Lint::Call(Arc::new(move |report: &LintReport| told.lock().unwrap().push(*report)));
    let options = Options::new().mode(mode).lint(lint);
    let pool = DirectPool::create_in(Box::new(TestMemory::new(1 << 20)), &options).unwrap();
    let object = allocate(&pool, 256);
    program(&pool, object);
    pool.close().unwrap();
    let reports = reports.lock().unwrap().clone();
    (reports, object)
}

/// Expects one report, of eight bytes at `inside` of the object.
#[track_caller]
fn expect(fault: Fault, inside: u64, program: Program) {
    for mode in MODES {
        let (reports, object) = run(mode, program);
        let wanted = LintReport { fault, offset: object + inside, bytes: 8, object, object_bytes: 256 };
        assert_eq!(reports, [wanted], "{mode:?}");
        assert!(reports[0].to_string().contains(fault.text()));
    }
}

#[test]
fn a_store_that_is_never_made_durable() {
    expect(Fault::Unpersisted, 16, |pool, object| store(pool, object + 16, 2));
    // A transaction of something else does not make it durable.
    expect(Fault::Unpersisted, 16, |pool, object| {
        store(pool, object + 16, 2);
        allocate(pool, 64);
    });
    // Nor does a persist of its neighbour.
    expect(Fault::Unpersisted, 80, |pool, object| {
        store(pool, object + 16, 2);
        store(pool, object + 80, 2);
        persist(pool, object + 16..object + 24);
    });
}

#[test]
fn a_range_that_was_not_added() {
    expect(Fault::Unlogged, 32, |pool, object| {
        let mut tx = pool.begin().unwrap();
        tx.add(pool, object..object + 8).unwrap();
        store(pool, object, 2);
        store(pool, object + 32, 2);
        tx.commit(pool).unwrap();
    });
    // An abort does not take it back.
    expect(Fault::Unlogged, 32, |pool, object| {
        let mut tx = pool.begin().unwrap();
        tx.add(pool, object..object + 8).unwrap();
        store(pool, object, 2);
        store(pool, object + 32, 2);
        tx.abort(pool).unwrap();
    });
}

#[test]
fn a_range_that_was_added_too_late() {
    for mode in MODES {
        let (reports, object) = run(mode, |pool, object| {
            let mut tx = pool.begin().unwrap();
            store(pool, object + 32, 2);
            tx.add(pool, object + 32..object + 40).unwrap();
            store(pool, object + 32, 3);
            tx.commit(pool).unwrap();
        });
        let faults: Vec<_> = reports.iter().map(|report| (report.fault, report.offset)).collect();
        assert_eq!(faults, [(Fault::Unlogged, object + 32)]);
    }
}

#[test]
fn a_persist_too_many() {
    expect(Fault::RedundantPersist, 16, |pool, object| {
        store(pool, object + 16, 2);
        persist(pool, object + 16..object + 24);
        persist(pool, object + 16..object + 24);
    });
}

#[test]
fn a_range_that_was_added_in_vain() {
    expect(Fault::UnusedAdd, 64, |pool, object| {
        let mut tx = pool.begin().unwrap();
        tx.add(pool, object..object + 8).unwrap();
        tx.add(pool, object + 64..object + 72).unwrap();
        store(pool, object, 2);
        tx.commit(pool).unwrap();
    });
}

#[test]
fn a_clean_program_hears_nothing() {
    for mode in MODES {
        let (reports, _) = run(mode, |pool, object| {
            for round in 0..50u8 {
                let mut tx = pool.begin().unwrap();
                tx.add(pool, object..object + 8).unwrap();
                store(pool, object, round.wrapping_mul(3) + 2);
                let new = tx.alloc(pool, [24, 5000, 40_000][round as usize % 3]).unwrap();
                store(pool, new.offset, round);
                if round % 4 == 3 {
                    tx.abort(pool).unwrap()
                } else {
                    tx.commit(pool).unwrap()
                }
                store(pool, object + 128, round + 1);
                persist(pool, object + 128..object + 136);
                // Space that never becomes an object is nobody's business.
                let space = pool.reserve(100).unwrap();
                store(pool, space.offset, round);
                pool.cancel(space);
                let space = pool.reserve(1000).unwrap();
                store(pool, space.offset, round);
                persist(pool, space.offset..space.offset + 8);
                let mut tx = pool.begin().unwrap();
                tx.publish(space, false);
                tx.commit(pool).unwrap();
                let mut tx = pool.begin().unwrap();
                tx.free(pool, space.offset).unwrap();
                tx.commit(pool).unwrap();
            }
            // A lock of this run.
            pool.note_volatile(object + 192..object + 256);
            store(pool, object + 200, 9);
        });
        assert_eq!(reports, [], "{mode:?}");
    }
}

/// An object that is published with the word of the program that its bytes are durable, and they
/// are not.
#[test]
fn a_published_object_whose_bytes_are_not_durable() {
    for mode in MODES {
        let (reports, _) = run(mode, |pool, _| {
            let space = pool.reserve(1024).unwrap();
            store(pool, space.offset + 8, 7);
            let mut tx = pool.begin().unwrap();
            tx.publish(space, false);
            tx.commit(pool).unwrap();
        });
        assert!(reports.len() == 1 && reports[0].fault == Fault::Unpersisted, "{mode:?}: {reports:?}");
    }
}

#[test]
fn without_it_nothing_is_kept() {
    assert!(format!("{:?}", Options::new()).contains("lint: Off"));
}
