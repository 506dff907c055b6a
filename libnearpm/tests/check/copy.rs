//! Copies: sound, whole or not there, and of another size where that can be.

use std::fs;
use std::path::PathBuf;

use nearpm::check::{self, Image, Object};
use nearpm::{Error, Mechanism, Options, Problem};

use crate::pools::{BYTES, closed, killed, undo};

fn folder() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (from, to) = (path("from"), path("to"));
    (folder, from, to)
}

fn contents(location: &str) -> (u64, Vec<(Object, Vec<u8>)>) {
    let mut image = Image::open(location).unwrap();
    let objects = image.objects().unwrap();
    let read = |object: Object| (object, image.read(object.offset, object.bytes).unwrap());
    let objects = objects.into_iter().map(read).collect();
    (Image::open(location).unwrap().info().unwrap().root.unwrap(), objects)
}

fn problem(result: Result<check::Copied, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_has_the_same_objects_at_the_same_offsets() {
    for bytes in [killed(), closed(), undo()] {
        let (_folder, from, to) = folder();
        fs::write(&from, &bytes).unwrap();
        let copied = check::copy(&from, &to, None).unwrap();
        assert_eq!(copied.bytes, BYTES as u64);
        assert_eq!(contents(&from), contents(&to));
        assert_eq!(copied.objects, contents(&to).1.len() as u64);
        assert_eq!(fs::read(&from).unwrap(), bytes, "the pool itself is not changed");
        let info = Image::open(&to).unwrap().info().unwrap();
        assert!(info.closed && info.log.rings_used == 0 && info.id == 3, "{info:?}");
        assert_eq!(problem(check::copy(&from, &to, None)), Problem::Exists);
        Options::new().open(&to).unwrap().check().unwrap();
    }
}

#[test]
fn pages_that_were_moved_come_home() {
    let (_folder, from, to) = folder();
    let options = Options::new().mechanism(Mechanism::Shadow).lanes(1).ring_bytes(16384);
    let pool = options.create(&from, BYTES as u64).unwrap();
    for fill in 0..20 {
        let bytes = [fill; 3000];
        pool.tx(|tx| {
            let object = tx.alloc(3000)?;
            tx.write(object, &bytes)?;
            tx.set_root(object)
        })
        .unwrap();
        pool.cut().unwrap();
    }
    pool.close().unwrap();
    check::copy(&from, &to, None).unwrap();
    assert_eq!(contents(&from), contents(&to));
    nearpm::direct::DirectPool::open(&to, &crate::pools::direct_options()).expect("its pages are at home");
}

/// Log rings that become smaller make room for the tables of a larger heap.
#[test]
fn a_pool_grows_and_shrinks_as_far_as_objects_can_stay() {
    let (_folder, from, to) = folder();
    let (wide, narrow) = (format!("{to}-wide"), format!("{to}-narrow"));
    let options = Options::new().lanes(2).ring_bytes(1 << 20).spare_pages(0);
    let pool = options.create(&from, 16 << 20).unwrap();
    pool.tx(|tx| tx.alloc_zeroed(100_000).and_then(|object| tx.set_root(object))).unwrap();
    pool.close().unwrap();
    check::copy(&from, &wide, Some(64 << 20)).unwrap();
    assert_eq!(contents(&from), contents(&wide));
    let free = |path: &str| Image::open(path).unwrap().info().unwrap().free_bytes.unwrap();
    assert!(free(&wide) > free(&from) + (45 << 20), "{} and {}", free(&wide), free(&from));
    let pool = Options::new().open(&wide).unwrap();
    pool.tx(|tx| tx.alloc(50 << 20)).unwrap();
    pool.close().unwrap();
    // Back again, and smaller: not with an object in the part that would be cut off.
    assert!(matches!(problem(check::copy(&wide, &narrow, Some(16 << 20))), Problem::TooSmall { .. }));
    assert!(matches!(problem(check::copy(&from, &narrow, Some(1 << 16))), Problem::TooSmall { .. }));
    assert!(!PathBuf::from(&narrow).exists());
    check::copy(&from, &narrow, Some(15 << 20)).unwrap();
    assert_eq!(contents(&from), contents(&narrow));
}

/// A pool that a mechanism has made is copied to any size: one without objects as a new one, one
/// with objects as one that grows. Programs go on with the copy by each mechanism and by pointer.
#[test]
fn a_pool_by_offsets_is_copied_to_any_size() {
    for objects in [0, 1, 100] {
        let (_folder, from, to) = folder();
        let pool = Options::new().id(77).create(&from, 4 << 20).unwrap();
        for number in 0..objects {
            pool.tx(|tx| {
                let object = tx.alloc(2000 + 100 * number)?;
                tx.write(object, &vec![number as u8; 2000])?;
                tx.set_root(object)
            })
            .unwrap();
        }
        pool.close().unwrap();
        let copied = check::copy(&from, &to, Some(300 << 20)).unwrap();
        assert!(copied.bytes > 299 << 20 && copied.bytes <= 300 << 20, "{}", copied.bytes);
        assert_eq!(copied.objects, objects);
        assert_eq!(contents(&from), contents(&to));
        let info = Image::open(&to).unwrap().info().unwrap();
        assert_eq!(info.id, 77);
        assert!(info.free_bytes.unwrap() > 200 << 20, "{:?}", info.free_bytes);
        for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint] {
            let pool = Options::new().mechanism(mechanism).open(&to).unwrap();
            let object = pool.tx(|tx| tx.alloc(50 << 20)).unwrap();
            pool.tx(|tx| tx.write(object, &[9; 100])).unwrap();
            pool.check().unwrap();
            pool.close().unwrap();
            let pool = Options::new().mechanism(mechanism).open(&to).unwrap();
            assert_eq!(pool.tx(|tx| tx.read_vec(object, 100)).unwrap(), [9; 100]);
            pool.tx(|tx| tx.free(object)).unwrap();
            pool.close().unwrap();
        }
        let shadow = Options::new().mechanism(Mechanism::Shadow).open(&to);
        match (objects, shadow) {
            (0, shadow) => shadow.unwrap().close().unwrap(),
            (_, Err(Error::Pool { problem: Problem::BadOption { what }, .. })) => {
                assert!(what.contains("without spare pages"), "{what}");
            }
            (_, shadow) => panic!("{shadow:?}"),
        }
        let pool = nearpm::direct::DirectPool::open(&to, &crate::pools::direct_options()).unwrap();
        pool.close().unwrap();
        assert!(check::check(&to).unwrap().findings.is_empty());
        // And from there on as any pool that grows.
        if objects > 0 {
            let further = format!("{to}-further");
            check::copy(&to, &further, Some(400 << 20)).unwrap();
            assert_eq!(contents(&from), contents(&further));
            check::resize(&to, 350 << 20).unwrap();
            assert_eq!(contents(&from), contents(&to));
        }
    }
}

#[test]
fn nothing_is_left_behind_by_a_copy_that_fails() {
    let (folder, from, to) = folder();
    let mut bytes = closed();
    bytes[20] ^= 1;
    fs::write(&from, &bytes).unwrap();
    assert!(matches!(problem(check::copy(&from, &to, None)), Problem::Corrupt { .. }));
    fs::write(&from, closed()).unwrap();
    assert!(check::copy(&from, &format!("{to}/not/there"), None).is_err());
    assert!(matches!(problem(check::copy(&from, &to, Some(1 << 46))), Problem::NoSpace { .. }));
    assert!(matches!(problem(check::copy(&from, "card:none/pool", None)), Problem::UnknownCard { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the pool itself");
}
