//! Repairs: what was sound stays, what can be put right is, nothing panics.

use std::collections::BTreeMap;
use std::fs;

use nearpm::Survives;
use nearpm::check::{self, Class};
use proptest::prelude::*;

use crate::pools::{check, closed, image, killed, part, undo};

/// Objects of a recovered pool with their bytes.
fn objects(bytes: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut image = image(bytes);
    let objects = image.objects().unwrap_or_default();
    objects.into_iter().map(|object| (object.offset, image.read(object.offset, object.bytes).unwrap())).collect()
}

/// Repairs a pool with these bytes; gives what it is then.
fn repaired(bytes: &[u8]) -> (check::Repair, Vec<u8>) {
    let folder =
        tempfile::tempdir_in(if fs::exists("/dev/shm").unwrap_or(false) { "/dev/shm" } else { "/tmp" }).unwrap();
    let path = folder.path().join("pool");
    fs::write(&path, bytes).unwrap();
    let repair = check::repair(path.to_str().unwrap()).unwrap();
    if let Some(backup) = &repair.backup {
        assert!(backup.exists());
    }
    (repair, fs::read(&path).unwrap())
}

/// One wrong bit anywhere in heads, words and the first record: all of it is put right, or was none
/// of the pool's business, or stands where there is no checksum.
#[test]
fn single_bits_are_put_right() {
    let (mut mended, mut unseen) = (0, 0);
    for pool in [killed(), undo()] {
        let expected = objects(&pool);
        let heads = [0, 64, 128, 4096, 4096 + 64, 4096 + 128, 4096 + 192];
        let words = heads.iter().flat_map(|&at| at..at + if at == 0 { 64 } else { 8 });
        for at in words {
            for bit in [0, 3, 7] {
                let mut damaged = pool.clone();
                damaged[at] ^= 1 << bit;
                let (repair, bytes) = repaired(&damaged);
                assert!(repair.after.is_sound(), "byte {at}, bit {bit}: {repair:?}");
                assert_eq!(objects(&bytes), expected, "byte {at}, bit {bit}");
                mended += usize::from(!repair.before.is_sound());
                unseen += usize::from(repair.before.is_sound());
            }
        }
    }
    // What is unseen: words of rings that were never used.
    assert!(mended > 250 && unseen < 120, "{mended} mended, {unseen} not seen");
}

/// Every bit of the first of three records in the log.
#[test]
fn a_damaged_record_is_put_right_by_its_checksum() {
    let pool = killed();
    let expected = objects(&pool);
    let info = image(&pool).info().unwrap();
    assert_eq!(info.log.records, 3);
    let chunks = part("chunks", &pool);
    let magic = nearpm_interface::record::SEGMENT_MAGIC.to_le_bytes();
    let segment = (chunks..pool.len()).step_by(64).find(|&at| pool[at..].starts_with(&magic)).unwrap();
    let record = segment + 64;
    let length = u32::from_le_bytes(pool[record + 4..record + 8].try_into().unwrap()) as usize;
    for bit in (0..length * 8).step_by(5) {
        let mut damaged = pool.clone();
        damaged[record + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(check(&damaged).findings[0].class, Class::RecordSum, "bit {bit}");
        let (repair, bytes) = repaired(&damaged);
        assert!(repair.after.is_sound(), "bit {bit}: {repair:?}");
        assert_eq!(objects(&bytes), expected, "bit {bit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Random damage of a closed pool's tables: no panic, and the bytes of objects stay, whatever
    /// is done about the damage.
    #[test]
    fn objects_keep_their_bytes(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), pool in 0usize..2,
    ) {
        let sound = if pool == 0 { closed() } else { undo() };
        let tables = part("chunks", &sound);
        let mut damaged = sound.clone();
        for (at, value) in damage {
            damaged[at.index(tables)] = value;
        }
        let (repair, bytes) = repaired(&damaged);
        // A log that is made up by damage is the exception: what it says is written.
        let wrote_log = repair.after.recovery.is_some_and(|recovery| recovery.bytes > 0);
        prop_assert!(wrote_log || bytes[tables..] == damaged[tables..], "objects have changed");
        for (offset, content) in objects(&sound) {
            prop_assert!(wrote_log || bytes[offset as usize..].starts_with(&content) || pool == 1);
        }
        // A second repair finds nothing more to do.
        let (again, same) = repaired(&bytes);
        prop_assert_eq!(again.bytes, 0);
        prop_assert_eq!(same, bytes);
    }

    /// Random damage anywhere, also in the log: no panic, objects that both know have the bytes
    /// that recovery alone would give them.
    #[test]
    fn nothing_panics(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), near_start: bool, pool in 0usize..3,
    ) {
        let pools: [fn() -> Vec<u8>; 3] = [killed, closed, undo];
        let mut bytes = pools[pool]();
        let reach = if near_start { part("chunks", &bytes) + 40_000 } else { bytes.len() };
        for (at, value) in damage {
            bytes[at.index(reach)] = value;
        }
        let before = check(&bytes);
        let (repair, after) = repaired(&bytes);
        prop_assert_eq!(&repair.before, &before);
        if before.is_sound() {
            prop_assert_eq!(&after, &bytes, "what is sound is not touched");
        }
        if before.judged_heap {
            prop_assert_eq!(objects(&after), objects(&bytes));
        }
    }
}

/// The pool says that it survives power cuts without being told.
#[test]
fn a_repaired_pool_opens() {
    let mut bytes = killed();
    bytes[20] ^= 1;
    bytes[128] ^= 1;
    let (_, bytes) = repaired(&bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    fs::write(&path, bytes).unwrap();
    let options = nearpm::Options::new().survives(Survives::ProcessCrash);
    let pool = nearpm::direct::DirectPool::open(path.to_str().unwrap(), &options).unwrap();
    assert!(pool.usable_bytes(pool.root()).is_ok());
}
