//! A pool comes into being whole or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nearpm::direct::DirectPool;
use nearpm::{Error, Options, Problem, Survives};

const BYTES: u64 = 1 << 20;

fn options() -> Options {
    Options::new().survives(Survives::ProcessCrash)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    (folder, path)
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn problem(result: Result<DirectPool, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("not refused as a pool: {other:?}"),
    }
}

fn put_root(pool: &DirectPool) -> Result<(), Error> {
    let mut tx = pool.begin()?;
    let object = tx.alloc(pool, 100)?.offset;
    tx.set_root(object);
    tx.commit(pool)
}

fn create_with(
    path: &Path,
    bytes: u64,
    fill: impl FnOnce(&DirectPool) -> Result<(), Error>,
) -> Result<DirectPool, Error> {
    DirectPool::create_with(path.to_str().unwrap(), bytes, &options(), fill)
}

/// Where the process below dies while it creates a pool, and of how many bytes.
const DIES_AT: &str = "NEARPM_TEST_DIES_AT";

/// Run by [`dies_while_it_creates`] alone.
#[test]
fn the_process_that_dies() {
    let Ok(text) = std::env::var(DIES_AT) else { return };
    let (bytes, path) = text.split_once(' ').unwrap();
    let never = create_with(Path::new(path), bytes.parse().unwrap(), |pool| {
        put_root(pool).unwrap();
        std::process::abort();
    });
    panic!("it goes on: {never:?}");
}

fn dies_while_it_creates(path: &Path, bytes: u64) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_process_that_dies"]).env(DIES_AT, format!("{bytes} {}", path.display()));
    let ended = child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(ended.code(), None, "it was to die by a signal");
}

#[test]
fn a_creator_that_dies_leaves_nothing_in_the_way() {
    let (folder, path) = folder();
    dies_while_it_creates(&path, BYTES);
    assert!(!path.exists());
    let pool = DirectPool::open_or_create(path.to_str().unwrap(), BYTES, &options()).unwrap();
    assert_eq!((pool.root(), files(folder.path())), (0, 1));
}

#[test]
fn a_file_that_was_to_be_filled_can_be_after_its_creator_died() {
    let (_folder, path) = folder();
    fs::write(&path, vec![0; BYTES as usize]).unwrap();
    dies_while_it_creates(&path, 0);
    assert_eq!(problem(DirectPool::open(path.to_str().unwrap(), &options())), Problem::Unfinished);
    let pool = create_with(&path, 0, |_| Ok(())).unwrap();
    assert_eq!((pool.root(), pool.next_object(0)), (0, None));
}

#[test]
fn a_pool_has_its_name_when_it_is_filled() {
    let (folder, path) = folder();
    let pool = create_with(&path, BYTES, |pool| {
        assert!(!path.exists());
        put_root(pool)
    });
    pool.unwrap().close().unwrap();
    let pool = DirectPool::open(path.to_str().unwrap(), &options()).unwrap();
    assert_eq!((pool.usable_bytes(pool.root()).unwrap(), files(folder.path())), (112, 1));
}

#[test]
fn what_fails_while_a_pool_is_filled_leaves_nothing() {
    let (folder, path) = folder();
    assert!(matches!(create_with(&path, BYTES, |_| Err(Error::abort("no"))), Err(Error::Aborted(_))));
    assert_eq!(files(folder.path()), 0);
    let panics = std::panic::AssertUnwindSafe(|| create_with(&path, BYTES, |_| panic!("no")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn of_two_creators_one_wins_and_the_others_open_its_pool() {
    let (folder, path) = folder();
    let late = create_with(&path, BYTES, |_| create_with(&path, BYTES, put_root).map(drop));
    assert_eq!(problem(late), Problem::Exists);
    let open = || DirectPool::open_or_create(path.to_str().unwrap(), BYTES, &options());
    assert_ne!(open().unwrap().root(), 0);
    fs::remove_file(&path).unwrap();
    std::thread::scope(|scope| {
        for one in (0..8).map(|_| scope.spawn(open)).collect::<Vec<_>>() {
            match one.join().unwrap() {
                Ok(_) | Err(Error::Pool { problem: Problem::InUse { .. }, .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    drop(open().unwrap());
    assert_eq!(files(folder.path()), 1);
}

#[test]
fn a_link_that_leads_nowhere_is_in_the_way_and_stays() {
    let (folder, path) = folder();
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &path).unwrap();
    let open = DirectPool::open_or_create(path.to_str().unwrap(), BYTES, &options());
    assert_eq!(problem(open), Problem::Exists);
    assert_eq!(files(folder.path()), 1);
}

#[test]
fn the_file_has_the_permissions_that_were_asked_for() {
    let (_folder, path) = folder();
    for bytes in [BYTES, 0] {
        let with = options().permissions(0o604);
        drop(DirectPool::create(path.to_str().unwrap(), bytes, &with).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o604);
        fs::write(&path, vec![0; BYTES as usize]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
}

#[test]
fn a_pool_with_a_mechanism_is_created_whole_as_well() {
    let (folder, path) = folder();
    let create = |bytes| Options::new().survives(Survives::ProcessCrash).create(path.to_str().unwrap(), bytes);
    assert!(create(4096).is_err());
    assert_eq!(files(folder.path()), 0);
    drop(create(BYTES).unwrap());
    assert!(matches!(create(BYTES), Err(Error::Pool { problem: Problem::Exists, .. })));
    assert_eq!(files(folder.path()), 1);
}
