//! Which records YCSB's requests name: popular ones scattered over all, by seed.

use nearpm_workloads::programs::ycsb::{Zipfian, scatter};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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
        Choice::Scrambled => Zipfian::of_ranks(),
        Choice::Latest => Zipfian::new(records as usize),
    };
    let mut drawn = vec![0; count];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let piece = count.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let zipfian = &zipfian;
        for (number, piece) in drawn.chunks_mut(piece).enumerate() {
            scope.spawn(move || {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(number as u64);
                for record in piece {
                    let rank = zipfian.at(random.random()) as u64;
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
