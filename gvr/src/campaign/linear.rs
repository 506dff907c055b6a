//! Whether what ranks saw of one element is what some order of their operations gives.

use std::collections::HashSet;

/// What an operation did to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Stored a value.
    Write(u64),
    /// Saw a value.
    Read(u64),
    /// Added to it.
    Add(u64),
    /// Compare-and-swap: expected, new, seen.
    Swap(u64, u64, u64),
}

/// An operation on one element, from when it began to when it was sure to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The rank that did it.
    pub rank: usize,
    /// When it began.
    pub start: u64,
    /// When it had ended.
    pub end: u64,
    /// What it did.
    pub act: Act,
    /// It failed, and may have happened or not.
    pub maybe: bool,
}

impl Act {
    /// The value behind it, if it can happen at `value`.
    fn apply(self, value: u64) -> Option<u64> {
        match self {
            Act::Write(new) => Some(new),
            Act::Read(seen) => (seen == value).then_some(value),
            Act::Add(more) => Some(value.wrapping_add(more)),
            Act::Swap(expected, new, seen) => (seen == value).then_some(if value == expected { new } else { value }),
        }
    }
}

/// Whether there is an order of the events that keeps to their times, in which each saw what it
/// did, beginning with 0 (Wing and Gong, 1993; states that were seen are not gone into again, as
/// Lowe, 2017).
///
/// # Panics
/// For more than 128 events.
pub fn is_linearizable(events: &[Event]) -> bool {
    assert!(events.len() <= 128, "a history of {} events is too long", events.len());
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.start);
    let mut seen = HashSet::new();
    let mut open = vec![(0_u128, 0_u64)];
    while let Some((done, value)) = open.pop() {
        if events.iter().enumerate().all(|(at, event)| event.maybe || done >> at & 1 == 1) {
            return true;
        }
        if !seen.insert((done, value)) {
            continue;
        }
        let left = || events.iter().enumerate().filter(|(at, _)| done >> at & 1 == 0);
        let first_end = left().map(|(_, event)| event.end).min().unwrap_or(u64::MAX);
        for (at, event) in left().take_while(|(_, event)| event.start <= first_end) {
            if let Some(next) = event.act.apply(value) {
                open.push((done | 1 << at, next));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(start: u64, end: u64, act: Act) -> Event {
        Event { rank: 0, start, end, act, maybe: false }
    }

    #[test]
    fn what_failed_may_have_happened_or_not() {
        let failed = Event { maybe: true, ..event(0, u64::MAX, Act::Write(1)) };
        assert!(is_linearizable(&[failed, event(2, 3, Act::Read(0))]));
        assert!(is_linearizable(&[failed, event(2, 3, Act::Read(0)), event(4, 5, Act::Read(1))]));
        assert!(!is_linearizable(&[failed, event(2, 3, Act::Read(1)), event(4, 5, Act::Read(0))]));
    }

    #[test]
    fn orders_are_found_where_there_are_some() {
        let write = event(0, 10, Act::Write(1));
        assert!(is_linearizable(&[write, event(2, 3, Act::Read(0)), event(4, 5, Act::Read(1))]));
        assert!(!is_linearizable(&[write, event(2, 3, Act::Read(1)), event(4, 5, Act::Read(0))]), "time ran backwards");
        assert!(!is_linearizable(&[write, event(11, 12, Act::Read(0))]), "a write was lost");
        assert!(!is_linearizable(&[write, event(2, 3, Act::Read(7))]), "out of thin air");
        assert!(is_linearizable(&[event(0, 9, Act::Add(2)), event(0, 9, Act::Add(3)), event(10, 11, Act::Read(5))]));
        assert!(!is_linearizable(&[event(0, 9, Act::Add(2)), event(0, 9, Act::Add(3)), event(10, 11, Act::Read(3))]));
        assert!(!is_linearizable(&[event(0, 9, Act::Swap(0, 1, 0)), event(0, 9, Act::Swap(0, 2, 0))]), "both won");
        assert!(is_linearizable(&[event(0, 9, Act::Swap(0, 1, 0)), event(0, 9, Act::Swap(0, 2, 1))]));
    }
}
