//! Versioned global arrays, log-structured and durable.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod error;
pub mod rma;

pub use error::{Error, Result};
