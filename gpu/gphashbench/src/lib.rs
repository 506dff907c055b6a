//! What shows that the GPU's hash tables are right, and how fast they are.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod command;
mod kernels;
pub mod measure;
mod skew;
