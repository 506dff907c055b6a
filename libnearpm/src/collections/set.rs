//! Sets: maps without values.

use std::borrow::Borrow;
use std::ops::{Bound, RangeBounds};

use super::{Cursor, CursorMut, Key, PBTreeMap, PHashMap, Ranked};
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// Keys in no order: a [`PHashMap`] without values.
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

/// Keys in order: a [`PBTreeMap`] without values.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::collections::PBTreeSet;
/// use std::ops::Bound;
///
/// /// The first free number from one on, which is then taken.
/// fn take_free(tx: &mut impl Store, taken: Ptr<PBTreeSet<u64>>, from: u64) -> Result<u64, Error> {
///     let (mut free, mut cursor) = (from, taken.lower_bound_mut(tx, Bound::Included(&from))?);
///     while cursor.peek_next()?.is_some_and(|(number, ())| number == free) {
///         cursor.next()?;
///         free += 1;
///     }
///     cursor.insert_before(&free, ())?;
///     Ok(free)
/// }
/// ```
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct PBTreeSet<K: Key> {
    pub(super) map: PBTreeMap<K, ()>,
}

/// The keys of entries.
fn keys<K>(entries: impl Iterator<Item = Result<(K, ()), Error>>) -> impl Iterator<Item = Result<K, Error>> {
    entries.map(|entry| entry.map(|(key, ())| key))
}

macro_rules! set {
    ($set:ident, $map:ident, $order:literal) => {
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
                Ok(keys(self.map.iterate(from)?))
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

            #[doc = concat!("Takes all keys out, ", $order, ".")]
            pub fn drain(self, tx: &mut impl Store) -> Result<Vec<K::Owned>, Error> {
                Ok(self.map().drain(tx)?.into_iter().map(|(key, ())| key).collect())
            }

            /// Takes out the keys for which a function says no, as `retain` of the map.
            ///
            /// # Errors
            /// Beside those of the pool what the function gives, before anything changes.
            pub fn retain<S: Store>(
                self,
                tx: &mut S,
                mut keep: impl FnMut(&S, &K::Owned) -> Result<bool, Error>,
            ) -> Result<(), Error>
            where
                K::Owned: Borrow<K::Query>,
            {
                self.map().retain(tx, |from, key, ()| keep(from, key))
            }

            #[doc = concat!("All keys, ", $order, ".")]
            pub fn iter<L: Load>(self, from: &L) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
                from.get(self)?.iterate(from)
            }
        }
    };
}

set!(PHashSet, PHashMap, "in no order");
set!(PBTreeSet, PBTreeMap, "in their order");

impl<K: Key> Ptr<PBTreeSet<K>> {
    /// The keys of a range, in order.
    pub fn range<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        Ok(keys(self.map().range(from, bounds)?))
    }

    /// The keys of a range, from the greatest to the least.
    pub fn range_rev<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        Ok(keys(self.map().range_rev(from, bounds)?))
    }

    /// All keys, from the greatest to the least.
    pub fn iter_rev<L: Load>(self, from: &L) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        self.range_rev(from, ..)
    }

    /// The least key.
    pub fn first(self, from: &impl Load) -> Result<Option<K::Owned>, Error> {
        Ok(self.map().first(from)?.map(|(key, ())| key))
    }

    /// The greatest key.
    pub fn last(self, from: &impl Load) -> Result<Option<K::Owned>, Error> {
        Ok(self.map().last(from)?.map(|(key, ())| key))
    }

    /// The gap in front of the first key that is at least one (`Included`), or above one
    /// (`Excluded`). An entry at a cursor of a set is its key and `()`.
    pub fn lower_bound<'t, L: Load>(self, from: &'t L, bound: Bound<&K::Query>) -> Result<Cursor<'t, L, K, ()>, Error> {
        self.map().lower_bound(from, bound)
    }

    /// The gap behind the last key that is at most one (`Included`), or below one (`Excluded`).
    pub fn upper_bound<'t, L: Load>(self, from: &'t L, bound: Bound<&K::Query>) -> Result<Cursor<'t, L, K, ()>, Error> {
        self.map().upper_bound(from, bound)
    }

    /// As `lower_bound`, for changes.
    pub fn lower_bound_mut<'t, S: Store>(
        self,
        tx: &'t mut S,
        bound: Bound<&K::Query>,
    ) -> Result<CursorMut<'t, S, K, ()>, Error> {
        self.map().lower_bound_mut(tx, bound)
    }

    /// As `upper_bound`, for changes.
    pub fn upper_bound_mut<'t, S: Store>(
        self,
        tx: &'t mut S,
        bound: Bound<&K::Query>,
    ) -> Result<CursorMut<'t, S, K, ()>, Error> {
        self.map().upper_bound_mut(tx, bound)
    }
}

impl<K: Key> Ptr<PBTreeSet<Ranked<K>>> {
    /// How many keys lie in front of one, and whether it is there.
    pub fn rank(self, from: &impl Load, key: &K::Query) -> Result<(u64, bool), Error> {
        self.map().rank(from, key)
    }

    /// The keys from a place in the order on, counted from 0; none if there are not so many.
    pub fn iter_from<L: Load>(
        self,
        from: &L,
        place: u64,
    ) -> Result<impl Iterator<Item = Result<K::Owned, Error>>, Error> {
        Ok(keys(self.map().iter_from(from, place)?))
    }

    /// The key at a place in the order.
    pub fn key_at(self, from: &impl Load, place: u64) -> Result<Option<K::Owned>, Error> {
        Ok(self.map().entry_at(from, place)?.map(|(key, ())| key))
    }
}
