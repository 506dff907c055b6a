//! How keys and values lie in a pool: what both servers have in common.
//!
//! | file | holds |
//! |---|---|
//! | `blob.rs` | bytes behind a handle |
//! | `name.rs` | keys, in the order of their hash |
//! | `item.rs` | values with their head |
//! | `keyspace.rs` | items by name; expiry, eviction, the count of bytes |
//! | `recency.rs` | what was used last |

mod blob;
pub mod item;
mod keyspace;
mod name;
mod recency;

pub use blob::Blob;
pub use item::Item;
pub use keyspace::{Content, Keys, Keyspace, expired};
pub use name::{Label, Name};
pub use recency::Recency;
