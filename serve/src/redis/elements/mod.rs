//! Elements of collections in the pool: how they come there, and what they count for.
//!
//! | file | holds |
//! |---|---|
//! | `list.rs` | elements of a list in their order |
//! | `hash.rs`, `zset.rs` | a field with its value; a member with its score |

pub mod hash;
pub mod list;
pub mod zset;

use nearpm::prelude::*;

use super::db::ELEMENT;
use crate::store::Blob;

/// Gives elements that a collection no longer has back to the pool, and says how many bytes they
/// counted for.
pub fn release(tx: &mut impl Store, element: Blob) -> Result<u64, Error> {
    let bytes = ELEMENT + element.len(tx)?;
    element.release(tx)?;
    Ok(bytes)
}
