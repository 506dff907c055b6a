//! Requests of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010): records of ten fields
//! of 100 bytes, keys by popularity.

use std::hash::Hasher;

use fnv::FnvHasher;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Setup;

/// Records at the beginning (the paper's set-up).
const RECORDS: usize = 1_000;
/// Bytes of a record: ten fields of 100, and up to as much again by the names and lengths of
/// fields.
const LEAST_BYTES: usize = 1_000;
/// Bytes that a record may have more than its fields', drawn for each.
pub const MOST_MORE: usize = 400;
/// Skew of the popularity.
pub const THETA: f64 = 0.99;

/// Ranks that YCSB draws before it scatters them over the records
/// (`ScrambledZipfianGenerator.ITEM_COUNT`).
pub const RANKS: usize = 10_000_000_000;
/// Sum of their weights (`ScrambledZipfianGenerator.ZETAN`).
pub const SUM_OF_RANKS: f64 = 26.469_028_201_783_02;

/// The hash that scatters ranks and names keys: 64-bit FNV-1a over eight bytes, low ones first, as
/// a positive number (`Utils.hash`).
pub fn scatter(number: u64) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(&number.to_le_bytes());
    hasher.finish().cast_signed().unsigned_abs()
}

/// What is asked for: the paper's variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mix {
    /// w1: new records only
    #[default]
    W1,
    /// w3: half reads, half updates
    W3,
    /// w4: three quarters reads, the rest updates
    W4,
    /// wtail: updates only
    Wtail,
}

impl Mix {
    /// Every one.
    pub const ALL: [Mix; 4] = [Mix::W1, Mix::W3, Mix::W4, Mix::Wtail];

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Mix::W1 => "w1",
            Mix::W3 => "w3",
            Mix::W4 => "w4",
            Mix::Wtail => "wtail",
        }
    }

    /// Reads among a hundred requests.
    pub fn reads(self) -> u32 {
        match self {
            Mix::W1 | Mix::Wtail => 0,
            Mix::W3 => 50,
            Mix::W4 => 75,
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Key of the record.
    pub key: u64,
    /// The value that is set: its seed and its bytes. `None` reads.
    pub value: Option<(u64, usize)>,
}

/// The bytes of a value.
pub fn value(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (seed.rotate_left((i % 64) as u32) as u8).wrapping_add(i as u8)).collect()
}

/// Weights of the ranks from `first` to `last`.
fn weights(first: usize, last: usize) -> impl Iterator<Item = f64> {
    (first..=last).map(|rank| (rank as f64).powf(-THETA))
}

/// Numbers below `n` whose popularity falls as the power [`THETA`] of their rank (Gray et al.,
/// SIGMOD 1994).
#[derive(Clone)]
pub struct Zipfian {
    n: f64,
    zeta: f64,
    zeta_of_two: f64,
}

impl Zipfian {
    /// For `n` numbers.
    pub fn new(n: usize) -> Zipfian {
        Zipfian::with_sum(n, weights(1, n).sum())
    }

    /// For the ranks that YCSB draws before it scatters them by [`scatter`], of whichever number of
    /// records.
    pub fn of_ranks() -> Zipfian {
        Zipfian::with_sum(RANKS, SUM_OF_RANKS)
    }

    /// For `n` numbers whose weights, the powers of their ranks, are known to add up to `zeta`:
    /// there may be more than one can add up.
    fn with_sum(n: usize, zeta: f64) -> Zipfian {
        Zipfian { n: n as f64, zeta, zeta_of_two: weights(1, 2).sum() }
    }

    /// Numbers there are.
    pub fn count(&self) -> usize {
        self.n as usize
    }

    /// There are `n` numbers from now on; never fewer than before.
    pub fn grow(&mut self, n: usize) {
        self.zeta = weights(self.count() + 1, n).fold(self.zeta, |zeta, weight| zeta + weight);
        self.n = self.n.max(n as f64);
    }

    /// The number at a random `u` in [0, 1).
    pub fn at(&self, u: f64) -> usize {
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.zeta_of_two {
            return 1;
        }
        let alpha = 1.0 / (1.0 - THETA);
        let eta = (1.0 - (2.0 / self.n).powf(1.0 - THETA)) / (1.0 - self.zeta_of_two / self.zeta);
        ((self.n * (eta * u - eta + 1.0).powf(alpha)) as usize).min(self.n as usize - 1)
    }
}

/// Records at the beginning, as requests that set them, and the requests.
pub fn requests(setup: &Setup) -> (Vec<Request>, Vec<Request>) {
    let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
    let records = setup.rows(RECORDS, 16, 6);
    let zipfian = Zipfian::new(records);
    let set = |key: u64, rng: &mut ChaCha8Rng| Request {
        key,
        value: Some((rng.random(), LEAST_BYTES + rng.random_range(0..=MOST_MORE))),
    };
    let first = (0..records as u64).map(|key| set(key, &mut rng)).collect();
    let then = (0..setup.count)
        .map(|i| {
            let popular = zipfian.at(rng.random::<f64>()) as u64;
            let reads = rng.random_range(0..100) < setup.mix.reads();
            match setup.mix {
                Mix::W1 => set((records + i) as u64, &mut rng),
                _ if reads => Request { key: popular, value: None },
                _ => set(popular, &mut rng),
            }
        })
        .collect();
    (first, then)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_the_most_popular_by_as_much_as_the_law_says() {
        let zipfian = Zipfian::new(1000);
        let mut counts = vec![0u32; 1000];
        (0..200_000).for_each(|i| counts[zipfian.at(f64::from(i) / 200_000.0)] += 1);
        for rank in [1, 2, 10, 100] {
            let expected = 200_000.0 * (rank as f64).powf(-THETA) / zipfian.zeta;
            let found = f64::from(counts[rank - 1]);
            assert!((found / expected - 1.0).abs() < 0.2, "rank {rank}: {found}, expected {expected}");
        }
        assert!(counts.iter().all(|&count| count > 0));
    }

    #[test]
    fn one_that_grew_is_as_one_made_so() {
        let mut grown = Zipfian::new(10);
        [11, 11, 5, 400].into_iter().for_each(|n| grown.grow(n));
        let made = Zipfian::new(400);
        assert_eq!(grown.count(), 400);
        assert_eq!(grown.zeta, made.zeta);
        assert!((0..1000).all(|i| grown.at(f64::from(i) / 1000.0) == made.at(f64::from(i) / 1000.0)));
    }
}
