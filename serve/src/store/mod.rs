//! How keys and values lie in a pool: what both servers have in common.
//!
//! | file | holds |
//! |---|---|
//! | `blob.rs` | bytes behind a handle |
//! | `name.rs` | keys, in the order of their hash |
//! | `item.rs` | values with their head |
//! | `keyspace.rs` | items by name; the count of bytes |
//! | `expiries.rs`, `reclaim.rs` | when keys expire; removing those that have |
//! | `evict.rs` | which keys go when there is no room |
//! | `recency.rs` | what was used last |

mod blob;
mod evict;
mod expiries;
pub mod item;
mod keyspace;
mod name;
mod recency;
mod reclaim;

pub use blob::Blob;
pub use evict::Search;
pub use expiries::{Changes, Expiries};
pub use item::Item;
pub use keyspace::{Content, Keys, Keyspace, Notes, RECLAIMED, expired, size};
pub use name::{Label, Name};
pub use recency::Recency;
