//! How the card is synthesised, and what it costs: utilisation and logic depth.
//!
//! | module | holds |
//! |---|---|
//! | [`yosys`] | runs the open synthesiser on a Verilog text |
//! | [`netlist`] | the mapped netlist as a graph: cells by type, LUT levels between registers |
//! | [`ecp5`] | the bitstream for an ECP5-85k |
//! | [`manifest`] | what the builds gave, for later ones to be held to |
//! | [`small_card`] | whether a whole card fits that part |
//! | [`tools`] | the open tools and how they are run |
//! | [`vcu118`] | what the VCU118's flow (`vcu118/build.tcl`) takes, and how large and deep it is |
//!
//! No open tool gives timing for the VCU118's part (XCVU9P), so the depth in LUT levels stands for
//! it: at 300 MHz a path should have at most six between registers, carry chains not counted.

pub mod ecp5;
pub mod manifest;
pub mod netlist;
pub mod small_card;
pub mod tools;
pub mod vcu118;
pub mod yosys;

use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal digits.
fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
