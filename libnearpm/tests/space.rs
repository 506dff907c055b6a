//! Files that are larger than their medium, or become shorter than they were: errors, and no
//! signal.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nearpm::direct::{DirectPool, Mode};
use nearpm::prelude::*;
use nearpm::{Error, Options, Problem, Survives};

const BYTES: u64 = 4 << 20;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    numbers: PVec<u64>,
    count: u64,
}

/// Where files take no room that they do not need; skipped where the system has no such place.
fn folder() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir_in("/dev/shm").ok()?;
    let path = folder.path().join("pool");
    Some((folder, path))
}

fn options(survives: Survives) -> Options {
    Options::new().survives(survives)
}

fn open(path: &Path, survives: Survives) -> Result<DirectPool, Error> {
    DirectPool::open(path.to_str().unwrap(), &options(survives))
}

fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("no error of the pool's file: {other:?}"),
    }
}

fn push(pool: &DirectPool, numbers: u64) -> Result<(), Error> {
    pool.tx(|tx| {
        let root = tx.root_or_zeroed::<Root>()?;
        for number in 0..numbers {
            root.numbers().push(tx, number)?;
        }
        tx.update(root.count(), |count| count + numbers).map(drop)
    })
}

fn sum(pool: &DirectPool) -> Result<u64, Error> {
    pool.read(|from| {
        let Some(root) = from.root::<Root>()? else { return Ok(0) };
        let mut sum = 0;
        for at in 0..root.numbers().len(from)? {
            sum += root.numbers().get(from, at)?.unwrap_or(0);
        }
        Ok(sum)
    })
}

fn cut(path: &Path, bytes: u64) {
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// The ways to make stores durable on an ordinary file.
const WAYS: [Survives; 3] = [Survives::PowerCut, Survives::ProcessCrash, Survives::AsPersistentMemory];

#[test]
fn a_pool_takes_room_as_it_is_used() {
    let Some((_folder, path)) = folder() else { return };
    let file = File::create(&path).unwrap();
    file.set_len(64 << 30).unwrap();
    let blocks = || path.metadata().unwrap().blocks() * 512;
    let pool = DirectPool::create(path.to_str().unwrap(), 0, &options(Survives::PowerCut)).unwrap();
    push(&pool, 1000).unwrap();
    pool.close().unwrap();
    let used = blocks();
    // Two segments of the log, of 16 MiB, have their room at once, as nobody may be refused it in
    // the middle of a commit.
    assert!(used < 40 << 20, "{used} bytes for 8 KB");
    let pool = open(&path, Survives::PowerCut).unwrap();
    assert_eq!(sum(&pool).unwrap(), 499_500);
    drop(pool);
    assert!(nearpm::check::check(path.to_str().unwrap()).unwrap().is_sound());
    assert!(blocks() - used < 64 << 10, "who looks takes pages that it comes by, and no more");
}

#[test]
fn a_file_that_is_cut_short_is_an_error_of_the_next_commit() {
    for survives in WAYS {
        for (left, from) in [(0, "none of it"), (4096, "its head"), (BYTES - 4096, "all but a page")] {
            let Some((_folder, path)) = folder() else { return };
            let pool = DirectPool::create(path.to_str().unwrap(), BYTES, &options(survives)).unwrap();
            push(&pool, 1000).unwrap();
            cut(&path, left);
            let next = push(&pool, 1000);
            // Without `msync` nobody asks the system, and what is left may be enough for the
            // commit.
            if survives == Survives::PowerCut || left < BYTES / 2 {
                assert_eq!(problem(next), Problem::Truncated { header: BYTES, found: left }, "{from}, {survives:?}");
                assert!(matches!(push(&pool, 1), Err(Error::Poisoned)));
            }
            drop(pool);
            let found = problem(open(&path, survives));
            assert!(matches!(found, Problem::Truncated { .. } | Problem::Unfinished), "{found:?}");
        }
    }
}

#[test]
fn what_a_reader_sees_of_a_file_that_is_cut_short_is_no_value() {
    let Some((_folder, path)) = folder() else { return };
    let pool = DirectPool::create(path.to_str().unwrap(), BYTES, &options(Survives::PowerCut)).unwrap();
    push(&pool, 1000).unwrap();
    pool.close().unwrap();
    for read_only in [false, true] {
        let whole = fs::read(&path).unwrap();
        let with = options(Survives::PowerCut).read_only(read_only);
        let pool = DirectPool::open(path.to_str().unwrap(), &with).unwrap();
        assert_eq!(sum(&pool).unwrap(), 499_500);
        cut(&path, 0);
        assert_eq!(problem(sum(&pool)), Problem::Truncated { header: BYTES, found: 0 });
        drop(pool);
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_mechanism_finds_out_as_well() {
    let Some((_folder, path)) = folder() else { return };
    let pool = Options::new().create(path.to_str().unwrap(), BYTES).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(100_000)).unwrap();
    cut(&path, 0);
    assert_eq!(problem(pool.tx(|tx| tx.read_vec(object, 100_000))), Problem::Truncated { header: BYTES, found: 0 });
    assert!(pool.tx(|tx| tx.write(object, &[1; 100])).is_err());
}

/// A loss does not stay: whoever cut the file gives it its bytes again. Zeros that were seen in
/// their place do not go home all the same.
#[test]
fn zeros_in_the_place_of_what_was_lost_do_not_go_home() {
    for survives in WAYS {
        let Some((_folder, path)) = folder() else { return };
        let pool = DirectPool::create(path.to_str().unwrap(), BYTES, &options(survives)).unwrap();
        let object = written(&pool, 100_000);
        pool.close().unwrap();
        let whole = fs::read(&path).unwrap();
        for persists in [false, true] {
            let pool = open(&path, survives).unwrap();
            let now = fs::read(&path).unwrap();
            cut(&path, 0);
            // SAFETY: an object of the pool, which is open.
            assert_eq!(unsafe { pool.base().add(object.start as usize).read_volatile() }, 0, "{survives:?}");
            fs::write(&path, &now).unwrap();
            if persists {
                let done = pool.persist(std::slice::from_ref(&object));
                assert!(matches!(problem(done), Problem::Truncated { .. }));
                drop(pool);
            } else {
                assert!(matches!(problem(pool.close()), Problem::Truncated { .. }));
            }
            assert_eq!(fs::read(&path).unwrap(), now, "{survives:?}, {persists}");
        }
        let pool = open(&path, survives).unwrap();
        pool.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "{survives:?}");
    }
}

/// An object of so many bytes, all of them 7, which is the root.
fn written(pool: &DirectPool, bytes: u64) -> Range<u64> {
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(pool, bytes).unwrap().offset;
    // SAFETY: the object is the transaction's.
    unsafe { pool.base().add(object as usize).write_bytes(7, bytes as usize) };
    tx.set_root(object);
    tx.commit(pool).unwrap();
    object..object + bytes
}

/// Bytes go to the log when they are first looked at, and are gone by then: the record does not
/// count, whatever was written of it.
#[test]
fn a_record_of_what_was_lost_does_not_count() {
    for survives in WAYS {
        let Some((_folder, path)) = folder() else { return };
        let pool = DirectPool::create(path.to_str().unwrap(), 4 * BYTES, &options(survives)).unwrap();
        let object = (0..8).map(|_| written(&pool, 200_000)).max_by_key(|range| range.start).unwrap();
        drop(pool);
        let pool = open(&path, survives).unwrap();
        let mut tx = pool.begin().unwrap();
        tx.add_without_snapshot(&pool, object.clone()).unwrap();
        let left = (object.start + 100_000) / 4096 * 4096;
        let mut tail = std::fs::read(&path).unwrap().split_off(left as usize);
        cut(&path, left);
        assert!(matches!(problem(tx.commit(&pool)), Problem::Truncated { .. }), "{survives:?}");
        drop(pool);
        // The object gets bytes that it had not when it was committed. What else was cut off is
        // there again: segments of the log may be.
        tail[..(object.end - left) as usize].fill(7);
        File::options().write(true).open(&path).unwrap().write_all_at(&tail, left).unwrap();
        let pool = open(&path, survives).unwrap();
        // SAFETY: an object of the pool, which is open.
        let bytes = unsafe { std::slice::from_raw_parts(pool.base().add(object.start as usize), 200_000) };
        assert!(bytes.iter().all(|&byte| byte == 7), "{survives:?}");
    }
}

/// Where the process below finds a small medium.
const MEDIUM: &str = "NEARPM_TEST_MEDIUM";

/// Run by [`a_full_medium_aborts_the_commit_and_the_pool_goes_on`] alone, on a medium of 2 MiB.
#[test]
fn the_process_with_a_full_medium() {
    let Some(medium) = std::env::var_os(MEDIUM) else { return };
    for survives in WAYS {
        let path = Path::new(&medium).join("pool");
        cut_new(&path, 64 << 20);
        let pool = DirectPool::create(path.to_str().unwrap(), 0, &options(survives)).unwrap();
        let mut pushed = 0;
        let refused = loop {
            match push(&pool, 1000) {
                Ok(()) => pushed += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Pool { problem: Problem::NoSpace { .. }, .. }), "{refused}");
        assert!(pushed > 10, "{pushed} commits found room");
        // What there is can be read and changed.
        assert_eq!(sum(&pool).unwrap(), pushed * 499_500);
        pool.tx(|tx| {
            let root = tx.root_or_zeroed::<Root>()?;
            tx.set(root.count(), 7)
        })
        .unwrap();
        // Another thread, which has no piece of the log yet, gets one that has room there.
        let other = || pool.tx(|tx| tx.root_or_zeroed::<Root>().and_then(|root| tx.set(root.count(), 8)));
        std::thread::scope(|scope| scope.spawn(other).join().unwrap()).unwrap();
        pool.close().unwrap();
        let reading = options(survives).read_only(true);
        for with in [options(survives), reading] {
            let pool = DirectPool::open(path.to_str().unwrap(), &with).unwrap();
            assert_eq!(sum(&pool).unwrap(), pushed * 499_500);
        }
        assert!(nearpm::check::check(path.to_str().unwrap()).unwrap().is_sound());
        fs::remove_file(&path).unwrap();
        replace_on_a_full_medium(&path, survives);
        fs::remove_file(&path).unwrap();
    }
}

/// Objects that replace each other where there is room for no more: what a commit has freed serves
/// the next one, although a recovery may not know yet that it is free.
fn replace_on_a_full_medium(path: &Path, survives: Survives) {
    cut_new(path, 64 << 20);
    let pool = DirectPool::create(path.to_str().unwrap(), 0, &options(survives)).unwrap();
    let make = || pool.tx(|tx| tx.alloc_bytes(6000));
    let mut objects = VecDeque::new();
    let refused = loop {
        match make() {
            Ok(object) => objects.push_back(object),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Pool { problem: Problem::NoSpace { .. }, .. }), "{refused}");
    assert!(objects.len() > 20, "{} objects found room", objects.len());
    for round in 0..100 {
        let former = objects.pop_front().and_then(Ptr::<u64>::from_offset).unwrap();
        pool.tx(|tx| tx.free(former)).unwrap();
        objects.push_back(make().unwrap_or_else(|error| panic!("{survives:?}, round {round}: {error}")));
    }
    pool.close().unwrap();
}

/// It needs a medium of its own, and so the right to mount one in a namespace; where that is not
/// given, there is nothing to see.
#[test]
fn a_full_medium_aborts_the_commit_and_the_pool_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let apart = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).env(MEDIUM, folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).output()
    };
    const MOUNT: &str = "mount -t tmpfs -o size=2m none \"$NEARPM_TEST_MEDIUM\"";
    if !apart(MOUNT).is_ok_and(|done| done.status.success()) {
        eprintln!("no medium can be mounted here");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let ran =
        apart(&format!("{MOUNT} && exec '{}' --exact the_process_with_a_full_medium", program.display())).unwrap();
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("1 passed"), "{}: {text}", ran.status);
}

#[test]
fn in_place_all_room_is_taken_at_open() {
    let Some((_folder, path)) = folder() else { return };
    cut_new(&path, BYTES);
    let in_place = options(Survives::ProcessCrash).mode(Mode::InPlace);
    let pool = DirectPool::create(path.to_str().unwrap(), 0, &in_place).unwrap();
    assert!(path.metadata().unwrap().blocks() * 512 >= BYTES);
    drop(pool);
}

fn cut_new(path: &Path, bytes: u64) {
    File::create(path).unwrap().set_len(bytes).unwrap();
}

/// Where the process below finds a folder.
const FOREIGN: &str = "NEARPM_TEST_FOREIGN";

/// Run by [`a_signal_that_is_not_a_pools_ends_the_process_as_ever`] alone.
#[test]
fn the_process_that_loses_a_file_of_its_own() {
    let Some(folder) = std::env::var_os(FOREIGN).map(PathBuf::from) else { return };
    let _pool = DirectPool::create(folder.join("pool").to_str().unwrap(), BYTES, &options(Survives::PowerCut)).unwrap();
    let own = folder.join("own");
    fs::write(&own, vec![1; 8192]).unwrap();
    // SAFETY: nothing refers to the mapping but the load below, which is to fail.
    let map = unsafe { memmap2::Mmap::map(&File::open(&own).unwrap()) }.unwrap();
    cut(&own, 0);
    println!("{}", std::hint::black_box(&map)[5000]);
}

#[test]
fn a_signal_that_is_not_a_pools_ends_the_process_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_process_that_loses_a_file_of_its_own"]).env(FOREIGN, folder.path());
    let ended = child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(ended.signal(), Some(libc::SIGBUS));
}
