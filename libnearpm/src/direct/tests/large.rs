//! What a large pool costs that holds little.

use std::fs::File;

use super::super::lifetime::load_heap;
use crate::direct::DirectPool;
use crate::memory::Survives;
use crate::options::Options;
use crate::prelude::Store;

const BYTES: u64 = 64 << 30;

/// The most memory that this process has had at once, in bytes (proc(5)).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn a_large_pool_costs_what_is_stored_in_it() {
    let before = peak();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    File::create(&path).unwrap().set_len(BYTES).unwrap();
    let options = Options::new().survives(Survives::ProcessCrash);
    let pool = DirectPool::create(path.to_str().unwrap(), 0, &options).unwrap();
    assert_eq!(pool.heap.blocks_in_use(), 0);
    for bytes in [100, 5000, 1 << 20] {
        pool.tx(|tx| tx.alloc_bytes(bytes).map(drop)).unwrap();
    }
    pool.close().unwrap();
    // Its tables have 12 bytes for each of 4 Mi chunks, and nearly all are zero.
    assert!(peak() - before < 24 << 20, "{} bytes", peak() - before);
    let pool = DirectPool::open(path.to_str().unwrap(), &options).unwrap();
    assert!(peak() - before < 24 << 20, "{} bytes", peak() - before);
    let heap = load_heap(pool.medium.backing(), &pool.head, 0, 0).unwrap();
    assert_eq!(heap.blocks_in_use(), 1);
    assert_eq!((heap.ranges_in_use().len(), heap.next_object(0).is_some()), (3, true));
    assert!(pool.heap_state().free_bytes > BYTES / 100 * 98);
    assert_eq!(heap.blocks_in_use(), 1, "whoever looks makes none");
}
