//! Checks a trace against the order rules of Partitioned Persist Ordering.
//!
//! Invariants 1 and 2 of NearPM (section 4) say that accesses of host and card to a shared line happen, and persist, in program
//! order. Order numbers are the order of arrival, so both hold if no item is issued while a conflicting item
//! with a lower number is live: it has read what it reads and its writes were answered only once it retired. Ordered
//! commands wait for every earlier command of their mapping entry in the same way.

use std::collections::BTreeMap;

use super::item::{Item, Ranges};
use super::trace::{Event, What};

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Cycle of the issue.
    pub cycle: u64,
    /// Order number of the item that went too early.
    pub early: u64,
    /// Order number of the item that it passed.
    pub passed: u64,
}

#[derive(Clone, Copy)]
struct Live {
    order: u64,
    ranges: Ranges,
    ordered: bool,
    entry: Option<u8>,
    /// A failed log holds host accesses only.
    failed: bool,
}

/// Follows a trace.
#[derive(Default)]
pub struct Monitor {
    live: BTreeMap<Item, Live>,
    violations: Vec<Violation>,
    /// Items that were issued.
    pub issued: u64,
}

impl Monitor {
    /// Before any event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes further events, in their order.
    pub fn follow(&mut self, events: &[Event]) {
        for event in events {
            match event.what {
                What::Accepted { item, order, ranges, ordered, entry } => {
                    self.live.insert(item, Live { order, ranges, ordered, entry, failed: false });
                }
                What::Issued { item } => self.check(event.cycle, item),
                What::Retired { item, .. } => {
                    self.live.remove(&item);
                }
                What::Latched { item } => {
                    if let Some(live) = self.live.get_mut(&item) {
                        live.failed = true;
                    }
                }
                What::Held { .. } | What::Durable { .. } | What::State(_) => {}
            }
        }
    }

    fn check(&mut self, cycle: u64, item: Item) {
        self.issued += 1;
        let Some(this) = self.live.get(&item).copied() else { return };
        let command = matches!(item, Item::Slot(_));
        for (other_item, other) in &self.live {
            let both_commands = command && matches!(other_item, Item::Slot(_));
            let after = this.ordered && both_commands && other.entry == this.entry;
            let passes = other.order < this.order && (after || other.ranges.conflicts(&this.ranges));
            if passes && !(other.failed && command) {
                self.violations.push(Violation { cycle, early: this.order, passed: other.order });
            }
        }
    }

    /// What was broken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
