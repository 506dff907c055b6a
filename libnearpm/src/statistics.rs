//! Counters of a pool, since it was opened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use crate::heap::classes::capacity_of;

macro_rules! counters {
    ($( $(#[doc = $doc:literal])* $name:ident ),* $(,)?) => {
        /// What a pool has done since it was opened, its recovery included. The same counters are given by [`crate::Pool::statistics`], by
        /// [`crate::direct::DirectPool::statistics`] and, when a pool is closed, by `libpmemobj.so.1` with `NEARPM_STATISTICS=1`.
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics { $( $(#[doc = $doc])* pub $name: u64 ),* }

        impl Statistics {
            /// The sum of two.
            pub(crate) fn plus(&self, other: &Statistics) -> Statistics {
                Statistics { $( $name: self.$name + other.$name ),* }
            }
            /// What was counted since an earlier time, of the same pool.
            pub fn since(&self, earlier: &Statistics) -> Statistics {
                Statistics { $( $name: self.$name - earlier.$name ),* }
            }
        }

        /// The live counters.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $( pub $name: AtomicU64 ),* }

        impl Counters {
            pub fn snapshot(&self) -> Statistics {
                Statistics { $( $name: self.$name.load(Ordering::Relaxed) ),* }
            }
        }
    };
}

counters! {
    /// Transactions that returned success, read-only ones included.
    transactions,
    /// Transactions that were rolled back.
    aborts,
    /// Transactions that are acknowledged: they survive a power cut now. Direct pools count those whose commit was durable when it returned.
    acknowledged,
    /// Epochs that were cut (checkpoint and shadow paging).
    epochs,
    /// Log entries and records, checkpoints included.
    log_entries,
    /// Bytes of them: heads, data and what fills up lines.
    bytes_logged,
    /// Pages that were shadowed.
    shadow_pages,
    /// Bytes that the processor copied into logs, checkpoints and shadows, or applied from logs.
    bytes_by_cpu,
    /// Bytes that the card copied for the same.
    bytes_by_card,
    /// Fences and drains that were asked for. On an ordinary file that is to survive power cuts each is an `msync`.
    fences,
    /// Flushes: lines whose write-back was asked for, streamed ones included.
    lines_written_back,
    /// Commands that were posted.
    commands,
    /// Waits for completions or read-backs.
    completions,
    /// Lanes that work without the card although it was asked for, because its mapping table is full.
    fallbacks,
}

/// Adds to a counter. The pool's lock is held, so that no addition is lost without a locked instruction.
#[inline]
pub(crate) fn count(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// Objects of one size.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassState {
    /// Bytes of an object.
    pub object_bytes: u32,
    /// Chunks that hold such objects.
    pub runs: u64,
    /// Objects.
    pub objects: u64,
    /// Places for more in these chunks.
    pub free: u64,
}

/// The state of a pool's allocator. Reservations count as objects while the pool is open.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeapState {
    /// Sizes of which there are objects, rising.
    pub classes: Vec<ClassState>,
    /// Objects that have whole chunks.
    pub large_objects: u64,
    /// Their bytes.
    pub large_bytes: u64,
    /// Bytes of log segments.
    pub log_bytes: u64,
    /// Objects of all sizes.
    pub objects: u64,
    /// Bytes of all objects, as large as their places are.
    pub used_bytes: u64,
    /// Free bytes: whole chunks, and places in chunks of small objects.
    pub free_bytes: u64,
    /// Free chunks.
    pub free_chunks: u64,
    /// Bytes of the most free chunks in one piece: the largest object that fits.
    pub largest_free_bytes: u64,
    /// The share of the free bytes that the largest piece does not have, 0 to 1.
    pub fragmentation: f64,
}

impl HeapState {
    /// Counts the chunks of a heap, in order: what each is, and the objects in it.
    pub(crate) fn of(chunks: impl Iterator<Item = (ChunkWord, u32)>) -> HeapState {
        let mut state = HeapState::default();
        let mut classes: BTreeMap<u32, ClassState> = BTreeMap::new();
        let mut span = 0;
        for (word, used) in chunks {
            let is_free = matches!(word, ChunkWord::Free) || (matches!(word, ChunkWord::Run { .. }) && used == 0);
            span = if is_free { span + CHUNK_BYTES } else { 0 };
            state.largest_free_bytes = state.largest_free_bytes.max(span);
            match word {
                _ if is_free => state.free_chunks += 1,
                ChunkWord::Run { object_bytes, chunks } => {
                    let none = ClassState { object_bytes, runs: 0, objects: 0, free: 0 };
                    let class = classes.entry(object_bytes).or_insert(none);
                    class.runs += u64::from(chunks);
                    class.objects += u64::from(used);
                    class.free += u64::from(capacity_of(object_bytes, chunks) - used);
                }
                ChunkWord::Large { chunks } => {
                    state.large_objects += 1;
                    state.large_bytes += u64::from(chunks) * CHUNK_BYTES;
                }
                ChunkWord::Log { chunks } => state.log_bytes += u64::from(chunks) * CHUNK_BYTES,
                ChunkWord::Free | ChunkWord::Tables { .. } => {}
            }
        }
        state.classes = classes.into_values().collect();
        let of_classes = |count: fn(&ClassState) -> u64| -> u64 {
            state.classes.iter().map(|class| u64::from(class.object_bytes) * count(class)).sum()
        };
        state.used_bytes = state.large_bytes + of_classes(|class| class.objects);
        state.free_bytes = state.free_chunks * CHUNK_BYTES + of_classes(|class| class.free);
        state.objects = state.large_objects + state.classes.iter().map(|class| class.objects).sum::<u64>();
        if state.free_bytes > 0 {
            state.fragmentation = 1.0 - state.largest_free_bytes as f64 / state.free_bytes as f64;
        }
        state
    }
}
