#![forbid(unsafe_code)]
//! The six programs of SBRP (ASPLOS 2023) with their recovery, on the timing simulator and on the
//! interpreter; the paper's figures, crash campaigns, and mutants of the persist buffer.

pub mod campaign;
pub mod command;
pub mod crash;
pub mod device;
pub mod export;
pub mod figures;
pub mod kernels;
pub mod mutants;
pub mod programs;
mod record;
pub mod stalls;
