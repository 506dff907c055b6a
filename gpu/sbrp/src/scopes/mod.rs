//! A checker of scopes: runs a kernel on the interpreter, follows what orders its persists, and
//! names the line where a release or an acquire is missing or too narrow.
//!
//! It is a detector of races as ScoRD and iGUARD are for visibility, here for durability, with one
//! clock of persists a thread:
//! [`order`] holds the model's rules, [`run`] the kernel, [`source`] the lines.

mod clock;
mod finding;
mod order;
mod run;
mod source;

pub use finding::{Finding, Flaw};
pub use run::{Argument, CheckError, Job, check};
pub use source::{Source, SourceLine};
