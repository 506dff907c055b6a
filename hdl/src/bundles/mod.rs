//! Groups of signals that several units speak, and records that travel between them.

mod axi;
mod lost;
mod mapping;
mod memory;
mod work;

pub use axi::*;
pub use lost::*;
pub use mapping::*;
pub use memory::*;
pub use work::*;
