//! The paper's synthetic workload (Fig. 8): gets, a wait, puts, a version.
//!
//! Places are `C_i + s (L/2) p^(1/k)`, where `C_i` is the middle of the rank's part, `s` is 1 or -1
//! and `p` is uniform in [0, 1]. The paper does not say what happens to places that leave the
//! array: here they wrap around.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::array::Array;
use crate::error::Result;
use crate::world::World;

/// Elements of 8 bytes that one access is of: 128 bytes.
pub const ACCESS: u64 = 16;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Versions.
    pub versions: u64,
    /// Gets for each.
    pub reads: u64,
    /// Puts for each.
    pub writes: u64,
    /// Locality: 0.0025 is like radix sort, 0.025 like an N-body simulation, 0.25 like a matrix
    /// multiplication.
    pub k: f64,
    /// Seed of the places.
    pub seed: u64,
}

/// A place of a rank.
fn place(random: &mut ChaCha8Rng, elements: u64, rank: u64, ranks: u64, k: f64) -> u64 {
    let length = elements as f64;
    let middle = length / ranks as f64 * (rank as f64 + 0.5);
    let sign = if random.random_bool(0.5) { 1.0 } else { -1.0 };
    let offset = sign * length / 2.0 * random.random::<f64>().powf(1.0 / k);
    let place = (middle + offset).rem_euclid(length) as u64;
    place.min(elements - 1) / ACCESS * ACCESS
}

/// Runs it on this rank; gives a sum over what was read.
///
/// # Errors
/// Those of the array.
pub fn run(world: &World, array: &Array<u64>, settings: &Settings) -> Result<u64> {
    let (rank, ranks, elements) = (world.rank() as u64, world.ranks() as u64, array.dims()[0]);
    let mut random = ChaCha8Rng::seed_from_u64(settings.seed.wrapping_add(rank));
    let mut buffer = [0; ACCESS as usize];
    let mut sum = 0_u64;
    for version in 0..settings.versions {
        for _ in 0..settings.reads {
            let at = place(&mut random, elements, rank, ranks, settings.k);
            array.get(at..at + ACCESS, &mut buffer)?;
            sum = buffer.iter().fold(sum, |sum, word| sum.wrapping_add(*word));
        }
        array.wait()?;
        for _ in 0..settings.writes {
            let at = place(&mut random, elements, rank, ranks, settings.k);
            // Two puts of one place, also of two ranks, have no order in a version: they put the
            // same.
            buffer.fill((at << 32) + version + 1);
            array.put(at..at + ACCESS, &buffer)?;
        }
        array.version_inc("")?;
    }
    Ok(sum)
}
