//! The programs of GPMbench besides the store and prefix sums: iterative ones, which are
//! checkpointed, and native ones, which go on.
//!
//! | file | program | persistence |
//! |---|---|---|
//! | `dnn.rs`, `lenet.rs`, `digits.rs` | DNN, its oracle, its pictures | checkpoints |
//! | `cfd.rs`, `mesh.rs` | CFD, its mesh | checkpoints |
//! | `hotspot.rs` | HS | checkpoints |
//! | `blackscholes.rs` | BLK | checkpoints |
//! | `srad.rs` | SRAD | native: an image an iteration |
//! | `bfs.rs` | BFS | native: levels as they are found |

mod bfs;
mod blackscholes;
mod cfd;
mod digits;
mod dnn;
mod hotspot;
mod iterative;
mod lenet;
mod mesh;
mod srad;

pub use bfs::{Bfs, Graph, levels_of};
pub use blackscholes::{BlackScholes, is_price, prices_of};
pub use cfd::{Cfd, flow_of};
pub use digits::Digits;
pub use dnn::{Dnn, Net};
pub use hotspot::{Hotspot, part_of, temperatures_of};
pub use iterative::{Iterative, Stepper, region_bytes};
pub use lenet::{learnt_by, share_told};
pub use mesh::Mesh;
pub use srad::{Srad, image_of, start_of_image};

/// Threads of a block.
const THREADS: u32 = 256;

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value)).collect()
}

/// A number from 0 to 1 for a place and a seed.
fn unit(place: usize, seed: u32) -> f32 {
    (crate::pattern::pattern(place as u32, seed) >> 8) as f32 / (1 << 24) as f32
}
