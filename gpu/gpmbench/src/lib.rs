//! GPMbench: the programs of GPM (ASPLOS 2022), with recovery and oracles, and the measurements of
//! it.
//!
//! Everything runs on the interpreter, at small sizes, and on a GPU (feature `cuda`), at the
//! paper's.

#![warn(missing_docs)]

pub mod command;
pub mod cpu;
pub mod crash;
pub mod db;
pub mod figures;
mod kernels;
pub mod kvs;
pub mod measure;
pub mod model;
mod pattern;
pub mod prefix;
pub mod programs;
pub mod record;
pub mod report;
pub mod same;
mod show;
pub mod soak;
pub mod workers;

pub use kernels::{bfs, db, kvs, micro, prefix, txn};
pub use pattern::pattern;
pub use show::show;
