//! Sets: maps without values.

use std::ops::RangeBounds;

use super::{Key, PBTreeMap, PHashMap};
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// Keys in no order: a [`PHashMap`] without values, which `map` gives for what is not here.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::collections::PHashSet;
///
/// fn is_new(tx: &mut impl Store, seen: Ptr<PHashSet<PString>>, word: &str) -> Result<bool, Error> {
///     seen.insert(tx, word)
/// }
/// ```
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct PHashSet<K: Key> {
    pub(super) map: PHashMap<K, ()>,
}

/// Keys in order: a [`PBTreeMap`] without values, which `map` gives for what is not here.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct PBTreeSet<K: Key> {
    pub(super) map: PBTreeMap<K, ()>,
}

macro_rules! set {
    ($set:ident, $map:ident) => {
        impl<K: Key> $set<K> {
            /// An empty one, as zeros are.
            pub const fn new() -> Self {
                $set { map: $map::new() }
            }

            /// All keys.
            pub(super) fn iterate<L: Load>(
                self,
                from: &L,
            ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
                Ok(self.map.iterate(from)?.map(|entry| entry.map(|(key, ())| key)))
            }
        }

        impl<K: Key> Default for $set<K> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<K: Key> Ptr<$set<K>> {
            /// How many keys there are.
            pub fn len(self, from: &impl Load) -> Result<u64, Error> {
                self.map().len(from)
            }

            /// Whether there are none.
            pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
                self.map().is_empty(from)
            }

            /// Whether a key is there.
            pub fn contains(self, from: &impl Load, key: &K::Query) -> Result<bool, Error> {
                self.map().contains_key(from, key)
            }

            /// Puts a key in; says whether it was not there.
            pub fn insert(self, tx: &mut impl Store, key: &K::Query) -> Result<bool, Error> {
                Ok(self.map().insert(tx, key, ())?.is_none())
            }

            /// Takes a key out; says whether it was there.
            pub fn remove(self, tx: &mut impl Store, key: &K::Query) -> Result<bool, Error> {
                Ok(self.map().remove(tx, key)?.is_some())
            }

            /// Makes it empty and frees its memory.
            pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
                self.map().clear(tx)
            }

            /// All keys.
            pub fn iter<L: Load>(self, from: &L) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
                from.get(self)?.iterate(from)
            }
        }
    };
}

set!(PHashSet, PHashMap);
set!(PBTreeSet, PBTreeMap);

impl<K: Key> Ptr<PBTreeSet<K>> {
    /// The keys of a range, in order.
    pub fn range<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        Ok(self.map().range(from, bounds)?.map(|entry| entry.map(|(key, ())| key)))
    }

    /// The keys of a range, from the greatest to the least.
    pub fn range_rev<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        Ok(self.map().range_rev(from, bounds)?.map(|entry| entry.map(|(key, ())| key)))
    }
}
