//! What is counted: operations by kind, and their latencies.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::workload::Kind;

/// Digits of a latency that are kept.
const DIGITS: u8 = 3;
/// The longest latency that is told from longer ones: a day, in nanoseconds.
const LONGEST_NS: u128 = 86_400_000_000_000;

/// Operations of one kind.
#[derive(Clone)]
pub struct Count {
    /// Latencies of those that were answered, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Of these, those that did not find their record.
    pub misses: u64,
    /// Of these, those that read what was never written.
    pub wrong: u64,
    /// Operations that the server refused. They have no latency.
    pub errors: u64,
}

impl Default for Count {
    fn default() -> Count {
        // It grows with what is recorded.
        let latencies = Histogram::new(DIGITS).expect("so many digits are allowed");
        Count { latencies, misses: 0, wrong: 0, errors: 0 }
    }
}

/// Operations by kind.
#[derive(Clone, Default)]
pub struct Tally {
    /// Kinds that there were.
    pub kinds: BTreeMap<Kind, Count>,
    /// The first thing that went wrong, for people.
    pub first: Option<String>,
}

impl Tally {
    /// Counts of a kind.
    pub fn of(&mut self, kind: Kind) -> &mut Count {
        self.kinds.entry(kind).or_default()
    }

    /// An operation was answered.
    pub fn answered(&mut self, kind: Kind, latency: Duration, found: bool) {
        let count = self.of(kind);
        let latency_ns = latency.as_nanos().clamp(1, LONGEST_NS) as u64;
        count.latencies.record(latency_ns).expect("it grows");
        count.misses += u64::from(!found);
    }

    /// An operation was refused.
    pub fn refused(&mut self, kind: Kind, why: String) {
        self.of(kind).errors += 1;
        self.first.get_or_insert(why);
    }

    /// An operation that was answered has read what was never written.
    pub fn wrong(&mut self, kind: Kind, why: String) {
        self.of(kind).wrong += 1;
        self.first.get_or_insert(why);
    }

    /// Adds those of another client.
    pub fn add(&mut self, other: &Tally) {
        for (&kind, count) in &other.kinds {
            let sum = self.of(kind);
            sum.latencies.add(&count.latencies).expect("it grows");
            sum.misses += count.misses;
            sum.wrong += count.wrong;
            sum.errors += count.errors;
        }
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }

    /// A sum over all kinds.
    pub fn sum(&self, of: impl Fn(&Count) -> u64) -> u64 {
        self.kinds.values().map(of).sum()
    }

    /// Operations that were answered.
    pub fn operations(&self) -> u64 {
        self.sum(|count| count.latencies.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_add_up() {
        let mut one = Tally::default();
        one.answered(Kind::Read, Duration::from_micros(5), true);
        one.answered(Kind::Read, Duration::from_secs(7200), false);
        let mut other = Tally::default();
        other.answered(Kind::Read, Duration::ZERO, true);
        other.wrong(Kind::Read, "first".to_owned());
        other.refused(Kind::Update, "second".to_owned());
        one.add(&other);
        assert_eq!(one.operations(), 3);
        let read = one.kinds[&Kind::Read].clone();
        assert_eq!((read.misses, read.wrong, read.errors), (1, 1, 0));
        assert_eq!(read.latencies.min(), 1);
        assert!(read.latencies.max() >= 7_200_000_000_000);
        assert_eq!(one.kinds[&Kind::Update].errors, 1);
        assert_eq!(one.first.as_deref(), Some("first"));
    }
}
