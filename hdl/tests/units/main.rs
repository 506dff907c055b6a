//! Units that have no bench elsewhere, each by itself: random traffic at every port at once against
//! what the unit's page says, written as a program. The faults planted into each have to be seen by
//! that bench.

mod dependency_matrix;
mod dispatcher;
mod firmware_store;
mod nearpm_unit;
mod ordering_point;
mod parked_places;
mod request_slots;

use nearpm_hdl::dut::{Dut, Value};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn seeded(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Cycles of a bench: the simulator of rust-hdl is much slower than the other.
fn cycles(dut: &dyn Dut, many: u64) -> u64 {
    if dut.back_end() == "verilator" { many } else { many / 20 }
}

/// A value of so many random bits.
fn random_bits(rng: &mut ChaCha8Rng, width: usize) -> Value {
    (0..width).step_by(32).fold(Value::ZERO, |value, low| {
        let bits = 32.min(width - low);
        value.with_slice(low, bits, u64::from(rng.random::<u32>()) & ((1 << bits) - 1))
    })
}

/// One of the bits that are set.
fn one_of(rng: &mut ChaCha8Rng, mask: u128) -> Option<usize> {
    let set: Vec<usize> = (0..128).filter(|bit| mask >> bit & 1 == 1).collect();
    (!set.is_empty()).then(|| set[rng.random_range(0..set.len())])
}
