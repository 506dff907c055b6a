//! Simulated NearPM cards: the Verilated RTL and a transaction-level model, with DDR4 and host
//! timing.

pub mod bench;
pub mod core;
pub mod ddr4;
pub mod figures;
pub mod host;
pub mod machine;
pub mod microbenchmark;
pub mod model;
pub mod profile;
pub mod rng;
pub mod rtl;
pub mod saved;
