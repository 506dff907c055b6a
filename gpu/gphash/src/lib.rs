//! Hash tables that kernels of a GPU keep in persistent memory (PM), batch by batch.
//!
//! | module | holds |
//! |---|---|
//! | `layout`, `limits` | the two designs with their parameters, and which of these make a table |
//! | `key`, `operation` | keys, operations, answers, batches in the device's memory |
//! | `table` | the table: create, and what kernels are launched with |
//! | `batch` | batches, and epochs of programs' kernels |
//! | `growth` | growing, by windows or levels |
//! | `cache`, `cached` | caches in the GPU's memory, tables that have one |
//! | `copy` | volatile copies in the GPU's memory |
//! | `recovery`, `found` | opening: tags, spare cells; what it finds wrong |
//! | `descriptor` | the table as kernels see it |
//!
//! The device side is `gpu/kernels/nearpm_gphash.cuh` and the designs' files `gphash_p.cuh`
//! (GPHash, FAST 2025) and `gphash_n.cuh` (ours).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod cache;
mod cached;
mod copy;
mod descriptor;
mod error;
mod found;
mod growth;
mod kernels;
mod key;
mod layout;
mod limits;
mod operation;
mod recovery;
mod table;

pub use cache::{CacheOptions, Policy};
pub use error::{Error, Result};
pub use found::Found;
pub use kernels::{
    level_kernels, level_kernels_alone, level_kernels_alone_wide, level_kernels_cached, level_kernels_wide,
    level_kernels_with_holes, tag_kernels, tag_kernels_cached, tag_kernels_wide, tag_kernels_with_holes,
};
pub use key::Key;
pub use layout::{Design, Keys, Layout};
pub use operation::{Answer, Op, Operations, Outcome, Request};
pub use table::Table;
