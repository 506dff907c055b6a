//! Live items: what was numbered and has not retired.

use nearpm_interface::geometry::{HOST_QUEUE_LINES, REQUEST_SLOTS};

/// Where a live item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// A command in a request slot.
    Slot(u8),
    /// A host access in a line of the host queue.
    Line(u8),
}

/// Items that can be live at once: the width of a row of dependency bits.
pub const ITEMS: usize = REQUEST_SLOTS + HOST_QUEUE_LINES;

impl Item {
    /// Position in a row of dependency bits: slots 31:0, lines 95:32.
    pub fn bit(self) -> u32 {
        match self {
            Item::Slot(slot) => slot as u32,
            Item::Line(line) => REQUEST_SLOTS as u32 + line as u32,
        }
    }

    /// The item of a position.
    pub fn from_bit(bit: u32) -> Item {
        match bit.checked_sub(REQUEST_SLOTS as u32) {
            None => Item::Slot(bit as u8),
            Some(line) => Item::Line(line as u8),
        }
    }
}

/// The positions of the command slots in a row.
pub const SLOT_BITS: u128 = (1 << REQUEST_SLOTS) - 1;

/// Lines from `first` to `last`, both included, as line addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First line.
    pub first: u64,
    /// Last line.
    pub last: u64,
}

impl Span {
    /// Touches nothing.
    pub const NONE: Span = Span { first: 1, last: 0 };

    /// The lines that `bytes` at a device address touch.
    pub fn of(address: u64, bytes: u64) -> Span {
        match bytes {
            0 => Span::NONE,
            _ => Span { first: address / 64, last: (address + bytes - 1) / 64 },
        }
    }

    /// Number of lines.
    pub fn lines(self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Number of lines that are common to both.
    pub fn common(self, other: Span) -> u64 {
        Span { first: self.first.max(other.first), last: self.last.min(other.last) }.lines()
    }

    /// Whether a line is common to both.
    #[inline]
    pub fn meets(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last && self.first <= self.last && other.first <= other.last
    }
}

/// What an item reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// Lines read.
    pub read: Span,
    /// Lines written: destination, auxiliary.
    pub write: [Span; 2],
}

impl Ranges {
    /// Touches nothing.
    pub const NONE: Ranges = Ranges { read: Span::NONE, write: [Span::NONE; 2] };

    /// A host access to one line.
    pub fn line(address: u64, write: bool) -> Ranges {
        let line = Span::of(address, 1);
        match write {
            true => Ranges { write: [line, Span::NONE], ..Ranges::NONE },
            false => Ranges { read: line, ..Ranges::NONE },
        }
    }

    /// Whether both touch a common line and at least one writes it.
    #[inline]
    pub fn conflicts(&self, other: &Ranges) -> bool {
        let [a, b] = self.write;
        let [c, d] = other.write;
        a.meets(c)
            || a.meets(d)
            || b.meets(c)
            || b.meets(d)
            || self.read.meets(c)
            || self.read.meets(d)
            || a.meets(other.read)
            || b.meets(other.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_one_line_do_not_conflict_and_everything_else_does() {
        let (load, store) = (Ranges::line(128, false), Ranges::line(128, true));
        assert!(!load.conflicts(&load));
        assert!(load.conflicts(&store) && store.conflicts(&load) && store.conflicts(&store));
        assert!(!store.conflicts(&Ranges::line(192, true)));
        let copy = Ranges { read: Span::of(60, 8), write: [Span::of(1024, 64), Span::NONE] };
        assert!(copy.conflicts(&Ranges::line(64, true)) && !copy.conflicts(&Ranges::line(64, false)));
        assert!(!Ranges::NONE.conflicts(&store));
    }

    #[test]
    fn positions_name_items_both_ways() {
        assert!((0..ITEMS as u32).all(|bit| Item::from_bit(bit).bit() == bit));
    }
}
