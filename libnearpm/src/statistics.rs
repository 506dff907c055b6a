//! Counters of a pool, since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($( $(#[doc = $doc:literal])* $name:ident ),* $(,)?) => {
        /// What a pool has done since it was opened, its recovery included. The same counters are
        /// given by [`crate::Pool::statistics`], by [`crate::direct::DirectPool::statistics`] and,
        /// when a pool is closed, by `libpmemobj.so.1` with `NEARPM_STATISTICS=1`.
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
            /// The first that a program has printed, by their `Debug` on one line or several, in
            /// what it said; `None` where it has printed none.
            pub fn printed_in(text: &str) -> Option<Statistics> {
                let (_, behind) = text.split_once("Statistics {")?;
                let (fields, _) = behind.split_once('}')?;
                let fields: Vec<_> = fields.split(',').filter_map(|field| field.trim().split_once(": ")).collect();
                let value = |name| fields.iter().find(|(found, _)| *found == name)?.1.parse().ok();
                Some(Statistics { $( $name: value(stringify!($name))? ),* })
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
    /// Transactions that are acknowledged: they survive a power cut now. Direct pools count those
    /// whose commit was durable when it returned.
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
    /// Fences and drains that were asked for. On an ordinary file that is to survive power cuts
    /// each is an `msync`.
    fences,
    /// Flushes: lines whose write-back was asked for, streamed ones included.
    lines_written_back,
    /// Commands that were posted.
    commands,
    /// Waits for completions or read-backs.
    completions,
    /// Lanes that work without the card although it was asked for, because its mapping table is
    /// full.
    fallbacks,
}

/// Adds to a counter. The pool's lock is held, so that no addition is lost without a locked
/// instruction.
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
