//! Programs on arrays: what the paper measures with, small and deterministic, so that every backend
//! and number of ranks can be compared.
//!
//! | file | in the paper | what it does |
//! |---|---|---|
//! | `synthetic.rs` | Fig. 8 | gets and puts at places around each rank's part |
//! | `pcg.rs` | IV-D2, the HPCG matrix | conjugate gradients, preconditioned by the diagonal |
//! | `tally.rs` | IV-D1, OpenMC | random walks that accumulate into a tally |
//! | `anneal.rs` | IV-D3, canneal | swaps of elements that shorten wires |

pub mod anneal;
pub mod pcg;
pub mod synthetic;
pub mod tally;

/// CRC-32C of an array's elements, as all ranks see them.
///
/// # Errors
/// Those of [`crate::Array::get`].
pub fn digest<T: crate::Element>(array: &crate::Array<T>) -> crate::Result<u32> {
    let last: Vec<u64> = array.dims().iter().map(|dim| dim - 1).collect();
    let first = vec![0; last.len()];
    Ok(crc32c::crc32c(bytemuck::cast_slice(&array.get_vec((&first[..], &last[..]))?)))
}
