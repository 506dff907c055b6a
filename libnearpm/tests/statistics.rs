//! Counters, against a memory that counts for itself, and against what a small transaction must
//! take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearpm::check::Image;
use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::{Memory, TestMemory, not_cut, not_cut_in};
use nearpm::{Error, HeapState, Mechanism, Options, Statistics};

const BYTES: usize = 1 << 20;
const LINE: u64 = 64;

/// Counts what reaches it.
#[derive(Clone)]
struct Counting {
    memory: TestMemory,
    fences: Arc<AtomicU64>,
    lines: Arc<AtomicU64>,
}

impl Counting {
    fn new() -> Counting {
        Counting { memory: TestMemory::new(BYTES), fences: Arc::default(), lines: Arc::default() }
    }

    fn counted(&self) -> (u64, u64) {
        (self.fences.load(Ordering::Relaxed), self.lines.load(Ordering::Relaxed))
    }
}

impl Memory for Counting {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.memory.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.lines.fetch_add((offset % LINE + bytes).div_ceil(LINE), Ordering::Relaxed);
        self.memory.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        self.fences.fetch_add(1, Ordering::Relaxed);
        self.memory.fence()
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.memory.invalidate(offset, bytes);
    }
    fn address(&self) -> Option<*mut u8> {
        self.memory.address()
    }
}

fn options(mode: Mode) -> Options {
    Options::new().mode(mode).id(3)
}

fn store(pool: &DirectPool, offset: u64, value: u64) {
    // SAFETY: the offset is that of an object of this test, and a multiple of eight.
    unsafe { pool.base().add(offset as usize).cast::<u64>().write(value) };
}

/// What one more transaction counts: eight bytes of an object that is there are added and changed.
fn of_one_transaction(mode: Mode) -> Statistics {
    let pool = DirectPool::create_in(Box::new(TestMemory::new(BYTES)), &options(mode)).unwrap();
    let change = |object: u64, value| {
        let mut tx = pool.begin().unwrap();
        tx.add(&pool, object..object + 8).unwrap();
        store(&pool, object, value);
        tx.commit(&pool).unwrap();
    };
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, 64).unwrap().offset;
    tx.commit(&pool).unwrap();
    change(object, 1);
    let before = pool.statistics();
    change(object, 2);
    let after = pool.statistics();
    Statistics {
        transactions: after.transactions - before.transactions,
        acknowledged: after.acknowledged - before.acknowledged,
        aborts: after.aborts - before.aborts,
        log_entries: after.log_entries - before.log_entries,
        bytes_logged: after.bytes_logged - before.bytes_logged,
        fences: after.fences - before.fences,
        lines_written_back: after.lines_written_back - before.lines_written_back,
        ..Statistics::default()
    }
}

/// The figures of decision 7: a working copy logs the new bytes in one line behind one fence. In
/// place, the old ones in one line behind a fence, then the line itself behind another, then the
/// commit record behind a third.
#[test]
fn a_small_transaction_costs_what_it_must() {
    let working_copy = Statistics {
        transactions: 1,
        acknowledged: 1,
        log_entries: 1,
        bytes_logged: LINE,
        fences: 1,
        lines_written_back: 1,
        ..Statistics::default()
    };
    assert_eq!(of_one_transaction(Mode::WorkingCopy), working_copy);
    let in_place =
        Statistics { log_entries: 2, bytes_logged: 2 * LINE, fences: 3, lines_written_back: 3, ..working_copy };
    assert_eq!(of_one_transaction(Mode::InPlace), in_place);
}

/// Everything that a direct pool asks of its memory is counted.
#[test]
fn fences_and_flushes_of_direct_pools_are_all_counted() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let memory = Counting::new();
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
        let mut objects = Vec::new();
        for round in 0..200u64 {
            let mut tx = pool.begin().unwrap();
            let bytes = [40, 600, 20_000, 100_000][round as usize % 4];
            match tx.alloc(&pool, bytes) {
                Ok(object) => objects.push(object.offset),
                Err(_) => objects.drain(..).for_each(|object| tx.free(&pool, object).unwrap()),
            }
            if let Some(&first) = objects.first().filter(|_| round % 3 == 0) {
                tx.add(&pool, first..first + 8).unwrap();
                store(&pool, first, round);
            }
            if round % 7 == 0 { tx.abort(&pool) } else { tx.commit(&pool) }.unwrap();
            if round % 7 == 0 {
                objects.clear();
                let mut object = 0;
                while let Some(next) = pool.next_object(object) {
                    objects.push(next);
                    object = next;
                }
            }
            if let Some(&last) = objects.last().filter(|_| round % 5 == 0) {
                let usable = pool.usable_bytes(last).unwrap();
                store(&pool, last, round);
                let range = last..last + usable;
                pool.persist(std::slice::from_ref(&range)).unwrap();
            }
        }
        let counted = pool.statistics();
        assert_eq!((counted.fences, counted.lines_written_back), memory.counted(), "{mode:?}");
        assert!(counted.transactions > 100 && counted.aborts > 20 && counted.bytes_logged > 10_000, "{counted:?}");
    }
}

/// The same for the mechanisms, and what they log.
#[test]
fn fences_and_flushes_of_mechanisms_are_all_counted() {
    for mechanism in Mechanism::ALL {
        let memory = Counting::new();
        let pool = Options::new().mechanism(mechanism).create_in(Box::new(memory.clone())).unwrap();
        let object = pool.tx(|tx| tx.alloc_zeroed(8192)).unwrap();
        let before = pool.statistics().transactions;
        for round in 0..30 {
            let changed = pool.tx(|tx| {
                tx.write(object + 100 * round, &[round as u8; 100])?;
                if round % 5 == 4 { Err(Error::abort("no")) } else { Ok(()) }
            });
            assert_eq!(changed.is_err(), round % 5 == 4);
        }
        pool.persist().unwrap();
        let counted = pool.statistics();
        assert_eq!((counted.transactions - before, counted.aborts), (24, 6));
        assert_eq!((counted.fences, counted.lines_written_back), memory.counted(), "{mechanism:?}");
        // Shadow paging copies pages instead.
        assert!(counted.bytes_logged > 0 || mechanism == Mechanism::Shadow, "{mechanism:?}: {counted:?}");
        assert!(counted.bytes_logged >= LINE * counted.log_entries);
    }
}

/// The library and the tool count the same objects.
#[test]
fn the_allocator_s_state_is_one() {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(Mode::WorkingCopy)).unwrap();
    let mut tx = pool.begin().unwrap();
    for bytes in [16, 16, 100, 3000, 48_000] {
        tx.alloc(&pool, bytes).unwrap();
    }
    tx.commit(&pool).unwrap();
    let open = pool.heap_state();
    pool.close().unwrap();
    let image = || Box::new(TestMemory::from_image(memory.durable()));
    let closed = Image::open_in(&*image()).heap_state().unwrap();
    let by_mechanism = Options::new().open_in(image()).unwrap().heap_state().unwrap();
    assert_eq!(closed, by_mechanism);
    let counted = |state: &HeapState| (state.objects, state.used_bytes, state.large_objects, state.classes.clone());
    assert_eq!(counted(&open), counted(&closed));
    assert_eq!((closed.objects, closed.used_bytes), (5, 32 + 112 + 3200 + 3 * 16384));
    assert!(open.log_bytes > 0 && closed.log_bytes == 0);
    assert_eq!(closed.free_bytes, open.free_bytes + open.log_bytes);
    assert!(closed.fragmentation > 0.0 && closed.fragmentation < 0.2, "{closed:?}");
}

#[test]
fn counters_are_read_from_what_a_program_has_printed() {
    let statistics = Statistics { commands: 17, fallbacks: 3, ..Statistics::default() };
    for printed in [format!("{statistics:?}"), format!("libpmemobj: {statistics:#?}\nlibpmemobj: HeapState {{")] {
        assert_eq!(Statistics::printed_in(&printed), Some(statistics), "{printed}");
    }
    for other in ["", "Statistics {", "Statistics { commands: 17 }", "Statistics { commands: x }"] {
        assert_eq!(Statistics::printed_in(other), None, "{other}");
    }
}

#[test]
fn a_power_cut_that_did_not_come_is_read_from_what_a_program_has_printed() {
    let text = format!("a line\nlibpmemobj: the card's {}\nanother", not_cut(1_234, "cycles"));
    assert_eq!((not_cut_in(&text), not_cut_in("the power was cut in 12 events")), (Some(1_234), None));
}
