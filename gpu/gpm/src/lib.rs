//! GPM (Pandey, Kamath, Basu; ASPLOS 2022): GPU kernels that load, store and persist data in
//! persistent memory (PM) directly, and what makes it recoverable: logs, batches, checkpoints.
//!
//! | module | holds | paper |
//! |---|---|---|
//! | `log` | hierarchical coalesced logs and conventional logs | section 5.2 |
//! | `batch` | transactions over all threads of kernels: begin, commit, recover | section 5.2, figure 6 |
//! | `checkpoint` | checkpoints of device memory, two sealed copies | section 5.3 |
//! | `sort` | radix sort in the device's memory: partition before persist | section 5.4 |
//! | `table2` | the 19 calls of the paper's table 2 under their names | table 2 |
//!
//! The device side is `gpu/kernels/nearpm_gpm.cuh`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod checkpoint;
mod descriptor;
mod error;
mod kernels;
mod log;
mod seal;
mod sort;
pub mod table2;

pub use batch::{Active, Batch, Outcome};
pub use checkpoint::{Checkpoint, Concurrent, Element, Flight, Taken};
pub use descriptor::{MIRROR, UNSTRICT};
pub use error::{Error, Result};
pub use kernels::{library, sort};
pub use log::{Entry, Form, Log, Order, Shape, read_head, write_head};
pub use seal::{digest_of, seal_of};
pub use sort::Sorter;
