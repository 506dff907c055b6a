//! Sets of byte ranges.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::ops::Range;

use crate::blocks::{Blocks, Position};

/// What a set has of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Every byte.
    All,
    /// Some bytes.
    Part,
    /// No byte: here the range would be.
    Nothing(Position),
}

/// A set of disjoint ranges; ranges that touch are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    /// Start and end, rising.
    ranges: Blocks<(u64, u64)>,
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
        if let Some(((start, _), (_, end))) = self.ranges.ends() {
            self.clear();
            self.insert(start..end);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, rising.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        self.ranges.from((0, 0)).map(|(start, end)| start..end)
    }

    /// The first range that ends behind `at`.
    #[inline]
    fn behind(&self, at: u64) -> Position {
        self.ranges.seek(|&(_, end)| end <= at)
    }

    /// Whether some byte of `range` is in the set.
    #[inline]
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.ranges.get(self.behind(range.start)).is_some_and(|&(start, _)| start < range.end)
    }

    /// Whether every byte of `range` is in the set.
    #[inline]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let first = || self.ranges.get(self.behind(range.start));
        range.is_empty() || first().is_some_and(|&(start, end)| start <= range.start && range.end <= end)
    }

    /// What the set has of a range that is not empty.
    #[inline]
    pub fn overlap(&self, range: &Range<u64>) -> Overlap {
        let position = self.behind(range.start);
        match self.ranges.get(position) {
            Some(&(start, end)) if start <= range.start && range.end <= end => Overlap::All,
            Some(&(start, _)) if start < range.end => Overlap::Part,
            _ => Overlap::Nothing(position),
        }
    }

    /// Adds a range that is not empty, at the position that [`IntervalSet::overlap`] gave for it
    /// since the last change.
    #[inline]
    pub fn insert_at(&mut self, position: Position, range: Range<u64>) {
        let touches = self.ranges.get(position).is_some_and(|&(start, _)| start == range.end)
            || self.ranges.before(position).is_some_and(|&(_, end)| end == range.start);
        if touches {
            return self.insert(range);
        }
        self.ranges.put(position, (range.start, range.end));
    }

    /// Hands on the parts of `range` that are not in the set, rising, until one is refused.
    #[inline]
    fn each_gap<E>(&self, range: &Range<u64>, mut each: impl FnMut(Range<u64>) -> Result<(), E>) -> Result<(), E> {
        if self.is_empty() {
            return if range.is_empty() { Ok(()) } else { each(range.clone()) };
        }
        let mut at = range.start;
        for (start, end) in self.ranges.from(self.behind(range.start)) {
            if start >= range.end {
                break;
            }
            if start > at {
                each(at..start)?;
            }
            at = end;
        }
        if at < range.end { each(at..range.end) } else { Ok(()) }
    }

    /// Adds the parts of `range` that are not in the set to `gaps`, rising.
    pub fn gaps(&self, range: &Range<u64>, gaps: &mut Vec<Range<u64>>) {
        let Ok(()) = self.each_gap(range, |gap| {
            gaps.push(gap);
            Ok::<(), Infallible>(())
        });
    }

    /// As [`IntervalSet::gaps`], for as many as there may be: `gaps` grows only where there is
    /// memory. After an error some are there.
    #[inline]
    pub fn try_gaps(&self, range: &Range<u64>, gaps: &mut Vec<Range<u64>>) -> Result<(), TryReserveError> {
        self.each_gap(range, |gap| {
            gaps.try_reserve(1)?;
            gaps.push(gap);
            Ok(())
        })
    }

    /// Makes room for one more range.
    #[inline]
    pub fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        self.ranges.try_reserve()
    }

    /// Adds a range.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // What comes next is mostly behind everything, or continues the last one.
        match self.ranges.last_mut() {
            Some((start, _)) if range.start < *start => self.insert_among(range),
            Some((_, end)) if range.start <= *end => *end = range.end.max(*end),
            _ => self.ranges.push((range.start, range.end)),
        }
    }

    /// Adds a range that begins in front of the last one.
    fn insert_among(&mut self, range: Range<u64>) {
        // The ranges that touch this one become one with it.
        let position = self.ranges.seek(|&(_, end)| end < range.start);
        let touching = self.ranges.from(position).take_while(|&(start, _)| start <= range.end);
        let union = |(count, start, end): (usize, u64, u64), (s, e): (u64, u64)| (count + 1, start.min(s), end.max(e));
        let (count, start, end) = touching.fold((0, range.start, range.end), union);
        if count == 0 {
            return self.ranges.put(position, (start, end));
        }
        for _ in 1..count {
            self.ranges.take(self.ranges.next(position));
        }
        self.ranges.set(position, (start, end));
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
                match set.overlap(&(start..start + length)) {
                    Overlap::Nothing(position) if length > 0 => set.insert_at(position, start..start + length),
                    _ => set.insert(start..start + length),
                }
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
            prop_assert_eq!(set.overlap(&range) == Overlap::All, set.covers(&range));
            prop_assert_eq!(set.overlap(&range) != Overlap::Part, set.covers(&range) || !set.overlaps(&range));
            let mut gaps = Vec::new();
            set.gaps(&range, &mut gaps);
            for byte in range {
                prop_assert_eq!(gaps.iter().any(|g| g.contains(&byte)), !model[byte as usize]);
            }
        }
    }
}
