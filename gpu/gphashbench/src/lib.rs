//! What shows that the GPU's hash tables are right, and how fast they are.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod arguments;
pub mod campaign;
pub mod command;
pub mod exhaust;
pub mod figures;
mod given;
pub mod growing;
mod judge;
mod kernels;
pub mod linear;
pub mod measure;
pub mod model;
pub mod named;
pub mod processor;
mod skew;
pub mod soak;
pub mod subject;
pub mod trial;
mod values;
