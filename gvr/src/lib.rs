//! Versioned global arrays, log-structured and durable.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod array;
pub mod campaign;
pub mod capi;
pub mod commands;
mod error;
pub mod persist;
pub mod programs;
pub mod rma;
mod world;

pub use array::{Access, Array, Cursor, Element, Keep, Layout, Options, Protocol, version_inc_all};
pub use error::{Error, Result};
pub use persist::{Flush, Job};
pub use rma::Op;
pub use world::World;
