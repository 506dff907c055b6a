//! Which records requests name, by seed: YCSB's choices, and a Zipf distribution over the records
//! themselves.

use nearpm_workloads::programs::ycsb::{Zipfian, scatter};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How requests choose records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// YCSB's scrambled one (A, B, C, F): a rank of 10^10, theta 0.99, scattered over the records.
    /// Of requests, 29 % are for ranks behind the first 2^24: they fall on all records alike.
    Scrambled,
    /// Theta 0.99 over the records themselves, popular ones anywhere.
    Zipf,
    /// The newest are the most popular (D).
    Latest,
}

/// Numbers of `count` records below `records`, drawn by several threads.
pub fn draw(choice: Choice, records: u32, count: usize, seed: u64) -> Vec<u32> {
    let zipfian = match choice {
        Choice::Scrambled => Zipfian::of_ranks(),
        Choice::Zipf | Choice::Latest => Zipfian::new(records as usize),
    };
    drawn(count, seed, |random| {
        let rank = zipfian.at(random.random()) as u64;
        match choice {
            Choice::Scrambled => (scatter(rank) % u64::from(records)) as u32,
            Choice::Zipf => (rank.wrapping_mul(0x9e37_79b1) % u64::from(records)) as u32,
            Choice::Latest => records - 1 - rank as u32,
        }
    })
}

/// `count` numbers of `one`, drawn by several threads.
pub fn drawn(count: usize, seed: u64, one: impl Fn(&mut ChaCha8Rng) -> u32 + Sync) -> Vec<u32> {
    let mut drawn = vec![0; count];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let piece = count.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let one = &one;
        for (number, piece) in drawn.chunks_mut(piece).enumerate() {
            scope.spawn(move || {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(number as u64);
                piece.iter_mut().for_each(|place| *place = one(&mut random));
            });
        }
    });
    drawn
}
