//! What transactions promise while nothing fails: atomicity on errors and panics, isolation of the
//! allocator, limits.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use common::{Model, apply, check_leaks, contents, create, operations};
use nearpm::memory::{TestMemory, VolatileMemory};
use nearpm::{Durability, Error, Mechanism, Options, Pool};
use proptest::prelude::*;

const BYTES: usize = 1 << 20;

fn pool(mechanism: Mechanism) -> Pool {
    Options::new().mechanism(mechanism).create_in(Box::new(VolatileMemory::new(BYTES))).unwrap()
}

#[test]
fn an_error_and_a_panic_take_everything_back() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let object = pool.tx(|tx| tx.alloc_zeroed(10_000)).unwrap();
        pool.tx(|tx| tx.write(object, &[1; 10_000])).unwrap();
        let objects = pool.objects().unwrap();
        let change = |tx: &mut nearpm::OffsetTx<'_>| -> Result<(), Error> {
            tx.write(object + 100, &[2; 5000])?;
            tx.write(object + 50, &[3; 100])?;
            let other = tx.alloc(777)?;
            tx.write(other, &[4; 777])?;
            tx.set_root(other)?;
            tx.free(object)
        };
        let failed: Result<(), Error> = pool.tx(|tx| {
            change(tx)?;
            Err(Error::abort("enough"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the transaction was aborted: enough");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.tx(|tx| -> Result<(), Error> {
                change(tx)?;
                panic!("on purpose")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 10_000)).unwrap(), [1; 10_000], "{mechanism:?}");
        assert_eq!(pool.root().unwrap(), 0);
        assert_eq!(pool.objects().unwrap(), objects);
        pool.check().unwrap();
        assert_eq!(pool.statistics().aborts, 1, "a panic is not counted, it is not returned from");
        // The pool goes on.
        pool.tx(change).unwrap();
        assert_eq!(pool.objects().unwrap().len(), 1);
        pool.check().unwrap();
    }
}

#[test]
fn a_transaction_sees_its_own_writes_and_a_nested_one_is_refused() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        pool.tx(|tx| {
            let object = tx.alloc_zeroed(300)?;
            tx.write(object + 10, &[1; 100])?;
            tx.write(object + 60, &[2; 100])?;
            let read = tx.read_vec(object, 200)?;
            assert_eq!((read[9], read[10], read[59], read[60], read[159], read[160]), (0, 1, 1, 2, 2, 0));
            assert!(matches!(pool.tx(|tx| tx.root()), Err(Error::Nested)));
            assert!(matches!(pool.persist(), Err(Error::Nested)));
            Ok(())
        })
        .unwrap();
        assert_eq!(pool.statistics().transactions, 1);
    }
}

#[test]
fn a_transaction_that_is_too_large_is_refused_and_leaves_nothing() {
    for mechanism in Mechanism::ALL {
        let options = Options::new().mechanism(mechanism).lanes(1).ring_bytes(16 * 1024).spare_pages(10);
        let pool = options.create_in(Box::new(VolatileMemory::new(BYTES))).unwrap();
        let object = pool.tx(|tx| tx.alloc(100_000)).unwrap();
        let before = pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap();
        // As one write, and as many.
        let result = pool.tx(|tx| tx.write(object, &[9; 100_000]));
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{mechanism:?}: {result:?}");
        let result = pool.tx(|tx| (0..1000).try_for_each(|i| tx.write(object + i * 100, &[9; 100])));
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{mechanism:?}: {result:?}");
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap(), before, "{mechanism:?}");
        // The same in small transactions: epochs are cut in time.
        for i in 0..1000 {
            pool.tx(|tx| tx.write(object + i * 100, &[9; 100])).unwrap();
        }
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap(), [9; 100_000]);
        pool.check().unwrap();
    }
}

#[test]
fn objects_up_to_what_the_heap_has_can_be_allocated_and_a_full_pool_is_refused() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let free = pool.free_bytes().unwrap();
        let all = pool.tx(|tx| tx.alloc(free)).unwrap();
        let full = pool.tx(|tx| tx.alloc(16));
        assert!(matches!(full, Err(Error::Full { requested: 16, free: 0 })), "{full:?}");
        pool.tx(|tx| tx.free(all)).unwrap();
        assert_eq!(pool.free_bytes().unwrap(), free);
        // Small ones until nothing is left, then all back.
        let mut objects = Vec::new();
        loop {
            match pool.tx(|tx| tx.alloc(1000)) {
                Ok(object) => objects.push(object),
                Err(Error::Full { .. }) => break,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(objects.len() as u64 > free / 1100, "{} objects in {free} bytes", objects.len());
        for object in objects {
            pool.tx(|tx| tx.free(object)).unwrap();
        }
        assert_eq!(pool.free_bytes().unwrap(), free, "{mechanism:?}");
        pool.check().unwrap();
    }
}

#[test]
fn thousands_of_allocations_fit_in_one_transaction() {
    let options = Options::new().lanes(1).ring_bytes(2 << 20);
    for mechanism in Mechanism::ALL {
        let pool = options.clone().mechanism(mechanism).create_in(Box::new(VolatileMemory::new(8 << 20))).unwrap();
        let objects = pool.tx(|tx| (0..4000).map(|_| tx.alloc(64)).collect::<Result<Vec<_>, _>>()).unwrap();
        pool.tx(|tx| objects.iter().try_for_each(|&o| tx.free(o))).unwrap();
        // Allocated and freed in the same transaction.
        pool.tx(|tx| {
            let object = tx.alloc(64)?;
            tx.write(object, &[1; 64])?;
            tx.free(object)
        })
        .unwrap();
        assert!(pool.objects().unwrap().is_empty());
        pool.check().unwrap();
    }
}

#[test]
fn freed_space_is_not_used_again_before_the_commit() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let old = pool.tx(|tx| tx.alloc(5000)).unwrap();
        pool.tx(|tx| tx.write(old, &[5; 5000])).unwrap();
        let _: Result<(), Error> = pool.tx(|tx| {
            tx.free(old)?;
            for _ in 0..20 {
                let new = tx.alloc(5000)?;
                assert_ne!(new, old);
                tx.write(new, &[6; 5000])?;
            }
            Err(Error::abort("never mind"))
        });
        assert_eq!(pool.tx(|tx| tx.read_vec(old, 5000)).unwrap(), [5; 5000]);
    }
}

#[test]
fn what_is_acknowledged_is_said_by_the_counters() {
    for mechanism in Mechanism::ALL {
        let pool = Options::new().mechanism(mechanism).epoch_ops(3);
        let pool = pool.create_in(Box::new(TestMemory::new(BYTES))).unwrap();
        let mut acknowledged = Vec::new();
        for i in 0..6 {
            pool.tx(|tx| tx.alloc(16)).unwrap();
            let statistics = pool.statistics();
            assert_eq!(statistics.transactions, i + 1);
            acknowledged.push(statistics.acknowledged);
        }
        let expected = if mechanism.has_epochs() { [0, 0, 3, 3, 3, 6] } else { [1, 2, 3, 4, 5, 6] };
        assert_eq!(acknowledged, expected, "{mechanism:?}");
        pool.tx_with(Durability::Asynchronous, |tx| tx.alloc(16)).unwrap();
        assert_eq!(pool.statistics().acknowledged, 6);
        pool.persist().unwrap();
        assert_eq!(pool.statistics().acknowledged, 7);
    }
}

#[test]
fn a_second_thread_waits_for_the_transaction_of_the_first() {
    let pool = Arc::new(pool(Mechanism::Undo));
    let counter = pool.tx(|tx| tx.alloc_zeroed(8)).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                for _ in 0..500 {
                    pool.tx(|tx| {
                        let value = tx.read_u64(counter)?;
                        tx.write_u64(counter, value + 1)
                    })
                    .unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(pool.tx(|tx| tx.read_u64(counter)).unwrap(), 2000);
}

#[test]
fn a_pool_in_a_file_is_found_as_it_was_left_with_each_way_to_survive() {
    let folder = tempfile::tempdir().unwrap();
    for survives in [nearpm::Survives::ProcessCrash, nearpm::Survives::PowerCut, nearpm::Survives::AsPersistentMemory] {
        for mechanism in Mechanism::ALL {
            let path = folder.path().join(format!("{survives:?}{mechanism:?}"));
            let path = path.to_str().unwrap();
            let options = Options::new().mechanism(mechanism).survives(survives);
            let mut model = Model::new();
            let store = options.create(path, BYTES as u64).unwrap();
            create(&store).unwrap();
            for operation in operations(5, 60, 500) {
                apply(&store, &mut model, &operation).unwrap();
            }
            store.close().unwrap();
            let store = options.open(path).unwrap();
            assert_eq!(store.recovery().undone + store.recovery().redone, 0, "a closed pool needs no recovery");
            assert_eq!(contents(&store).unwrap(), model);
            check_leaks(&store, &model).unwrap();
        }
    }
}

/// Random allocations and frees in transactions, some of which are given up.
#[derive(Clone, Debug)]
enum Step {
    Alloc(u64),
    Free(prop::sample::Index),
    End { commit: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop_oneof![1u64..200, 1u64..5000, 1u64..60_000].prop_map(Step::Alloc),
        3 => any::<prop::sample::Index>().prop_map(Step::Free),
        2 => any::<bool>().prop_map(|commit| Step::End { commit }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Objects never overlap, keep their contents, are aligned as promised, and the pool opens to
    /// the same ones.
    #[test]
    fn the_allocator_is_what_its_model_says(
        steps in prop::collection::vec(step(), 1..120), mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
    ) {
        let options = Options::new().mechanism(mechanism).lanes(1).ring_bytes(256 * 1024).spare_pages(90);
        let memory = TestMemory::new(2 << 20);
        let pool = options.create_in(Box::new(memory.clone())).unwrap();
        // Offset, size, fill.
        let mut live: Vec<(u64, u64, u8)> = Vec::new();
        let mut fill = 0u8;
        for transaction in steps.split_inclusive(|s| matches!(s, Step::End { .. })) {
            let mut next = live.clone();
            let result = pool.tx(|tx| {
                for step in transaction {
                    match step {
                        Step::Alloc(bytes) => {
                            let object = match tx.alloc(*bytes) {
                                Err(Error::Full { .. }) => continue,
                                other => other?,
                            };
                            fill = fill.wrapping_add(1);
                            assert!(tx.size_of(object)? >= *bytes);
                            let alignment = if bytes % 4096 == 0 { 4096 } else if bytes % 64 == 0 { 64 } else { 16 };
                            assert_eq!(object % alignment, 0);
                            for &(other, size, _) in &next {
                                assert!(object + bytes <= other || other + size <= object, "objects overlap");
                            }
                            tx.write(object, &vec![fill; (*bytes).min(64) as usize])?;
                            next.push((object, *bytes, fill));
                        }
                        Step::Free(index) if !next.is_empty() => {
                            let (object, ..) = next.swap_remove(index.index(next.len()));
                            tx.free(object)?;
                        }
                        Step::Free(_) | Step::End { commit: true } => {}
                        Step::End { commit: false } => return Err(Error::abort("given up")),
                    }
                }
                Ok(())
            });
            match result {
                Ok(()) => live = next,
                Err(Error::Aborted(_) | Error::TooLarge { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            let mut expected: Vec<u64> = live.iter().map(|&(object, ..)| object).collect();
            expected.sort_unstable();
            let found: Vec<u64> = pool.objects().unwrap().into_iter().map(|(object, _)| object).collect();
            prop_assert_eq!(found, expected);
            pool.check().unwrap();
        }
        let objects = pool.objects().unwrap();
        pool.persist().unwrap();
        let pool = options.open_in(Box::new(TestMemory::from_image(memory.surviving(3)))).unwrap();
        prop_assert_eq!(pool.objects().unwrap(), objects);
        pool.tx(|tx| {
            for &(object, bytes, fill) in &live {
                assert!(tx.read_vec(object, bytes.min(64) as usize)?.iter().all(|&b| b == fill));
            }
            Ok(())
        }).unwrap();
    }
}

/// A new object is written in part, then whole, then in part: each read sees the last write,
/// whatever waited for the commit.
#[test]
fn writes_of_a_new_object_take_each_others_place() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let object = pool
            .tx(|tx| {
                let object = tx.alloc(128)?;
                tx.write(object + 8, &[1; 70])?;
                tx.write(object, &[2; 128])?;
                assert_eq!(tx.read_vec(object, 128)?, [2; 128], "{mechanism:?}");
                tx.declare(object, 128)?;
                tx.write(object + 60, &[3; 8])?;
                Ok(object)
            })
            .unwrap();
        let mut expected = [2; 128];
        expected[60..68].fill(3);
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 128)).unwrap(), expected, "{mechanism:?}");
    }
}

/// A declared range is logged whole, and nothing in it changes but what is written.
#[test]
fn a_declared_range_is_one_entry() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo] {
        let pool = pool(mechanism);
        let object = pool.tx(|tx| tx.alloc_zeroed(256)).unwrap();
        let entries = |declared: bool| {
            let before = pool.statistics().log_entries;
            pool.tx(|tx| {
                if declared {
                    tx.declare(object, 256)?;
                }
                tx.write(object + 8, &[declared as u8 + 1; 8])?;
                tx.write(object + 200, &[declared as u8 + 1; 8])
            })
            .unwrap();
            pool.statistics().log_entries - before
        };
        assert_eq!((entries(false), entries(true)), (2, 1), "{mechanism:?}");
        let mut expected = [0; 256];
        expected[8..16].fill(2);
        expected[200..208].fill(2);
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 256)).unwrap(), expected, "{mechanism:?}");
        assert!(matches!(pool.tx(|tx| tx.declare(0, 8)), Err(Error::OutOfRange { .. })));
    }
}
