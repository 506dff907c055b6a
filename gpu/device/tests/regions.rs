//! Regions: what is in them, and what is refused.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm_gpu::{Access, Buffer, Device, Durability, Error, Interpreted, LinkState, Medium, ObjectKind, PmRegion};
use nearpm_interface::geometry::LINE;
use nearpm_interface::region::{REGION_DIRECTORY, RegionHead};
use nearpm_interface::seal;

const BYTES: u64 = 1 << 18;

fn device() -> Rc<dyn Device> {
    Rc::new(Interpreted::new(16 << 20))
}

fn create(path: &Path) -> PmRegion {
    PmRegion::map(device(), path, BYTES, Access::Create).unwrap()
}

fn open(path: &Path) -> Result<PmRegion, Error> {
    PmRegion::map(device(), path, 0, Access::Open)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region");
    (folder, path)
}

fn change(path: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

fn head(path: &Path) -> RegionHead {
    RegionHead::from_bytes(std::fs::read(path).unwrap().first_chunk::<LINE>().unwrap())
}

fn put_head(path: &Path, head: RegionHead) {
    let mut line = head.to_bytes();
    seal::seal(&[], &mut line);
    change(path, 0, &line);
}

#[test]
fn objects_are_there_again() {
    let (_folder, path) = folder();
    let region = create(&path);
    let first = region.add("first", ObjectKind::Data, 5000, |object| region.write(object.offset, b"pear")).unwrap();
    let second = region.add("second", ObjectKind::Data, 100, |_| Ok(())).unwrap();
    assert_eq!(second.offset % 4096, 0);
    assert!(second.offset >= first.offset + first.bytes);
    region.close().unwrap();
    let region = open(&path).unwrap();
    assert_eq!(region.objects(), [first.clone(), second]);
    assert_eq!(region.find("first", ObjectKind::Data).unwrap(), first);
    assert_eq!(region.read_vec(first.offset, 5).unwrap(), b"pear\0");
    let says = region.find("third", ObjectKind::Data).unwrap_err().to_string();
    assert!(says.contains("first, second"), "{says}");
    let says = region.find("first", ObjectKind::Batch).unwrap_err().to_string();
    assert!(says.contains("batch") && says.contains("data"), "{says}");
}

#[test]
fn names_sizes_and_room_are_checked() {
    let (_folder, path) = folder();
    let region = create(&path);
    let add = |name: &str, bytes| region.add(name, ObjectKind::Data, bytes, |_| Ok(())).unwrap_err();
    assert!(matches!(add("", 1), Error::Invalid(_)));
    assert!(matches!(add(&"x".repeat(33), 1), Error::Invalid(_)));
    assert!(matches!(add("a", BYTES), Error::NoRoom { .. }));
    assert!(matches!(add("a", u64::MAX), Error::NoRoom { .. }));
    assert!(matches!(add("a", 0), Error::NoRoom { .. }));
    region.add("a", ObjectKind::Data, 1, |_| Ok(())).unwrap();
    assert!(matches!(add("a", 1), Error::Invalid(_)));
    assert!(matches!(region.write(BYTES - 1, &[0; 2]), Err(Error::Invalid(_))));
    assert!(matches!(region.read(u64::MAX, &mut [0; 2]), Err(Error::Invalid(_))));
    // An object whose contents could not be made is not there.
    let failed = region.add("b", ObjectKind::Data, 1, |_| Err(Error::Invalid("no contents".to_owned())));
    assert!(failed.is_err() && region.find("b", ObjectKind::Data).is_err());
    for bytes in [0, 4096, 40_000] {
        let made = PmRegion::map(device(), &path.with_extension("other"), bytes, Access::Create);
        assert!(matches!(made, Err(Error::Invalid(_))), "{bytes}");
    }
    assert!(!path.with_extension("other").exists());
}

#[test]
fn one_process_at_a_time_has_it() {
    let (_folder, path) = folder();
    let region = create(&path);
    assert!(matches!(open(&path), Err(Error::InUse { .. })));
    let again = PmRegion::map(device(), &path, BYTES, Access::Create);
    assert!(matches!(again, Err(Error::Exists { .. })));
    drop(region);
    open(&path).unwrap();
}

#[test]
fn what_is_no_region_is_refused_and_stays() {
    let (folder, path) = folder();
    assert!(matches!(open(&path), Err(Error::System { .. })));
    assert!(matches!(open(folder.path()), Err(Error::Foreign { .. })));
    for contents in [&b""[..], b"short", &[0; 100], &[7; 5000]] {
        std::fs::write(&path, contents).unwrap();
        assert!(matches!(open(&path), Err(Error::Foreign { .. })), "{}", contents.len());
        assert_eq!(std::fs::read(&path).unwrap(), contents);
    }
}

#[test]
fn damaged_heads_are_told_apart() {
    let (_folder, path) = folder();
    create(&path).close().unwrap();
    let sound = head(&path);
    put_head(&path, RegionHead { version: 2, ..sound });
    assert!(matches!(open(&path), Err(Error::Newer { found: 2, supported: 1, .. })));
    put_head(&path, RegionHead { bytes: BYTES + 4096, ..sound });
    assert!(matches!(open(&path), Err(Error::Truncated { expected, found: BYTES, .. }) if expected == BYTES + 4096));
    put_head(&path, RegionHead { id: 0, ..sound });
    assert!(matches!(open(&path), Err(Error::Corrupt { offset: 0, .. })));
    // Every bit of a sealed head.
    let line = {
        let mut line = sound.to_bytes();
        seal::seal(&[], &mut line);
        line
    };
    for bit in 0..LINE * 8 {
        let mut wrong = line;
        wrong[bit / 8] ^= 1 << (bit % 8);
        change(&path, 0, &wrong);
        assert!(open(&path).is_err(), "bit {bit}");
    }
    change(&path, 0, &line);
    open(&path).unwrap();
}

/// A copy of the directory that is torn leaves the other one, with what was there before.
#[test]
fn a_torn_directory_leaves_the_one_before() {
    let (_folder, path) = folder();
    let region = create(&path);
    let add = |name| region.add(name, ObjectKind::Data, 1, |_| Ok(())).unwrap();
    let (first, _) = (add("first"), add("second"));
    region.close().unwrap();
    // Creation wrote the first copy, "first" the second, "second" the first again.
    change(&path, REGION_DIRECTORY, &[0; 8]);
    assert_eq!(open(&path).unwrap().objects(), [first]);
    change(&path, REGION_DIRECTORY + 8192, &[1; 8]);
    assert!(matches!(open(&path), Err(Error::Corrupt { offset: REGION_DIRECTORY, .. })));
}

#[test]
fn a_drained_copy_is_a_region() {
    let (_folder, path) = folder();
    let region = create(&path);
    let object = region.add("first", ObjectKind::Data, 100, |object| region.write(object.offset, b"pear")).unwrap();
    let copy = path.with_extension("copy");
    assert_eq!(region.drain_to(&copy).unwrap().bytes, BYTES);
    region.write(object.offset, b"plum").unwrap();
    let drained = open(&copy).unwrap();
    assert_eq!(drained.read_vec(object.offset, 4).unwrap(), b"pear");
    assert_eq!(drained.id(), region.id());
    assert!(region.drain_to(Path::new("/nowhere/at/all")).is_err());
    // Each level says what it may lose.
    for level in [Durability::Ordered, Durability::Arrived, Durability::Drained] {
        assert!(level.may_lose().contains("power failure"));
    }
    assert_eq!(region.link_state(), LinkState::NotNeeded);
}

#[test]
fn a_region_that_logs_use_is_not_closed() {
    let (_folder, path) = folder();
    let region = create(&path);
    let used = region.clone();
    assert!(matches!(region.close(), Err(Error::Invalid(_))));
    used.close().unwrap();
}

#[test]
fn memory_of_the_device_is_limited() {
    let device = device();
    let refused = Buffer::new(&device, 1 << 40).err().unwrap();
    assert!(matches!(refused, Error::OutOfMemory { needed, .. } if needed == 1 << 40), "{refused}");
    let buffer = Buffer::new(&device, 8).unwrap();
    assert!(matches!(buffer.upload(&[0; 9]), Err(Error::Invalid(_))));
    assert!(device.upload(12, &[0; 4]).is_err());
}

#[test]
fn memfds_hold_regions() {
    let region = PmRegion::create_in(device(), Medium::memfd(BYTES).unwrap()).unwrap();
    region.add("first", ObjectKind::Data, 100, |_| Ok(())).unwrap();
    let region = PmRegion::open_in(device(), region.close().unwrap()).unwrap();
    assert_eq!(region.objects().len(), 1);
}

/// Where there is no driver it is said so; where there is one it has no GPU of this number.
#[cfg(feature = "cuda")]
#[test]
fn a_card_that_is_not_there_is_named() {
    let refused = nearpm_gpu::Cuda::open(1 << 20).err().unwrap();
    assert!(matches!(refused, Error::NoDriver | Error::NoCard { .. } | Error::Driver { .. }), "{refused}");
}

#[test]
fn a_region_that_is_only_read_stays_as_it_is() {
    let (_folder, path) = folder();
    let region = create(&path);
    let object = region.add("kept", ObjectKind::Data, 100, |object| region.write(object.offset, b"quince")).unwrap();
    // Nobody reads what is stored to.
    let read = || PmRegion::map(device(), &path, 0, Access::Read);
    assert!(matches!(read(), Err(Error::InUse { .. })));
    region.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let (one, other) = (read().unwrap(), read().unwrap());
    for region in [&one, &other] {
        assert_eq!(region.read_vec(object.offset, 6).unwrap(), b"quince");
        let says = region.write(object.offset, b"medlar").unwrap_err().to_string();
        assert!(says.contains("opened for reading"), "{says}");
        assert!(region.add("more", ObjectKind::Data, 100, |_| Ok(())).is_err());
    }
    assert!(matches!(open(&path), Err(Error::InUse { .. })));
    // A kernel, or a copy, that stores there all the same is told of.
    one.device().upload(one.address(object.offset), b"medlar").unwrap();
    assert!(one.close().err().unwrap().to_string().contains("opened for reading"));
    other.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let wrong = PmRegion::map(device(), &path, BYTES + 4096, Access::Read);
    assert!(matches!(wrong, Err(Error::Invalid(_))));
    assert!(matches!(PmRegion::map(device(), path.parent().unwrap(), 0, Access::Read), Err(Error::Foreign { .. })));
    assert!(PmRegion::create_in(device(), Medium::open_for_reading(&path).unwrap()).is_err());
}
