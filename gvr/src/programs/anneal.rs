//! Annealing in the manner of canneal: elements of a netlist swap places where that shortens their
//! wires; a version a temperature.
//!
//! Each rank owns the elements of one colour and reads others' as they were at the last version, so
//! that the result does not depend on the order in which ranks run.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::array::Array;
use crate::error::Result;
use crate::world::World;

/// Elements of a wire's other ends.
const WIRES: u64 = 4;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Temperatures, each of which makes a version.
    pub temperatures: u64,
    /// Swaps that are tried by all ranks at each.
    pub tries: u64,
    /// Nanoseconds of virtual time that are computed behind each get (10 us in the paper, IV-D3).
    pub compute: u64,
    /// Seed.
    pub seed: u64,
}

/// The other end of a wire: mostly near, sometimes far, as Rent's rule has it.
fn neighbour(element: u64, wire: u64, elements: u64) -> u64 {
    let hash = element.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17 * wire as u32 + 5);
    (element + 1 + hash % (1 << (4 * (wire + 1))).min(elements)) % elements
}

/// Length of an element's wires if it lies at a place.
fn length(read: &impl Fn(u64) -> Result<u64>, elements: u64, element: u64, place: u64, width: u64) -> Result<u64> {
    let mut sum = 0;
    for wire in 0..WIRES {
        let other = read(neighbour(element, wire, elements))?;
        sum += (place % width).abs_diff(other % width) + (place / width).abs_diff(other / width);
    }
    Ok(sum)
}

/// Runs it; gives how many swaps this rank has made. The array holds the place of each element.
///
/// # Errors
/// Those of the array.
pub fn run(world: &World, places: &Array<u64>, settings: &Settings) -> Result<u64> {
    let (rank, ranks, elements) = (world.rank() as u64, world.ranks() as u64, places.dims()[0]);
    let width = elements.isqrt().max(1);
    let mine = places.part(world.rank());
    if mine.start < mine.end {
        places.put(mine.clone(), &mine.collect::<Vec<_>>())?;
    }
    places.version_inc("begin")?;
    let read = |element: u64| {
        let mut place = [0];
        places.get(element..=element, &mut place)?;
        world.compute(settings.compute)?;
        Ok(place[0])
    };
    let length = |element, place| length(&read, elements, element, place, width);
    let mut swaps = 0;
    for temperature in 0..settings.temperatures {
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed.wrapping_add(temperature << 20).wrapping_add(rank));
        let mut wanted: Vec<(u64, u64, u64, u64)> = Vec::new();
        for _ in 0..settings.tries / ranks {
            let pick =
                |random: &mut ChaCha8Rng| (random.random_range(0..elements) / ranks * ranks + rank).min(elements - 1);
            let (a, b) = (pick(&mut random), pick(&mut random));
            if a % ranks != rank || b % ranks != rank || a == b {
                continue;
            }
            let (pa, pb) = (read(a)?, read(b)?);
            let before = length(a, pa)? + length(b, pb)?;
            let after = length(a, pb)? + length(b, pa)?;
            let hot = width >> temperature.min(16);
            if after < before + random.random_range(0..=hot / 4)
                && !wanted.iter().any(|&(c, d, ..)| [a, b].contains(&c) || [a, b].contains(&d))
            {
                wanted.push((a, b, pa, pb));
            }
        }
        // Nobody changes what others still read.
        world.barrier()?;
        for (a, b, pa, pb) in &wanted {
            places.put(*a..=*a, &[*pb])?;
            places.put(*b..=*b, &[*pa])?;
        }
        swaps += wanted.len() as u64;
        places.version_inc(&format!("temperature {temperature}"))?;
    }
    Ok(swaps)
}
