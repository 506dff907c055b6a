//! What a large pool costs that holds little.

use std::fs::File;

use super::super::heap::Heap;
use crate::direct::{DirectOptions, DirectPool};
use crate::memory::Survives;
use crate::prelude::Store;

const BYTES: u64 = 64 << 30;

#[test]
fn a_large_pool_costs_what_is_stored_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    File::create(&path).unwrap().set_len(BYTES).unwrap();
    let options = DirectOptions { survives: Survives::ProcessCrash, ..DirectOptions::default() };
    let pool = DirectPool::create(path.to_str().unwrap(), 0, &options).unwrap();
    assert_eq!(pool.heap.blocks_in_use(), 0);
    for bytes in [100, 5000, 1 << 20] {
        pool.tx(|tx| tx.alloc_bytes(bytes).map(drop)).unwrap();
    }
    pool.close().unwrap();
    let pool = DirectPool::open(path.to_str().unwrap(), &options).unwrap();
    let heap = Heap::load(pool.medium.backing(), &pool.head, 0).unwrap();
    assert_eq!(heap.blocks_in_use(), 1);
    assert_eq!((heap.ranges_in_use().len(), heap.next_object(0).is_some()), (3, true));
    assert!(pool.heap_state().free_bytes > BYTES / 100 * 98);
    assert_eq!(heap.blocks_in_use(), 1, "whoever looks makes none");
}
