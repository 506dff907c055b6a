#![doc = include_str!("overview.md")]
//!
//! # For those who change it
//!
//! The documentation of each function here is its manual page and its comment in
//! `include/nearpm.h`: the crate `nearpm-cdoc` makes both from these files, and a test fails where
//! the header is stale. The names are those of C.
//!
//! Unsafe code here reads what C hands over and writes results to where C asks; what a caller must
//! keep to stands at each function. Handles are numbers in the clothes of pointers: nobody follows
//! them, so that a stale or senseless one is refused.
//!
//! | file | holds |
//! |---|---|
//! | `error.rs` | codes and messages; no panic passes into C |
//! | `pools.rs` | direct pools: options, create, open, close |
//! | `transactions.rs` | transactions on direct pools |
//! | `objects.rs` | objects of direct pools outside of transactions: pointers, roots, allocation, iteration, persist |
//! | `reports.rs` | what a direct pool is, has done, and found at open |
//! | `primitives.rs` | the primitives of the paper's Table 2 |
//! | `copy.rs` | what programs store to in pools for primitives whose memory has no addresses |
//! | `arguments.rs` | checks of what C hands over |
//! | `opened.rs` | open pools, and where they are: in files, or on a card |
//! | `registry.rs` | open pools by what names them |

#![allow(non_snake_case, non_camel_case_types)]

mod arguments;
mod copy;
mod error;
mod objects;
mod opened;
mod pools;
mod primitives;
mod registry;
mod reports;
mod transactions;

pub use error::*;
pub use objects::*;
pub use pools::*;
pub use primitives::*;
pub use reports::*;
pub use transactions::*;
