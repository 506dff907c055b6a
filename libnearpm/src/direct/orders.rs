//! What threads of a direct pool share without one mutex, in every order of events that the memory
//! model allows (loom), up to a number of preemptions.
//!
//! That is the heap index: objects are taken from a run by the thread whose arena has it, and freed
//! by any other. And it is the number of the newest record that nobody has waited for, by which a
//! commit depends on those of other threads. The files are the library's, with loom's atomics and
//! locks in the place of the system's.

#[path = "../heap/index/mod.rs"]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "the library's own, with another `sync`; the programs here use a part of it"
)]
mod heap;

#[path = "unacknowledged.rs"]
#[allow(clippy::duplicate_mod, reason = "the library's own, with another `sync`")]
mod unacknowledged;

/// What both take from the standard library.
mod sync {
    pub use loom::sync::atomic::{AtomicBool, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};

    use loom::sync::atomic::fence;

    /// loom takes sequentially consistent accesses for acquire and release. A fence in front of
    /// each gives them their one order back; that it orders other accesses as well, the index must
    /// not rely on.
    fn order(of: Ordering) {
        if of == Ordering::SeqCst {
            fence(of);
        }
    }

    /// Atomics whose sequentially consistent accesses have one order.
    macro_rules! atomic {
        ($name:ident, $int:ty, $($access:ident($($value:ident)?) $(-> $out:ty)?),*) => {
            #[derive(Debug, Default)]
            pub struct $name(loom::sync::atomic::$name);

            impl $name {
                $(pub fn $access(&self, $($value: $int,)? of: Ordering) $(-> $out)? {
                    order(of);
                    self.0.$access($($value,)? of)
                })*
            }
        };
    }

    atomic!(AtomicU8, u8, load() -> u8, store(value), fetch_min(value) -> u8);
    atomic!(AtomicU32, u32, load() -> u32, store(value), fetch_add(value) -> u32, fetch_sub(value) -> u32);
    atomic!(AtomicU64, u64, load() -> u64, store(value), fetch_or(value) -> u64, fetch_and(value) -> u64, fetch_max(value) -> u64);

    impl AtomicU64 {
        pub fn compare_exchange(&self, old: u64, new: u64, of: Ordering, failed: Ordering) -> Result<u64, u64> {
            order(of);
            self.0.compare_exchange(old, new, of, failed)
        }
    }

    impl AtomicU32 {
        pub fn new(value: u32) -> AtomicU32 {
            AtomicU32(loom::sync::atomic::AtomicU32::new(value))
        }
    }
}

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use loom::sync::atomic::AtomicU64 as Word;
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use nearpm_interface::media::{MIN_RING_BYTES, PoolHead};

use super::Reservation;
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::heap::tables::{Bitmaps, HeapTables};
use crate::memory::{Backing, Medium, VolatileMemory};
use crate::options::Options;
use crate::pool::format;
use heap::{Arena, Heap, Placement, Runs};
use unacknowledged::Unacknowledged;

/// Bytes of objects of which a chunk has eight.
const EIGHT: u64 = 2048;
/// Bytes of objects of which a chunk has twelve.
const TWELVE: u64 = 1280;

/// The head of a pool whose heap is one chunk, so that threads meet there, and its memory.
fn ground() -> (PoolHead, Medium) {
    let shape = Options::new().lanes(1).ring_bytes(MIN_RING_BYTES).spare_pages(0);
    let mut head = format::layout(&shape, 1 << 19).expect("a pool has so many bytes");
    while HeapLayout::of(&head).chunks > 1 {
        head.pages -= 1;
    }
    let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(head.end() as usize))));
    let head = format::write(&medium, head).expect("the pool fits");
    (head, medium)
}

/// Runs a program with a heap of one chunk in every order of events with so many preemptions, and
/// prints how many there are.
fn explore(preemptions: usize, body: impl Fn(Arc<Heap>) + Send + Sync + 'static) {
    let (head, medium) = ground();
    explore_any(preemptions, move || {
        let load = |offset, bytes: &mut [u8]| {
            medium.backing().load(offset, bytes);
            Ok(())
        };
        let tables = HeapTables::load(HeapLayout::of(&head), Bitmaps::All, |range| vec![range], load);
        let heap = tables.and_then(|tables| Heap::build(&tables, 0, 0, Placement::Apart(None)));
        body(Arc::new(heap.expect("the heap is sound")));
    });
}

/// The same with any program.
fn explore_any(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    // Of the standard library: loom has no business with it.
    let orders = std::sync::Arc::new(AtomicU64::new(0));
    let counted = orders.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        body();
    });
    let orders = orders.load(Relaxed);
    println!(r#"{{"counts":{{"programs":1,"orders of events":{orders},"violations":0}}}}"#);
}

/// Takes an object where there is room.
fn take(heap: &Heap, arena: &mut Arena, bytes: u64) -> Option<Reservation> {
    match heap.reserve(arena, bytes, Runs::Listed, |_, _| ()) {
        Ok(taken) => Some(taken),
        Err(Error::Full { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Takes all that an arena of its own finds.
fn take_all(heap: &Heap, bytes: u64) -> Vec<Reservation> {
    let mut arena = Arena::default();
    let taken = std::iter::from_fn(|| take(heap, &mut arena, bytes)).collect();
    heap.retire(&mut arena);
    taken
}

/// No byte was given twice.
fn assert_apart(mut taken: Vec<Reservation>) {
    taken.sort_by_key(|one| one.offset);
    for two in taken.windows(2) {
        assert!(two[0].offset + two[0].bytes <= two[1].offset, "bytes were given twice: {two:?}");
    }
}

#[test]
fn in_every_order_threads_take_what_nobody_else_has() {
    explore(2, |heap| {
        let mut arena = Arena::default();
        let mut taken: Vec<_> = (0..6).map(|_| take(&heap, &mut arena, EIGHT).expect("there is room")).collect();
        heap.retire(&mut arena);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let heap = heap.clone();
                thread::spawn(move || {
                    let mut arena = Arena::default();
                    let one = take(&heap, &mut arena, EIGHT);
                    heap.retire(&mut arena);
                    one
                })
            })
            .collect();
        taken.extend(others.into_iter().filter_map(|other| other.join().expect("no thread panics")));
        // A thread may find the chunk in the other one's arena; then the room is still there.
        taken.extend(take_all(&heap, EIGHT));
        assert_eq!(taken.len(), 8, "room was lost");
        assert_apart(taken);
    });
}

/// Two threads free objects of a full run while the thread in whose arena it is takes so many and
/// leaves it.
fn free_while_the_arena_leaves(preemptions: usize, more: usize) {
    explore(preemptions, move |heap| {
        let mut arena = Arena::default();
        let mut taken: Vec<_> = std::iter::from_fn(|| take(&heap, &mut arena, EIGHT)).take(8).collect();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (heap, freed) = (heap.clone(), taken.pop().expect("there are eight"));
                thread::spawn(move || heap.release(freed.offset))
            })
            .collect();
        taken.extend((0..more).filter_map(|_| take(&heap, &mut arena, EIGHT)));
        heap.retire(&mut arena);
        others.into_iter().for_each(|other| other.join().expect("no thread panics"));
        let (mut one, mut other) = (Arena::default(), Arena::default());
        taken.extend(take(&heap, &mut one, EIGHT));
        assert!(take(&heap, &mut other, EIGHT).is_none(), "two arenas have one run");
        heap.retire(&mut one);
        taken.extend(take_all(&heap, EIGHT));
        assert_eq!(taken.len(), 8, "room was lost");
        assert_apart(taken);
    });
}

#[test]
fn in_every_order_what_is_freed_while_the_arena_leaves_is_found_again() {
    free_while_the_arena_leaves(2, 0);
    free_while_the_arena_leaves(2, 1);
}

#[test]
fn in_every_order_a_run_that_became_another_is_not_taken_for_what_it_was() {
    explore(4, |heap| {
        let mut arena = Arena::default();
        let (kept, freed) = (take(&heap, &mut arena, TWELVE), take(&heap, &mut arena, TWELVE).expect("there is room"));
        heap.retire(&mut arena);
        heap.release(kept.expect("there is room").offset);
        let other = {
            let heap = heap.clone();
            thread::spawn(move || heap.release(freed.offset))
        };
        // Where the chunk is empty already it becomes a run of the other class, and full.
        let mut taken = take_all(&heap, EIGHT);
        other.join().expect("no thread panics");
        // What has room there goes to whoever finds it listed.
        if let Some(one) = taken.pop() {
            heap.release(one.offset);
        }
        let expected = if taken.is_empty() { 12 } else { 0 };
        let more = take_all(&heap, TWELVE);
        assert_eq!(
            more.len(),
            expected,
            "the chunk is {} of the first class",
            if expected == 0 { "none" } else { "one" }
        );
        taken.extend(more);
        taken.extend(take_all(&heap, EIGHT));
        assert!([8, 12].contains(&taken.len()), "{} objects fill the chunk", taken.len());
        assert_apart(taken);
    });
}

#[test]
fn in_every_order_an_object_is_freed_by_one() {
    explore(2, |heap| {
        let object = take(&heap, &mut Arena::default(), EIGHT).expect("there is room").offset;
        heap.allocated(object);
        let claim = move |heap: &Heap| heap.claim(object).is_ok();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let heap = heap.clone();
                thread::spawn(move || claim(&heap))
            })
            .collect();
        let here = u32::from(claim(&heap));
        let there = others.into_iter().map(|other| u32::from(other.join().expect("no thread panics")));
        assert_eq!(here + there.sum::<u32>(), 1);
    });
}

/// Of truncations and those who append, each under its shard's lock as in `append.rs` and
/// `truncate.rs`; who asks holds none.
#[test]
fn in_every_order_what_a_truncation_has_not_taken_home_counts_as_pending() {
    explore(2, |heap| {
        let object = take(&heap, &mut Arena::default(), EIGHT).expect("there is room");
        // Whether the record is in the shard, and whether a truncation has taken it home.
        let shard = Arc::new(Mutex::new(false));
        let home = std::sync::Arc::new(AtomicBool::new(false));
        let truncation = {
            let (heap, shard, home) = (heap.clone(), shard.clone(), home.clone());
            thread::spawn(move || {
                let taken = {
                    let mut shard = shard.lock().expect("no thread panics");
                    heap.cut();
                    std::mem::take(&mut *shard)
                };
                let _shard = shard.lock().expect("no thread panics");
                home.store(taken, SeqCst);
                heap.settled();
            })
        };
        {
            let mut shard = shard.lock().expect("no thread panics");
            heap.log(std::iter::once((object.offset..object.offset + object.bytes, true)));
            *shard = true;
        }
        let pending = heap.may_be_pending(&(object.offset..object.offset + object.bytes));
        assert!(pending || home.load(SeqCst), "a record that is not home was overlooked");
        truncation.join().expect("no thread panics");
        let pending = heap.may_be_pending(&(object.offset..object.offset + object.bytes));
        assert_eq!(pending, !home.load(SeqCst));
    });
}

/// The log of two shards, with what is in it and what of that is durable: a bit for each record,
/// which all threads see at once.
struct Log {
    unacknowledged: Unacknowledged,
    sequence: Word,
    shards: [Mutex<()>; 2],
    written: Word,
    durable: Word,
}

impl Log {
    fn new() -> Arc<Log> {
        let [sequence, written, durable] = [1, 0, 0].map(Word::new);
        let shards = [Mutex::new(()), Mutex::new(())];
        Arc::new(Log { unacknowledged: Unacknowledged::default(), sequence, shards, written, durable })
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, ()> {
        self.shards[shard].lock().expect("no thread panics")
    }

    fn lock_all(&self) -> [MutexGuard<'_, ()>; 2] {
        [0, 1].map(|shard| self.lock(shard))
    }

    /// An asynchronous commit, as in `append.rs`: its number, and the one that it depends on.
    fn append(&self, shard: usize) -> (u64, u64) {
        let _shard = self.lock(shard);
        let number = self.sequence.fetch_add(1, Relaxed);
        let depends = self.unacknowledged.newest();
        self.written.fetch_or(1 << number, Relaxed);
        self.unacknowledged.raise(number);
        (number, depends)
    }

    /// What is in the log becomes durable, whoever has written it.
    fn drain(&self) {
        let written = self.written.fetch_or(0, Relaxed);
        self.durable.fetch_or(written, Relaxed);
    }

    fn is_durable(&self, number: u64) -> bool {
        self.durable.fetch_or(0, Relaxed) >> number & 1 == 1
    }

    fn wait(&self) {
        let drain = || {
            self.drain();
            Ok::<(), ()>(())
        };
        self.unacknowledged.wait(|| self.lock_all(), drain).expect("a drain succeeds");
    }

    /// As `cut`, `carry_home` and `settle` in `truncate.rs`.
    fn truncate(&self) {
        let seen = {
            let _shards = self.lock_all();
            self.unacknowledged.newest()
        };
        if seen != 0 {
            self.drain();
        }
        let _shards = self.lock_all();
        self.unacknowledged.clear(seen);
    }

    /// An asynchronous commit that is waited for.
    fn append_and_wait(&self, shard: usize) {
        let (number, _) = self.append(shard);
        self.wait();
        assert!(self.is_durable(number), "waited for, and not durable");
    }

    /// A commit behind another one: it depends on that, or that is durable.
    fn append_behind(&self, shard: usize, before: u64) -> u64 {
        let (number, depends) = self.append(shard);
        assert!(depends >= before || self.is_durable(before), "a commit does not depend on the one before it");
        number
    }
}

/// What another thread does meanwhile.
fn beside(log: &Arc<Log>, work: impl FnOnce(&Log) + 'static) -> thread::JoinHandle<()> {
    let log = log.clone();
    thread::spawn(move || work(&log))
}

#[test]
fn in_every_order_who_has_waited_has_all_that_was_there_durable() {
    explore_any(3, || {
        let log = Log::new();
        let other = beside(&log, move |log| {
            log.append_and_wait(1);
        });
        log.append_and_wait(0);
        other.join().expect("no thread panics");
    });
}

/// Threads commit behind each other while another one waits.
#[test]
fn in_every_order_a_commit_depends_on_what_is_not_durable() {
    explore_any(3, || {
        let log = Log::new();
        let (first, _) = log.append(0);
        let other = beside(&log, move |log| {
            let second = log.append_behind(1, first);
            log.append_behind(0, second);
        });
        log.wait();
        assert!(log.is_durable(first), "waited for, and not durable");
        other.join().expect("no thread panics");
    });
    explore_any(3, || {
        let log = Log::new();
        let other = beside(&log, move |log| {
            let (first, _) = log.append(1);
            log.append_behind(1, first);
        });
        let (first, _) = log.append(0);
        log.append_behind(1, first);
        other.join().expect("no thread panics");
    });
}

/// The same beside a truncation.
#[test]
fn in_every_order_a_truncation_forgets_no_commit_that_is_not_durable() {
    explore_any(3, || {
        let log = Log::new();
        let (first, _) = log.append(0);
        let other = beside(&log, move |log| {
            let second = log.append_behind(1, first);
            log.wait();
            assert!(log.is_durable(second), "waited for, and not durable");
        });
        log.truncate();
        assert!(log.is_durable(first), "home, and not durable");
        other.join().expect("no thread panics");
    });
}
