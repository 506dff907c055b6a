//! Faults planted into the driver and the library: for each some test must fail.
//!
//! All faults are compiled once, into a copy of the workspace, each behind a condition that the
//! variable `NEARPM_MUTANT` of the environment makes true; so a run of a fault is a run of a test.
//! Those of the hardware and its firmware are planted in the same way by
//! `hdl/tests/planted_faults`.
//!
//! | file | holds |
//! |---|---|
//! | `list/` | the faults: where, what, and the tests that must notice |
//! | `tree.rs` | the copy of the workspace, with the faults in it |
//! | `run.rs` | building its tests, and running them with one fault at a time |

mod list;
mod run;
mod tree;

pub use list::all;
pub use run::{Outcome, Verdict, Workshop};
pub use tree::{plant, workspace};

/// Tests of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tests {
    /// Package of the workspace.
    pub package: &'static str,
    /// Its library (`lib`), or the name of a file in its folder `tests`.
    pub target: &'static str,
    /// What their names contain.
    pub filter: &'static str,
}

/// A planted fault.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What goes wrong with it.
    pub breaks: &'static str,
    /// File, from the workspace on.
    pub file: &'static str,
    /// Text that the file has exactly once.
    pub find: &'static str,
    /// What stands there instead. `FAULT` is true when the fault is chosen.
    pub with: &'static str,
    /// Tests that must fail.
    pub tests: Tests,
}
