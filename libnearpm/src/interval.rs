//! Sets of byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of disjoint ranges; ranges that touch are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl IntervalSet {
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, rising.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Whether some byte of `range` is in the set.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.ranges.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start)
    }

    /// The parts of `range` that are not in the set, rising.
    pub fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        let before = self.ranges.range(..=range.start).next_back().map(|(&s, _)| s).unwrap_or(range.start);
        for (&start, &end) in self.ranges.range(before..range.end) {
            if start > at {
                gaps.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&s, &e)) = self.ranges.range(..=end).next_back() {
            if e < start {
                break;
            }
            if s <= range.start && e >= range.end {
                return;
            }
            start = start.min(s);
            end = end.max(e);
            self.ranges.remove(&s);
        }
        self.ranges.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_set_is_the_union_of_what_was_inserted(
            inserts in prop::collection::vec((0u64..200, 0u64..30), 0..30), probe in (0u64..230, 1u64..40),
        ) {
            let mut set = IntervalSet::default();
            let mut model = [false; 300];
            for (start, length) in inserts {
                set.insert(start..start + length);
                model[start as usize..(start + length) as usize].fill(true);
            }
            let from_set: Vec<bool> = (0..300).map(|b| set.iter().any(|r| r.contains(&b))).collect();
            prop_assert_eq!(&from_set[..], &model[..]);
            let ranges: Vec<_> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
            let range = probe.0..probe.0 + probe.1;
            let inside = &model[range.start as usize..range.end as usize];
            prop_assert_eq!(set.overlaps(&range), inside.contains(&true));
            let gaps = set.gaps(&range);
            for byte in range {
                prop_assert_eq!(gaps.iter().any(|g| g.contains(&byte)), !model[byte as usize]);
            }
        }
    }
}
