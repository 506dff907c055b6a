//! Sets of byte ranges.

use std::ops::Range;

/// Most ranges of a block. An insertion moves at most so many.
const BLOCK: usize = 128;

/// A set of disjoint ranges; ranges that touch are one.
///
/// Sorted blocks, of which all but a lonely one hold something. Most transactions have few ranges, neighbours of the last ones: these lie
/// in one vector, which keeps its memory when it is cleared. One that moves a whole hash table has tens of thousands in any order.
#[derive(Clone, Debug)]
pub(crate) struct IntervalSet {
    /// Start and end, rising from block to block.
    blocks: Vec<Vec<(u64, u64)>>,
}

impl Default for IntervalSet {
    fn default() -> IntervalSet {
        IntervalSet { blocks: vec![Vec::new()] }
    }
}

/// A place in the blocks: block, index.
type Place = (usize, usize);

impl IntervalSet {
    pub fn clear(&mut self) {
        self.blocks.truncate(1);
        self.blocks[0].clear();
    }

    /// Ranges.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Makes the set one range, from the first byte to the last.
    pub fn join(&mut self) {
        let ends = self.blocks.last().and_then(|block| block.last()).copied();
        if let (Some(&(start, _)), Some((_, end))) = (self.blocks[0].first(), ends) {
            self.clear();
            self.blocks[0].push((start, end));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks[0].is_empty()
    }

    /// The ranges, rising.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        self.from((0, 0)).map(|(start, end)| start..end)
    }

    /// Start and end of the ranges from a place on.
    #[inline]
    fn from(&self, (block, index): Place) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let rest = self.blocks.get(block).map_or(&[][..], |ranges| &ranges[index..]);
        rest.iter().chain(self.blocks.iter().skip(block + 1).flatten()).copied()
    }

    /// The first place whose range is not `before` what is looked for.
    #[inline]
    fn seek(&self, before: impl Fn(&(u64, u64)) -> bool) -> Place {
        let all_before = |block: &Vec<(u64, u64)>| block.last().is_some_and(&before);
        let block = if self.blocks.len() == 1 { 0 } else { self.blocks.partition_point(all_before) };
        (block, self.blocks.get(block).map_or(0, |ranges| ranges.partition_point(before)))
    }

    /// The first range that ends behind `at`.
    #[inline]
    fn behind(&self, at: u64) -> Place {
        self.seek(|&(_, end)| end <= at)
    }

    /// Whether some byte of `range` is in the set.
    #[inline]
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.from(self.behind(range.start)).next().is_some_and(|(start, _)| start < range.end)
    }

    /// Whether every byte of `range` is in the set.
    #[inline]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self
                .from(self.behind(range.start))
                .next()
                .is_some_and(|(start, end)| start <= range.start && range.end <= end)
    }

    /// Adds the parts of `range` that are not in the set to `gaps`, rising.
    #[inline]
    pub fn gaps(&self, range: &Range<u64>, gaps: &mut Vec<Range<u64>>) {
        let mut at = range.start;
        for (start, end) in self.from(self.behind(range.start)) {
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
        let place = self.seek(|&(_, end)| end < range.start);
        let touching = self.from(place).take_while(|&(start, _)| start <= range.end);
        let union = |(count, start, end): (usize, u64, u64), (s, e): (u64, u64)| (count + 1, start.min(s), end.max(e));
        let (count, start, end) = touching.fold((0, range.start, range.end), union);
        if count == 0 {
            return self.put(place, (start, end));
        }
        for _ in 1..count {
            self.take_behind(place);
        }
        self.blocks[place.0][place.1] = (start, end);
    }

    /// Puts a range at a place.
    #[inline]
    fn put(&mut self, (block, index): Place, range: (u64, u64)) {
        // Behind everything: into the last block.
        let last = self.blocks.len() - 1;
        let (block, index) = if block > last { (last, self.blocks[last].len()) } else { (block, index) };
        let ranges = &mut self.blocks[block];
        ranges.insert(index, range);
        if ranges.len() > BLOCK {
            let upper = ranges.split_off(BLOCK / 2);
            self.blocks.insert(block + 1, upper);
        }
    }

    /// Takes away the range behind the one at a place.
    fn take_behind(&mut self, (block, index): Place) {
        if index + 1 < self.blocks[block].len() {
            self.blocks[block].remove(index + 1);
        } else {
            self.blocks[block + 1].remove(0);
            if self.blocks[block + 1].is_empty() {
                self.blocks.remove(block + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Short enough that most insertions touch no other, so that there are several blocks.
    const SPREAD: u64 = 5;

    proptest! {
        #[test]
        fn the_set_is_the_union_of_what_was_inserted(
            inserts in prop::collection::vec((0u64..4000, 0u64..SPREAD), 0..1500), probe in (0u64..4030, 1u64..40),
        ) {
            let mut set = IntervalSet::default();
            let mut model = [false; 4100];
            for (start, length) in inserts {
                set.insert(start..start + length);
                model[start as usize..(start + length) as usize].fill(true);
            }
            let from_set: Vec<bool> = {
                let mut bytes = vec![false; 4100];
                set.iter().for_each(|r| bytes[r.start as usize..r.end as usize].fill(true));
                bytes
            };
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
