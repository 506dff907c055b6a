//! An executable model of Partitioned Persist Ordering (PPO), with litmus tests.
//!
//! A litmus file holds a small program of the processor and of one card or several, and the exact
//! set of states that a power failure may leave. [`litmus::parse`] reads it, [`explore::explore`]
//! enumerates every state that the model reaches, and [`verdict::differences`] compares. The rules,
//! their sources and what the model leaves out: `docs/ppo.md`.
//!
//! ```
//! use nearpm_ppo::{explore::explore, litmus::parse, rules::{Rule, Rules}, verdict::differences};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let test = parse(include_str!("../litmus/i1-undo-log-then-store.litmus"))?;
//! let found = explore(&test, Rules::all(), 100_000)?;
//! assert!(differences(&test, &found).is_empty());
//! let broken = explore(&test, Rules::without(Rule::StoreWaitsForCommand), 100_000)?;
//! assert!(differences(&test, &broken)[0].contains("the store passed the log of its line"));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`litmus`] | a test, and the reading of its file |
//! | [`rules`] | the rules one by one, with their sources |
//! | [`model`] | the operational semantics: states and their successors |
//! | [`explore`] | the search of all states |
//! | [`verdict`] | what was found against what was expected |
//!
//! # Fault model
//!
//! The power may fail in every state, also during the replay and the recovery. Caches,
//! write-combining buffers and what is on a link are lost; any dirty line may have been written
//! back before. What a card has accepted is kept, in the order of arrival; of a write that the
//! memory has not answered, any eight-byte words are there. The energy for the save may not suffice
//! where a test says so.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod explore;
pub mod litmus;
pub mod model;
pub mod rules;
pub mod verdict;
