//! Repairs whose power fails.

use std::fs;
use std::path::Path;

use super::repair::{Step, repair_watched};
use super::{Class, check};
use crate::direct::DirectPool;
use crate::options::Options;
use crate::pool::backup;
use crate::{Error, Problem, Survives};

const BYTES: u64 = 1 << 20;

/// A pool that was left open, with damage in its log, in its applied word and beside its head.
/// Gives what the repair makes of it.
fn damaged(path: &Path) -> Vec<u8> {
    let options = Options::new().survives(Survives::ProcessCrash).id(3);
    let pool = DirectPool::create(path.to_str().unwrap(), BYTES, &options).unwrap();
    for bytes in [100, 9000, 300] {
        let mut tx = pool.begin().unwrap();
        let object = tx.alloc(&pool, bytes).unwrap().offset;
        tx.set_root(object);
        tx.commit(&pool).unwrap();
    }
    let mut bytes = fs::read(path).unwrap();
    drop(pool);
    bytes[64] = 9;
    bytes[128] ^= 1;
    bytes[9] ^= 4;
    fs::write(path, &bytes).unwrap();
    bytes
}

fn power_failure() -> Error {
    Error::abort("the power failed")
}

#[test]
fn a_repair_that_is_interrupted_anywhere_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let location = path.to_str().unwrap();
    let before = damaged(&path);
    let mut steps = 0;
    let whole = repair_watched(location, &mut |_| {
        steps += 1;
        Ok(())
    });
    let whole = whole.unwrap();
    assert!(whole.after.is_sound() && whole.before.findings.len() == 1, "{whole:?}");
    let repaired = fs::read(&path).unwrap();
    let backup_path = whole.backup.unwrap();
    let kept = backup::read(&path, BYTES).unwrap();
    assert_eq!(kept, None, "no repair is under way");
    fs::rename(&backup_path, backup::path_of(&path)).unwrap();
    let old = backup::read(&path, BYTES).unwrap().unwrap();
    fs::remove_file(backup::path_of(&path)).unwrap();
    assert!(steps > 6, "{steps} steps are too few to show anything");
    for stop in 0..steps {
        for seed in 0..4u64 {
            fs::write(&path, &before).unwrap();
            let (mut step, mut synced) = (0, false);
            let cut = repair_watched(location, &mut |now| {
                step += 1;
                if step > stop {
                    return Err(power_failure());
                }
                synced |= now == Step::Keep;
                Ok(())
            });
            assert!(matches!(cut, Err(Error::Aborted(_))), "{cut:?}");
            // What was not synchronised is lost in part: any piece may be as it was.
            for (number, (offset, data)) in old.iter().enumerate().filter(|_| !synced) {
                if seed >> (number % 2) & 1 == 1 {
                    let mut bytes = fs::read(&path).unwrap();
                    bytes[*offset as usize..][..data.len()].copy_from_slice(data);
                    fs::write(&path, &bytes).unwrap();
                }
            }
            let under_way = backup::path_of(&path).exists();
            if under_way {
                let opened = DirectPool::open(location, &Options::new());
                assert!(matches!(opened, Err(Error::Pool { problem: Problem::RepairInterrupted, .. })), "{opened:?}");
                assert_eq!(check(location).unwrap().findings[0].class, Class::RepairInterrupted);
            } else {
                assert_eq!(fs::read(&path).unwrap(), before, "nothing is written before the backup is there");
            }
            let again = super::repair(location).unwrap();
            assert_eq!(again.before.findings[0].class == Class::RepairInterrupted, under_way);
            assert!(again.after.is_sound(), "{again:?}");
            assert_eq!(fs::read(&path).unwrap(), repaired);
            fs::remove_file(again.backup.unwrap()).unwrap();
        }
    }
}

/// A backup that is left without its pool is not taken for that of another one.
#[test]
fn no_pool_is_made_beside_a_backup_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("pool"), folder.path().join("other"));
    fs::write(backup::path_of(&path), b"of an earlier pool").unwrap();
    let options = Options::new().survives(Survives::ProcessCrash);
    DirectPool::create(other.to_str().unwrap(), BYTES, &options).unwrap().close().unwrap();
    let refused = |result: Error| matches!(result, Error::Pool { problem: Problem::BadOption { .. }, .. });
    let location = path.to_str().unwrap();
    assert!(refused(DirectPool::create(location, BYTES, &options).unwrap_err()));
    assert!(refused(super::copy(other.to_str().unwrap(), location, None).unwrap_err()));
    assert!(!path.exists());
}

#[test]
fn a_damaged_backup_of_an_interrupted_repair_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let before = damaged(&path);
    fs::write(backup::path_of(&path), b"nonsense").unwrap();
    let refused = super::repair(path.to_str().unwrap());
    assert!(matches!(refused, Err(Error::Pool { problem: Problem::Corrupt { .. }, .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}
