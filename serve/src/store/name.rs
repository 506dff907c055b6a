//! Keys: bytes, in the order of their hash.
//!
//! That order makes a scan stable, because its cursor is a hash and what is inserted or removed
//! meanwhile moves nothing; and it makes the entry behind a random hash a fair sample.

use std::cmp::Ordering;

use nearpm::collections::Key;
use nearpm::prelude::*;

use super::Blob;

/// A key, outside of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Hash of the bytes.
    pub hash: u64,
    /// The key itself.
    pub bytes: Vec<u8>,
    /// Bytes of a place that it may have in the pool where there is none of the right size.
    place: u64,
}

impl Name {
    /// The key of these bytes.
    pub fn of(bytes: &[u8]) -> Name {
        Name { hash: hash(bytes), bytes: bytes.to_vec(), place: 0 }
    }

    /// In front of all keys whose hash is this one or higher.
    pub fn from_hash(hash: u64) -> Name {
        Name { hash, bytes: Vec::new(), place: 0 }
    }

    /// The same key, which may have a place of so many bytes in the pool where there is none of the
    /// right size.
    pub fn placed(&self, place: u64) -> Name {
        Name { place, ..self.clone() }
    }
}

/// FNV-1a (Fowler, Noll, Vo), its end mixed by the last steps of SplitMix64 so that all bits depend
/// on all bytes. Pools depend on it.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let z = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A key in a pool.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Label {
    hash: u64,
    text: Blob,
}

impl Key for Label {
    type Query = Name;
    type Owned = Name;

    fn hash(query: &Name) -> u64 {
        query.hash
    }

    fn compare(self, from: &impl Load, query: &Name) -> Result<Ordering, Error> {
        match self.hash.cmp(&query.hash) {
            Ordering::Equal => Ok(self.text.read(from)?.cmp(&query.bytes)),
            other => Ok(other),
        }
    }

    fn make(tx: &mut impl Store, query: &Name) -> Result<Label, Error> {
        Ok(Label { hash: query.hash, text: Blob::make_in(tx, &query.bytes, query.place)? })
    }

    fn duplicate(self, tx: &mut impl Store) -> Result<Label, Error> {
        let bytes = self.text.read(tx)?;
        Ok(Label { hash: self.hash, text: Blob::make(tx, &bytes)? })
    }

    fn owned(self, from: &impl Load) -> Result<Name, Error> {
        Ok(Name { hash: self.hash, bytes: self.text.read(from)?, place: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_stay_what_they_are() {
        // Pools that exist find nothing any more if these change. The numbers are of another
        // implementation.
        assert_eq!(
            [hash(b""), hash(b"key"), hash(b"a longer key")],
            [0xf52a_15e9_a9b5_e89b, 0x487e_b6f7_e0ea_7e7c, 0x8942_8a87_a739_1841]
        );
    }
}
