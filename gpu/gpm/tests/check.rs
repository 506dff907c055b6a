//! `nearpm pool check | info | dump` and the repair, on regions of a GPU.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm::check::{Class, Image, check, repair};
use nearpm_gpm::{Batch, Checkpoint, Element, Form, Log, Shape};
use nearpm_gpu::{Access, Buffer, Device, Interpreted, ObjectKind, PmRegion};
use nearpm_interface::region::{OBJECT_WORD, REGION_DATA, REGION_DIRECTORY};

/// A region with an object of each kind.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region");
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(1 << 20));
    let region = PmRegion::map(device, &path, 1 << 18, Access::Create).unwrap();
    let shape = Shape { blocks: 1, threads: 32 };
    Log::create_hcl(&region, "sealed", shape, 8, 1, Form::Sealed).unwrap();
    Log::create_hcl(&region, "tail", shape, 8, 1, Form::Tail).unwrap();
    Log::create_conventional(&region, "conventional", 2, 512).unwrap();
    let _ = Batch::create(&region, "batch").unwrap().begin(&[]).unwrap();
    let memory = Buffer::new(region.device(), 64).unwrap();
    let checkpoint = Checkpoint::create(&region, "checkpoint", 64, 1, 1).unwrap();
    checkpoint.register(0, Element { name: "a".to_owned(), address: memory.address(), bytes: 64 }).unwrap();
    checkpoint.checkpoint(0).unwrap();
    drop(checkpoint);
    region.add("data", ObjectKind::Data, 100, |object| region.write(object.offset, b"pear")).unwrap();
    region.close().unwrap();
    (folder, path)
}

fn said(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn flip(path: &Path, offset: u64, mask: u8) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ mask], offset).unwrap();
}

#[test]
fn a_sound_region_is_told_apart_from_a_pool() {
    let (_folder, path) = made();
    let report = check(said(&path)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let mut image = Image::open(said(&path)).unwrap();
    let info = image.region().unwrap().unwrap();
    let states: Vec<(&str, &str)> = info.objects.iter().map(|object| (&*object.name, &*object.state)).collect();
    assert_eq!(
        states,
        [
            ("sealed", "1 blocks of 32 threads, 1 entries of 8 bytes a thread, generation 1"),
            ("tail", "1 blocks of 32 threads, 1 entries of 8 bytes a thread, generation 1"),
            ("conventional", "2 partitions of 256 bytes, generation 1"),
            ("batch", "batch 1 is active: opening undoes it"),
            ("checkpoint", "group 0: checkpoint 1"),
            ("data", ""),
        ]
    );
    let objects = image.objects().unwrap();
    assert_eq!(objects.len(), 6);
    assert_eq!(image.read(objects[5].offset, 4).unwrap(), b"pear");
    drop(image);
    // As a pool it is refused, and named.
    let refused = nearpm::check::recover_file(said(&path), nearpm::Survives::ProcessCrash).unwrap_err().to_string();
    assert!(refused.contains("region of a GPU"), "{refused}");
}

/// One bit of everything that is sealed: found, and put right.
#[test]
fn one_wrong_bit_is_found_and_put_right() {
    let (_folder, path) = made();
    let objects = Image::open(said(&path)).unwrap().objects().unwrap();
    let [sealed, _, _, batch, checkpoint, _] = objects[..] else { panic!("six objects") };
    assert_eq!(sealed.offset, REGION_DATA);
    let slot = checkpoint.offset + 4096;
    // The creation and six objects: seven changes, of which the last wrote the first copy.
    let places = [
        (0, Class::HeadSeal),
        (20, Class::HeadSeal),
        (REGION_DIRECTORY + 5, Class::RegionDirectory),
        (REGION_DIRECTORY + 64 * 3 + 7, Class::RegionDirectory),
        (REGION_DIRECTORY + 8192 + 10, Class::RegionDirectory),
        (sealed.offset + 9, Class::ObjectHead),
        (sealed.offset + OBJECT_WORD + 1, Class::ObjectWord),
        (batch.offset + OBJECT_WORD, Class::ObjectWord),
        (slot + 9, Class::CheckpointSlot),
        (slot + 64 + 3, Class::CheckpointSlot),
    ];
    let sound = std::fs::read(&path).unwrap();
    for (offset, class) in places {
        for mask in [1, 0x40] {
            flip(&path, offset, mask);
            let report = check(said(&path)).unwrap();
            assert_eq!(report.findings.len(), 1, "offset {offset:#x}: {report:?}");
            assert_eq!((report.findings[0].class, report.findings[0].repairable), (class, true), "offset {offset:#x}");
            let repaired = repair(said(&path)).unwrap();
            assert!(repaired.after.is_sound(), "offset {offset:#x}: {repaired:?}");
            assert_eq!(std::fs::read(&path).unwrap(), sound, "offset {offset:#x}");
            std::fs::remove_file(repaired.backup.unwrap()).unwrap();
        }
    }
}

#[test]
fn what_cannot_be_put_right_stays() {
    let (_folder, path) = made();
    for offset in [16, REGION_DIRECTORY + 64, REGION_DATA + 8] {
        let sound = std::fs::read(&path).unwrap();
        let damage = [0xa5, 0x5a, 0x3c, 0xc3];
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&damage, offset).unwrap();
        let damaged = std::fs::read(&path).unwrap();
        let report = check(said(&path)).unwrap();
        assert!(!report.is_sound() && report.findings.iter().all(|finding| !finding.repairable), "{report:?}");
        assert!(!repair(said(&path)).unwrap().after.is_sound());
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
        std::fs::write(&path, sound).unwrap();
    }
}

#[test]
fn a_region_that_is_cut_is_found() {
    let (_folder, path) = made();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 17).unwrap();
    assert_eq!(check(said(&path)).unwrap().findings[0].class, Class::FileShort);
}
