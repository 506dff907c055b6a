//! Benchmarks of PMDK's libpmemobj and of what stands in for it, on the machine that they run on.
//!
//! The programs are in C, against the stock header, and are built once; which library they run with
//! is the loader's choice. Each runs in turn with PMDK as it is installed, with the library that is
//! to replace it, and with a *floor* that has the interface and no persistence.
//! `docs/pmdk-benchmark.md` tells what is measured and how.

#![forbid(unsafe_code)]

pub mod case;
pub mod count;
pub mod instruction;
pub mod library;
pub mod machine;
pub mod measure;
pub mod pmdk;
pub mod programs;
pub mod report;
