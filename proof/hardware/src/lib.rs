//! Properties of the generated Verilog, proved by k-induction.
//!
//! A property is a file in `properties/`: what it says in a head of `//@` lines, and SystemVerilog
//! that is put before the `endmodule` of the flattened unit, so that it sees every net. See
//! `docs/proofs.md`.
//!
//! | module | holds |
//! |---|---|
//! | [`units`] | the units' Verilog |
//! | [`property`] | a property file, read |
//! | [`edit`] | what is changed in the Verilog before a run: mutants, memories seen through one word, modules cut out |
//! | [`tools`] | yosys and the solver as processes |
//! | [`run`] | one property: attach, count, prove, cover, refute its mutants |
//! | [`report`] | results for people and for programs |
//!
//! What is trusted: yosys, its encoding for the solver, yices, and the edits that [`edit`] makes.

pub mod edit;
pub mod property;
pub mod report;
pub mod run;
pub mod tools;
pub mod units;
