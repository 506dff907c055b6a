//! What maps find their values by.

use std::cmp::Ordering;

use crate::error::Error;
use crate::typed::persistent::bytes_of;
use crate::typed::{PTuple2, PTuple3, PTuple4};
use crate::{Load, Persistent, Store};

/// A type that a map finds values by: every [`PlainKey`], and [`PString`](super::PString), which is
/// looked up by a `&str`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map in a pool",
    label = "not a `Key`",
    note = "text is the key `PString`, which is looked up by `&str`; every other key is a `PlainKey`"
)]
pub trait Key: Persistent {
    /// What it is looked up by.
    type Query: ?Sized;
    /// What an iteration gives.
    type Owned;
    /// Whether ordered maps with such keys know how many entries lie below each node: see
    /// [`Ranked`](super::Ranked).
    const COUNTED: bool = false;

    /// A number that is the same for what compares as equal, in every process and version: pools
    /// keep what depends on it.
    fn hash(query: &Self::Query) -> u64;
    /// How the key stands to a query.
    fn compare(self, from: &impl Load, query: &Self::Query) -> Result<Ordering, Error>;
    /// Makes a key of a query.
    fn make(tx: &mut impl Store, query: &Self::Query) -> Result<Self, Error>;
    /// A key that is equal and shares nothing with this one.
    fn duplicate(self, tx: &mut impl Store) -> Result<Self, Error>;
    /// A copy out of the pool.
    fn owned(self, from: &impl Load) -> Result<Self::Owned, Error>;
}

/// A key whose bytes say all of it: equal keys have equal bytes, and it owns nothing. All integers
/// are, and arrays of them; make a struct of such one by `impl PlainKey for MyKey {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map in a pool",
    label = "neither a `PlainKey` nor a `PString`",
    note = "integers of fixed size are keys, arrays of them, and `PString`, which is looked up by `&str`",
    note = "a struct of them becomes one by `#[derive(PartialEq, Eq, PartialOrd, Ord)]` and `impl PlainKey for {Self} {{}}`"
)]
pub trait PlainKey: Persistent + Ord {}

macro_rules! plain {
    ($($type:ty)*) => {$(impl PlainKey for $type {})*};
}

plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

impl<K: PlainKey, const N: usize> PlainKey for [K; N] {}

impl<A: PlainKey, B: PlainKey> PlainKey for PTuple2<A, B> {}

impl<A: PlainKey, B: PlainKey, C: PlainKey> PlainKey for PTuple3<A, B, C> {}

impl<A: PlainKey, B: PlainKey, C: PlainKey, D: PlainKey> PlainKey for PTuple4<A, B, C, D> {}

impl<K: PlainKey> Key for K {
    type Query = K;
    type Owned = K;

    #[inline]
    fn hash(query: &K) -> u64 {
        hash_of(bytes_of(std::slice::from_ref(query)))
    }

    #[inline]
    fn compare(self, _: &impl Load, query: &K) -> Result<Ordering, Error> {
        Ok(self.cmp(query))
    }

    #[inline]
    fn make(_: &mut impl Store, query: &K) -> Result<K, Error> {
        Ok(*query)
    }

    #[inline]
    fn duplicate(self, _: &mut impl Store) -> Result<K, Error> {
        Ok(self)
    }

    #[inline]
    fn owned(self, _: &impl Load) -> Result<K, Error> {
        Ok(self)
    }
}

/// A hash of bytes: their words, each mixed in by the last steps of SplitMix64 (Steele, Lea, Flood,
/// OOPSLA 2014). Pools depend on it.
#[inline]
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut hash = (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in words.by_ref() {
        hash = mix(hash ^ u64::from_le_bytes(word.try_into().expect("a chunk of eight")));
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(word));
    }
    hash
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stay_what_they_are() {
        // Pools that exist find nothing any more if these change. The numbers are of another
        // implementation.
        assert_eq!(u64::hash(&1), 0x85e7_bb0f_1227_8575);
        assert_eq!(hash_of(b"a longer text"), 0x999f_885d_ef6c_c9c6);
    }
}
