//! Coverage of the card's generated Verilog: which lines and branches were executed, and which bits
//! have toggled each way.
//!
//! The scenarios are programs that simulate whole cards with `NEARPM_COVERAGE` in their
//! environment, so that Verilator counts and each process leaves files. A point counts as covered
//! when any of them covers it. Signals wider than 256 bits are data paths and Verilator leaves them
//! out; their lines are counted.
//!
//! | module | holds |
//! |---|---|
//! | [`points`] | the files that they leave |
//! | [`constants`] | bits that cannot change |
//! | [`waivers`] | `tests/campaigns/coverage.toml`: what need not be covered and why, and what is open |
//! | [`scenarios`] | what runs |
//! | [`report`] | totals |

pub mod constants;
pub mod points;
pub mod report;
pub mod scenarios;
pub mod waivers;
