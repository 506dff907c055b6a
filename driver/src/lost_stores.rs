//! Stores that memory refused, as registers and errors tell of them.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;

/// Stores that memory refused after the card had accepted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostStores {
    /// How many.
    pub count: u32,
    /// Lowest device address of their lines.
    pub first: u64,
    /// Highest device address of their lines.
    pub last: u64,
}

impl LostStores {
    /// The bytes from the first lost line to the last one, as far as they lie in a range of device
    /// addresses; `None` where none does.
    pub fn within(&self, place: &Range<u64>) -> Option<Range<u64>> {
        let lost = self.first.max(place.start)..self.last.saturating_add(LINE_U64).min(place.end);
        (lost.start < lost.end).then_some(lost)
    }
}
