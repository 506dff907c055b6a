//! The bodies of the fuzz targets. Each is a function of bytes that panics when a promise is
//! broken, so that the fuzzer, a saved crash and the ordinary tests run the same code.
//!
//! | function | promise |
//! |---|---|
//! | [`pool_opener`] | whatever a memory holds, opening it gives a sound pool or an error that says why |
//! | [`command_port`] | whatever a host writes, the card answers, comes to rest, and keeps to the pools that are mapped |
//! | [`microprograms`] | whatever program the checker takes, the card does what it says, in order, and loses nothing of it when the power is cut |

mod microprograms;
mod opener;
mod port;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use microprograms::microprograms;
pub use opener::{pool_opener, pool_opener_by};
pub use port::command_port;

/// The bytes of a seed, fewer than `longest`.
pub fn bytes(seed: u64, longest: usize) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut data = vec![0; rng.random_range(0..longest)];
    rng.fill_bytes(&mut data);
    data
}
