//! What one client asks for, by seed.

use std::sync::Arc;

use nearpm_workloads::programs::ycsb::{Zipfian, scatter};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::inserted::Inserted;
use crate::workload::{Distribution, Kind, MOST_SCANNED, Workload};

/// The key of a record, as YCSB names it.
pub fn key(number: u64) -> String {
    format!("user{}", scatter(number))
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub kind: Kind,
    /// Number of the record.
    pub number: u64,
    /// Records that a scan asks for.
    pub count: u64,
}

/// Requests of one client, in their order. The same seed and client ask the same, but for what
/// depends on the other clients' inserts.
pub struct Requests {
    workload: Workload,
    rng: ChaCha8Rng,
    zipfian: Zipfian,
    records: u64,
    inserted: Arc<Inserted>,
}

impl Requests {
    /// For client number `client`, of `records` records (at least one).
    pub fn new(workload: Workload, records: u64, inserted: Arc<Inserted>, seed: u64, client: u64) -> Requests {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(client);
        let zipfian = match workload.distribution() {
            Distribution::Scrambled => Zipfian::of_ranks(),
            Distribution::Ranked | Distribution::Latest => Zipfian::new(records as usize),
        };
        Requests { workload, rng, zipfian, records, inserted }
    }

    /// The next one.
    pub fn draw(&mut self) -> Request {
        let kind = self.workload.kind(self.rng.random_range(0..100));
        let number = if kind == Kind::Insert { self.inserted.take() } else { self.popular() };
        let count = if kind == Kind::Scan { self.rng.random_range(1..=MOST_SCANNED) } else { 1 };
        Request { kind, number, count }
    }

    /// A random number, for what a value holds.
    pub fn nonce(&mut self) -> u64 {
        self.rng.random()
    }

    /// A random number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    fn popular(&mut self) -> u64 {
        let drawn = self.rng.random::<f64>();
        match self.workload.distribution() {
            Distribution::Scrambled => scatter(self.zipfian.at(drawn) as u64) % self.records,
            Distribution::Ranked => self.zipfian.at(drawn) as u64,
            Distribution::Latest => {
                let visible = self.inserted.visible();
                self.zipfian.grow(visible as usize);
                // Of as many as it has grown to, which is as many as are there.
                visible - 1 - self.zipfian.at(drawn) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nearpm_workloads::programs::ycsb::{Mix, RANKS, SUM_OF_RANKS, THETA};

    use super::*;

    const DRAWN: u64 = 200_000;

    fn requests(workload: Workload, records: u64) -> Requests {
        Requests::new(workload, records, Arc::new(Inserted::after(records)), 1, 0)
    }

    /// How often each record is asked for, the most popular one first.
    fn counts(workload: Workload, records: u64) -> Vec<(u64, u64)> {
        let mut requests = requests(workload, records);
        let mut counts: Vec<(u64, u64)> = (0..records).map(|number| (0, number)).collect();
        (0..DRAWN).for_each(|_| counts[requests.draw().number as usize].0 += 1);
        counts.sort_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn keys_are_named_as_ycsb_names_them() {
        assert_eq!(key(0), "user6284781860667377211");
        assert_eq!(key(1), "user8517097267634966620");
    }

    #[test]
    fn the_sum_of_ycsbs_ranks_is_that_of_their_weights() {
        // The first ones one by one, the others by Euler and Maclaurin's formula.
        let first = 1_000_000;
        let (a, b) = (f64::from(first), RANKS as f64);
        let weight = |rank: f64| rank.powf(-THETA);
        let begin: f64 = (1..first).map(|rank| weight(f64::from(rank))).sum();
        let rest = (b.powf(1.0 - THETA) - a.powf(1.0 - THETA)) / (1.0 - THETA) + (weight(a) + weight(b)) / 2.0;
        assert!((begin + rest - SUM_OF_RANKS).abs() < 1e-6, "{}", begin + rest);
    }

    #[test]
    fn scattered_popularity_follows_the_law_and_no_order() {
        let counts = counts(Workload::C, 1000);
        // The share of rank one, and of the others that fall on the same record: 9 999 999 999 over
        // a thousand records.
        let expected = DRAWN as f64 / SUM_OF_RANKS;
        let base = DRAWN as f64 * (1.0 - 1.0 / SUM_OF_RANKS) / 1000.0;
        let top = counts[0].0 as f64;
        assert!(
            top > 0.9 * expected && top < 1.2 * (expected + base),
            "{top}, expected {expected} to {}",
            expected + base
        );
        assert_eq!(counts[0].1, scatter(0) % 1000);
        assert!(counts.iter().all(|&(count, _)| count > 0));
        // The ten most popular ones are not the first ten numbers.
        assert!(counts[..10].iter().filter(|&&(_, number)| number < 10).count() < 3);
    }

    #[test]
    fn the_papers_variants_ask_as_its_programs_do() {
        let counts = counts(Workload::Paper(Mix::Wtail), 1000);
        assert_eq!(counts[..3].iter().map(|&(_, number)| number).collect::<Vec<_>>(), [0, 1, 2]);
        let zeta: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-THETA)).sum();
        let expected = DRAWN as f64 / zeta;
        assert!((counts[0].0 as f64 / expected - 1.0).abs() < 0.05, "{}, expected {expected}", counts[0].0);
    }

    #[test]
    fn the_latest_record_is_the_most_popular_also_when_there_are_more() {
        let mut requests = requests(Workload::D, 100);
        let mut newest = 0;
        let mut reads = 0;
        for _ in 0..20_000 {
            let Request { kind, number, .. } = requests.draw();
            match kind {
                Kind::Insert => requests.inserted.settle(number),
                _ => {
                    let visible = requests.inserted.visible();
                    assert!(number < visible);
                    reads += 1;
                    newest += u64::from(number + 1 == visible);
                }
            }
        }
        assert!(requests.inserted.visible() > 800);
        // Between one of 100 and one of 1100 records' weights.
        let share = newest as f64 / reads as f64;
        assert!((0.12..0.20).contains(&share), "{share}");
    }

    #[test]
    fn records_that_are_not_acknowledged_are_not_read() {
        let mut requests = requests(Workload::D, 10);
        let numbers: Vec<_> = (0..5000).map(|_| requests.draw()).collect();
        assert!(numbers.iter().any(|request| request.kind == Kind::Insert && request.number > 100));
        assert!(numbers.iter().all(|request| request.kind == Kind::Insert || request.number < 10));
    }

    #[test]
    fn kinds_come_in_their_shares_and_the_same_for_the_same_seed() {
        let mut requests_of_f = requests(Workload::F, 50);
        let drawn: Vec<_> = (0..20_000).map(|_| requests_of_f.draw()).collect();
        let reads = drawn.iter().filter(|request| request.kind == Kind::Read).count();
        assert!((9_700..10_300).contains(&reads), "{reads}");
        let mut again = requests(Workload::F, 50);
        assert!(drawn.iter().all(|&request| again.draw() == request));
        let mut other = Requests::new(Workload::F, 50, Arc::new(Inserted::after(50)), 1, 1);
        assert!(drawn.iter().any(|&request| other.draw() != request));
    }
}
