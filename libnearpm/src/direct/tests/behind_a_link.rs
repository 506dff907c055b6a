//! Commits in memory behind a link, where a fence orders and a drain waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::store::{options, poke};
use crate::direct::{DirectPool, Mode};
use crate::memory::{Memory, TestMemory};
use crate::{Durability, Error};

/// Counts fences and drains.
#[derive(Clone)]
struct Link {
    memory: TestMemory,
    fences: Arc<AtomicU64>,
    drains: Arc<AtomicU64>,
}

impl Link {
    fn counted(&self) -> (u64, u64) {
        (self.fences.load(Ordering::Relaxed), self.drains.load(Ordering::Relaxed))
    }
}

impl Memory for Link {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.memory.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.memory.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        self.fences.fetch_add(1, Ordering::Relaxed);
        self.memory.fence()
    }
    fn drain(&self) -> Result<(), Error> {
        self.drains.fetch_add(1, Ordering::Relaxed);
        self.memory.drain()
    }
    fn is_read_back(&self) -> bool {
        true
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.memory.invalidate(offset, bytes);
    }
}

/// A commit that is waited for has one drain, one that is not has one fence in its place; what asks
/// for more waits for all of them by one drain.
#[test]
fn a_commit_waits_or_is_ordered() {
    for (durability, each) in [(Durability::Durable, (0, 1)), (Durability::Asynchronous, (1, 0))] {
        let link = Link { memory: TestMemory::new(1 << 19), fences: Arc::default(), drains: Arc::default() };
        let options = options(Mode::WorkingCopy).durability(durability);
        let pool = DirectPool::create_in(Box::new(link.clone()), &options).unwrap();
        let mut tx = pool.begin().unwrap();
        let root = tx.alloc(&pool, 64).unwrap().offset;
        tx.set_root(root);
        tx.commit(&pool).unwrap();
        let commit = |value| {
            let mut tx = pool.begin().unwrap();
            tx.add(&pool, root..root + 8).unwrap();
            poke(&pool, root, &[value; 8]);
            tx.commit(&pool).unwrap();
        };
        // The first in this shard may make a segment.
        commit(0);
        for value in 1..=8 {
            let before = link.counted();
            commit(value);
            let after = link.counted();
            assert_eq!((after.0 - before.0, after.1 - before.1), each, "{durability:?}: {value}");
        }
        let before = link.counted();
        pool.wait_durable().unwrap();
        let waited = u64::from(durability == Durability::Asynchronous);
        assert_eq!(link.counted().1 - before.1, waited, "{durability:?}");
        pool.wait_durable().unwrap();
        assert_eq!(link.counted().1 - before.1, waited, "{durability:?}: nothing is left to wait for");
        pool.close().unwrap();
    }
}
