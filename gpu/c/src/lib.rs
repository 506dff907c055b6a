//! GPM in C: the calls of the paper's table 2 under their names, in `include/nearpm_gpm.h`; what
//! kernels call is in `gpu/kernels/nearpm_gpm.cuh`. Hash tables in C: `include/nearpm_gphash.h`.
//!
//! | file | holds |
//! |---|---|
//! | `error.rs` | why a call was refused; no panic passes into C |
//! | `library.rs` | the device, and what a thread has open |
//! | `primitives.rs` | maps, and what the link does |
//! | `logs.rs`, `checkpoints.rs` | logs and checkpoints |
//! | `tables.rs` | hash tables |
//! | `launches.rs` | memory, copies, launches |
//!
//! Unsafe code here reads what C hands over, and writes where C asks.

mod checkpoints;
mod error;
mod launches;
mod library;
mod logs;
mod primitives;
mod tables;

pub use checkpoints::*;
pub use error::gpm_error;
pub use launches::*;
pub use logs::*;
pub use primitives::{gpm_device, gpm_map, gpm_persist_begin, gpm_persist_end, gpm_unmap};
pub use tables::*;
