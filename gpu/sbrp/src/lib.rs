//! Scoped buffered release persistency (SBRP) of GPUs: Pandey, Kamath and Basu, ASPLOS '23 ("the
//! paper"), executable. What the paper leaves open, and why it is completed as it is here:
//! `docs/sbrp.md`.
//!
//! ```
//! use nearpm_sbrp::explain::{Explanation, explain, state};
//! use nearpm_sbrp::{Model, litmus::parse, rules::Semantics, verdict::outcomes};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let test = parse(include_str!("../litmus/cu-chain-block.litmus"))?;
//! assert_eq!(outcomes(&test, Model::Sbrp).len(), 3);
//! // Box 2 to the letter also lets the last persist of the chain be there without the first.
//! assert_eq!(outcomes(&test, Model::SbrpAsPublished).len(), 4);
//! let found = explain(&test, Semantics::of(Model::Sbrp), &state(&test, "x=0 y=1")?, 10_000)?;
//! assert!(matches!(found, Explanation::Refused(_)));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`litmus`] | a test, and the reading of its file |
//! | [`rules`] | the rules one by one, with their sources; models are sets of them |
//! | [`axiomatic`] | executions, the persist memory order in them, what may be durable |
//! | [`operational`] | an abstract machine, and the search of its states |
//! | [`explain`], [`verdict`] | why a state may be or not; a file against both forms |
//! | [`random`], [`campaign`] | random programs, and the comparison of the forms on many |
//! | [`buffer`] | the persist buffer of the paper's hardware, and litmus tests on GPUs of it |
//! | [`scopes`] | a checker of scopes for CUDA programs, on their PTX |
//!
//! # Fault model
//!
//! The power may fail in every state. PM keeps what is durable, word by word of eight bytes;
//! caches, buffers, volatile memory and threads are lost. What the world was told before (a mark, a
//! register that was reported, the end of a launch) it remembers.

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
