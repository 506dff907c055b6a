//! Collections as serde sees them: sequences, maps, text.

use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Key, PBTreeMap, PBTreeSet, PBytes, PHashMap, PHashSet, PQueue, PString, PVec};
use crate::{Load, Persistent, Ptr};

/// A collection and what it is read from; from [`Ptr::serialised`].
///
/// A value that is no collection is serialised by itself, as other values of this process are: a struct that derives `Serialize` beside
/// `Persistent`.
pub struct Serialised<'t, L, T> {
    from: &'t L,
    pointer: Ptr<T>,
}

impl<T: Persistent> Ptr<T> {
    /// A collection as something that serde can serialise, while the transaction lasts.
    ///
    /// ```
    /// use nearpm::prelude::*;
    ///
    /// fn to_json(pool: &DirectPool, prices: Ptr<PBTreeMap<PString, u64>>) -> Result<String, Error> {
    ///     pool.read(|from| Ok(serde_json::to_string(&Ptr::serialised(prices, from)).expect("text and numbers")))
    /// }
    /// ```
    pub fn serialised<L: Load>(pointer: Ptr<T>, from: &L) -> Serialised<'_, L, T> {
        Serialised { from, pointer }
    }
}

/// Serialises items one after the other.
fn sequence<Z: Serializer, T: Serialize>(
    to: Z,
    items: Result<impl Iterator<Item = Result<T, crate::Error>>, crate::Error>,
) -> Result<Z::Ok, Z::Error> {
    let mut sequence = to.serialize_seq(None)?;
    for item in items.map_err(Z::Error::custom)? {
        sequence.serialize_element(&item.map_err(Z::Error::custom)?)?;
    }
    sequence.end()
}

/// Serialises entries one after the other.
fn map<Z: Serializer, K: Serialize, V: Serialize>(
    to: Z,
    entries: Result<impl Iterator<Item = Result<(K, V), crate::Error>>, crate::Error>,
) -> Result<Z::Ok, Z::Error> {
    let mut map = to.serialize_map(None)?;
    for entry in entries.map_err(Z::Error::custom)? {
        let (key, value) = entry.map_err(Z::Error::custom)?;
        map.serialize_entry(&key, &value)?;
    }
    map.end()
}

macro_rules! serialise {
    ($([$($parameters:tt)*] $collection:ty $(where $owned:ty)?: $by:ident;)*) => {$(
        impl<L: Load, $($parameters)*> Serialize for Serialised<'_, L, $collection> $(where $owned: Serialize)? {
            fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
                $by(to, self.pointer.iter(self.from))
            }
        }
    )*};
}

serialise! {
    [T: Persistent + Serialize] PVec<T>: sequence;
    [T: Persistent + Serialize] PQueue<T>: sequence;
    [K: Key] PHashSet<K> where K::Owned: sequence;
    [K: Key] PBTreeSet<K> where K::Owned: sequence;
    [K: Key, V: Persistent + Serialize] PHashMap<K, V> where K::Owned: map;
    [K: Key, V: Persistent + Serialize] PBTreeMap<K, V> where K::Owned: map;
}

impl<L: Load> Serialize for Serialised<'_, L, PString> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        to.serialize_str(&self.pointer.read(self.from).map_err(Z::Error::custom)?)
    }
}

impl<L: Load> Serialize for Serialised<'_, L, PBytes> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        to.serialize_bytes(&self.pointer.read(self.from).map_err(Z::Error::custom)?)
    }
}
