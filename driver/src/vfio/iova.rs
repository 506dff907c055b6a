//! Bus addresses: which the card may use, and which are taken.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of addresses, some of them taken.
///
/// Invariants: what is taken lies in the valid ranges, begins and ends at multiples of the
/// alignment, and does not overlap.
pub(crate) struct BusSpace {
    valid: Vec<Range<u64>>,
    /// What addresses and sizes are multiples of, in bytes.
    alignment: u64,
    /// Start to end.
    taken: BTreeMap<u64, u64>,
}

impl BusSpace {
    /// Nothing of these ranges is taken; a range that is none has no addresses.
    pub(crate) fn new(valid: &[Range<u64>], alignment: u64) -> BusSpace {
        BusSpace { valid: valid.to_vec(), alignment, taken: BTreeMap::new() }
    }

    /// Bytes that so many take up.
    pub(crate) fn rounded(&self, bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(self.alignment)
    }

    /// Takes the lowest free range of so many bytes, rounded up, that begins at a multiple of
    /// `alignment` and of the space's own.
    pub(crate) fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let (bytes, alignment) = (self.rounded(bytes)?, alignment.max(self.alignment));
        let start = self.valid.iter().find_map(|range| {
            let mut start = range.start.checked_next_multiple_of(alignment)?;
            for (&taken, &end) in &self.taken {
                if start.checked_add(bytes)? > taken && start < end {
                    start = end.checked_next_multiple_of(alignment)?;
                }
            }
            (start.checked_add(bytes)? <= range.end).then_some(start)
        })?;
        self.taken.insert(start, start + bytes);
        Some(start)
    }

    /// Gives back what begins at an address.
    pub(crate) fn give_back(&mut self, start: u64) {
        self.taken.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bus_addresses_are_aligned_distinct_valid_and_used_again() {
        let valid = [0x1800..0x4000, 0x10_0000..0x10_3000];
        let mut space = BusSpace::new(&valid, 0x1000);
        assert_eq!((space.rounded(0), space.rounded(0x1001)), (Some(0x1000), Some(0x2000)));
        assert_eq!(space.rounded(u64::MAX), None);
        assert_eq!(space.take(0x1000, 1), Some(0x2000));
        assert_eq!(space.take(0x2000, 1), Some(0x10_0000), "the first range has one page left");
        assert_eq!(space.take(0x1000, 1), Some(0x3000));
        assert_eq!(space.take(0x1000, 1), Some(0x10_2000));
        assert_eq!(space.take(0x1000, 1), None);
        space.give_back(0x10_0000);
        assert_eq!(space.take(0x3000, 1), None);
        assert_eq!(space.take(0x1000, 1), Some(0x10_0000));
        assert_eq!(space.take(0x1000, 1), Some(0x10_1000));
        assert_eq!(space.take(u64::MAX, 1), None);
    }

    /// Takes so many bytes at an alignment of a power of two, or gives one back.
    fn steps() -> impl Strategy<Value = Vec<(bool, u64, u32, usize)>> {
        prop::collection::vec((any::<bool>(), 0..0x9000u64, 0..16u32, any::<usize>()), 1..80)
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_what_does_not_fit_is_not_there(
            starts in prop::collection::vec((0..0x40_0000u64, 0..0x2_0000u64), 1..4),
            steps in steps(),
        ) {
            let valid: Vec<_> = starts.iter().map(|&(start, bytes)| start..start + bytes).collect();
            let mut space = BusSpace::new(&valid, 0x1000);
            let mut taken: Vec<Range<u64>> = Vec::new();
            for (take, bytes, log2, which) in steps {
                if !take && !taken.is_empty() {
                    space.give_back(taken.swap_remove(which % taken.len()).start);
                    continue;
                }
                let (alignment, rounded) = (1u64 << log2, space.rounded(bytes).unwrap());
                let is_free = |start: u64| {
                    valid.iter().any(|range| range.start <= start && start + rounded <= range.end)
                        && taken.iter().all(|other| other.end <= start || start + rounded <= other.start)
                };
                let step = alignment.max(0x1000);
                let lowest = (0..0x50_0000 / step).map(|n| n * step).find(|&start| is_free(start));
                let found = space.take(bytes, alignment);
                // The naive allocator looks at each place there is; ranges are asked in their
                // order.
                prop_assert_eq!(found.is_some(), lowest.is_some());
                if let Some(start) = found {
                    prop_assert!(is_free(start) && start.is_multiple_of(step));
                    taken.push(start..start + rounded);
                }
            }
            taken.iter().for_each(|range| space.give_back(range.start));
            let mut all = BusSpace::new(&valid, 0x1000);
            prop_assert_eq!(space.take(0x1000, 1), all.take(0x1000, 1), "everything can be used again");
        }
    }
}
