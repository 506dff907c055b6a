//! Checks a trace against the order rules of Partitioned Persist Ordering.
//!
//! Invariants 1 and 2 of NearPM (section 4) say that accesses of host and card to a shared line
//! happen, and persist, in program order. Order numbers are the order of arrival, so both hold if
//! no item is issued while a conflicting item with a lower number is live: it has read what it
//! reads and its writes were answered only once it retired. Ordered commands wait for every earlier
//! command of their mapping entry in the same way. That *retired* means *answered* (rule C2 of
//! `docs/contract.md`) is checked as well: between issue and retirement the memory answered a write
//! of every line that the item writes.

use std::collections::BTreeMap;

use super::item::{Item, Ranges, Span};
use super::trace::{Event, What};

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An item was issued while an earlier one that it has to wait for was live.
    Passed {
        /// Cycle of the issue.
        cycle: u64,
        /// Order number of the item that went too early.
        early: u64,
        /// Order number of the item that it passed.
        passed: u64,
    },
    /// An item retired before the memory had answered all its writes.
    ReleasedEarly {
        /// Cycle of the retirement.
        cycle: u64,
        /// Order number of the item.
        early: u64,
        /// Lines that it writes and that were not answered.
        missing: u64,
    },
}

#[derive(Clone, Copy)]
struct Live {
    order: u64,
    ranges: Ranges,
    ordered: bool,
    entry: Option<u8>,
    /// A failed log holds host accesses only.
    failed: bool,
    issued: bool,
    /// Lines of its writes that the memory has answered since its issue.
    durable: u64,
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
                    self.live
                        .insert(item, Live { order, ranges, ordered, entry, failed: false, issued: false, durable: 0 });
                }
                What::Issued { item } => self.check(event.cycle, item),
                What::Retired { item, status } => self.retire(event.cycle, item, status),
                What::Parked { item } => _ = self.live.remove(&item),
                What::Latched { item } => {
                    if let Some(live) = self.live.get_mut(&item) {
                        live.failed = true;
                    }
                }
                What::Durable { address, beats } => self.answer(Span::of(address, beats as u64 * 64)),
                What::Held { .. } | What::State(_) => {}
            }
        }
    }

    fn check(&mut self, cycle: u64, item: Item) {
        self.issued += 1;
        let Some(this) = self.live.get_mut(&item) else { return };
        this.issued = true;
        let this = *this;
        let command = matches!(item, Item::Slot(_));
        for (other_item, other) in &self.live {
            let both_commands = command && matches!(other_item, Item::Slot(_));
            let after = this.ordered && both_commands && other.entry == this.entry;
            let passes = other.order < this.order && (after || other.ranges.conflicts(&this.ranges));
            if passes && !(other.failed && command) {
                self.violations.push(Violation::Passed { cycle, early: this.order, passed: other.order });
            }
        }
    }

    /// The memory answered a write. No two items that write a line are issued at once, so it is
    /// known whose it was.
    fn answer(&mut self, written: Span) {
        for live in self.live.values_mut().filter(|l| l.issued) {
            live.durable += live.ranges.write.iter().map(|w| w.common(written)).sum::<u64>();
        }
    }

    fn retire(&mut self, cycle: u64, item: Item, status: u8) {
        let Some(live) = self.live.remove(&item) else { return };
        let lines: u64 = live.ranges.write.iter().map(|w| w.lines()).sum();
        if status == 0 && live.durable < lines {
            let missing = lines - live.durable;
            self.violations.push(Violation::ReleasedEarly { cycle, early: live.order, missing });
        }
    }

    /// What was broken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
