//! What happened when: for harnesses that cut the power near it, and for the order monitor.

use super::item::{Item, Ranges};

/// One observed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Card cycle.
    pub cycle: u64,
    /// What happened.
    pub what: What,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A command or host access was numbered: it is in the persistence domain.
    Accepted {
        /// Its slot or line.
        item: Item,
        /// Its order number.
        order: u64,
        /// The lines that it reads and writes.
        ranges: Ranges,
        /// Ordered command: it also waits for all of this mapping entry.
        ordered: bool,
        /// Mapping entry of a command.
        entry: Option<u8>,
    },
    /// A numbered item has to wait for an earlier one.
    Held {
        /// Its slot or line.
        item: Item,
    },
    /// A command went to a unit, or a host access to the memory port.
    Issued {
        /// Its slot or line.
        item: Item,
    },
    /// An item retired and its ranges were released.
    Retired {
        /// Its slot or line.
        item: Item,
        /// Status code of a command; 0 for a host access.
        status: u8,
    },
    /// A command waits for other devices, or behind one that does: it left its slot and holds
    /// nothing.
    Parked {
        /// Its slot.
        item: Item,
    },
    /// A log command failed: it holds its ranges against host accesses from here on.
    Latched {
        /// Its slot.
        item: Item,
    },
    /// The memory answered a write burst.
    Durable {
        /// Device address of its first line.
        address: u64,
        /// Lines.
        beats: u8,
    },
    /// The card's state changed to a value of [`nearpm_interface::registers::state`].
    State(u32),
}
