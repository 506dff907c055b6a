//! Pools that are opened for reading: shared, and not changed by a byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::TestMemory;
use nearpm::{Error, Mechanism, Options, Problem};

const BYTES: u64 = 1 << 20;

fn writing() -> Options {
    Options::new().survives(nearpm::Survives::ProcessCrash)
}

fn reading() -> Options {
    writing().read_only(true)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    (folder, path)
}

fn open(path: &Path, options: &Options) -> Result<DirectPool, Error> {
    DirectPool::open(path.to_str().unwrap(), options)
}

/// A pool whose root holds 64 bytes of 7, with that commit in its log alone.
fn killed(path: &Path) -> u64 {
    let pool = DirectPool::create(path.to_str().unwrap(), BYTES, &writing()).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, 64).unwrap().offset;
    // SAFETY: the object is this transaction's own.
    unsafe { pool.base().add(object as usize).write_bytes(7, 64) };
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    let bytes = fs::read(path).unwrap();
    drop(pool);
    fs::write(path, bytes).unwrap();
    object
}

fn root_byte(pool: &DirectPool) -> u8 {
    // SAFETY: the root is an object of the pool.
    unsafe { pool.base().add(pool.root() as usize).read() }
}

#[test]
fn readers_share_a_pool_and_recover_it_for_themselves() {
    let (_folder, path) = folder();
    let object = killed(&path);
    let before = fs::read(&path).unwrap();
    let mut read_only = fs::metadata(&path).unwrap().permissions();
    read_only.set_readonly(true);
    fs::set_permissions(&path, read_only).unwrap();
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let options = reading().mode(mode);
        let (first, second) = (open(&path, &options).unwrap(), open(&path, &options).unwrap());
        assert_eq!((first.root(), second.root(), first.recovery().redone), (object, object, 1));
        assert_eq!((root_byte(&first), root_byte(&second)), (7, 7));
        assert!(matches!(first.begin(), Err(Error::ReadOnly)));
        assert!(matches!(first.reserve(8), Err(Error::ReadOnly)));
        let range = object..object + 8;
        assert!(matches!(first.persist(std::slice::from_ref(&range)), Err(Error::ReadOnly)));
        first.close().unwrap();
        assert_eq!(root_byte(&second), 7);
    }
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint] {
        let options = Options::new().mechanism(mechanism).read_only(true);
        let pools = [(); 2].map(|()| options.open(path.to_str().unwrap()).unwrap());
        for pool in &pools {
            assert_eq!(pool.tx(|tx| tx.read_vec(object, 64)).unwrap(), [7; 64]);
            assert!(matches!(pool.tx(|tx| tx.write(object, &[1])), Err(Error::ReadOnly)));
            assert!(matches!(pool.tx(|tx| tx.alloc(8)), Err(Error::ReadOnly)));
            assert!(matches!(pool.tx(|tx| tx.free(object)), Err(Error::ReadOnly)));
            assert!(matches!(pool.tx(|tx| tx.set_root(0)), Err(Error::ReadOnly)));
            assert!(matches!(pool.reserve_log(1 << 20), Err(Error::ReadOnly)));
            assert!(matches!(pool.undolog_create(0, object, 8), Err(Error::ReadOnly)));
            assert_eq!(pool.address(), None);
        }
        pools.into_iter().for_each(|pool| pool.close().unwrap());
    }
    assert_eq!(fs::read(&path).unwrap(), before, "nothing has changed a byte");
}

#[test]
fn readers_and_a_writer_keep_each_other_out_and_are_named() {
    let (_folder, path) = folder();
    killed(&path);
    let own = Some(std::process::id());
    let in_use = |result: Result<DirectPool, Error>| match result {
        Err(Error::Pool { problem: Problem::InUse { process }, .. }) => process,
        other => panic!("{other:?}"),
    };
    let reader = open(&path, &reading()).unwrap();
    assert_eq!(in_use(open(&path, &writing())), own);
    let other = open(&path, &reading()).unwrap();
    drop(reader);
    assert_eq!(in_use(open(&path, &writing())), own, "one reader is left");
    drop(other);
    let writer = open(&path, &writing()).unwrap();
    assert_eq!(in_use(open(&path, &reading())), own);
    drop(writer);
    open(&path, &reading()).unwrap();
}

const SHARED: &str = "NEARPM_TEST_READS";

/// The pool's path in the environment makes this the second process.
#[test]
fn several_processes_read_at_once() {
    if let Ok(path) = std::env::var(SHARED) {
        assert_eq!(root_byte(&open(Path::new(&path), &reading()).unwrap()), 7);
        return;
    }
    let (_folder, path) = folder();
    killed(&path);
    let _reader = open(&path, &reading()).unwrap();
    let second = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "several_processes_read_at_once"])
        .env(SHARED, &path)
        .output()
        .unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stdout));
}

const STORES: &str = "NEARPM_TEST_STORES";

/// A store by pointer does not vanish without a word.
#[test]
fn a_store_by_pointer_ends_the_process() {
    if let Ok(path) = std::env::var(STORES) {
        let pool = open(Path::new(&path), &reading()).unwrap();
        // SAFETY: the page is mapped; that the store is refused is what is tested.
        unsafe { pool.base().add(pool.root() as usize).write_volatile(1) };
        return;
    }
    let (_folder, path) = folder();
    killed(&path);
    let second = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_store_by_pointer_ends_the_process"])
        .env(STORES, &path)
        .output()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&second.status), Some(11), "SIGSEGV");
}

#[test]
fn what_cannot_be_read_only_is_refused() {
    let (_folder, path) = folder();
    let location = path.to_str().unwrap();
    let refused = DirectPool::create(location, BYTES, &reading());
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
    let refused = Options::new().read_only(true).create(location, BYTES);
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
    let memory = || Box::new(TestMemory::new(BYTES as usize));
    let refused = Options::new().read_only(true).create_in(memory());
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
    let refused = DirectPool::create_in(memory(), &reading());
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
    let power_cut = Some("fence=3,seed=9,evict=2".parse().unwrap());
    let refused = open(&path, &reading().power_cut(power_cut));
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
    assert!(!path.exists());
    let missing = open(&path, &reading());
    assert!(matches!(missing, Err(Error::Pool { problem: Problem::NotFound, .. })));
}

/// Changes that are forgotten: several may make them at once, each for itself, also of a pool with
/// a commit in its log alone.
#[test]
fn copies_on_write_are_forgotten() {
    let (_folder, path) = folder();
    let object = killed(&path);
    let before = fs::read(&path).unwrap();
    let options = writing().copy_on_write(true);
    let pools = [(); 2].map(|()| open(&path, &options).unwrap());
    for (pool, byte) in pools.iter().zip([1, 2]) {
        assert_eq!((root_byte(pool), pool.mode()), (7, Mode::InPlace));
        let mut tx = pool.begin().unwrap();
        tx.add(pool, object..object + 64).unwrap();
        // SAFETY: the transaction has added the object.
        unsafe { pool.base().add(object as usize).write_bytes(byte, 64) };
        tx.alloc(pool, 100_000).unwrap();
        tx.commit(pool).unwrap();
        let mut aborted = pool.begin().unwrap();
        aborted.add(pool, object..object + 1).unwrap();
        // SAFETY: as above.
        unsafe { pool.base().add(object as usize).write(99) };
        aborted.abort(pool).unwrap();
    }
    assert!(open(&path, &writing()).is_err(), "none may write it meanwhile");
    for (pool, byte) in pools.into_iter().zip([1, 2]) {
        assert_eq!(root_byte(&pool), byte);
        pool.close().unwrap();
    }
    assert!(fs::read(&path).unwrap() == before, "the file has changed");
    let new = path.with_extension("new");
    assert!(DirectPool::create(new.to_str().unwrap(), BYTES, &options).is_err() && !new.exists());
    let both = options.read_only(true);
    assert!(matches!(open(&path, &both), Err(Error::Pool { problem: Problem::BadOption { .. }, .. })));
}
