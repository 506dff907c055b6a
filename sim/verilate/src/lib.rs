//! Builds a Verilog module with Verilator at run time and hands out its ports.
//!
//! A [`Source`] (Verilog text and options) becomes a [`Library`]: a shared object that Verilator
//! and a C++ compiler made, cached under a hash of everything that went into it. A library makes
//! any number of independent [`Instance`]s. An instance is driven by name-resolved [`Port`]
//! handles; one access is an array index and a pointer dereference, one [`Instance::cycle`] is one
//! C call.
//!
//! Guarantees:
//! * Two processes or threads that build the same source wait for each other and share one result;
//!   a build that is killed leaves nothing that a later build would take for complete.
//! * With [`Source::deny_warnings`], widths that differ, latches and undriven nets in the Verilog
//!   are errors, because they are how a generator's simulation and its hardware come apart.
//! * A [`Port`] of one library used on an instance of another one gives a wrong port or a panic,
//!   never a wild memory access.
//!
//! Not here: timing (`--timing`, delays), multi-threaded models, DPI.
//!
//! ```no_run
//! let source = nearpm_verilate::Source::new("counter", std::fs::read_to_string("counter.v")?);
//! let library = nearpm_verilate::Library::build(&source)?;
//! let mut counter = library.instance()?;
//! let (clock, value) = (counter.port("clock")?, counter.port("value")?);
//! for _ in 0..1000 {
//!     counter.cycle(clock);
//! }
//! println!("{}", counter.get_u64(value));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod cache;
mod compiler;
mod coverage;
mod error;
mod idle;
mod instance;
mod kept;
mod shim;
mod source;
mod tool;

pub use build::Library;
pub use cache::counts_coverage;
pub use error::Error;
pub use instance::{Direction, Instance, Port, PortInfo};
pub use kept::{Maker, kept};
pub use source::Source;
pub use tool::Verilator;
