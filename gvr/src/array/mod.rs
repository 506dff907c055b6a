//! Versioned global arrays.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | how an array is made |
//! | `shape.rs` | indices, and which rank holds which elements |
//! | `geometry.rs` | where the parts of an array lie in a window |
//! | `core.rs`, `make.rs` | an array of bytes |
//! | `claim.rs`, `put.rs`, `get.rs` | our protocol |
//! | `paper.rs` | the paper's |
//! | `blocks.rs` | reading blocks of closed versions, by any thread |
//! | `message.rs` | access by messages to a server |
//! | `nodes.rs`, `tree.rs` | entries of old versions: nodes, and the trees of them |
//! | `close.rs`, `clean.rs` | `version_inc`, and cleaning in it |
//! | `cursor.rs` | reading old versions |
//! | `typed.rs` | the interface |

mod blocks;
mod claim;
mod clean;
mod close;
mod core;
mod cursor;
mod geometry;
mod get;
mod make;
mod message;
mod nodes;
mod options;
mod paper;
mod put;
mod shape;
mod tree;
mod typed;

pub(crate) use self::core::{Change, Core};
pub use self::core::{Counters, MOST_LABEL, Version};
pub(crate) use blocks::Blocks;
pub(crate) use close::{Changed, Sealer, version_inc};
pub(crate) use cursor::Old;
pub(crate) use geometry::RESERVE;
#[doc(hidden)]
pub use options::Fault;
pub use options::{Access, Keep, Layout, Options, Protocol};
pub use shape::{MOST_DIMENSIONS, Shape};
pub use typed::{Array, Cursor, Element, Face, Index, version_inc_all};
