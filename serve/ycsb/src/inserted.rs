//! Numbers of records that clients insert at the same time.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives out numbers of new records, and knows up to where all are there: nobody reads a record
/// that the server has not acknowledged.
pub struct Inserted {
    next: AtomicU64,
    /// All below it are there.
    visible: AtomicU64,
    /// Those above it that are there.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Inserted {
    /// There are `records` already.
    pub fn after(records: u64) -> Inserted {
        Inserted { next: AtomicU64::new(records), visible: AtomicU64::new(records), ahead: Mutex::default() }
    }

    /// A number for a new record.
    pub fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The server has answered for a number that was taken.
    pub fn settle(&self, number: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ahead.insert(number);
        let mut visible = self.visible();
        while ahead.remove(&visible) {
            visible += 1;
        }
        self.visible.store(visible, Ordering::Release);
    }

    /// Every record below this number is there.
    pub fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_seen_when_all_before_it_are_there() {
        let inserted = Inserted::after(7);
        assert_eq!([inserted.take(), inserted.take(), inserted.take()], [7, 8, 9]);
        for (settled, visible) in [(8, 7), (7, 9), (9, 10)] {
            inserted.settle(settled);
            assert_eq!(inserted.visible(), visible);
        }
    }
}
