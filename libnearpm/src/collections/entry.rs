//! The place of a key in a map, looked up once for all that is then done there: [`Entry`]. The
//! maps' own insertions and removals go the same way.

use super::{Key, PBTreeMap, PHashMap};
use crate::error::Error;
use crate::typed::whole;
use crate::{Load, Persistent, Ptr, Store};

/// A map that says where a key is or belongs, and changes itself there.
pub trait Places: Persistent {
    /// What values are found by.
    type Key: Key;
    /// What is found.
    type Value: Persistent;
    /// Where the entry of a key is.
    type Found;
    /// Where the entry of a key would be.
    type Missing;

    /// Looks a key up.
    fn look_up(
        map: Ptr<Self>,
        from: &impl Load,
        key: &<Self::Key as Key>::Query,
    ) -> Result<Result<Self::Found, Self::Missing>, Error>;

    /// Where the value of an entry lies.
    fn slot(found: &Self::Found) -> Ptr<Self::Value>;

    /// Makes the entry of a key, and says where its value lies. Nothing has changed the map since
    /// the place was looked up.
    fn fill(
        map: Ptr<Self>,
        tx: &mut impl Store,
        key: &<Self::Key as Key>::Query,
        missing: Self::Missing,
        value: Self::Value,
    ) -> Result<Ptr<Self::Value>, Error>;

    /// Takes the entry of a key out, and gives its value. Nothing has changed the map since the
    /// place was looked up.
    fn take(
        map: Ptr<Self>,
        tx: &mut impl Store,
        key: &<Self::Key as Key>::Query,
        found: Self::Found,
    ) -> Result<Self::Value, Error>;
}

/// What a map's key is looked up by.
type Query<M> = <<M as Places>::Key as Key>::Query;

/// The place of a key in a [`PHashMap`] or [`PBTreeMap`], from their `entry`. It has the
/// transaction until it is used up, so that nothing else changes the map. The key is looked up
/// once: only an ordered map that counts goes its way again to count.
///
/// ```
/// use nearpm::collections::Entry;
/// use nearpm::prelude::*;
///
/// /// Counts a word, and keeps where it was seen.
/// fn see(
///     tx: &mut impl Store,
///     counts: Ptr<PHashMap<PString, u64>>,
///     places: Ptr<PBTreeMap<PString, PVec<u64>>>,
///     word: &str,
///     place: u64,
/// ) -> Result<(), Error> {
///     counts.entry(tx, word)?.and_modify(|count| count + 1)?.or_insert(1)?;
///     // What is made in the pool begins empty, and is filled where it lies.
///     let seen = places.entry(tx, word)?.or_default()?;
///     seen.push(tx, place)
/// }
///
/// /// Takes one from a stock, which is forgotten when it is empty.
/// fn take(tx: &mut impl Store, stock: Ptr<PBTreeMap<PString, u64>>, what: &str) -> Result<bool, Error> {
///     let Entry::Occupied(mut entry) = stock.entry(tx, what)? else { return Ok(false) };
///     if entry.update(|left| left - 1)? == 0 {
///         entry.remove()?;
///     }
///     Ok(true)
/// }
/// ```
pub enum Entry<'t, S, M: Places> {
    /// The key is there.
    Occupied(OccupiedEntry<'t, S, M>),
    /// The key is not there.
    Vacant(VacantEntry<'t, S, M>),
}

/// A key that a map has, from its `entry`.
pub struct OccupiedEntry<'t, S, M: Places> {
    tx: &'t mut S,
    map: Ptr<M>,
    key: &'t Query<M>,
    found: M::Found,
}

/// A key that a map has not, from its `entry`.
pub struct VacantEntry<'t, S, M: Places> {
    tx: &'t mut S,
    map: Ptr<M>,
    key: &'t Query<M>,
    missing: M::Missing,
}

impl<'t, S: Store, M: Places> Entry<'t, S, M> {
    fn new(map: Ptr<M>, tx: &'t mut S, key: &'t Query<M>) -> Result<Self, Error> {
        Ok(match M::look_up(map, tx, key)? {
            Ok(found) => Entry::Occupied(OccupiedEntry { tx, map, key, found }),
            Err(missing) => Entry::Vacant(VacantEntry { tx, map, key, missing }),
        })
    }

    /// What was looked up.
    pub fn key(&self) -> &'t Query<M> {
        match self {
            Entry::Occupied(entry) => entry.key,
            Entry::Vacant(entry) => entry.key,
        }
    }

    /// Sets the value to what a function makes of it, where there is one.
    ///
    /// # Errors
    /// As [`Store::set`].
    pub fn and_modify(mut self, change: impl FnOnce(M::Value) -> M::Value) -> Result<Self, Error> {
        if let Entry::Occupied(entry) = &mut self {
            entry.update(change)?;
        }
        Ok(self)
    }

    /// Where the value lies, behind its insertion where there is none.
    ///
    /// # Errors
    /// As `insert` of the map.
    pub fn or_insert(self, value: M::Value) -> Result<Ptr<M::Value>, Error> {
        self.or_insert_with(|| value)
    }

    /// Where the value lies, which a function makes where there is none.
    ///
    /// # Errors
    /// As `insert` of the map.
    pub fn or_insert_with(self, value: impl FnOnce() -> M::Value) -> Result<Ptr<M::Value>, Error> {
        match self {
            Entry::Occupied(entry) => Ok(entry.slot()),
            Entry::Vacant(entry) => entry.insert(value()),
        }
    }

    /// Where the value lies, which is the type's own where there was none: an empty collection,
    /// say, to be filled there.
    ///
    /// # Errors
    /// As `insert` of the map.
    pub fn or_default(self) -> Result<Ptr<M::Value>, Error>
    where
        M::Value: Default,
    {
        self.or_insert_with(M::Value::default)
    }
}

impl<'t, S: Store, M: Places> OccupiedEntry<'t, S, M> {
    /// What was looked up.
    pub fn key(&self) -> &'t Query<M> {
        self.key
    }

    /// Where the value lies; how long is said by `slot` of the map.
    pub fn slot(&self) -> Ptr<M::Value> {
        M::slot(&self.found)
    }

    /// The value.
    pub fn get(&self) -> Result<M::Value, Error> {
        self.tx.get(self.slot())
    }

    /// Sets the value, and gives the one that it had. What that owns is the caller's to release.
    ///
    /// # Errors
    /// As [`Store::set`].
    pub fn insert(&mut self, value: M::Value) -> Result<M::Value, Error> {
        self.tx.replace(M::slot(&self.found), value)
    }

    /// Sets the value to what a function makes of it, and gives that.
    ///
    /// # Errors
    /// As [`Store::set`].
    pub fn update(&mut self, change: impl FnOnce(M::Value) -> M::Value) -> Result<M::Value, Error> {
        self.tx.update(M::slot(&self.found), change)
    }

    /// Takes the key out, and gives its value. What that owns is the caller's to release.
    ///
    /// # Errors
    /// As `remove` of the map.
    pub fn remove(self) -> Result<M::Value, Error> {
        let OccupiedEntry { tx, map, key, found } = self;
        whole(tx, |tx| M::take(map, tx, key, found))
    }
}

impl<'t, S: Store, M: Places> VacantEntry<'t, S, M> {
    /// What was looked up.
    pub fn key(&self) -> &'t Query<M> {
        self.key
    }

    /// Inserts the key with a value, and says where that lies; how long is said by `slot` of the
    /// map.
    ///
    /// # Errors
    /// As `insert` of the map.
    pub fn insert(self, value: M::Value) -> Result<Ptr<M::Value>, Error> {
        let VacantEntry { tx, map, key, missing } = self;
        whole(tx, |tx| M::fill(map, tx, key, missing, value))
    }
}

macro_rules! map {
    ($map:ident) => {
        impl<K: Key, V: Persistent> Ptr<$map<K, V>> {
            /// The place of a key, looked up once for all that is then done there.
            ///
            /// # Errors
            /// As `get`.
            pub fn entry<'t, S: Store>(
                self,
                tx: &'t mut S,
                key: &'t K::Query,
            ) -> Result<Entry<'t, S, $map<K, V>>, Error> {
                Entry::new(self, tx, key)
            }

            /// Where the value of a key lies, which gets this one where it has none: the `entry` of
            /// the key, and its `or_insert_with`.
            pub fn slot_or_insert_with(
                self,
                tx: &mut impl Store,
                key: &K::Query,
                value: impl FnOnce() -> V,
            ) -> Result<Ptr<V>, Error> {
                self.entry(tx, key)?.or_insert_with(value)
            }

            /// Sets the value of a key, and gives the one that it had. What that owns is the
            /// caller's to release.
            pub fn insert(self, tx: &mut impl Store, key: &K::Query, value: V) -> Result<Option<V>, Error> {
                whole(tx, |tx| match $map::look_up(self, tx, key)? {
                    Ok(found) => tx.replace($map::slot(&found), value).map(Some),
                    Err(missing) => $map::fill(self, tx, key, missing, value).map(|_| None),
                })
            }

            /// Takes a key out, and gives its value. What that owns is the caller's to release.
            pub fn remove(self, tx: &mut impl Store, key: &K::Query) -> Result<Option<V>, Error> {
                whole(tx, |tx| match $map::look_up(self, tx, key)? {
                    Ok(found) => $map::take(self, tx, key, found).map(Some),
                    Err(_) => Ok(None),
                })
            }
        }
    };
}

map!(PHashMap);
map!(PBTreeMap);
