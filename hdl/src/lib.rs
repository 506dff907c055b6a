//! The NearPM card in rust-hdl.
//!
//! [`bundles`] are the interfaces between units, [`cells`] the leaf cells that all units are made
//! of, and [`dut`] runs a unit's tests on rust-hdl's simulator and on its generated Verilog.

pub mod bundles;
pub mod card;
pub mod cells;
pub mod dut;
mod generate;
pub mod two_port_card;
pub mod units;
mod wrapper;

pub use generate::{GeneratedCard, MODULE, Parameters, generate};
