#![forbid(unsafe_code)]
//! The six programs of SBRP (ASPLOS 2023) with their recovery, on the timing simulator and on the interpreter.

pub mod device;
pub mod kernels;
pub mod programs;
