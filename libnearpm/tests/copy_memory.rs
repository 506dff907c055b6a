//! What a working copy takes of memory: the bytes that were stored, and little more.
//!
//! A process of its own stores into a pool in a file of `/dev/shm`, and reads what private memory
//! it has then, and had at most (`/proc/self/smaps`: the file's own pages are shared, and do not
//! count). Its C library gives back what is freed: how much it would keep instead depends on the
//! largest buffers that there were, and says nothing of the copy.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

use nearpm::direct::DirectPool;
use nearpm::{Mechanism, Options};

/// Bytes of the pool, and of what is stored, little and much.
const POOL: u64 = 128 << 20;
const STORED: [u64; 2] = [16 << 20, 64 << 20];
/// Bytes of an object: some are a word's, some a page's, some of many pages.
const OBJECTS: [u64; 3] = [256, 4096, 256 << 10];
/// Objects of a transaction.
const TOGETHER: usize = 16;
/// What the copy may take beyond the bytes stored: a part of them, and as much in any case, for
/// buffers of the largest transaction and of the log.
const MORE_PERCENT: u64 = 5;
const FIXED: u64 = 16 << 20;

/// What the child does: the way home, the bytes, and the pool.
const TASK: &str = "NEARPM_TEST_COPY_MEMORY";
/// Lets glibc unmap each large buffer when it is freed (malloc(3), mallopt(3)).
const GIVES_BACK: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072");

/// Bytes of private memory of this process.
fn private() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").expect("Linux tells it");
    let of = |line: &str| line.strip_prefix("Anonymous:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok();
    maps.lines().filter_map(of).sum::<u64>() * 1024
}

#[allow(unsafe_code)]
fn store(pool: &DirectPool, offset: u64, bytes: u64, fill: u8) {
    assert!(pool.heap().start <= offset && offset + bytes <= pool.heap().end);
    // SAFETY: the range lies in the heap of the open pool, and is an object's that this thread
    // alone uses.
    unsafe { pool.base().add(offset as usize).write_bytes(fill, bytes as usize) }
}

/// Stores so many bytes, each object twice, and gives what private memory came meanwhile at most.
fn stored(pool: &DirectPool, all: u64, before: u64) -> u64 {
    let mut most = 0;
    for bytes in OBJECTS {
        let count = (all / OBJECTS.len() as u64 / bytes) as usize;
        let mut objects = Vec::with_capacity(count);
        while objects.len() < count {
            let mut tx = pool.begin().unwrap();
            for _ in 0..TOGETHER.min(count - objects.len()) {
                let object = tx.alloc(pool, bytes).unwrap().offset;
                store(pool, object, bytes, 1);
                objects.push(object);
            }
            tx.commit(pool).unwrap();
        }
        for some in objects.chunks(TOGETHER) {
            let mut tx = pool.begin().unwrap();
            for &object in some {
                tx.add(pool, object..object + bytes).unwrap();
                store(pool, object, bytes, 2);
            }
            tx.commit(pool).unwrap();
        }
        most = most.max(private().saturating_sub(before));
    }
    most
}

/// The child.
#[test]
fn a_task() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [by, bytes, path] = task.split(' ').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let mechanism = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == by);
    let before = private();
    let pool = DirectPool::create(path, POOL, &Options::new().mechanism(mechanism)).unwrap();
    let most = stored(&pool, bytes.parse().expect("a number"), before);
    println!("took {most}");
    pool.close().unwrap();
}

/// Private bytes that a process takes for a pool into which it stores so many.
fn taken(by: &str, bytes: u64, folder: &Path) -> u64 {
    let output = Command::new(std::env::current_exe().expect("the program has a path"))
        .args(["a_task", "--exact", "--nocapture", "--test-threads", "1"])
        .env(GIVES_BACK.0, GIVES_BACK.1)
        .env(TASK, format!("{by} {bytes} {}", folder.join(by).display()))
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{by}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let number = text.lines().find_map(|line| line.split_once("took ")).map(|(_, number)| number.trim().parse());
    fs::remove_file(folder.join(by)).expect("the child has made it");
    number.expect("the child says it").expect("a number")
}

#[test]
fn a_working_copy_takes_what_is_stored_and_little_more() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED: there is no /dev/shm, and pages of another file system may be private");
        return;
    };
    let ways = ["record"].into_iter().chain(Mechanism::ALL.map(Mechanism::name));
    let mut beyond = Vec::new();
    for by in ways {
        let [little, much] = STORED.map(|bytes| taken(by, bytes, folder.path()));
        let (taken, stored) = (much - little, STORED[1] - STORED[0]);
        let fixed = little as i64 - (STORED[0] + STORED[0] * MORE_PERCENT / 100) as i64;
        println!(
            "{by}: {taken} bytes for {stored} that were stored, {:.3} each; {fixed} beside",
            taken as f64 / stored as f64
        );
        // It is a copy: whoever finds less has measured something else.
        assert!(taken >= stored / 2, "{by}: {little} and {much} bytes");
        if taken > stored + stored * MORE_PERCENT / 100 || fixed > FIXED as i64 {
            beyond.push(by);
        }
    }
    assert!(beyond.is_empty(), "more than {MORE_PERCENT} % and {FIXED} bytes: {beyond:?}");
}
