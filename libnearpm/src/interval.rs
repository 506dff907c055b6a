//! Sets of byte ranges.

use std::ops::Range;

/// A set of disjoint ranges; ranges that touch are one.
///
/// A sorted vector: transactions have few ranges, mostly neighbours of the last ones, and a cleared vector keeps its memory. An
/// insertion in front of many ranges moves them; a log ring of the default size bounds that to some kilobytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    /// Start and end, rising.
    ranges: Vec<(u64, u64)>,
}

impl IntervalSet {
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Makes the set one range, from the first byte to the last.
    pub fn join(&mut self) {
        if let (Some(&(start, _)), Some(&(_, end))) = (self.ranges.first(), self.ranges.last()) {
            self.ranges.clear();
            self.ranges.push((start, end));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, rising.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        self.ranges.iter().map(|&(start, end)| start..end)
    }

    /// Index of the first range that ends behind `at`.
    #[inline]
    fn behind(&self, at: u64) -> usize {
        self.ranges.partition_point(|&(_, end)| end <= at)
    }

    /// Whether some byte of `range` is in the set.
    #[inline]
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.ranges.get(self.behind(range.start)).is_some_and(|&(start, _)| start < range.end)
    }

    /// Whether every byte of `range` is in the set.
    #[inline]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self
                .ranges
                .get(self.behind(range.start))
                .is_some_and(|&(start, end)| start <= range.start && range.end <= end)
    }

    /// Adds the parts of `range` that are not in the set to `gaps`, rising.
    #[inline]
    pub fn gaps(&self, range: &Range<u64>, gaps: &mut Vec<Range<u64>>) {
        let mut at = range.start;
        for &(start, end) in &self.ranges[self.behind(range.start)..] {
            if start >= range.end {
                break;
            }
            if start > at {
                gaps.push(at..start);
            }
            at = end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
    }

    /// Adds a range.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // The ranges that touch this one become one with it.
        let first = self.ranges.partition_point(|&(_, end)| end < range.start);
        let last = first + self.ranges[first..].partition_point(|&(start, _)| start <= range.end);
        match &mut self.ranges[first..last] {
            [] => self.ranges.insert(first, (range.start, range.end)),
            [only] => *only = (only.0.min(range.start), only.1.max(range.end)),
            several => {
                let end = several[several.len() - 1].1.max(range.end);
                several[0] = (several[0].0.min(range.start), end);
                self.ranges.drain(first + 1..last);
            }
        }
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
            prop_assert_eq!(set.covers(&range), !inside.contains(&false));
            let mut gaps = Vec::new();
            set.gaps(&range, &mut gaps);
            for byte in range {
                prop_assert_eq!(gaps.iter().any(|g| g.contains(&byte)), !model[byte as usize]);
            }
        }
    }
}
