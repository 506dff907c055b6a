//! A few ranges of bytes.

use std::ops::Range;

/// Disjoint ranges, rising; those that touch are one.
#[derive(Default)]
pub(super) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// The first range that ends at `at` or behind it.
    fn first(&self, at: u64) -> usize {
        self.0.partition_point(|range| range.end < at)
    }

    /// Adds a range.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        let (from, mut to, mut range) = (self.first(range.start), self.first(range.start), range);
        while self.0.get(to).is_some_and(|next| next.start <= range.end) {
            range = range.start.min(self.0[to].start)..range.end.max(self.0[to].end);
            to += 1;
        }
        self.0.splice(from..to, [range]);
    }

    /// Gives the parts of a range that are not here to `each`.
    pub(super) fn gaps(&self, range: &Range<u64>, mut each: impl FnMut(Range<u64>)) {
        let mut at = range.start;
        for have in &self.0[self.first(range.start)..] {
            if have.start >= range.end {
                break;
            }
            if at < have.start {
                each(at..have.start);
            }
            at = at.max(have.end);
        }
        if at < range.end {
            each(at..range.end);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_as_a_set_of_bytes() {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let (mut ranges, mut model) = (Ranges::default(), [false; 100]);
            for _ in 0..12 {
                let start = next(90);
                let range = start..start + 1 + next(10);
                let mut gaps = Vec::new();
                ranges.gaps(&range, |gap| gaps.extend(gap));
                let wanted: Vec<u64> = range.clone().filter(|&at| !model[at as usize]).collect();
                assert_eq!(gaps, wanted);
                model[range.start as usize..range.end as usize].fill(true);
                ranges.insert(range);
                assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", ranges.0);
            }
        }
    }
}
