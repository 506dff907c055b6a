//! Which of the shards of a pool, and of its other lists by thread, is the calling thread's.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shards of a pool. Threads beyond share them.
pub(crate) const SHARDS: usize = 64;

/// Alone on its cache lines: what threads change all the time slows nobody who reads its
/// neighbours.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Alone<T>(pub T);

thread_local!(static SLOT: Cell<usize> = const { Cell::new(usize::MAX) });

/// Gives the calling thread another shard.
#[cfg(test)]
pub(crate) fn move_to(slot: usize) {
    SLOT.set(slot % SHARDS);
}

/// The shard of the calling thread: threads take turns.
#[inline]
pub(crate) fn slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        slot.get()
    })
}
