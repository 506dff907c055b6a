//! Typed objects: pointers, fields, transactions, the root, threads.

#![allow(clippy::unit_arg, reason = "a closure that checks something and gives nothing ends so")]

use nearpm::direct::Mode;
use nearpm::memory::TestMemory;
use nearpm::prelude::*;

/// Miri takes its time for every byte.
const BYTES: usize = if cfg!(miri) { 1 << 18 } else { 1 << 20 };

#[derive(Clone, Copy, Debug, PartialEq, Persistent)]
#[repr(C)]
struct Small {
    word: u64,
    half: u32,
    quarter: u16,
    bytes: [u8; 2],
}

#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct Root {
    small: Small,
    list: PVec<u64>,
    next: Option<Ptr<Root>>,
    rows: [[u32; 3]; 2],
}

fn options() -> Options {
    Options::new().id(5)
}

fn pool() -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options()).unwrap();
    (memory, pool)
}

fn reopen(memory: &TestMemory) -> DirectPool {
    DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &options()).unwrap()
}

const SMALL: Small = Small { word: 1 << 60, half: 0xdead_beef, quarter: 7, bytes: [1, 2] };

#[test]
fn fields_are_stored_and_loaded_each_alone_and_survive() {
    let (memory, pool) = pool();
    pool.tx(|tx| {
        let root = tx.root_or_zeroed::<Root>()?;
        tx.set(root.small(), SMALL)?;
        tx.set(root.small().quarter(), 8)?;
        tx.set(root.small().bytes().at(1), 3)?;
        tx.set(root.rows().at(1).at(2), 44)?;
        root.list().push(tx, 5)?;
        tx.set(root.next(), Some(root))
    })
    .unwrap();
    std::mem::forget(pool);
    let pool = reopen(&memory);
    pool.read(|from| {
        let root = from.root::<Root>()?.expect("it was made");
        assert_eq!(from.get(root.small())?, Small { quarter: 8, bytes: [1, 3], ..SMALL });
        assert_eq!(from.get(root.small().half())?, SMALL.half);
        assert_eq!(from.get(root.rows())?, [[0, 0, 0], [0, 0, 44]]);
        assert_eq!(root.list().to_vec(from)?, [5]);
        assert_eq!(from.get(root.next())?, Some(root));
        Ok(())
    })
    .unwrap();
}

#[test]
fn errors_and_panics_take_everything_back() {
    let (_, pool) = pool();
    pool.tx(|tx| tx.root_or_zeroed::<Root>().map(drop)).unwrap();
    let objects = || std::iter::successors(pool.next_object(0), |&object| pool.next_object(object)).count();
    let before = objects();
    let change = |tx: &mut Tx<'_>| {
        let root = tx.root_or_zeroed::<Root>()?;
        tx.set(root.small(), SMALL)?;
        (0..100).try_for_each(|number| root.list().push(tx, number))
    };
    let given_up = pool.tx(|tx| change(tx).and_then(|()| Err::<(), _>(Error::abort("no seat"))));
    assert!(matches!(given_up, Err(Error::Aborted(reason)) if reason.to_string() == "no seat"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.tx(|tx| -> Result<(), Error> {
            change(tx)?;
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    let (small, count) = pool
        .read(|from| {
            let root = from.root::<Root>()?.expect("it was made");
            Ok((from.get(root.small())?, root.list().len(from)?))
        })
        .unwrap();
    assert_eq!((small, count), (Small { word: 0, half: 0, quarter: 0, bytes: [0; 2] }, 0));
    assert_eq!(objects(), before);
}

/// An error of a program.
#[derive(Debug)]
enum Booking {
    SoldOut,
    Pool(Error),
}

impl From<Error> for Booking {
    fn from(error: Error) -> Booking {
        Booking::Pool(error)
    }
}

#[test]
fn a_program_leaves_a_transaction_with_an_error_of_its_own() {
    let (_, pool) = pool();
    let book = |seats: u64| {
        pool.try_tx(|tx| {
            let taken = tx.root_or_zeroed::<Seats>()?.taken();
            if tx.get(taken)? + seats > 10 {
                return Err(Booking::SoldOut);
            }
            Ok(tx.update(taken, |taken| taken + seats)?)
        })
    };
    assert!(matches!(book(8), Ok(8)));
    assert!(matches!(book(3), Err(Booking::SoldOut)));
    assert!(matches!(book(2), Ok(10)));
    let nested = pool.try_tx(|_| book(0).map(drop));
    assert!(matches!(nested, Err(Booking::Pool(Error::Nested))), "{nested:?}");
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Seats {
    taken: u64,
}

#[test]
fn words_that_are_lent_are_stored_or_taken_back_and_refused_outside_of_the_heap() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    const COUNT: u64 = 3000;
    let (memory, pool) = pool();
    let count_up =
        |words: &[AtomicU64], from: u64| words.iter().zip(from..).for_each(|(word, n)| word.store(n, Relaxed));
    let object = pool
        .tx(|tx| {
            let object = tx.alloc_bytes(8 * COUNT)?;
            count_up(tx.words(object, COUNT)?, 7);
            Ok(object)
        })
        .unwrap();
    pool.tx(|tx| {
        // In the middle of what others have stored, and none at all.
        count_up(tx.words(object + 80, 5)?, 900);
        assert!(tx.words(object, 0)?.is_empty());
        Ok(())
    })
    .unwrap();
    let back = pool.tx(|tx| -> Result<(), Error> {
        count_up(tx.words(object + 8, COUNT - 1)?, 0);
        Err(Error::abort("on purpose"))
    });
    assert!(back.is_err());
    let refused = pool.tx(|tx| {
        for (offset, count) in
            [(0, 1), (BYTES as u64, 1), (object, u64::MAX / 8), (object, 1 << 61), (object, u64::MAX)]
        {
            assert!(matches!(tx.words(offset, count), Err(Error::OutOfRange { .. })), "{count} at {offset:#x}");
        }
        assert!(matches!(tx.words(object + 4, 1), Err(Error::Misaligned { .. })));
        Ok(())
    });
    refused.unwrap();
    std::mem::forget(pool);
    let found = reopen(&memory).read(|from| from.get_all(Ptr::<u64>::from_offset(object).unwrap(), COUNT)).unwrap();
    assert!(found.iter().zip(0..).all(|(word, at)| *word == if (10..15).contains(&at) { 890 + at } else { 7 + at }));
}

#[test]
fn a_transaction_inside_of_another_is_refused_and_another_pool_is_not() {
    let ((_, pool), (_, other)) = (pool(), self::pool());
    let lock = Ptr::<PLock>::from_offset(1 << 16).unwrap();
    let nested: [&dyn Fn() -> Result<(), Error>; 4] =
        [&|| pool.tx(|_| Ok(())), &|| pool.read(|_| Ok(())), &|| pool.locked(&[lock]).tx(|_| Ok(())), &|| {
            pool.locked(&[lock]).read(|_| Ok(()))
        }];
    for (at, inner) in nested.iter().enumerate() {
        let refused = |result| assert!(matches!(result, Err(Error::Nested)), "{at}");
        pool.tx(|_| Ok(refused(inner()))).unwrap();
        pool.read(|_| Ok(refused(inner()))).unwrap();
        pool.locked(&[lock]).tx(|_| Ok(refused(inner()))).unwrap();
        inner().unwrap();
    }
    pool.tx(|_| other.tx(|tx| tx.root_or_zeroed::<Seats>().map(drop))).unwrap();
}

#[test]
fn pointers_that_lead_nowhere_are_refused_and_change_nothing() {
    let (_, pool) = pool();
    let heap = pool.heap();
    pool.tx(|tx| {
        let root = tx.root_or_zeroed::<Root>()?;
        for offset in [1, 8, heap.start - 8, heap.end - 4, heap.end, u64::MAX - 7, u64::MAX] {
            let at = Ptr::<u64>::from_offset(offset).expect("it is not 0");
            let refused = |error: Result<(), Error>| match error {
                Err(Error::OutOfRange { offset: named, length: 8, .. } | Error::Misaligned { offset: named, .. }) => {
                    assert_eq!(named, offset);
                }
                other => panic!("{offset:#x}: {other:?}"),
            };
            refused(tx.get(at).map(drop));
            refused(tx.set(at, 1));
            assert!(matches!(tx.free(at), Err(Error::NotAllocated { .. })));
            let many = offset.saturating_sub(1)..offset.saturating_add(1 << 40);
            assert!(tx.with_bytes(many, <[u8]>::len).is_err());
        }
        assert!(matches!(tx.get(Ptr::nth(root.small().word(), u64::MAX)), Err(Error::Misaligned { .. })));
        assert!(tx.get_all(root, 1 << 60).is_err());
        assert!(matches!(tx.free(root), Err(Error::NotAllocated { .. })), "the root lies inside of its object");
        assert!(matches!(tx.alloc_zeroed::<u64>(u64::MAX), Err(Error::Full { .. })));
        assert!(matches!(tx.set_root_object(heap.start + 64 * 1024), Err(Error::NotAllocated { .. })));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_pointer_to_what_the_log_has_now_is_refused() {
    let (_, pool) = pool();
    let small = pool.tx(|tx| tx.alloc(1u64)).unwrap();
    let heap = pool.heap();
    let refused = pool
        .tx(|tx| {
            let places = (heap.start..heap.end).step_by(4096).filter_map(Ptr::<u64>::from_offset);
            let refused = places.filter(|&at| matches!(tx.set(at, 7), Err(Error::NotAllocated { .. }))).count();
            tx.set(small, 2)?;
            Ok(refused)
        })
        .unwrap();
    assert!(refused > 0, "the log has a segment");
    assert_eq!(pool.read(|from| from.get(small)).unwrap(), 2);
}

/// Two versions of a program, of which one has another type behind a pointer of its root.
mod old {
    use super::*;

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    pub struct Shop {
        pub first: Option<Ptr<Item>>,
    }

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    pub struct Item {
        pub price: u64,
        pub next: Option<Ptr<Item>>,
    }
}

mod new {
    use super::*;

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    pub struct Shop {
        pub first: Option<Ptr<Item>>,
    }

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    pub struct Item {
        pub cents: u64,
        pub next: Option<Ptr<Item>>,
    }
}

#[test]
fn a_root_of_another_type_is_refused_with_both_names() {
    let (_, pool) = pool();
    pool.tx(|tx| tx.root_or_zeroed::<old::Shop>().map(drop)).unwrap();
    for refused in [
        pool.tx(|tx| tx.root_or_zeroed::<new::Shop>().map(drop)),
        pool.read(|from| from.root::<new::Shop>().map(drop)),
        pool.read(|from| from.root::<Seats>().map(drop)),
    ] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("is \"Shop\" of 8 bytes, and the program has \""), "{text}");
    }
    pool.read(|from| Ok(assert!(from.root::<old::Shop>()?.is_some()))).unwrap();
}

#[test]
fn a_root_that_no_rust_program_typed_is_refused() {
    let (_, pool) = pool();
    pool.tx(|tx| {
        let object = tx.alloc(7u64)?;
        tx.set_root_object(Ptr::offset(object))
    })
    .unwrap();
    let refused = pool.read(|from| from.root::<Seats>().map(drop));
    assert!(refused.unwrap_err().to_string().contains("no Rust program typed"));
}

#[test]
fn truth_values_and_pointers_are_what_they_were() {
    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct Flags {
        first: PBool,
        second: PBool,
    }
    let (_, pool) = pool();
    pool.tx(|tx| {
        let flags = tx.root_or_zeroed::<Flags>()?;
        tx.set(flags.second(), true.into())?;
        tx.set(Ptr::cast::<u8>(flags.first()), 77)?;
        assert!(tx.get(flags.first())?.get() && tx.get(flags)?.second == tx.get(flags)?.first);
        tx.set(flags.first(), false.into())?;
        assert_eq!(tx.get(Ptr::cast::<[u8; 2]>(flags))?, [0, 1]);
        Ok(())
    })
    .unwrap();
    assert_eq!(size_of::<Option<Ptr<Root>>>(), 8);
    assert_eq!(Ptr::<Root>::from_offset(0), None);
}

#[test]
#[cfg_attr(miri, ignore = "Miri maps no files")]
fn a_pool_that_is_open_for_reading_is_read_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let location = path.to_str().unwrap();
    let options = options().survives(Survives::ProcessCrash);
    let pool = DirectPool::open_or_create(location, BYTES as u64, &options).unwrap();
    pool.tx(|tx| tx.root_or_zeroed::<Seats>().and_then(|seats| tx.set(seats.taken(), 5))).unwrap();
    pool.close().unwrap();
    let read_only = options.clone().read_only(true);
    let pool = DirectPool::open_or_create(location, BYTES as u64, &read_only).unwrap();
    assert!(matches!(pool.tx(|tx| tx.root_or_zeroed::<Seats>().map(drop)), Err(Error::ReadOnly)));
    let taken = pool.read(|from| from.root::<Seats>()?.map(|seats| from.get(seats.taken())).transpose());
    assert_eq!(taken.unwrap(), Some(5));
    drop(pool);
    std::fs::remove_file(&path).unwrap();
    assert!(DirectPool::open_or_create(location, BYTES as u64, &read_only).is_err());
    assert!(!path.exists());
}

/// A store through a pointer to freed space, in a thread that has no log yet: the log must not be
/// made where the store goes.
#[test]
fn a_dangling_store_leaves_the_log_alone() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let options = Options::new().mode(mode).id(5);
        let memory = TestMemory::new(1 << 20);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options).unwrap();
        let (root, big, small) = pool
            .tx(|tx| {
                let root = tx.root_or_zeroed::<[u64; 64]>()?;
                Ok((root, tx.alloc_zeroed::<u64>(4096)?, tx.alloc_zeroed::<u64>(100)?))
            })
            .unwrap();
        pool.tx(|tx| tx.free(big).and_then(|()| tx.free(small))).unwrap();
        let writing = |dangling: Ptr<u64>| {
            let refused = pool.tx(|tx| tx.set(dangling, 1));
            assert!(matches!(refused, Err(Error::NotAllocated { .. })), "{refused:?}");
            for n in 0..500 {
                pool.tx(|tx| tx.set(root.at(1), n)).unwrap();
            }
        };
        for dangling in [big, small, Ptr::from_offset(pool.heap().end - 64).unwrap()] {
            std::thread::scope(|scope| scope.spawn(|| writing(dangling)).join().unwrap());
        }
        let again = DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &options).unwrap();
        assert_eq!(again.read(|from| from.get(root.at(1))).unwrap(), 499);
    }
}

#[test]
fn a_root_that_is_freed_is_refused() {
    let memory = TestMemory::new(1 << 20);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &Options::new()).unwrap();
    pool.tx(|tx| tx.root_or_zeroed::<[u64; 64]>().map(drop)).unwrap();
    let refused = pool.tx(|tx| tx.root_object().and_then(|root| tx.free_object(root)));
    assert!(matches!(refused, Err(Error::Aborted(_))), "{refused:?}");
    let refused = pool.tx(|tx| {
        let object = tx.alloc_bytes(64)?;
        tx.set_root_object(object)?;
        tx.free_object(object)
    });
    assert!(matches!(refused, Err(Error::Aborted(_))), "{refused:?}");
    pool.tx(|tx| {
        let root = tx.root_object()?;
        tx.set_root_object(0)?;
        tx.free_object(root)
    })
    .unwrap();
    pool.close().unwrap();
    DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &Options::new()).unwrap();
}
