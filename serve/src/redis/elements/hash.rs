//! Fields of hashes.

use nearpm::prelude::*;

use crate::redis::db::{ELEMENT, Hash};
use crate::store::{Blob, Name};

/// Sets a field; gives whether it is new, and the bytes that came and went.
pub fn put(tx: &mut impl Store, body: Ptr<Hash>, field: &[u8], value: &[u8]) -> Result<(bool, (u64, u64)), Error> {
    let blob = Blob::make(tx, value)?;
    let old = body.insert(tx, &Name::of(field), blob)?;
    let Some(old) = old else { return Ok((true, (ELEMENT + (field.len() + value.len()) as u64, 0))) };
    let less = old.len(tx)?;
    old.release(tx)?;
    Ok((false, (value.len() as u64, less)))
}
