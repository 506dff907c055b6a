//! Scoped buffered release persistency (SBRP) of GPUs: Pandey, Kamath and Basu, ASPLOS '23 ("the paper").

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod names;

pub use names::{Model, Operation, Scope};
