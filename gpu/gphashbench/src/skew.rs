//! Which records YCSB's requests name: popular ones scattered over all, by seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Ranks that YCSB draws before it scatters them over the records (`ScrambledZipfianGenerator.ITEM_COUNT`), and the sum of their weights (`ZETAN`).
const RANKS: f64 = 1e10;
const SUM: f64 = 26.469_028_201_783_02;
/// Exponent of the ranks' weights.
const THETA: f64 = 0.99;

/// Draws ranks by the method of Gray and others (SIGMOD 1994), as YCSB does.
#[derive(Clone, Copy)]
struct Zipfian {
    ranks: f64,
    sum: f64,
}

impl Zipfian {
    fn at(self, drawn: f64) -> u64 {
        let weight = |rank: f64| rank.powf(-THETA);
        let of_two = 1.0 + weight(2.0);
        let scaled = drawn * self.sum;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < of_two {
            return 1;
        }
        let eta = (1.0 - (2.0 / self.ranks).powf(1.0 - THETA)) / (1.0 - of_two / self.sum);
        ((self.ranks * (eta * drawn - eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64).min(self.ranks as u64 - 1)
    }
}

/// 64-bit FNV-1a over eight bytes, low ones first, as a positive number (`Utils.hash`).
fn scatter(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash.cast_signed().unsigned_abs()
}

/// How requests choose records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Popular ones anywhere, theta 0.99 (A, B, C, F).
    Scrambled,
    /// The newest are the most popular (D).
    Latest,
}

/// Numbers of `count` records below `records`, drawn by several threads.
pub fn draw(choice: Choice, records: u32, count: usize, seed: u64) -> Vec<u32> {
    let zipfian = match choice {
        Choice::Scrambled => Zipfian { ranks: RANKS, sum: SUM },
        Choice::Latest => {
            Zipfian { ranks: records.into(), sum: (1..=records).map(|rank| f64::from(rank).powf(-THETA)).sum() }
        }
    };
    let mut drawn = vec![0; count];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let piece = count.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (number, piece) in drawn.chunks_mut(piece).enumerate() {
            scope.spawn(move || {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(number as u64);
                for record in piece {
                    let rank = zipfian.at(random.random());
                    *record = match choice {
                        Choice::Scrambled => (scatter(rank) % u64::from(records)) as u32,
                        Choice::Latest => records - 1 - rank as u32,
                    };
                }
            });
        }
    });
    drawn
}
