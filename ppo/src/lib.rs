//! An executable model of Partitioned Persist Ordering (PPO), with litmus tests.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod explore;
pub mod litmus;
pub mod model;
pub mod rules;
pub mod verdict;
