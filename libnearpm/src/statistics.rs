//! Counters of a pool, since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($( $(#[doc = $doc:literal])* $name:ident ),* $(,)?) => {
        /// What a pool has done since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics { $( $(#[doc = $doc])* pub $name: u64 ),* }

        impl Statistics {
            /// The sum of two.
            pub(crate) fn plus(&self, other: &Statistics) -> Statistics {
                Statistics { $( $name: self.$name + other.$name ),* }
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
    /// Log entries, checkpoints included.
    log_entries,
    /// Pages that were shadowed.
    shadow_pages,
    /// Bytes that the processor copied into logs, checkpoints and shadows, or applied from logs.
    bytes_by_cpu,
    /// Bytes that the card copied for the same.
    bytes_by_card,
    /// Fences and drains.
    fences,
    /// Lines whose write-back was asked for.
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
