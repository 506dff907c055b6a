//! Pools that become larger: while they are open, and by `nearpm pool resize`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nearpm::check::{self, Image};
use nearpm::direct::{DirectPool, Growth, Mode};
use nearpm::memory::{Event, Memory, PowerCut, TestMemory};
use nearpm::prelude::*;
use nearpm::{Durability, Error, Problem, Survives};
use nearpm_interface::media::{POOL_GROWN, PoolHead};
use nearpm_interface::seal;

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    numbers: PVec<u64>,
    map: PBTreeMap<u64, u64>,
}

fn options(growth: Option<Growth>) -> Options {
    Options::new().survives(Survives::ProcessCrash).growth(growth)
}

fn up_to(most: u64) -> Option<Growth> {
    Some(Growth { by: MIB, most })
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool").to_str().unwrap().to_owned();
    (folder, path)
}

fn insert(pool: &DirectPool, count: std::ops::Range<u64>) -> Result<(), Error> {
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>())?;
    for key in count {
        pool.tx(|tx| root.map().insert(tx, &key, key * 3))?;
    }
    Ok(())
}

/// How many keys there are: all from 0 on, each with its value.
fn keys(pool: &DirectPool) -> u64 {
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    pool.read(|from| {
        let mut next = 0;
        for entry in root.map().range(from, ..)? {
            assert_eq!(entry?, (next, next * 3));
            next += 1;
        }
        Ok::<_, Error>(next)
    })
    .unwrap()
}

fn bytes_at(pool: &DirectPool, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    pool.read(|from| from.read(offset, &mut bytes)).unwrap();
    bytes
}

fn sound(path: &str) {
    let report = check::check(path).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pool_grows_by_itself_in_each_mode_up_to_its_most() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let (_folder, path) = folder();
        let options = options(up_to(6 * MIB)).mode(mode);
        let pool = DirectPool::create(&path, MIB, &options).unwrap();
        let base = pool.base();
        let mut count = 0;
        let refused = loop {
            match insert(&pool, count..count + 1000) {
                Ok(()) => count += 1000,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert_eq!(pool.base(), base);
        let held = keys(&pool);
        assert!(held >= count && 16 * held > 3 * MIB, "{held} entries");
        let bytes = pool.bytes();
        assert!((5 * MIB..=6 * MIB).contains(&bytes), "{bytes}");
        pool.close().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
        sound(&path);
        // Without leave to grow it is what it became.
        let pool = DirectPool::open(&path, &options.growth(None)).unwrap();
        assert_eq!((keys(&pool), pool.bytes()), (held, bytes));
        let why = problem(pool.grow(8 * MIB));
        assert!(matches!(why, Problem::BadOption { .. }), "{why:?}");
    }
}

#[test]
fn large_objects_lie_over_what_has_come() {
    let (_folder, path) = folder();
    let pool = DirectPool::create(&path, MIB, &options(up_to(64 * MIB))).unwrap();
    let object = pool.tx(|tx| tx.alloc_bytes(9 * MIB)).unwrap();
    pool.tx(|tx| tx.write(object, &vec![7; 9 << 20])).unwrap();
    drop(pool);
    let pool = DirectPool::open(&path, &options(None)).unwrap();
    let read = bytes_at(&pool, object, 9 << 20);
    assert!(read.iter().all(|&byte| byte == 7));
    pool.tx(|tx| tx.free(Ptr::<u64>::from_offset(object).unwrap())).unwrap();
    pool.close().unwrap();
    sound(&path);
}

#[test]
fn several_threads_grow_a_pool_and_lose_nothing() {
    const THREADS: u64 = 4;
    let (_folder, path) = folder();
    let pool = DirectPool::create(&path, MIB, &options(Some(Growth { by: 256 << 10, most: 64 * MIB }))).unwrap();
    let objects: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let pool = &pool;
            move || {
                let mut made = Vec::new();
                for number in 0..1500 {
                    let bytes = 16 + (number * 7919 + thread) % 4000;
                    let mut tx = pool.begin().unwrap();
                    let space = pool.reserve(bytes).unwrap();
                    tx.publish(space, false);
                    tx.commit(pool).unwrap();
                    made.push((space.offset, bytes));
                }
                made
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(pool.bytes() > 8 * MIB);
    pool.close().unwrap();
    sound(&path);
    let pool = DirectPool::open(&path, &options(None)).unwrap();
    for (object, bytes) in objects {
        assert!(pool.usable_bytes(object).unwrap() >= bytes);
    }
}

/// A pool of 1 MiB in a longer memory, whose other bytes are what an earlier growth left, or
/// somebody else.
fn in_longer_memory() -> Vec<u8> {
    let small = TestMemory::new(MIB as usize);
    let pool = DirectPool::create_in(Box::new(small.clone()), &Options::default()).unwrap();
    insert(&pool, 0..200).unwrap();
    pool.close().unwrap();
    let mut bytes = small.current();
    bytes.resize(6 << 20, 0xa5);
    bytes
}

/// Power fails at every event of a growth. What is left is the pool with its old or its new size,
/// and all that was in it.
#[test]
fn growth_survives_a_cut_at_every_event() {
    let (before, growth) = (in_longer_memory(), Options::new().growth(up_to(6 * MIB)));
    let images = Arc::new(Mutex::new(Vec::new()));
    let memory = TestMemory::from_image(before);
    let pool = DirectPool::open_in(Box::new(memory.clone()), &growth).unwrap();
    let (sink, start) = (images.clone(), memory.events());
    memory.probe(move |number, _, survive| sink.lock().unwrap().push([survive(number * 2), survive(number * 2 + 1)]));
    let after = pool.grow(6 * MIB).unwrap();
    memory.stop_probe();
    let (events, images) = (memory.events() - start, std::mem::take(&mut *images.lock().unwrap()));
    assert!(events > 40 && images.len() as u64 == events, "{} of {events} events are cut", images.len());
    let (mut former, mut grown) = (0, 0);
    for image in images.into_iter().flatten() {
        let memory = TestMemory::from_image(image);
        let report = Image::open_in(&memory).check();
        assert!(report.is_sound(), "{report:?}");
        let pool = DirectPool::open_in(Box::new(memory.clone()), &growth).unwrap();
        assert_eq!(keys(&pool), 200);
        let end = pool.heap().end;
        assert!(end < MIB || end == after, "{end}");
        (former, grown) = (former + u64::from(end < MIB), grown + u64::from(end == after));
        // It grows all the same, and what comes is used.
        assert_eq!(pool.grow(6 * MIB).unwrap(), after);
        assert!(pool.tx(|tx| tx.alloc_bytes(3 * MIB)).unwrap() > MIB / 2);
        insert(&pool, 200..210).unwrap();
    }
    println!("{events} events: {former} cuts before, {grown} behind");
    assert!(former > 40 && grown > 0, "{former} cuts before, {grown} behind");
}

/// What a thread writes: under each number an object that is full of it.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Side {
    lock: PLock,
    map: PBTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Sides {
    first: Side,
    second: Side,
}

fn side(root: Ptr<Sides>, thread: usize) -> Ptr<Side> {
    if thread == 0 { root.first() } else { root.second() }
}

/// Bytes of the objects of each thread: one needs new chunks all the time, the other finds room
/// beside what it has, so that the pool grows while it writes.
const OBJECTS: [usize; 2] = [40_000, 48];

/// An event of one of the threads.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: usize,
    event: Event,
    offset: u64,
}

/// What a cut has left, and how many of its transactions each thread was told of by then.
struct Left {
    image: Vec<u8>,
    told: [u64; 2],
}

/// Memory of two threads that take turns at its events, as far as locks of the library let them,
/// and that is cut at each of them.
struct InTurns {
    memory: TestMemory,
    steps: Mutex<Vec<Step>>,
    changed: Condvar,
    told: [AtomicU64; 2],
    /// Where what is left goes, while threads are asked.
    cuts: Mutex<Option<SyncSender<Left>>>,
}

thread_local!(static THREAD: Cell<Option<usize>> = const { Cell::new(None) });

impl InTurns {
    /// Waits for the calling thread's turn, and cuts; then the event takes effect.
    fn event<T>(&self, event: Event, offset: u64, effect: impl FnOnce() -> T) -> T {
        let Some(thread) = THREAD.get() else { return effect() };
        let mut steps = self.steps.lock().unwrap();
        while steps.last().is_some_and(|last| last.thread == thread) {
            let (guard, waited) = self.changed.wait_timeout(steps, Duration::from_millis(3)).unwrap();
            steps = guard;
            // The other one waits for a lock, or is done.
            if waited.timed_out() {
                break;
            }
        }
        steps.push(Step { thread, event, offset });
        let told = std::array::from_fn(|thread| self.told[thread].load(Ordering::SeqCst));
        let left = Left { image: self.memory.surviving(steps.len() as u64), told };
        self.cuts.lock().unwrap().as_ref().expect("threads write").send(left).expect("they are checked");
        let done = effect();
        self.changed.notify_all();
        done
    }
}

/// A pool's share of it.
struct Shared(Arc<InTurns>);

impl Memory for Shared {
    fn bytes(&self) -> u64 {
        self.0.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.0.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.0.event(Event::Store, offset, || self.0.memory.store(offset, data));
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.0.event(Event::WriteBack, offset, || self.0.memory.write_back(offset, bytes));
    }
    fn fence(&self) -> Result<(), Error> {
        self.0.event(Event::Fence, 0, || self.0.memory.fence())
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.0.memory.invalidate(offset, bytes);
    }
    fn drains_for_all(&self) -> bool {
        self.0.memory.drains_for_all()
    }
    fn address(&self) -> Option<*mut u8> {
        self.0.memory.address()
    }
}

/// Makes the next object of a thread.
fn make_next(pool: &DirectPool, root: Ptr<Sides>, thread: usize, number: u64) -> Result<(), Error> {
    let side = side(root, thread);
    pool.locked(&[side.lock()]).tx(|tx| {
        let object = tx.alloc_bytes(OBJECTS[thread] as u64)?;
        tx.write(object, &vec![number as u8; OBJECTS[thread]])?;
        side.map().insert(tx, &number, object).map(drop)
    })
}

/// The numbers that each thread has made, from 0 on without a gap, each with an object of its own.
fn made(pool: &DirectPool) -> [u64; 2] {
    let root = pool.tx(|tx| tx.root_or_zeroed::<Sides>()).unwrap();
    let mut taken = BTreeMap::new();
    let made = std::array::from_fn(|thread| {
        let entries: Vec<(u64, u64)> =
            pool.read(|from| side(root, thread).map().iter(from)?.collect::<Result<_, _>>()).unwrap();
        for (at, &(number, object)) in entries.iter().enumerate() {
            assert_eq!(number, at as u64);
            let bytes = bytes_at(pool, object, OBJECTS[thread]);
            assert!(bytes.iter().all(|&byte| byte == number as u8), "object {number} of thread {thread}");
            taken.insert(object, OBJECTS[thread] as u64);
        }
        entries.len() as u64
    });
    assert_eq!(taken.len() as u64, made[0] + made[1]);
    assert!(taken.iter().zip(taken.iter().skip(1)).all(|((object, bytes), (next, _))| object + bytes <= *next));
    made
}

/// Opens what each cut has left, in order; gives how many were of a pool that had not grown, and
/// had.
fn check_cuts(cuts: Receiver<Left>, options: &Options, ends: [u64; 2]) -> [u64; 2] {
    let mut found = [0; 2];
    for Left { image, told } in cuts {
        let memory = TestMemory::from_image(image);
        let report = Image::open_in(&memory).check();
        assert!(report.is_sound(), "{report:?}");
        let pool = DirectPool::open_in(Box::new(memory), options).unwrap();
        let made = made(&pool);
        // What a thread was told of is there, and at most the one that it was about.
        for (made, told) in made.into_iter().zip(told) {
            assert!((told..=told + 1).contains(&made), "{made} are there, and {told} were told of");
        }
        let end = pool.heap().end;
        let which = ends.iter().position(|&known| known == end).expect("it has its old or its new size");
        found[which] += 1;
        // It goes on, and grows all the same.
        let root = pool.tx(|tx| tx.root_or_zeroed::<Sides>()).unwrap();
        (0..2).for_each(|thread| make_next(&pool, root, thread, made[thread]).unwrap());
        assert_eq!(pool.grow(ends[1]).unwrap(), ends[1]);
    }
    found
}

/// A pool grows because one of two threads finds no room, while the other one writes: power fails
/// at every event of both.
#[test]
fn growth_beside_a_second_writer_survives_a_cut_at_every_event() {
    const MOST: u64 = 3 * MIB;
    for (mode, one_domain) in [(Mode::WorkingCopy, false), (Mode::WorkingCopy, true), (Mode::InPlace, false)] {
        // As good as full: the room that is left is that of a few objects.
        let fixed = options(None).mode(mode);
        let memory = TestMemory::new(MIB as usize);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &fixed).unwrap();
        let root = pool.tx(|tx| tx.root_or_zeroed::<Sides>()).unwrap();
        (0..2).for_each(|thread| make_next(&pool, root, thread, 0).unwrap());
        let objects: Vec<u64> = std::iter::from_fn(|| pool.tx(|tx| tx.alloc_bytes(40_000)).ok()).collect();
        for object in objects.iter().rev().take(2) {
            pool.tx(|tx| tx.free_object(*object)).unwrap();
        }
        pool.close().unwrap();
        let mut image = memory.current();
        image.resize(MOST as usize, 0xa5);
        let memory = TestMemory::from_image(image);
        let memory = if one_domain { memory.one_domain() } else { memory };
        let grows = fixed.growth(Growth { by: MOST - MIB, most: MOST });

        let ends = {
            let pool = DirectPool::open_in(Box::new(TestMemory::from_image(memory.current())), &grows).unwrap();
            [pool.heap().end, pool.grow(MOST).unwrap()]
        };

        let (cuts, left) = sync_channel(4);
        let told = [1.into(), 1.into()];
        let turns = Arc::new(InTurns {
            memory,
            steps: Mutex::default(),
            changed: Condvar::new(),
            told,
            cuts: Mutex::new(Some(cuts)),
        });
        let pool = DirectPool::open_in(Box::new(Shared(turns.clone())), &grows).unwrap();
        let (pool, turns, grows, is_done) = (&pool, &turns, &grows, &AtomicBool::new(false));
        let found = std::thread::scope(|scope| {
            let checked = scope.spawn(move || check_cuts(left, grows, ends));
            let write = |thread: usize, objects: u64| {
                THREAD.set(Some(thread));
                for number in (1..=objects).take_while(|_| thread == 0 || !is_done.load(Ordering::SeqCst)) {
                    make_next(pool, root, thread, number).unwrap();
                    turns.told[thread].store(number + 1, Ordering::SeqCst);
                }
                is_done.store(true, Ordering::SeqCst);
            };
            let writers = [scope.spawn(move || write(0, 5)), scope.spawn(move || write(1, 200))];
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            turns.cuts.lock().unwrap().take();
            checked.join().unwrap()
        });
        assert_eq!(pool.heap().end, ends[1]);
        let steps = turns.steps.lock().unwrap();
        assert_eq!(found[0] + found[1], steps.len() as u64, "each event is cut");
        // Of the growth: from the first table in what has come to the word that says so.
        let is_word = |step: &Step| step.event != Event::Fence && step.offset / 64 == POOL_GROWN / 64;
        let word = steps.iter().position(is_word).expect("it grows");
        let grower = steps[word].thread;
        let first = steps.iter().position(|step| step.thread == grower && step.offset >= MIB).expect("it has tables");
        let (own, beside): (Vec<&Step>, Vec<&Step>) =
            steps[first..=word].iter().partition(|step| step.thread == grower);
        println!(
            "{mode:?}, one domain {one_domain}: {} events, {} of the growth, {} beside it; {} cuts before, {} behind",
            steps.len(),
            own.len(),
            beside.len(),
            found[0],
            found[1]
        );
        assert!(own.len() > 3 && beside.len() > 3 && found.iter().all(|&cuts| cuts > 20));
    }
}

/// New objects of a pool as on a file lie at their places in what has come, and their records say
/// so: a recovery finds them there.
#[test]
fn objects_that_are_written_once_lie_in_what_has_come() {
    let memory = TestMemory::from_image(in_longer_memory()).one_domain();
    let growth = Options::new().growth(up_to(6 * MIB));
    let pool = DirectPool::open_in(Box::new(memory.clone()), &growth).unwrap();
    pool.grow(6 * MIB).unwrap();
    let make = |fill: u8| -> Result<u64, Error> {
        pool.tx(|tx| {
            let bytes = vec![fill; if fill.is_multiple_of(2) { 5_000 } else { 40_000 }];
            let object = tx.alloc_bytes(bytes.len() as u64)?;
            tx.write(object, &bytes).map(|()| object)
        })
    };
    let mut objects = Vec::new();
    while objects.last().is_none_or(|&(_, object)| object < 2 * MIB) {
        let fill = objects.len() as u8;
        objects.push((fill, make(fill).unwrap()));
        if objects.len().is_multiple_of(8) || fill > 30 {
            let again = TestMemory::from_image(memory.durable());
            let pool = DirectPool::open_in(Box::new(again), &growth).unwrap();
            for &(fill, object) in &objects {
                assert!(pool.usable_bytes(object).unwrap() >= 5_000);
                assert!(bytes_at(&pool, object, 5_000).iter().all(|&byte| byte == fill), "{fill} at {object:#x}");
            }
            assert_eq!(keys(&pool), 200);
        }
    }
    assert!(objects.iter().any(|&(_, object)| object > MIB));
}

/// Objects that replace each other, and nobody waits for their commits: their space serves again
/// before the pool grows.
#[test]
fn space_that_waits_serves_before_a_pool_grows() {
    let memory = TestMemory::from_image(in_longer_memory()).one_domain();
    let options = Options::new().durability(Durability::Asynchronous).growth(up_to(6 * MIB));
    let pool = DirectPool::open_in(Box::new(memory), &options).unwrap();
    let end = pool.heap().end;
    let mut former = None;
    for fill in 0..200 {
        let replaced = pool.tx(|tx| {
            let object = tx.alloc_bytes(40_000)?;
            tx.write(object, &[fill; 40_000])?;
            former.and_then(Ptr::<u64>::from_offset).map_or(Ok(()), |former| tx.free(former))?;
            Ok::<_, Error>(object)
        });
        former = Some(replaced.unwrap());
    }
    assert_eq!(pool.heap().end, end);
    assert_eq!(bytes_at(&pool, former.unwrap(), 40_000), [199; 40_000]);
}

/// What a transaction may log for sure is what chunks are kept for, also where the pool has grown
/// since it was made.
#[test]
fn a_transaction_that_is_too_large_for_the_log_is_refused_before_its_commit() {
    const BYTES: u64 = 4000;
    let (_folder, path) = folder();
    let pool = DirectPool::create(&path, MIB, &options(up_to(16 * MIB))).unwrap();
    let mut objects = Vec::new();
    loop {
        let mut tx = pool.begin().unwrap();
        match tx.alloc(&pool, BYTES) {
            Ok(space) => objects.push(space.offset),
            Err(Error::Full { .. }) => break tx.abort(&pool).unwrap(),
            Err(error) => panic!("{error}"),
        }
        tx.commit(&pool).unwrap();
    }
    let mut tx = pool.begin().unwrap();
    let added = objects.iter().take_while(|&&object| tx.add(&pool, object..object + BYTES).is_ok()).count();
    assert!(added > 0 && added < objects.len(), "{added} of {}", objects.len());
    tx.commit(&pool).unwrap();
}

/// Power fails at events of the growth of a pool of format 3, whose head is written anew.
#[test]
fn a_pool_of_format_3_gets_format_4_when_it_grows_whenever_power_fails() {
    let mut bytes = in_longer_memory();
    let line: &mut [u8; 64] = bytes.first_chunk_mut().unwrap();
    let head = PoolHead { version: 3, ..PoolHead::from_bytes(line) };
    *line = head.to_bytes();
    seal::seal(&[], line);
    // Its runs have one chunk, of sizes that format 3 knows: what was inserted is in none else.
    let images = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let growth = Options::new().growth(up_to(6 * MIB));
    let memory = TestMemory::from_image(bytes);
    let pool = DirectPool::open_in(Box::new(memory.clone()), &growth).unwrap();
    let (sink, start) = (images.clone(), memory.events());
    memory.probe(move |number, _, survive| {
        if number - start < 24 {
            sink.lock().unwrap().extend((0..3).map(|draw| survive(number * 3 + draw)));
        }
    });
    pool.grow(6 * MIB).unwrap();
    memory.stop_probe();
    let mut versions = std::collections::BTreeSet::new();
    for image in std::mem::take(&mut *images.lock().unwrap()) {
        let memory = TestMemory::from_image(image);
        let pool = DirectPool::open_in(Box::new(memory.clone()), &growth).unwrap();
        assert_eq!(keys(&pool), 200);
        drop(pool);
        let line = memory.current();
        let head = PoolHead::from_bytes(line.first_chunk().unwrap());
        assert!(seal::is_sealed(&[], line.first_chunk().unwrap()), "an open finishes what was interrupted");
        versions.insert(head.version);
    }
    assert!(versions.into_iter().eq([3, 4]));
}

/// The head of a former pool that lies beside that of this one is not taken for it.
#[test]
fn a_damaged_head_is_not_replaced_by_one_of_another_pool() {
    let mut bytes = in_longer_memory();
    let former = TestMemory::new(MIB as usize);
    DirectPool::create_in(Box::new(former.clone()), &Options::default()).unwrap().close().unwrap();
    bytes[256..320].copy_from_slice(&former.current()[..64]);
    bytes[20] ^= 1;
    let memory = TestMemory::from_image(bytes.clone());
    let opened = DirectPool::open_in(Box::new(memory.clone()), &Options::default());
    assert!(matches!(problem(opened), Problem::Corrupt { .. }));
    assert!(memory.current() == bytes);
}

/// A child that grows a pool and is killed, or whose power fails.
#[test]
fn child() {
    let Ok(path) = std::env::var("NEARPM_GROWING") else { return };
    let power_cut = std::env::var("NEARPM_CUT").ok().map(|text| text.parse::<PowerCut>().unwrap());
    let survives = if power_cut.is_some() { Survives::PowerCut } else { Survives::ProcessCrash };
    let options = options(Some(Growth { by: 64 << 10, most: 64 * MIB })).survives(survives).power_cut(power_cut);
    let pool = DirectPool::open(&path, &options).unwrap();
    let mut next = keys(&pool);
    loop {
        insert(&pool, next..next + 1).unwrap();
        next += 1;
        if power_cut.is_none() {
            println!("acknowledged {next}");
        }
        if next.is_multiple_of(50) {
            let bytes = pool.bytes();
            // A torn file is one of a fixed size; within it the pool grows.
            let _ = pool.grow(pool.heap().end + (320 << 10)).or_else(|_| Ok::<_, Error>(bytes));
        }
    }
}

fn grow_in_child(path: &str, cut: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env("NEARPM_GROWING", path).stderr(Stdio::null());
    if let Some(cut) = cut {
        command.env("NEARPM_CUT", cut);
    }
    command
}

#[test]
fn a_process_that_is_killed_while_its_pool_grows_loses_nothing() {
    use std::io::{BufRead, BufReader};
    let (_folder, path) = folder();
    DirectPool::create(&path, MIB, &options(None)).unwrap().close().unwrap();
    for round in 0..6u64 {
        let mut child = grow_in_child(&path, None).stdout(Stdio::piped()).spawn().unwrap();
        let mut acknowledged = 0;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for (number, line) in (0..).zip(lines) {
            if let Some(text) = line.unwrap().strip_prefix("acknowledged ") {
                acknowledged = text.parse().unwrap();
            }
            if number > 120 + 37 * round {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        sound(&path);
        let pool = DirectPool::open(&path, &options(None)).unwrap();
        assert!(keys(&pool) >= acknowledged && acknowledged > 0);
    }
    assert!(std::fs::metadata(&path).unwrap().len() > MIB, "it has grown");
}

#[test]
fn a_torn_file_of_a_pool_that_grows_is_one_of_its_states() {
    let (_folder, path) = folder();
    for event in [40, 150, 700, 1500] {
        let _ = std::fs::remove_file(&path);
        DirectPool::create(&path, MIB, &options(None)).unwrap().close().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4 * MIB).unwrap();
        let cut = format!("event={event},seed={event},evict=7,torn=1");
        let status = grow_in_child(&path, Some(&cut)).stdout(Stdio::null()).status().unwrap();
        assert!(!status.success());
        sound(&path);
        let pool = DirectPool::open(&path, &options(None)).unwrap();
        keys(&pool);
    }
}

#[test]
fn a_pool_that_nobody_has_open_gets_any_size_and_back() {
    let (_folder, path) = folder();
    let pool = DirectPool::create(&path, MIB, &options(None)).unwrap();
    insert(&pool, 0..500).unwrap();
    assert!(matches!(problem(check::resize(&path, 3 * MIB)), Problem::InUse { .. }));
    drop(pool);
    for bytes in [3 * MIB, 3 * MIB + 70_000, 40 * MIB, 40 * MIB + 5, 70 * MIB] {
        let resized = check::resize(&path, bytes).unwrap();
        assert!(resized.bytes <= bytes && bytes - resized.bytes < 30 * 16384, "{bytes}: {resized:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), resized.bytes.max(resized.former));
        sound(&path);
        let pool = DirectPool::open(&path, &options(None)).unwrap();
        assert_eq!(keys(&pool), 500);
    }
    let pool = DirectPool::open(&path, &options(None)).unwrap();
    let object = pool.tx(|tx| tx.alloc_bytes(30 * MIB)).unwrap();
    pool.close().unwrap();
    // Somebody else's mechanism works on what has come, too.
    let pool = Options::new().survives(Survives::ProcessCrash).open(&path).unwrap();
    pool.tx(|tx| tx.write(object + 19 * MIB, &[9; 100])).unwrap();
    pool.close().unwrap();
    sound(&path);
    assert!(matches!(problem(check::resize(&path, 30 * MIB)), Problem::TooSmall { minimum, .. } if minimum > 30 * MIB));
    let copy = format!("{path}.copy");
    check::copy(&path, &copy, Some(80 * MIB)).unwrap();
    let pool = DirectPool::open(&copy, &options(None)).unwrap();
    assert_eq!(bytes_at(&pool, object + 19 * MIB, 100), [9; 100]);
    pool.tx(|tx| tx.free(Ptr::<u64>::from_offset(object).unwrap())).unwrap();
    pool.close().unwrap();
    let resized = check::resize(&copy, MIB).unwrap();
    assert_eq!((resized.bytes, std::fs::metadata(&copy).unwrap().len()), (MIB, MIB));
    sound(&copy);
    assert_eq!(keys(&DirectPool::open(&copy, &options(up_to(2 * MIB))).unwrap()), 500);
}

/// Runs of several chunks that hold nothing any more: a pool that ends inside of what their words
/// name opens, and grows over them again.
#[test]
fn a_pool_that_ends_where_runs_were_opens_and_grows_again() {
    let (_folder, path) = folder();
    let pool = DirectPool::create(&path, MIB, &options(up_to(8 * MIB))).unwrap();
    insert(&pool, 0..500).unwrap();
    pool.grow(8 * MIB).unwrap();
    let mut objects = Vec::new();
    while objects.last().is_none_or(|&object| object < 4 * MIB) {
        objects.push(pool.tx(|tx| tx.alloc_bytes(9_000)).unwrap());
    }
    for object in objects {
        pool.tx(|tx| tx.free(Ptr::<u64>::from_offset(object).unwrap())).unwrap();
    }
    pool.close().unwrap();
    let sizes = (0..30).map(|number| 4 * MIB - number * 5 * 16384);
    for bytes in sizes.clone().chain(sizes.rev()) {
        check::resize(&path, bytes).unwrap_or_else(|error| panic!("{bytes}: {error}"));
        let pool = DirectPool::open(&path, &options(None)).unwrap_or_else(|error| panic!("{bytes}: {error}"));
        assert_eq!(keys(&pool), 500);
        pool.close().unwrap();
        sound(&path);
    }
}

#[test]
fn what_cannot_grow_says_so_in_a_sentence_and_keeps_everything() {
    let (_folder, path) = folder();
    let why = |result: Result<check::Resized, Error>| problem(result).to_string();
    assert!(why(check::resize("card:none/pool", 4 * MIB)).contains("copy it to a larger one"));
    Options::new().survives(Survives::ProcessCrash).create(&path, 4 * MIB).unwrap().close().unwrap();
    assert!(why(check::resize(&path, 8 * MIB)).contains("formats 1 and 2"));
    std::fs::remove_file(&path).unwrap();
    let pool = DirectPool::create(&path, MIB, &options(up_to(1 << 60))).map(drop);
    if pool.is_ok() {
        // More than any medium has.
        let before = std::fs::read(&path).unwrap();
        let refused = check::resize(&path, 1 << 46);
        assert!(matches!(problem(refused), Problem::NoSpace { .. }));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

/// A file whose medium is full: the error says so, and the pool goes on as it is.
#[test]
fn a_full_medium_leaves_the_pool_as_it_was() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("pool").to_str().unwrap().to_owned();
    let pool = DirectPool::create(&path, MIB, &options(Some(Growth { by: 1 << 39, most: 1 << 40 }))).unwrap();
    insert(&pool, 0..100).unwrap();
    assert!(matches!(problem(pool.grow(1 << 39)), Problem::NoSpace { .. }));
    assert!(matches!(problem(pool.tx(|tx| tx.alloc_bytes(8 * MIB))), Problem::NoSpace { .. }));
    insert(&pool, 100..200).unwrap();
    pool.close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), MIB);
    sound(&path);
}

/// A copy with holes keeps its holes: room is taken for what comes alone.
#[test]
fn a_sparse_file_grows_and_keeps_its_holes() {
    use std::os::unix::fs::MetadataExt;
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("pool").to_str().unwrap().to_owned();
    let pool = DirectPool::create(&path, 8 * MIB, &options(None)).unwrap();
    insert(&pool, 0..100).unwrap();
    pool.close().unwrap();
    sparse(Path::new(&path));
    let blocks = |path: &str| std::fs::metadata(path).unwrap().blocks() * 512;
    assert!(blocks(&path) < 2 * MIB);
    let pool = DirectPool::open(&path, &options(up_to(64 * MIB))).unwrap();
    pool.grow(10 * MIB).unwrap();
    let taken = blocks(&path);
    assert!((MIB..5 * MIB).contains(&taken), "{taken}");
    insert(&pool, 100..30_000).unwrap();
    assert_eq!(keys(&pool), 30_000);
    pool.close().unwrap();
    sound(&path);
}

/// Writes a file anew without its pages of zeros.
fn sparse(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::remove_file(path).unwrap();
    let file = File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (page, at) in bytes.chunks(4096).zip((0..).step_by(4096)).filter(|(page, _)| page.iter().any(|&byte| byte != 0))
    {
        file.write_all_at(page, at).unwrap();
    }
}

/// Objects have all of the pool when a transaction comes that changes more of them than the log has
/// room for.
#[test]
fn a_pool_grows_for_its_log() {
    const OBJECT: u64 = 64 << 10;
    for growth in [None, up_to(32 * MIB)] {
        let (_folder, path) = folder();
        let pool = DirectPool::create(&path, 2 * MIB, &options(None)).unwrap();
        let objects: Vec<u64> = std::iter::from_fn(|| pool.tx(|tx| tx.alloc_bytes(OBJECT)).ok()).collect();
        pool.close().unwrap();
        let pool = DirectPool::open(&path, &options(growth)).unwrap();
        let changed = pool.tx(|tx| objects.iter().try_for_each(|&object| tx.write(object, &[7; OBJECT as usize])));
        assert_eq!(changed.is_ok(), growth.is_some(), "{changed:?}");
        assert_eq!(pool.bytes() > 2 * MIB, growth.is_some());
        let wanted = if growth.is_some() { 7 } else { 0 };
        let all_are = |pool: &DirectPool| {
            objects.iter().all(|&object| bytes_at(pool, object, OBJECT as usize).iter().all(|&byte| byte == wanted))
        };
        assert!(all_are(&pool));
        pool.close().unwrap();
        sound(&path);
        assert!(all_are(&DirectPool::open(&path, &options(None)).unwrap()));
    }
}
