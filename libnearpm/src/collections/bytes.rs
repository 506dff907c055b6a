//! Byte strings.

use std::cmp::Ordering;

use super::PVec;
use super::key::{Key, hash_of};
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// A row of bytes that may be the key of a map, where it is looked up by a `&[u8]`; its order is
/// that of slices. `bytes` gives the [`PVec`] that it is, and so all that a vector can do.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::collections::PBytes;
///
/// fn remember(tx: &mut impl Store, keys: Ptr<PBTreeMap<PBytes, u64>>, key: &[u8]) -> Result<(), Error> {
///     let times = keys.slot_or_insert_with(tx, key, || 0)?;
///     tx.update(times, |times| times + 1).map(drop)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, Persistent)]
#[repr(C)]
pub struct PBytes {
    /// The bytes.
    pub bytes: PVec<u8>,
}

impl PBytes {
    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        PBytes { bytes: PVec::new() }
    }

    /// Bytes, to be put into a collection or an object; until they are, only the transaction knows
    /// them.
    pub fn with(tx: &mut impl Store, bytes: &[u8]) -> Result<PBytes, Error> {
        Ok(PBytes { bytes: PVec::with(tx, bytes)? })
    }

    /// A copy of the bytes.
    pub fn read(self, from: &impl Load) -> Result<Vec<u8>, Error> {
        self.bytes.read(from)
    }
}

impl Ptr<PBytes> {
    /// A copy of the bytes.
    pub fn read(self, from: &impl Load) -> Result<Vec<u8>, Error> {
        from.get(self)?.read(from)
    }

    /// Makes them others.
    pub fn set(self, tx: &mut impl Store, bytes: &[u8]) -> Result<(), Error> {
        crate::typed::whole(tx, |tx| {
            self.bytes().truncate(tx, 0)?;
            self.bytes().extend(tx, bytes)
        })
    }
}

impl Key for PBytes {
    type Query = [u8];
    type Owned = Vec<u8>;

    fn hash(query: &[u8]) -> u64 {
        hash_of(query)
    }

    fn compare(self, from: &impl Load, query: &[u8]) -> Result<Ordering, Error> {
        Ok(self.bytes.read(from)?.as_slice().cmp(query))
    }

    fn make(tx: &mut impl Store, query: &[u8]) -> Result<PBytes, Error> {
        PBytes::with(tx, query)
    }

    fn duplicate(self, tx: &mut impl Store) -> Result<PBytes, Error> {
        let bytes = self.bytes.read(tx)?;
        PBytes::with(tx, &bytes)
    }

    fn owned(self, from: &impl Load) -> Result<Vec<u8>, Error> {
        self.read(from)
    }
}
