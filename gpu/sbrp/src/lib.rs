//! Scoped buffered release persistency (SBRP) of GPUs: Pandey, Kamath and Basu, ASPLOS '23 ("the paper").

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod axiomatic;
pub mod buffer;
pub mod campaign;
pub mod command;
pub mod explain;
pub mod litmus;
mod names;
pub mod operational;
pub mod outcome;
pub mod random;
pub mod rules;
pub mod scopes;
pub mod verdict;

pub use names::{Model, Operation, Scope};
