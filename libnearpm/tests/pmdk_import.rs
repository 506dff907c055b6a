//! Files of PMDK that say what cannot be are refused, and at once. What PMDK itself wrote is
//! imported in `libnearpm/pmemobj/tests/import.rs`.

use std::path::PathBuf;
use std::process::Command;

use nearpm::check::{Contents, Image};
use nearpm::pmdk;
use nearpm_subjects::pmdk_file::{self, Shape};
use tempfile::TempDir;

fn made(shape: &Shape) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("original");
    pmdk_file::write(&path, shape);
    (folder, path)
}

#[track_caller]
fn refused(shape: &Shape, why: &str) {
    let (folder, path) = made(shape);
    let examined = pmdk::examine(&path).unwrap_err().to_string();
    assert!(examined.contains(why), "{examined}");
    let to = folder.path().join("new");
    let imported = pmdk::import(&path, to.to_str().unwrap(), None, &nearpm::Options::new());
    assert_eq!(imported.unwrap_err().to_string(), examined);
    assert!(!to.exists());
}

#[test]
fn a_file_that_says_nothing_wrong_is_imported() {
    let (folder, path) = made(&Shape::default());
    let to = folder.path().join("new");
    let imported = pmdk::import(&path, to.to_str().unwrap(), None, &nearpm::Options::new()).unwrap();
    assert_eq!((imported.objects, imported.object_bytes), (1, pmdk_file::OBJECT_BYTES));
    assert_eq!((imported.identifiers, imported.dangling), (1, 0));
    let contents = Image::open(to.to_str().unwrap()).unwrap().info().unwrap().contents;
    let Some(Contents::Pmdk { layout, root, root_bytes, .. }) = contents else { panic!("{contents:?}") };
    assert_eq!((layout.as_str(), root_bytes), (pmdk_file::LAYOUT, 64));
    let bytes = Image::open(to.to_str().unwrap()).unwrap().read(root, 32).unwrap();
    assert_eq!(bytes[8..16], root.to_le_bytes(), "the identifier leads to the object's new place");
    assert!(bytes[16..].starts_with(pmdk_file::TEXT));
}

#[test]
fn more_lanes_than_a_pool_has_are_not_looked_through() {
    let lanes = 1 << 30;
    let heap = 8192 + lanes * 3072;
    refused(&Shape { lanes, heap, ..Shape::default() }, "the lanes lie outside of their place");
    refused(&Shape { lanes: u64::MAX, ..Shape::default() }, "the lanes lie outside of their place");
}

#[test]
fn a_root_has_the_bytes_that_the_head_says() {
    let root_bytes = pmdk_file::OBJECT_BYTES;
    let (_folder, path) = made(&Shape { root_bytes, ..Shape::default() });
    assert_eq!(pmdk::examine(&path).unwrap().objects, 1);
    refused(&Shape { root_bytes: root_bytes + 1, ..Shape::default() }, "the root has fewer bytes than the pool says");
    refused(&Shape { root_bytes: u64::MAX, ..Shape::default() }, "the root has fewer bytes than the pool says");
}

/// The tables of the zone in front were lost, with all that lies there.
#[test]
fn a_zone_that_was_lost_is_told() {
    let heap_bytes = 2 * pmdk_file::ZONE_BYTES;
    refused(&Shape { zone: 1, heap_bytes, ..Shape::default() }, "a zone in front of this one has no magic number");
}

#[test]
fn a_fifo_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(pmdk::examine(&fifo).unwrap_err().to_string().contains("is no file"));
}
