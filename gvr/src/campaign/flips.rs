//! Flipped bits: in a closed version's blocks in memory, or in what a pool holds of them. A scrub
//! finds and mends each.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::array::{Keep, Options};
use crate::error::{Error, Result};
use crate::persist::{Job, Memories};
use crate::rma::local::{self, Schedule};
use crate::world::World;

/// What flips were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Bits that were flipped.
    pub flips: u64,
    /// Blocks that were mended.
    pub mended: u64,
}

const COUNT: u64 = 64;

/// Makes a job of a seed, flips bits one at a time, and scrubs after each.
///
/// # Errors
/// What is wrong, in words.
pub fn play(seed: u64, flips: u64) -> std::result::Result<Covered, String> {
    let memories = Memories::default();
    let (given, _) =
        local::run(1, 1 << 18, &Schedule::of_seed(seed), |local| one(&World::new(local), &memories, seed, flips));
    given.into_iter().next().unwrap_or_else(|| Err(Error::option("no rank ran"))).map_err(|error| error.to_string())?
}

fn one(world: &World, memories: &Memories, seed: u64, flips: u64) -> Result<std::result::Result<Covered, String>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let job = Job::create(world, memories, 1 << 20)?;
    let options = Options { keep: Keep::Last(3), compress: random.random_bool(0.5), ..Options::log(64) };
    let array = job.array::<u64>("a", &[COUNT], options)?;
    let mut versions = Vec::new();
    for _ in 0..6 {
        for _ in 0..random.random_range(1..12) {
            let at = random.random_range(0..COUNT);
            array.put(at..=at, &[random.random()])?;
            array.wait()?;
        }
        let number = array.version_inc("")?;
        versions.push((number, array.get_vec(0..COUNT)?));
    }
    let kept = versions.split_off(3);
    let mut covered = Covered::default();
    for flip in 0..flips {
        let expected = if flip % 2 == 0 {
            let (version, block) = (kept[random.random_range(0..kept.len())].0, random.random_range(0..COUNT / 8));
            u64::from(array.damage(version, block, random.random_range(0..64), 1 << random.random_range(0..8))?)
        } else {
            u64::from(job.damage(random.random(), random.random_range(0..8))?)
        };
        let scrubbed = job.scrub()?;
        let mended = scrubbed.mended_in_memory + scrubbed.mended_in_pool;
        if mended < expected {
            return Ok(Err(format!("flip {flip} of seed {seed} was not found: {scrubbed:?}")));
        }
        covered.flips += expected;
        covered.mended += mended;
        for (number, wanted) in &kept {
            let mut data = vec![0; COUNT as usize];
            array.at(*number)?.get(0..COUNT, &mut data)?;
            if data != *wanted {
                return Ok(Err(format!("version {number} is not mended behind flip {flip} of seed {seed}")));
            }
        }
    }
    drop(array);
    job.close()?;
    Ok(reopened(world, memories, &kept)?.map(|()| covered))
}

/// What was mended in the pool is what is read from it.
fn reopened(world: &World, memories: &Memories, kept: &[(u64, Vec<u64>)]) -> Result<std::result::Result<(), String>> {
    let job = Job::open(world, memories)?;
    let array = job.array::<u64>("a", &[COUNT], Options::default())?;
    for (number, wanted) in kept {
        let mut data = vec![0; COUNT as usize];
        array.at(*number)?.get(0..COUNT, &mut data)?;
        if data != *wanted {
            return Ok(Err(format!("version {number} in the pool is not mended")));
        }
    }
    Ok(Ok(()))
}
