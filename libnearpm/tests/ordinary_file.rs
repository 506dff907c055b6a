//! Pools on an ordinary file system: what durable transactions write to the device, as the block
//! layer counts it, and a device that is full.
//!
//! A store through a mapping makes a whole folio of the page cache dirty, which may be 2 MiB; so
//! what the device gets depends on how the file came into the cache. Every history of the file must
//! cost the same here. Needs root, a loop device and ext4.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nearpm::Problem;
use nearpm::prelude::*;

/// Bytes of the pool: its log is truncated several times.
const BYTES: u64 = 8 << 20;
/// Durable transactions that are counted.
const SETS: u64 = 300;
/// Bytes that the device may get for one, beside what it logs: two blocks of the file system.
const BESIDE: u64 = 2 * 4096;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Table {
    values: PHashMap<u64, [u8; 104]>,
}

/// Runs a program; what it printed, or why it failed.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let ran = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(format!("{program}: {}", text(&ran.stderr))) }
}

/// A new ext4 on a loop device, which goes with this value.
struct Ext4 {
    folder: tempfile::TempDir,
    device: String,
}

impl Ext4 {
    /// Of so many bytes, in blocks of so many.
    fn create(bytes: u64, block: u32) -> Result<Ext4, String> {
        if fs::metadata("/proc/self").map_err(|e| e.to_string())?.uid() != 0 {
            return Err("loop devices need root".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let image = folder.path().join("image");
        File::create(&image).and_then(|file| file.set_len(bytes)).map_err(|e| e.to_string())?;
        let image = image.to_str().ok_or("the folder's name is no text")?;
        // Nothing is left for the system to write later by itself; blocks are what they are on
        // large devices.
        run(
            "mkfs.ext4",
            &["-q", "-F", "-b", &block.to_string(), "-E", "lazy_itable_init=0,lazy_journal_init=0", image],
        )?;
        let device = run("losetup", &["--find", "--show", image])?;
        let ext4 = Ext4 { folder, device };
        fs::create_dir(ext4.mount_point()).map_err(|e| e.to_string())?;
        ext4.mount()?;
        Ok(ext4)
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn mount(&self) -> Result<String, String> {
        run("mount", &["-t", "ext4", &self.device, self.mount_point().to_str().expect("it was text")])
    }

    fn unmount(&self) -> Result<String, String> {
        run("umount", &[self.mount_point().to_str().expect("it was text")])
    }

    /// Bytes that were written to the device so far.
    fn written(&self) -> u64 {
        let name = self.device.trim_start_matches("/dev/");
        let counters = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("the block layer counts");
        // The seventh counter: sectors of 512 bytes (Documentation/block/stat.rst).
        counters.split_whitespace().nth(6).expect("it has seven").parse::<u64>().expect("a number") * 512
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        for ended in [self.unmount(), run("losetup", &["--detach", &self.device])] {
            ended.unwrap_or_else(|why| {
                eprintln!("{why}");
                String::new()
            });
        }
    }
}

fn open(path: &Path) -> DirectPool {
    DirectPool::open(path.to_str().unwrap(), &Options::new()).unwrap()
}

/// Makes a pool that is closed again.
fn closed(path: &Path) {
    DirectPool::create(path.to_str().unwrap(), BYTES, &Options::new()).unwrap().close().unwrap();
}

/// Bytes that the device got for each transaction, and bytes that were logged for each.
fn bytes_of_a_set(ext4: &Ext4, pool: &DirectPool) -> (u64, u64) {
    let (written, logged) = (ext4.written(), pool.statistics().bytes_logged);
    for key in 0..SETS {
        let set = pool.tx(|tx| {
            let table = tx.root_or_zeroed::<Table>()?;
            table.values().insert(tx, &(key * 7919 % 1009), [key as u8; 104]).map(drop)
        });
        set.unwrap();
    }
    ((ext4.written() - written) / SETS, (pool.statistics().bytes_logged - logged) / SETS)
}

/// How the pool's file came to be what is opened.
type History = fn(&Ext4, &Path) -> DirectPool;

const HISTORIES: [(&str, History); 4] = [
    ("created by the process", |_, path| DirectPool::create(path.to_str().unwrap(), BYTES, &Options::new()).unwrap()),
    ("read as a whole before", |_, path| {
        closed(path);
        fs::read(path).unwrap();
        open(path)
    }),
    ("a copy that was just written", |_, path| {
        closed(path);
        let copy = path.with_extension("copy");
        // Not `fs::copy`, which shares extents where it can.
        fs::write(&copy, fs::read(path).unwrap()).unwrap();
        File::open(&copy).unwrap().sync_all().unwrap();
        open(&copy)
    }),
    ("not in the page cache", |ext4, path| {
        closed(path);
        ext4.unmount().and_then(|_| ext4.mount()).unwrap();
        open(path)
    }),
];

/// `None`, and a line that says why, where there is no such file system and none was promised.
fn ext4(bytes: u64, block: u32) -> Option<Ext4> {
    for program in ["mkfs.ext4", "losetup", "mount", "umount"] {
        if let Err(why) = Command::new(program).arg("--help").output() {
            let installed = std::env::var_os("NEARPM_TOOLS_INSTALLED").is_some();
            assert!(!installed, "{program} was to be installed (Debian: e2fsprogs, mount): {why}");
            eprintln!("SKIPPED: {program} is not installed (Debian: e2fsprogs, mount): {why}");
            return None;
        }
    }
    Ext4::create(bytes, block).inspect_err(|why| eprintln!("SKIPPED: no ext4 on a loop device: {why}")).ok()
}

#[test]
fn a_durable_set_writes_few_blocks_whatever_the_history_of_the_file() {
    let Some(ext4) = ext4(96 << 20, 4096) else { return };
    for (at, (history, open)) in HISTORIES.into_iter().enumerate() {
        let pool = open(&ext4, &ext4.mount_point().join(format!("pool{at}")));
        let (written, logged) = bytes_of_a_set(&ext4, &pool);
        eprintln!("{history}: {written} B to the device for a durable SET that logs {logged} B");
        // A sector that is not written would be counted as none: the log reaches the device at
        // least.
        assert!(written >= logged, "{history}: {written} B, and {logged} B were logged");
        assert!(written <= logged + BESIDE, "{history}: {written} B, and {logged} B were logged");
        pool.close().unwrap();
    }
}

/// A pool in a file with holes on a device without room: what is in it can be read, and freed,
/// whichever chunk the room ended in.
#[test]
fn a_full_medium_keeps_no_pool_shut() {
    let Some(ext4) = ext4(4 << 20, 1024) else { return };
    let path = ext4.mount_point().join("pool");
    for object_bytes in [1000, 20_000] {
        File::create(&path).and_then(|file| file.set_len(64 << 20)).unwrap();
        let pool = DirectPool::create(path.to_str().unwrap(), 0, &Options::new()).unwrap();
        let add = |count| pool.tx(|tx| (0..count).try_for_each(|_| tx.alloc(object_bytes).map(drop)));
        let mut objects = 0;
        for at_once in [100, 10, 1] {
            let refusal = loop {
                match add(at_once) {
                    Ok(()) => objects += at_once,
                    Err(error) => break error,
                }
            };
            assert!(matches!(refusal, Error::Pool { problem: Problem::NoSpace { .. }, .. }), "{refusal}");
        }
        assert!(objects > 50);
        pool.close().unwrap();
        let pool = open(&path);
        let found: Vec<u64> = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object)).collect();
        assert_eq!(found.len(), objects, "objects of {object_bytes} B");
        let mut tx = pool.begin().unwrap();
        tx.free(&pool, found[0]).unwrap();
        tx.commit(&pool).unwrap();
        pool.tx(|tx| tx.alloc(object_bytes).map(drop)).unwrap();
        pool.close().unwrap();
        fs::remove_file(&path).unwrap();
    }
}
