//! What happened since the start, for clients that ask.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! tallies {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened in a turn.
        #[derive(Default)]
        pub struct Tally {
            $($(#[$doc])* pub $name: Cell<u64>,)*
        }

        /// What happened since the start.
        #[derive(Default)]
        pub struct Totals {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Clients that are connected.
            pub clients: AtomicU64,
            /// Clients that came.
            pub accepted: AtomicU64,
            /// Clients that were turned away.
            pub refused: AtomicU64,
            /// Clients that asked for nothing for too long.
            pub idle: AtomicU64,
        }

        impl Totals {
            /// A turn counts.
            pub fn add(&self, turn: &Tally) {
                $(if turn.$name.get() != 0 {
                    self.$name.fetch_add(turn.$name.get(), Ordering::Relaxed);
                })*
            }

            /// Counts from here on; clients that are connected stay counted.
            pub fn reset(&self) {
                $(self.$name.store(0, Ordering::Relaxed);)*
                self.refused.store(0, Ordering::Relaxed);
            }
        }
    };
}

tallies! {
    /// Requests.
    requests,
    /// Requests for keys.
    gets,
    /// Keys that were asked for and found.
    hits,
    /// Values that were stored.
    sets,
    /// Keys that were evicted.
    evictions,
    /// Keys that were removed because they had expired.
    expired,
}

/// Counts one more.
pub fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// A number of a total.
pub fn of(total: &AtomicU64) -> u64 {
    total.load(Ordering::Relaxed)
}
