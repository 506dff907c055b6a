//! What the `nearpm` program is made of: each command is a module with its arguments and a function
//! that runs it.
//!
//! Results go to standard output and depend on nothing but the arguments, so that the same seed
//! prints the same bytes; those of [`bench`] and of the client in [`serve`], which are measured,
//! are the exceptions.
//! Progress and wall-clock times go to standard error.

pub mod arguments;
pub mod bench;
pub mod card;
pub mod demo;
pub mod figures;
pub mod firmware;
pub mod gpu;
pub mod hardware;
pub mod pool;
pub use nearpm_cards::sentence;
pub mod serve;
pub mod shell;
