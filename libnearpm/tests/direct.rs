//! Direct pools that cannot be opened, and what damage does to them.

use std::fs;
use std::path::{Path, PathBuf};

use nearpm::direct::Mode;
use nearpm::memory::TestMemory;
use nearpm::prelude::*;
use nearpm::{Mechanism, Problem};

const BYTES: u64 = 1 << 20;

/// A root.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Words {
    words: PVec<u64>,
}

fn options() -> Options {
    Options::new().survives(Survives::ProcessCrash).id(3)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    (folder, path)
}

fn open(path: &Path) -> Result<DirectPool, Error> {
    DirectPool::open(path.to_str().unwrap(), &options())
}

fn problem(result: Result<DirectPool, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("not refused as a pool: {other:?}"),
    }
}

/// Commits an object of these bytes, made the root.
fn put_root(pool: &DirectPool, bytes: u64) -> Result<u64, Error> {
    let mut tx = pool.begin()?;
    let object = match tx.alloc(pool, bytes) {
        Ok(reservation) => reservation.offset,
        Err(error) => {
            tx.abort(pool)?;
            return Err(error);
        }
    };
    tx.set_root(object);
    tx.commit(pool).map(|()| object)
}

/// An image with records in its log, as a process leaves it that is killed.
fn killed() -> Vec<u8> {
    let memory = TestMemory::new(BYTES as usize);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options()).unwrap();
    for bytes in [100, 700, 40] {
        put_root(&pool, bytes).unwrap();
    }
    memory.durable()
}

#[test]
fn what_is_no_sound_pool_is_refused() {
    let (_folder, path) = folder();
    assert_eq!(problem(open(&path)), Problem::NotFound);
    fs::write(&path, b"").unwrap();
    assert_eq!(problem(open(&path)), Problem::Unfinished);
    fs::write(&path, [7; 5000]).unwrap();
    assert!(matches!(problem(open(&path)), Problem::Foreign { .. }));
    let whole = killed();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(problem(open(&path)), Problem::Truncated { .. }));
    let mut newer = whole.clone();
    newer[8] = 99;
    fs::write(&path, &newer).unwrap();
    assert!(matches!(problem(open(&path)), Problem::Newer { .. }));
    assert_eq!(fs::read(&path).unwrap(), newer, "a refusal changes nothing");
    fs::write(&path, &whole).unwrap();
    let pool = open(&path).unwrap();
    assert_eq!(problem(open(&path)), Problem::InUse { process: Some(std::process::id()) });
    assert_eq!(pool.usable_bytes(pool.root()).unwrap(), 48);
}

#[test]
fn a_file_that_exists_is_filled_only_if_it_is_blank_and_large_enough() {
    let (_folder, path) = folder();
    let create = || DirectPool::create(path.to_str().unwrap(), 0, &options());
    assert_eq!(problem(create()), Problem::NotFound);
    fs::write(&path, b"").unwrap();
    assert!(matches!(problem(create()), Problem::TooSmall { .. }));
    fs::write(&path, vec![0; 8192]).unwrap();
    assert!(matches!(problem(create()), Problem::TooSmall { .. }));
    fs::write(&path, vec![1; BYTES as usize]).unwrap();
    assert_eq!(problem(create()), Problem::Exists);
    fs::write(&path, vec![0; BYTES as usize]).unwrap();
    drop(create().unwrap());
    open(&path).unwrap();
}

#[test]
fn in_place_on_an_ordinary_file_is_refused_before_anything_is_written() {
    let (_folder, path) = folder();
    let in_place = options().mode(Mode::InPlace).survives(Survives::PowerCut);
    let create = |bytes| DirectPool::create(path.to_str().unwrap(), bytes, &in_place);
    assert!(matches!(problem(create(BYTES)), Problem::BadOption { .. }));
    assert!(!path.exists());
    fs::write(&path, vec![0; BYTES as usize]).unwrap();
    assert!(matches!(problem(create(0)), Problem::BadOption { .. }));
    assert!(fs::read(&path).unwrap().iter().all(|&b| b == 0));
}

#[test]
fn pools_go_to_and_fro_between_direct_use_and_the_mechanisms() {
    let memory = || Box::new(TestMemory::from_image(killed()));
    for mechanism in Mechanism::ALL {
        // Without spare pages there is no shadow paging.
        if mechanism == Mechanism::Shadow {
            continue;
        }
        let pool = Options::new().mechanism(mechanism).open_in(memory()).unwrap();
        let root = pool.root().unwrap();
        assert_ne!(root, 0, "the log was read by {mechanism:?}");
        pool.tx(|tx| tx.free(root)).unwrap();
        pool.check().unwrap();
    }
    let memory = TestMemory::new(BYTES as usize);
    let pool = Options::new().mechanism(Mechanism::Shadow).create_in(Box::new(memory.clone())).unwrap();
    pool.tx(|tx| tx.alloc_zeroed(64).and_then(|object| tx.set_root(object))).unwrap();
    pool.close().unwrap();
    let pool = DirectPool::open_in(Box::new(memory), &options()).unwrap();
    assert!(pool.recovery().redone > 0 && pool.usable_bytes(pool.root()).unwrap() >= 64, "pages have come home");
}

/// Under shadow paging the page that one has left is taken by another. Who has not stored to the
/// first must not see the second there.
#[test]
fn what_takes_the_place_of_a_page_is_seen_nowhere_else() {
    const WORDS: u64 = 16 * 512;
    let (_folder, path) = folder();
    let path = path.to_str().unwrap();
    let by_shadow = options().mechanism(Mechanism::Shadow);
    let pool = DirectPool::create(path, BYTES, &by_shadow).unwrap();
    let fill = |tx: &mut Tx<'_>| {
        let words = tx.root_or_zeroed::<Words>()?.words();
        (0..WORDS).try_for_each(|number| words.push(tx, number))
    };
    pool.tx(fill).unwrap();
    pool.close().unwrap();
    // What was not stored to since lies in the file.
    let pool = DirectPool::open(path, &by_shadow).unwrap();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Words>()).unwrap();
    let place = |index| Ptr::offset(pool.read(|from| root.words().slot(from, index)).unwrap().expect("it is there"));
    for page in 0..12 {
        let (left, taker) = (place(page * 512), page * 512 + 700);
        let mut tx = pool.begin().unwrap();
        tx.add(&pool, left..left + 8).unwrap();
        tx.commit(&pool).unwrap();
        pool.tx(|tx| root.words().set(tx, taker, 1 << 40 | taker)).unwrap();
    }
    let expected =
        |index: u64| if index % 512 == 188 && (700..700 + 12 * 512).contains(&index) { 1 << 40 | index } else { index };
    let found = pool.read(|from| root.words().to_vec(from)).unwrap();
    assert_eq!(found, (0..WORDS).map(expected).collect::<Vec<_>>());
    assert!(pool.statistics().shadow_pages >= 24);
    pool.close().unwrap();
    let again = open(Path::new(path)).unwrap();
    let root = again.tx(|tx| tx.root_or_zeroed::<Words>()).unwrap();
    assert_eq!(again.read(|from| root.words().to_vec(from)).unwrap(), found);
}

#[test]
fn a_full_pool_says_so_and_can_be_emptied() {
    let memory = TestMemory::new(BYTES as usize);
    let pool = DirectPool::create_in(Box::new(memory), &options()).unwrap();
    let fill = || {
        let mut objects = Vec::new();
        let error = loop {
            match put_root(&pool, 3000) {
                Ok(object) => objects.push(object),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full { requested: 3000, .. }), "{error}");
        assert!(objects.len() > 150, "{}", objects.len());
        objects
    };
    let empty = |objects: Vec<u64>| {
        let mut tx = pool.begin().unwrap();
        tx.set_root(0);
        objects.iter().for_each(|&object| tx.free(&pool, object).unwrap());
        assert!(matches!(tx.free(&pool, objects[0]), Err(Error::NotAllocated { .. })), "freed twice");
        tx.commit(&pool).unwrap();
        assert_eq!(pool.next_object(0), None);
    };
    empty(fill());
    // A thread that has no log yet finds room for one.
    let objects = fill();
    std::thread::scope(|scope| scope.spawn(|| empty(objects)).join().unwrap());
    put_root(&pool, 3000).unwrap();
    assert!(matches!(put_root(&pool, u64::MAX), Err(Error::Full { .. })));
    assert!(matches!(put_root(&pool, 0), Err(Error::ZeroSize { .. })));
}

#[test]
fn ranges_outside_of_the_heap_are_refused() {
    let pool = DirectPool::create_in(Box::new(TestMemory::new(BYTES as usize)), &options()).unwrap();
    let heap = pool.heap();
    let mut tx = pool.begin().unwrap();
    for range in [0..8, heap.end - 4..heap.end + 4, u64::MAX - 4..u64::MAX, heap.start + 8..heap.start] {
        assert!(matches!(tx.add(&pool, range.clone()), Err(Error::OutOfRange { .. })), "{range:?}");
        assert!(matches!(pool.persist(std::slice::from_ref(&range)), Err(Error::OutOfRange { .. })), "{range:?}");
    }
    tx.commit(&pool).unwrap();
}

#[test]
fn damage_anywhere_in_the_metadata_never_panics() {
    let image = killed();
    let heap = DirectPool::open_in(Box::new(TestMemory::from_image(image.clone())), &options()).unwrap().heap();
    // Head, ring, tables and the log's segment.
    for at in (0..heap.start as usize + 6000).step_by(5) {
        let mut damaged = image.clone();
        damaged[at] ^= 1 << (at % 8);
        if let Ok(pool) = DirectPool::open_in(Box::new(TestMemory::from_image(damaged)), &options()) {
            // What opens can be used: its root is an object, or there is none.
            assert!(pool.root() == 0 || pool.usable_bytes(pool.root()).is_ok(), "byte {at}");
            let mut object = 0;
            while let Some(next) = pool.next_object(object) {
                assert!(pool.usable_bytes(next).is_ok(), "byte {at}");
                object = next;
            }
        }
    }
}
