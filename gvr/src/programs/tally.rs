//! A Monte-Carlo tally in the manner of OpenMC's: particles walk through cells and add to the tally
//! where they collide; a version a batch.
//!
//! The tally counts in integers, so that its contents do not depend on the order in which ranks
//! add.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Op;
use crate::array::Array;
use crate::error::Result;
use crate::world::World;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Batches, each of which makes a version.
    pub batches: u64,
    /// Particles of all ranks in a batch.
    pub particles: u64,
    /// Random numbers that a collision costs beside its own: the physics that is not simulated.
    pub work: u64,
    /// Nanoseconds of virtual time that a collision costs.
    pub compute: u64,
    /// Seed.
    pub seed: u64,
}

/// Runs this rank's share; gives how often its particles collided.
///
/// # Errors
/// Those of the array.
pub fn run(world: &World, tally: &Array<u64>, settings: &Settings) -> Result<u64> {
    let (rank, ranks, cells) = (world.rank() as u64, world.ranks() as u64, tally.dims()[0]);
    let mut collisions = 0;
    for batch in 0..settings.batches {
        for particle in (rank..settings.particles).step_by(ranks as usize) {
            let seed = settings.seed.wrapping_add(batch * settings.particles + particle);
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut cell = random.random_range(0..cells);
            loop {
                let spent = (0..settings.work).fold(0_u64, |sum, _| sum ^ random.random::<u64>());
                let energy = 1 + (random.random_range(0..1000) ^ (spent & 1));
                world.compute(settings.compute)?;
                tally.accumulate(cell..=cell, &[energy], Op::Sum)?;
                collisions += 1;
                if random.random_bool(0.2) {
                    break;
                }
                let step = random.random_range(1..=64);
                cell = if random.random_bool(0.5) { (cell + step) % cells } else { (cell + cells - step) % cells };
            }
        }
        tally.version_inc(&format!("batch {batch}"))?;
    }
    Ok(collisions)
}
