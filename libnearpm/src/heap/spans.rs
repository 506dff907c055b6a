//! Free chunks of a heap.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::media::{PAGE_BYTES, PoolHead};

use crate::heap::HeapLayout;

/// Runs of neighbouring free chunks: first chunk and number, joined where they touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    spans: BTreeMap<u32, u32>,
    free: u64,
}

impl Spans {
    /// Free chunks.
    pub fn chunks(&self) -> u64 {
        self.free
    }

    /// Gives chunks back.
    ///
    /// # Panics
    /// If one of them is free already.
    pub fn add(&mut self, mut chunk: u32, mut chunks: u32) {
        self.free += u64::from(chunks);
        if let Some((&start, &number)) = self.spans.range(..chunk).next_back() {
            assert!(start + number <= chunk, "free chunks do not overlap");
            if start + number == chunk {
                self.spans.remove(&start);
                chunk = start;
                chunks += number;
            }
        }
        if let Some(number) = self.spans.remove(&(chunk + chunks)) {
            chunks += number;
        }
        self.spans.insert(chunk, chunks);
    }

    /// Takes the lowest chunks that are free in one piece.
    pub fn take(&mut self, chunks: u32) -> Option<u32> {
        let (&chunk, &number) = self.spans.iter().find(|&(_, &number)| number >= chunks)?;
        Some(self.cut(chunk, number, chunk, chunks))
    }

    /// Takes the lowest chunks that are free in one piece of which the first is in a range.
    pub fn take_in(&mut self, range: Range<u32>, chunks: u32) -> Option<u32> {
        let before = self.spans.range(..=range.start).next_back();
        let (span, number, first) = before
            .into_iter()
            .chain(self.spans.range(range.start + 1..range.end))
            .map(|(&span, &number)| (span, number, span.max(range.start)))
            .find(|&(span, number, first)| first + chunks <= span + number)?;
        Some(self.cut(span, number, first, chunks))
    }

    /// Takes chunks out of a span.
    fn cut(&mut self, span: u32, number: u32, first: u32, chunks: u32) -> u32 {
        self.spans.remove(&span);
        self.free -= u64::from(chunks);
        let (before, end) = (first - span, first + chunks);
        if before > 0 {
            self.spans.insert(span, before);
        }
        if end < span + number {
            self.spans.insert(end, span + number - end);
        }
        first
    }
}

/// New chunks go to the members of a striped pool in turn, so that all cards have work.
pub(crate) struct Spread {
    members: u64,
    stripe: u64,
    /// Stripes of the heap.
    stripes: u64,
    /// Member of the next chunk.
    next: u64,
}

impl Spread {
    pub fn of(head: &PoolHead) -> Option<Spread> {
        let (members, stripe) = (u64::from(head.members), u64::from(head.stripe));
        (members > 1).then(|| Spread { members, stripe, stripes: head.pages * PAGE_BYTES / stripe, next: 0 })
    }

    /// The chunks of the stripes of the member whose turn it is, which it was.
    pub fn stripes(&mut self, layout: &HeapLayout) -> impl Iterator<Item = Range<u32>> + use<> {
        let (layout, stripe, first) = (*layout, self.stripe, self.next);
        self.next = (self.next + 1) % self.members;
        (first..self.stripes).step_by(self.members as usize).map(move |n| layout.chunks_of(n, stripe))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_taken_was_free_and_is_the_lowest_of_its_range(
            taken in prop::collection::btree_set(0u32..40, 0..40), start in 0u32..40, width in 1u32..20, chunks in 1u32..6,
        ) {
            let mut spans = Spans::default();
            (0..40).filter(|chunk| !taken.contains(chunk)).for_each(|chunk| spans.add(chunk, 1));
            let free = |chunk: u32| chunk < 40 && !taken.contains(&chunk);
            let fits = |&first: &u32| (first..first + chunks).all(free);
            let expected = (start..start + width).find(fits);
            let before = spans.chunks();
            prop_assert_eq!(spans.take_in(start..start + width, chunks), expected);
            if let Some(first) = expected {
                prop_assert_eq!(spans.chunks(), before - u64::from(chunks));
                spans.add(first, chunks);
            }
            let mut all = Spans::default();
            (0..40).filter(|&chunk| free(chunk)).for_each(|chunk| all.add(chunk, 1));
            prop_assert_eq!(spans, all);
        }
    }
}
