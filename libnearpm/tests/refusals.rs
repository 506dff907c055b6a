//! Bad input: each a clear error that says what, where, and what to do; no panic, no effect on
//! other data.

use std::fs;
use std::path::{Path, PathBuf};

use nearpm::direct::DirectPool;
use nearpm::memory::{Memory, TestMemory};
use nearpm::{Caching, Engine, Error, Lint, Mechanism, Mode, Options, Pool, Problem, Survives, check};
use nearpm_interface::media::SPAN_VERSION;
use proptest::prelude::*;
use tempfile::TempDir;

const BYTES: u64 = 1 << 20;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    (folder, path)
}

fn options() -> Options {
    Options::new().survives(nearpm::Survives::ProcessCrash)
}

fn create(path: &Path) -> Pool {
    let pool = options().create(path.to_str().unwrap(), BYTES).unwrap();
    pool.tx(|tx| {
        let root = tx.alloc(64)?;
        tx.write(root, &[7; 64])?;
        tx.set_root(root)
    })
    .unwrap();
    pool
}

fn open(path: &Path) -> Result<Pool, Error> {
    options().open(path.to_str().unwrap())
}

/// The problem of a refusal, whose text names the place and says more than one sentence's worth.
fn problem(result: Result<Pool, Error>, path: &Path) -> Problem {
    let error = result.expect_err("it is refused");
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text} does not say where");
    match error {
        Error::Pool { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn a_missing_pool_and_a_second_creation_are_refused() {
    let (_folder, path) = folder();
    assert_eq!(problem(open(&path), &path), Problem::NotFound);
    drop(create(&path));
    let before = fs::read(&path).unwrap();
    let again = options().create(path.to_str().unwrap(), BYTES);
    assert_eq!(problem(again, &path), Problem::Exists);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    let text = "this is no pool at all, but it is longer than the head of one would be".repeat(10);
    fs::write(&path, &text).unwrap();
    assert!(matches!(problem(open(&path), &path), Problem::Foreign { .. }));
    assert!(matches!(
        nearpm::remove(path.to_str().unwrap()),
        Err(Error::Pool { problem: Problem::Foreign { .. }, .. })
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::write(&path, [0; 4096]).unwrap();
    assert_eq!(problem(open(&path), &path), Problem::Unfinished);
    fs::write(&path, []).unwrap();
    assert_eq!(problem(open(&path), &path), Problem::Unfinished);
    fs::write(&path, "short").unwrap();
    let short = Problem::Foreign { found: u64::from_le_bytes(*b"short\0\0\0") };
    assert_eq!(problem(open(&path), &path), short);
    assert!(short.to_string().contains("\"short\""), "{short}");
    assert!(nearpm::remove(path.to_str().unwrap()).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "short");
    for start in ["NearPool and 5 bytes", "Near"] {
        fs::write(&path, start).unwrap();
        assert!(matches!(problem(open(&path), &path), Problem::Truncated { header: 64, .. }), "{start}");
    }
    nearpm::remove(path.to_str().unwrap()).unwrap();
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    assert!(open(&path).is_err());
}

#[test]
fn a_truncated_pool_is_refused() {
    let (_folder, path) = folder();
    drop(create(&path));
    let file = fs::File::options().write(true).open(&path).unwrap();
    for bytes in [BYTES - 1, BYTES / 2, 4096, 64] {
        file.set_len(bytes).unwrap();
        assert_eq!(problem(open(&path), &path), Problem::Truncated { header: BYTES, found: bytes });
    }
}

#[test]
fn a_newer_pool_is_refused_even_if_it_is_sealed_in_another_way() {
    let (_folder, path) = folder();
    drop(create(&path));
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 9;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(problem(open(&path), &path), Problem::Newer { found: 9, supported: SPAN_VERSION });
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn every_flipped_bit_of_the_head_is_noticed() {
    let (_folder, path) = folder();
    drop(create(&path));
    let good = fs::read(&path).unwrap();
    for bit in 0..512 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let found = problem(open(&path), &path);
        assert!(
            matches!(found, Problem::Corrupt { .. } | Problem::Foreign { .. } | Problem::Newer { .. }),
            "bit {bit}: {found}"
        );
        assert_eq!(fs::read(&path).unwrap(), bytes, "a refusal changes nothing");
    }
}

#[test]
fn a_pool_is_open_once() {
    let (_folder, path) = folder();
    let pool = create(&path);
    assert_eq!(problem(open(&path), &path), Problem::InUse { process: Some(std::process::id()) });
    assert!(matches!(nearpm::remove(path.to_str().unwrap()), Err(Error::Pool { problem: Problem::InUse { .. }, .. })));
    pool.close().unwrap();
    open(&path).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_nobody_may_write_is_refused() {
    // Permissions do not stop root; the kernel's own read-only files do.
    let path = Path::new("/sys/devices/system/cpu/online");
    let before = fs::read(path).expect("Linux has this file");
    assert_eq!(problem(open(path), path), Problem::ReadOnly);
    assert!(Problem::ReadOnly.to_string().contains("change the permission"));
    assert_eq!(fs::read(path).unwrap(), before);
}

/// Wants a creation to be refused for want of space, with the size and the remedy, and nothing left
/// behind.
fn no_space(folder: &Path, bytes: u64) {
    let before = fs::read_dir(folder).unwrap().count();
    let path = folder.join("large");
    let error = options().create(path.to_str().unwrap(), bytes).expect_err("there is no space for it");
    let text = error.to_string();
    assert_eq!(problem(Err(error), &path), Problem::NoSpace { needed: bytes });
    assert!(text.contains(&format!("{bytes} bytes")) && text.contains("free space there"), "{text}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), before);
}

#[test]
fn no_space_for_a_pool_is_said_with_the_size_and_leaves_the_folder_as_it_was() {
    let (folder, path) = folder();
    drop(create(&path));
    let before = fs::read(&path).unwrap();
    for bytes in [1 << 50, 1 << 55, (1 << 63) - 4096] {
        no_space(folder.path(), bytes);
    }
    assert!(fs::read(&path).unwrap() == before);
}

/// Tells the run of a test in a second process that its files may not grow.
#[cfg(unix)]
const LIMITED: &str = "NEARPM_TEST_LIMITED_FILES";

/// A limit on the size of files stops root too; it holds for a whole process, so the test runs
/// itself again in one.
#[test]
#[cfg(unix)]
fn a_pool_above_the_limit_of_files_is_refused_and_leaves_nothing_behind() {
    if let Ok(folder) = std::env::var(LIMITED) {
        return no_space(Path::new(&folder), 8 << 20);
    }
    let (folder, path) = folder();
    drop(create(&path));
    // At most 4 MiB, in units of 512 or 1024 bytes by shell; without the trap the limit would kill
    // the process.
    let limited = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"";
    let second = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_pool_above_the_limit_of_files_is_refused_and_leaves_nothing_behind"])
        .env(LIMITED, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stdout);
    assert!(second.status.success() && said.contains("1 passed"), "{said}");
    open(&path).unwrap();
}

#[test]
fn impossible_options_are_refused() {
    let (_folder, path) = folder();
    let text = path.to_str().unwrap();
    for (options, bytes) in [
        (options().lanes(0), BYTES),
        (options().lanes(65), BYTES),
        (options().ring_bytes(12345), BYTES),
        (options().ring_bytes(4096), BYTES),
        (options().ring_bytes(1 << 27), BYTES),
        (options().id(0), BYTES),
        (options().engine(Engine::Card), BYTES),
        (options().spare_pages(1 << 60), BYTES),
    ] {
        assert!(matches!(problem(options.create(text, bytes), &path), Problem::BadOption { .. }), "{options:?}");
        assert!(!path.exists());
    }
    for (options, bytes) in
        [(options(), 1), (options(), 1000), (options().spare_pages(1 << 30), BYTES), (options().lanes(64), 500_000)]
    {
        let found = problem(options.create(text, bytes), &path);
        let Problem::TooSmall { minimum, .. } = found else { panic!("{found}") };
        assert!(minimum > bytes, "{minimum}");
        assert!(!path.exists());
    }
    // 0 bytes are all of a file that exists.
    assert_eq!(problem(options().create(text, 0), &path), Problem::NotFound);
    // The stated minimum is one.
    let Problem::TooSmall { minimum, .. } = problem(options().create(text, 1), &path) else { panic!() };
    drop(options().create(text, minimum).unwrap());
    nearpm::remove(text).unwrap();
    drop(options().spare_pages(0).create(text, BYTES).unwrap());
    let shadow = options().mechanism(Mechanism::Shadow).open(text);
    assert!(matches!(problem(shadow, &path), Problem::BadOption { .. }));
}

#[test]
fn damaged_metadata_is_refused_and_not_believed() {
    let memory = TestMemory::new(BYTES as usize);
    let options = Options::new().lanes(1).ring_bytes(16384).id(3);
    let pool = options.create_in(Box::new(memory.clone())).unwrap();
    let object = pool.tx(|tx| tx.alloc(100)).unwrap();
    drop(pool);
    let image = memory.current();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut image = image.clone();
        change(&mut image);
        let result = options.open_in(Box::new(TestMemory::from_image(image)));
        match result {
            Err(Error::Pool { problem: Problem::Corrupt { what, .. }, .. }) => what,
            other => panic!("{other:?}"),
        }
    };
    let ring = 4096;
    let table = ring + 16384;
    let heap = (object / 4096 * 4096) as usize;
    assert!(refused(&|image| image[ring] ^= 1).contains("word of a log ring"));
    assert!(refused(&|image| image[ring + 64] ^= 1).contains("word of a log ring"));
    assert!(refused(&|image| image[table] = 1).contains("page table"));
    let home_of_one = nearpm_interface_seal(1);
    assert!(refused(&|image| image[table..table + 8].copy_from_slice(&home_of_one)).contains("twice"));
    // The first chunk is on the first page behind the tables; the words stand a line behind the
    // root.
    let words = (0..heap).rev().step_by(64).map(|at| at / 64 * 64).find(|&at| image[at + 64 + 7] == 0x52).unwrap() + 64;
    assert!(refused(&|image| image[words + 7] = 9).contains("state of a chunk"));
    assert!(refused(&|image| image[words] = 0x90).contains("no class"));
    assert!(
        refused(&|image| image[words..words + 8].copy_from_slice(&(0x4c << 56 | 0xffff_u64).to_le_bytes()))
            .contains("leaves the heap")
    );
}

/// The sealed word of an identifier (see the interface crate).
fn nearpm_interface_seal(id: u64) -> [u8; 8] {
    let check = crc32c::crc32c(&id.to_le_bytes()[..6]) & 0xffff;
    (id | u64::from(check) << 48).to_le_bytes()
}

#[test]
fn ranges_and_objects_that_make_no_sense_are_refused_without_effect() {
    for mechanism in Mechanism::ALL {
        let memory = TestMemory::new(BYTES as usize);
        let pool = Options::new().mechanism(mechanism).create_in(Box::new(memory.clone())).unwrap();
        let object = pool.tx(|tx| tx.alloc_zeroed(256)).unwrap();
        pool.persist().unwrap();
        let before = memory.current();
        let end = pool.bytes();
        pool.tx(|tx| {
            for (offset, length) in [
                (0, 8),
                (64, 1),
                (4096, 64),
                (object - object % 4096 - 1, 2),
                (end - 4, 8),
                (end, 1),
                (u64::MAX, 1),
                (u64::MAX - 3, 8),
            ] {
                let mut data = vec![0; length];
                assert!(matches!(tx.read(offset, &mut data), Err(Error::OutOfRange { .. })), "{offset:#x}");
                assert!(matches!(tx.write(offset, &data), Err(Error::OutOfRange { .. })), "{offset:#x}");
            }
            assert!(matches!(tx.read_vec(object, usize::MAX), Err(Error::OutOfRange { .. })));
            assert!(matches!(tx.set_root(12), Err(Error::OutOfRange { .. })));
            assert!(matches!(tx.alloc(0), Err(Error::ZeroSize { .. })));
            assert!(matches!(tx.alloc(u64::MAX), Err(Error::Full { .. })));
            assert!(matches!(tx.alloc(end), Err(Error::Full { .. })));
            for bad in [0, 1, object + 1, object + 16, object - 16, end, u64::MAX] {
                assert!(matches!(tx.free(bad), Err(Error::NotAllocated { .. })), "{bad:#x}");
            }
            tx.write(object, &[])?;
            Ok(())
        })
        .unwrap();
        assert!(memory.current() == before, "{mechanism:?}");
        pool.tx(|tx| tx.free(object)).unwrap();
        assert!(matches!(pool.tx(|tx| tx.free(object)), Err(Error::NotAllocated { .. })));
        let object = pool.tx(|tx| tx.alloc(64)).unwrap();
        let twice = pool.tx(|tx| {
            tx.free(object)?;
            tx.free(object)
        });
        assert!(matches!(twice, Err(Error::NotAllocated { .. })));
        assert_eq!(pool.objects().unwrap().len(), 1, "the abort brought it back");
        pool.check().unwrap();
    }
}

#[test]
fn the_primitives_refuse_what_makes_no_sense() {
    let pool = Options::new().lanes(3).create_in(Box::new(TestMemory::new(BYTES as usize))).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(8192)).unwrap();
    assert!(matches!(pool.undolog_create(2, object, 8), Err(Error::NoLane { thread: 2, lanes: 2 })));
    assert!(matches!(pool.undolog_create(0, object, 0), Err(Error::ZeroSize { .. })));
    assert!(matches!(pool.undolog_create(0, 0, 8), Err(Error::OutOfRange { .. })));
    assert!(matches!(pool.undolog_create(0, u64::MAX, 8), Err(Error::OutOfRange { .. })));
    assert!(matches!(pool.ckpoint_create(0, pool.bytes() - 1, 2), Err(Error::OutOfRange { .. })));
    assert!(matches!(pool.shadowcpy(0, object + 1, 4096), Err(Error::Misaligned { .. })));
    assert!(matches!(pool.shadowcpy(0, object, 100), Err(Error::Misaligned { .. })));
    assert!(matches!(pool.applylog(0, 4096, 8), Err(Error::NotALog { .. })));
    let entry = pool.redolog_create(0, object, &[1; 32]).unwrap();
    assert!(matches!(pool.applylog(0, entry, 31), Err(Error::NotALog { .. })));
    assert!(matches!(pool.undolog_create(0, object, 8), Err(Error::LogInUse { .. })));
    pool.applylog(0, entry, 32).unwrap();
    assert!(matches!(pool.redolog_create(0, object, &[1]), Err(Error::LogInUse { .. })));
    assert!(matches!(pool.abort_log(0), Err(Error::LogInUse { .. })));
    pool.commit_log(0).unwrap();
    pool.undolog_create(1, object, 4096).unwrap();
    let full = (0..1000).find_map(|_| pool.undolog_create(1, object, 8192).err()).expect("the log is finite");
    assert!(matches!(full, Error::TooLarge { .. }), "{full}");
    pool.abort_log(1).unwrap();
    pool.undolog_create(1, object, 8192).unwrap();
    pool.commit_log(1).unwrap();
    let shadow =
        Options::new().mechanism(Mechanism::Shadow).create_in(Box::new(TestMemory::new(BYTES as usize))).unwrap();
    assert!(shadow.undolog_create(0, object, 8).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever is damaged, opening gives a pool or an error, and what it opens can be used.
    #[test]
    fn damage_anywhere_never_panics(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), near_start: bool,
        mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
    ) {
        let memory = TestMemory::new(512 * 1024);
        let options = Options::new().mechanism(mechanism).lanes(1).ring_bytes(16384).id(3);
        let pool = options.create_in(Box::new(memory.clone())).unwrap();
        for fill in 0..10u8 {
            let _ = pool.tx(|tx| {
                let object = tx.alloc(fill as u64 * 100 + 1)?;
                tx.write(object, &[fill])?;
                if fill % 3 == 0 { Err(Error::abort("no")) } else { tx.set_root(object) }
            });
        }
        let mut image = memory.surviving(1);
        // The metadata is at the start: most damage should meet it.
        let reach = if near_start { 64 * 1024 } else { image.len() };
        for (at, value) in damage {
            image[64 + at.index(reach - 64)] = value;
        }
        if let Ok(pool) = options.open_in(Box::new(TestMemory::from_image(image))) {
            let root = pool.root().unwrap();
            let _ = pool.tx(|tx| {
                tx.read_u64(root).ok();
                let object = tx.alloc(1000)?;
                tx.write(object, &[1; 1000])?;
                tx.free(object)
            });
            let _ = pool.objects();
        }
    }

    #[test]
    fn random_bytes_are_not_a_pool(bytes in prop::collection::vec(any::<u8>(), 64 * 20)) {
        let memory = TestMemory::from_image(bytes);
        prop_assert!(memory.bytes() > 0);
        prop_assert!(Options::new().open_in(Box::new(memory)).is_err());
    }
}

/// Pairs of options, and of options and a file, that cannot be had: nothing is left of a creation,
/// and an opening leaves the file as it is.
#[test]
fn what_cannot_be_had_together_is_refused_before_anything_is_written() {
    let direct = [
        (options().mode(Mode::InPlace).mechanism(Mechanism::Undo), "use Mode::WorkingCopy"),
        (options().mode(Mode::InPlace).mechanism(Mechanism::Checkpoint), "use Mode::WorkingCopy"),
        (options().mode(Mode::InPlace).mechanism(Mechanism::Shadow), "use Mode::WorkingCopy"),
        (options().mechanism(Mechanism::Redo).engine(Engine::Card), "card:NAME/POOL"),
        (options().mode(Mode::Offsets), "Options::open for Mode::Offsets"),
        (options().caching(Caching::Uncached), "use Caching::WriteBack"),
        (options().mode(Mode::InPlace).survives(Survives::PowerCut), "use Mode::WorkingCopy"),
    ];
    let by_offsets = [
        (options().mode(Mode::InPlace), "use DirectPool"),
        (options().mode(Mode::WorkingCopy), "use DirectPool"),
        (options().engine(Engine::Card), "card:NAME/POOL"),
        (options().lint(Lint::Print), "use DirectPool"),
    ];
    let refused = |result: Result<(), Error>, remedy: &str| match result {
        Err(Error::Pool { problem: Problem::BadOption { what }, .. }) => assert!(what.contains(remedy), "{what}"),
        other => panic!("{remedy}: {other:?}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let at = path.to_str().unwrap();
    for (with, remedy) in &direct {
        refused(DirectPool::create(at, BYTES, with).map(drop), remedy);
    }
    for (with, remedy) in &by_offsets {
        refused(with.create(at, BYTES).map(drop), remedy);
    }
    let without_spare_pages = options().mechanism(Mechanism::Shadow).spare_pages(0);
    refused(DirectPool::create(at, BYTES, &without_spare_pages).map(drop), "Options::spare_pages");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    create(&path).close().unwrap();
    let before = fs::read(&path).unwrap();
    for (with, remedy) in &direct {
        refused(DirectPool::open(at, with).map(drop), remedy);
    }
    for (with, remedy) in &by_offsets {
        refused(with.open(at).map(drop), remedy);
    }
    assert!(fs::read(&path).unwrap() == before);
}

/// Pools of both kinds are made and opened in one way, so that what one option does for one it does
/// for the other.
#[test]
fn options_do_the_same_for_both_kinds_of_pool() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let with = options().lanes(3).ring_bytes(32 << 10).spare_pages(5).permissions(0o640).id(77);
    DirectPool::create(&path("direct"), BYTES, &with).unwrap().close().unwrap();
    with.create(&path("offsets"), BYTES).unwrap().close().unwrap();
    for name in ["direct", "offsets"] {
        let mode = fs::metadata(path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
        let info = check::Image::open(&path(name)).unwrap().info().unwrap();
        assert_eq!((info.id, info.lanes, info.ring_bytes, info.spare_pages), (77, 3, 32 << 10, 5), "{name}");
        // Each kind opens what the other has made.
        options().open(&path(name)).unwrap().check().unwrap();
        assert_eq!(DirectPool::open(&path(name), &options()).unwrap().id(), 77);
    }
    // A file that is there already and is blank.
    for name in ["direct too", "offsets too"] {
        fs::File::create(path(name)).unwrap().set_len(BYTES).unwrap();
    }
    DirectPool::create(&path("direct too"), 0, &options()).unwrap().close().unwrap();
    assert_eq!(options().create(&path("offsets too"), 0).unwrap().bytes(), BYTES);
    assert!(options().create(&path("offsets too"), 0).is_err(), "it is a pool now");
}
