//! How the card is synthesised, and what it costs: utilisation and logic depth.
//!
//! | module | holds |
//! |---|---|
//! | [`yosys`] | runs the open synthesiser on a Verilog text |
//! | [`netlist`] | the mapped netlist as a graph: cells by type, LUT levels between registers |
//! | [`vcu118`] | what the VCU118's flow (`vcu118/build.tcl`) takes |
//!
//! No open tool gives timing for the VCU118's part (XCVU9P), so the depth in LUT levels stands for it: at 300 MHz a path should
//! have at most six between registers, carry chains not counted.

pub mod netlist;
pub mod vcu118;
pub mod yosys;
