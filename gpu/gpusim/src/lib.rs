#![forbid(unsafe_code)]
//! A timing simulator of a GPU with persistent memory: kernels in PTX on streaming multiprocessors
//! whose L1 has the persist buffer of scoped buffered release persistency (SBRP, ASPLOS 2023), or
//! ends epochs as GPM does.
//!
//! Instructions are executed, by [`nearpm_ptx`], when they are issued; time is kept here. What is
//! durable at each cycle is recorded where it is asked for, and held against the persistency model.

mod acknowledgements;
mod allowed;
mod buffer;
mod channel;
mod coalesce;
mod config;
mod entry;
mod journal;
mod l1;
mod l2;
mod marks;
mod named;
mod order;
mod pcie;
mod run_file;
mod simulator;
mod sm;
mod stalls;
mod statistics;

pub mod namespace;

pub use allowed::Allowed;
pub use config::{Changes, Config, ConfigError, Model, Place, Policy, Rule};
pub use journal::{Journal, Persisted, StoreId};
pub use named::names;
pub use order::Violation;
pub use run_file::{RunFile, RunFileError};
pub use simulator::{SimulationError, Simulator};
pub use stalls::Stalls;
pub use statistics::Statistics;

/// Which timing this is: raised with each change of the simulator, of a named configuration or of a
/// kernel that changes cycles, so that what was recorded before is not taken for this one's.
pub const TIMING: u32 = 4;

/// Bytes of a line, and of the sectors in which it moves.
pub const LINE: u64 = 128;
/// See [`LINE`].
pub const SECTOR: u64 = 32;
