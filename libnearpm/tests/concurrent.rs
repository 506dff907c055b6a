//! Pools by offsets with several transactions open: threads that keep to objects of their own, a
//! body that waits for another one's commit, and what is seen of transactions that are open.

#[path = "common/on_card.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod on_card;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use nearpm::memory::{Memory, VolatileMemory};
use nearpm::prelude::{PBTreeMap, Persistent, Store};
use nearpm::{Durability, Engine, Error, Mechanism, OffsetTx, Options, Pool};
use nearpm_driver::Posting;
use nearpm_driver::mock::{MockCard, MockOptions};
use on_card::Registered;

const BYTES: u64 = 4 << 20;
const THREADS: u64 = 8;
/// Objects of each thread.
const OBJECTS: u64 = 5;
const ROUNDS: u64 = 40;

/// Where a pool is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Memory,
    File,
    Card(Engine),
    /// Over two cards.
    Cards(Engine),
}

const PLACES: [Place; 6] = [
    Place::Memory,
    Place::File,
    Place::Card(Engine::Cpu),
    Place::Card(Engine::Card),
    Place::Cards(Engine::Cpu),
    Place::Cards(Engine::Card),
];

/// A place, and what has to be kept for it.
struct Medium {
    place: Place,
    folder: tempfile::TempDir,
    cards: Vec<Registered>,
}

fn options(mechanism: Mechanism, place: Place) -> Options {
    let options = Options::new().mechanism(mechanism).lanes(1).ring_bytes(256 << 10).spare_pages(128);
    let options = options.epoch_ops(7).concurrent(true);
    match place {
        Place::Card(engine) | Place::Cards(engine) => options.engine(engine),
        _ => options,
    }
}

impl Medium {
    fn new(place: Place) -> Medium {
        let cards = match place {
            Place::Memory | Place::File => 0,
            Place::Card(_) => 1,
            Place::Cards(_) => 2,
        };
        let card = |seed| {
            let settings = MockOptions { pm_bytes: 8 << 20, seed, evict_one_in: 100, ..MockOptions::default() };
            Registered::new(MockCard::new(settings), Posting::Line).unwrap()
        };
        Medium { place, folder: tempfile::tempdir().unwrap(), cards: (0..cards).map(card).collect() }
    }

    fn location(&self) -> String {
        match &self.cards[..] {
            [] => self.folder.path().join("pool").to_str().unwrap().to_owned(),
            [one] => one.pool("p"),
            [one, other] => format!("card:{}+{}/p", one.name.name(), other.name.name()),
            _ => unreachable!("there are two cards at most"),
        }
    }

    fn create(&self, options: &Options) -> Pool {
        match self.place {
            Place::Memory => options.create_in(Box::new(VolatileMemory::new(BYTES as usize))).unwrap(),
            Place::Cards(_) => options.create(&self.location(), 2 * BYTES).unwrap(),
            _ => options.create(&self.location(), BYTES).unwrap(),
        }
    }
}

fn each_way() -> impl Iterator<Item = (Mechanism, Place)> {
    Mechanism::ALL.into_iter().flat_map(|mechanism| PLACES.map(|place| (mechanism, place)))
}

/// An object by a number that is in all of its bytes; 0 is none.
fn fill(number: u64) -> (usize, u8) {
    (16 + (number * 389 % 2000) as usize, number as u8)
}

/// Makes an object of a thread another one: `slot` is the word that names it.
fn replace(tx: &mut OffsetTx<'_>, slot: u64, number: u64) -> Result<(), Error> {
    let old = tx.read_u64(slot)?;
    let (bytes, byte) = fill(number);
    let new = tx.alloc(bytes as u64 + 8)?;
    tx.write_u64(new, number)?;
    tx.write(new + 8, &vec![byte; bytes])?;
    tx.write_u64(slot, new)?;
    if old == 0 { Ok(()) } else { tx.free(old) }
}

/// What a thread does in a round.
fn round(tx: &mut OffsetTx<'_>, slots: &Range<u64>, number: u64) -> Result<(), Error> {
    let slot = |of: u64| slots.start + 8 * (of % OBJECTS);
    replace(tx, slot(number), number)?;
    if number.is_multiple_of(3) {
        let old = tx.read_u64(slot(number + 1))?;
        if old != 0 {
            tx.free(old)?;
            tx.write_u64(slot(number + 1), 0)?;
        }
    }
    if number.is_multiple_of(5) {
        // In place.
        let object = tx.read_u64(slot(number))?;
        let (bytes, byte) = fill(number);
        tx.declare(object + 8, bytes as u64)?;
        tx.write(object + 8, &vec![byte; bytes])?;
    }
    Ok(())
}

/// The numbers that a thread's objects have in the end.
fn expected(thread: u64) -> Vec<u64> {
    let mut numbers = vec![0; OBJECTS as usize];
    for number in numbers_of(thread).filter(|number| !gives_up(*number)) {
        numbers[(number % OBJECTS) as usize] = number;
        if number.is_multiple_of(3) {
            numbers[((number + 1) % OBJECTS) as usize] = 0;
        }
    }
    numbers
}

fn numbers_of(thread: u64) -> Range<u64> {
    1 + thread * ROUNDS..1 + (thread + 1) * ROUNDS
}

fn gives_up(number: u64) -> bool {
    number % 7 == 2
}

fn slots(table: u64, thread: u64) -> Range<u64> {
    let start = table + 8 * OBJECTS * thread;
    start..start + 8 * OBJECTS
}

fn check(pool: &Pool, what: &str) {
    pool.check().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = pool.tx(|tx| {
        let table = tx.root()?;
        let mut objects = 0;
        for thread in 0..THREADS {
            for (slot, number) in slots(table, thread).step_by(8).zip(expected(thread)) {
                let object = tx.read_u64(slot)?;
                assert_eq!(object == 0, number == 0, "{what}, thread {thread}");
                if object != 0 {
                    let (bytes, byte) = fill(number);
                    assert_eq!(tx.read_u64(object)?, number, "{what}, thread {thread}");
                    assert_eq!(tx.read_vec(object + 8, bytes)?, vec![byte; bytes], "{what}, thread {thread}");
                    objects += 1;
                }
            }
        }
        Ok(objects)
    });
    assert_eq!(pool.objects().unwrap().len(), 1 + found.unwrap(), "{what}");
}

#[test]
fn threads_beside_each_other_lose_nothing() {
    for (mechanism, place) in each_way() {
        let (what, medium) = (format!("{mechanism:?}, {place:?}"), Medium::new(place));
        let options = options(mechanism, place);
        let pool = medium.create(&options);
        pool.tx(|tx| tx.alloc_zeroed(8 * OBJECTS * THREADS).and_then(|table| tx.set_root(table))).unwrap();
        let table = pool.root().unwrap();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (pool, slots) = (&pool, slots(table, thread));
                scope.spawn(move || {
                    for number in numbers_of(thread) {
                        let done = pool.tx(|tx| {
                            round(tx, &slots, number)?;
                            if gives_up(number) { Err(Error::abort("given up")) } else { Ok(()) }
                        });
                        assert_eq!(done.is_err(), gives_up(number), "{done:?}");
                        match number % 20 {
                            0 => pool.persist().unwrap(),
                            // Beside transactions that are open.
                            10 => pool.check().unwrap(),
                            _ => {}
                        }
                    }
                });
            }
        });
        check(&pool, &what);
        let statistics = pool.statistics();
        pool.persist().unwrap();
        assert_eq!(pool.statistics().acknowledged, pool.statistics().transactions, "{what}");
        if !mechanism.has_epochs() {
            assert_eq!(statistics.acknowledged, statistics.transactions, "{what}: each was durable when it returned");
        }
        let asked = if let Place::Card(engine) | Place::Cards(engine) = place { engine } else { Engine::Cpu };
        assert_eq!(statistics.commands > 0, asked == Engine::Card, "{what}");
        pool.close().unwrap();
        if place != Place::Memory {
            check(&options.open(&medium.location()).unwrap(), &what);
        }
    }
}

/// A body goes on only when another transaction, which began after it, has committed and is
/// durable.
#[test]
fn a_body_may_wait_for_the_commit_of_another_thread() {
    for ((mechanism, place), commits) in each_way().flat_map(|way| [(way, true), (way, false)]) {
        let (what, medium) = (format!("{mechanism:?}, {place:?}, commits {commits}"), Medium::new(place));
        let options = options(mechanism, place);
        let pool = medium.create(&options);
        let two = |tx: &mut OffsetTx<'_>| Ok((tx.alloc_zeroed(64)?, tx.alloc_zeroed(64)?));
        let (first, second) = pool.tx(two).unwrap();
        pool.persist().unwrap();
        let ((open, is_open), (done, is_done)) = (mpsc::channel(), mpsc::channel());
        thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || {
                is_open.recv().unwrap();
                pool.tx(|tx| {
                    assert_eq!(tx.read_u64(first)?, 0, "what is not committed is not seen");
                    tx.free(second)?;
                    tx.alloc(200).and_then(|object| tx.write_u64(object, 2).and_then(|()| tx.set_root(object)))
                })
                .unwrap();
                pool.persist().unwrap();
                assert_eq!(pool.statistics().acknowledged, pool.statistics().transactions);
                done.send(()).unwrap();
            });
            let ended = pool.tx(|tx| {
                tx.write_u64(first, 1)?;
                let own = tx.alloc(300)?;
                tx.write(own, &[3; 300])?;
                open.send(()).unwrap();
                is_done.recv().unwrap();
                assert_eq!((tx.read_u64(first)?, tx.read_vec(own, 300)?), (1, vec![3; 300]), "own writes are seen");
                let root = tx.root()?;
                assert_eq!(tx.read_u64(root)?, 2, "what has committed is seen");
                if commits { Ok(()) } else { Err(Error::abort("given up")) }
            });
            assert_eq!(ended.is_ok(), commits, "{what}: {ended:?}");
        });
        let look = |pool: &Pool| {
            pool.check().unwrap();
            assert_eq!(pool.objects().unwrap().len(), if commits { 3 } else { 2 }, "{what}");
            assert_eq!(pool.tx(|tx| tx.read_u64(first)).unwrap(), u64::from(commits), "{what}");
        };
        look(&pool);
        pool.close().unwrap();
        if place != Place::Memory {
            look(&options.open(&medium.location()).unwrap());
        }
    }
}

fn pool(mechanism: Mechanism) -> Pool {
    let memory: Box<dyn Memory> = Box::new(VolatileMemory::new(1 << 20));
    options(mechanism, Place::Memory).ring_bytes(16 << 10).spare_pages(10).create_in(memory).unwrap()
}

#[test]
fn what_is_open_is_neither_an_object_nor_free() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let object = pool.tx(|tx| tx.alloc_zeroed(1000)).unwrap();
        let (objects, free) = (pool.objects().unwrap(), pool.free_bytes().unwrap());
        // Another thread looks while this one is in a transaction.
        let look = |pool: &Pool| {
            thread::scope(|scope| {
                let looked = scope.spawn(|| {
                    pool.check()?;
                    let bytes = pool.tx(|tx| tx.size_of(object))?;
                    assert!(matches!(pool.tx(|tx| tx.free(object)), Err(Error::NotAllocated { .. })));
                    Ok::<_, Error>((pool.objects()?, pool.free_bytes()?, bytes))
                });
                looked.join().unwrap()
            })
        };
        let change = |tx: &mut OffsetTx<'_>| -> Result<(u64, u64), Error> {
            tx.free(object)?;
            assert!(matches!(tx.size_of(object), Err(Error::NotAllocated { .. })));
            let small = tx.alloc(1000)?;
            let large = tx.alloc(50_000)?;
            assert!(tx.size_of(small)? >= 1000 && tx.size_of(large)? >= 50_000);
            tx.write(large, &[1; 1000])?;
            Ok((small, large))
        };
        let given_up = pool.tx(|tx| {
            let (small, large) = change(tx)?;
            assert!(small != object, "the place of what is to be freed is not free");
            let (seen, left, bytes) = look(&pool)?;
            assert_eq!((&seen, bytes), (&objects, seen[0].1), "{mechanism:?}");
            assert!(left <= free - 50_000 - 1000, "{mechanism:?}: {left} of {free}");
            Err::<(u64, u64), _>(Error::abort(format!("{small} {large}")))
        });
        assert!(matches!(given_up, Err(Error::Aborted(_))), "{given_up:?}");
        assert_eq!((pool.objects().unwrap(), pool.free_bytes().unwrap()), (objects.clone(), free), "{mechanism:?}");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.tx(|tx| -> Result<(), Error> {
                change(tx)?;
                panic!("on purpose")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!((pool.objects().unwrap(), pool.free_bytes().unwrap()), (objects, free), "{mechanism:?}");
        let (small, large) = pool.tx(change).unwrap();
        pool.check().unwrap();
        let offsets: Vec<u64> = pool.objects().unwrap().into_iter().map(|(offset, _)| offset).collect();
        assert_eq!(offsets, [small, large]);
    }
}

#[test]
fn calls_of_the_pool_in_a_transaction_of_the_same_thread_are_refused() {
    let (pool, other) = (pool(Mechanism::Undo), pool(Mechanism::Redo));
    pool.tx(|tx| {
        assert!(matches!(pool.tx(|tx| tx.root()), Err(Error::Nested)));
        assert!(matches!(pool.persist(), Err(Error::Nested)));
        assert!(matches!(pool.objects(), Err(Error::Nested)));
        // Another pool is another matter, and so is another thread.
        other.tx(|inner| inner.alloc(64).and_then(|object| inner.set_root(object)))?;
        thread::scope(|scope| scope.spawn(|| pool.tx(|tx| tx.alloc(64)).and_then(|_| pool.persist())).join().unwrap())?;
        tx.alloc(64)
    })
    .unwrap();
    assert_eq!(pool.objects().unwrap().len(), 2);
}

/// The commit says that there is no room, and nothing has happened.
#[test]
fn what_is_too_large_is_refused_at_its_end() {
    for mechanism in Mechanism::ALL {
        let pool = pool(mechanism);
        let object = pool.tx(|tx| tx.alloc(100_000)).unwrap();
        let before = pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap();
        let free = pool.free_bytes().unwrap();
        let result = pool.tx(|tx| {
            let new = tx.alloc(64)?;
            tx.set_root(new)?;
            tx.write(object, &[9; 100_000])
        });
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{mechanism:?}: {result:?}");
        assert_eq!(pool.root().unwrap(), 0, "{mechanism:?}");
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap(), before, "{mechanism:?}");
        assert_eq!(pool.free_bytes().unwrap(), free, "{mechanism:?}");
        // In parts there is.
        for part in 0..100 {
            pool.tx(|tx| tx.write(object + part * 1000, &[9; 1000])).unwrap();
        }
        assert_eq!(pool.tx(|tx| tx.read_vec(object, 100_000)).unwrap(), [9; 100_000], "{mechanism:?}");
        pool.check().unwrap();
        assert_eq!(pool.statistics().aborts, 1);
    }
}

/// A durable commit covers what it has read, also where it has changed nothing itself.
#[test]
fn a_durable_commit_acknowledges_asynchronous_ones() {
    for place in PLACES {
        for mechanism in [Mechanism::Undo, Mechanism::Redo] {
            let medium = Medium::new(place);
            let pool = medium.create(&options(mechanism, place).durability(Durability::Asynchronous));
            pool.tx(|tx| tx.alloc_zeroed(64).and_then(|object| tx.set_root(object))).unwrap();
            assert_eq!(pool.statistics().acknowledged, 0, "{mechanism:?}, {place:?}");
            pool.tx_with(Durability::Durable, |tx| tx.root()).unwrap();
            assert_eq!(pool.statistics().acknowledged, 2, "{mechanism:?}, {place:?}");
        }
    }
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Maps {
    first: PBTreeMap<u64, u64>,
    second: PBTreeMap<u64, u64>,
}

/// Typed objects and collections work in it as in any other.
#[test]
fn threads_have_collections_of_their_own() {
    let pool = pool(Mechanism::Undo);
    let maps = pool.tx(|tx| tx.typed().root_or_zeroed::<Maps>()).unwrap();
    let maps = [maps.first(), maps.second()];
    thread::scope(|scope| {
        for map in maps {
            let pool = &pool;
            scope.spawn(move || {
                for key in 0..200 {
                    pool.tx(|tx| map.insert(&mut tx.typed(), &key, key * key).map(drop)).unwrap();
                }
            });
        }
    });
    for map in maps {
        let found = pool.tx(|tx| Ok((map.len(&tx.typed())?, map.get(&tx.typed(), &150)?)));
        assert_eq!(found.unwrap(), (200, Some(22_500)));
    }
    pool.check().unwrap();
}
