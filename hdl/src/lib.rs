//! The NearPM card in rust-hdl.
//!
//! [`bundles`] are the interfaces between units, [`cells`] the leaf cells that all units are made
//! of, and [`dut`] runs a unit's tests on rust-hdl's simulator and on its generated Verilog.
//! [`persist_buffer`] is a unit of a GPU, beside the card.

// The derives name this crate as its users do.
extern crate self as nearpm_hdl;

pub mod bundles;
pub mod card;
pub mod cells;
pub mod dut;
mod generate;
pub mod pcie;
pub mod persist_buffer;
pub mod simulation;
mod sizes;
pub mod two_port_card;
pub mod units;
mod wrapper;

pub use generate::{
    BRIDGE_MODULE, GeneratedCard, MODULE, MemoryPorts, Parameters, generate, generate_bridge, generate_execution_side,
    generate_small_card, generated, generated_bridge, try_generated,
};
pub use simulation::for_simulation;
pub use sizes::Sizes;

/// What stands for the code that generates Verilog: this crate's sources and those that they depend
/// on.
pub const MAKER: nearpm_verilate::Maker = nearpm_verilate::Maker::Sources(env!("NEARPM_HDL_SOURCES"));
