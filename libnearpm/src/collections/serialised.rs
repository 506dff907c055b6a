//! Collections as serde sees them: sequences, maps, text. They nest, in each other and in whatever
//! derives serde's traits, since each asks for the transaction that its thread is in
//! ([`within`](crate::typed)).

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Key, PBTreeMap, PBTreeSet, PBytes, PHashMap, PHashSet, PQueue, PString, PVec};
use crate::typed::within::{DEEPEST, Level, Source, Target, deeper, putting, reading, with_source, with_target};
use crate::{Load, Persistent, Ptr, Store};

/// What collections say where nobody has told what they lie in.
const OUTSIDE: &str = "a collection lies in a pool: serialise it by `Ptr::serialised`, and read it by `Ptr::deserialise` or `deserialised`";

/// A value and what it is read from; from [`Ptr::serialised`].
pub struct Serialised<'t, L, T> {
    from: &'t L,
    pointer: Ptr<T>,
}

impl<L: Load, T: Persistent + Serialize> Serialize for Serialised<'_, L, T> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        let value = self.from.get(self.pointer).map_err(Z::Error::custom)?;
        reading(self.from, || value.serialize(to))
    }
}

impl<T: Persistent> Ptr<T> {
    /// A value as something that serde can serialise, with all that its collections hold, while the
    /// transaction lasts: a collection, or a struct that derives `Serialize` beside `Persistent`.
    /// Collections may lie 128 deep in each other; a value that is deeper, or holds itself, is an
    /// error of the format's.
    ///
    /// ```
    /// use nearpm::prelude::*;
    ///
    /// fn to_json(pool: &DirectPool, prices: Ptr<PBTreeMap<PString, PVec<u64>>>) -> Result<String, Error> {
    ///     pool.read(|from| Ok(serde_json::to_string(&Ptr::serialised(prices, from)).expect("text and numbers")))
    /// }
    /// ```
    pub fn serialised<L: Load>(pointer: Ptr<T>, from: &L) -> Serialised<'_, L, T> {
        Serialised { from, pointer }
    }

    /// Puts what serde reads in the place of a value, and frees what that has owned.
    ///
    /// ```
    /// use nearpm::prelude::*;
    ///
    /// fn from_json(pool: &DirectPool, prices: Ptr<PBTreeMap<PString, PVec<u64>>>, json: &str) -> Result<(), Error> {
    ///     pool.tx(|tx| Ptr::deserialise(prices, tx, &mut serde_json::Deserializer::from_str(json)))
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`deserialised`], and of the stores.
    pub fn deserialise<'de, S: Store, Z: Deserializer<'de>>(
        pointer: Ptr<T>,
        tx: &mut S,
        from: Z,
    ) -> Result<(), crate::Error>
    where
        T: Deserialize<'de>,
    {
        let value = deserialised(tx, from)?;
        crate::typed::whole(tx, |tx| tx.replace(pointer, value)?.release(tx))
    }
}

/// What serde reads, to be put into a collection or an object; until it is, only the transaction
/// knows it. An element of a sequence is kept in memory until the last one is read.
///
/// # Errors
/// [`Error::Aborted`](crate::Error::Aborted) with what the deserialiser says, also where
/// collections lie more than 128 deep in each other; those of allocations and stores. Where
/// something was made before, the transaction can only be aborted.
pub fn deserialised<'de, T: Persistent + Deserialize<'de>, S: Store, Z: Deserializer<'de>>(
    tx: &mut S,
    from: Z,
) -> Result<T, crate::Error> {
    putting(tx, || T::deserialize(from))
}

/// Reads from what the thread is in.
fn load<R, E: Error>(work: impl FnOnce(&Source<'_>) -> Result<R, E>) -> Result<R, E> {
    with_source(work).unwrap_or_else(|| Err(E::custom(OUTSIDE)))
}

/// Changes what the thread is in.
fn store<R, E: de::Error>(work: impl FnOnce(&mut Target<'_>) -> Result<R, crate::Error>) -> Result<R, E> {
    with_target(work).unwrap_or_else(|| Err(OUTSIDE.into())).map_err(E::custom)
}

/// Goes into a collection.
fn level<E>(custom: impl FnOnce(String) -> E) -> Result<Level, E> {
    deeper().ok_or_else(|| custom(format!("collections lie more than {DEEPEST} deep in each other")))
}

/// Counts what is serialised: a format may have written how much will come.
struct Counted {
    length: usize,
    left: usize,
}

impl Counted {
    fn new<E: Error>(length: u64) -> Result<Counted, E> {
        let length = usize::try_from(length).map_err(E::custom)?;
        Ok(Counted { length, left: length })
    }

    fn wrong<E: Error>(&self, than: &str) -> E {
        E::custom(format!("a damaged collection: {than} than the {} that it says it holds", self.length))
    }

    fn one<E: Error>(&mut self) -> Result<(), E> {
        self.left = self.left.checked_sub(1).ok_or_else(|| self.wrong("more"))?;
        Ok(())
    }

    fn end<E: Error>(self) -> Result<(), E> {
        if self.left == 0 { Ok(()) } else { Err(self.wrong("fewer")) }
    }
}

/// Serialises items one after the other.
fn sequence<Z: Serializer, T: Serialize>(
    to: Z,
    length: u64,
    items: Result<impl Iterator<Item = Result<T, crate::Error>>, crate::Error>,
) -> Result<Z::Ok, Z::Error> {
    let _level = level(Z::Error::custom)?;
    let mut counted = Counted::new::<Z::Error>(length)?;
    let mut sequence = to.serialize_seq(Some(counted.length))?;
    for item in items.map_err(Z::Error::custom)? {
        counted.one::<Z::Error>()?;
        sequence.serialize_element(&item.map_err(Z::Error::custom)?)?;
    }
    counted.end::<Z::Error>()?;
    sequence.end()
}

/// Serialises entries one after the other.
fn map<Z: Serializer, K: Serialize, V: Serialize>(
    to: Z,
    length: u64,
    entries: Result<impl Iterator<Item = Result<(K, V), crate::Error>>, crate::Error>,
) -> Result<Z::Ok, Z::Error> {
    let _level = level(Z::Error::custom)?;
    let mut counted = Counted::new::<Z::Error>(length)?;
    let mut map = to.serialize_map(Some(counted.length))?;
    for entry in entries.map_err(Z::Error::custom)? {
        let (key, value) = entry.map_err(Z::Error::custom)?;
        counted.one::<Z::Error>()?;
        map.serialize_entry(&key, &value)?;
    }
    counted.end::<Z::Error>()?;
    map.end()
}

macro_rules! serialise {
    ($([$($parameters:tt)*] $collection:ty $(where $owned:ty)?: $by:ident by $($length:ident).+;)*) => {$(
        impl<$($parameters)*> Serialize for $collection $(where $owned: Serialize)? {
            fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
                load(|from| $by(to, self.$($length).+, self.iterate(from)))
            }
        }
    )*};
}

serialise! {
    [T: Persistent + Serialize] PVec<T>: sequence by length;
    [T: Persistent + Serialize] PQueue<T>: sequence by length;
    [K: Key] PHashSet<K> where K::Owned: sequence by map.length;
    [K: Key] PBTreeSet<K> where K::Owned: sequence by map.length;
    [K: Key, V: Persistent + Serialize] PHashMap<K, V> where K::Owned: map by length;
    [K: Key, V: Persistent + Serialize] PBTreeMap<K, V> where K::Owned: map by length;
}

impl Serialize for PString {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        to.serialize_str(&load(|from| self.read(from).map_err(Z::Error::custom))?)
    }
}

impl Serialize for PBytes {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        to.serialize_bytes(&load(|from| self.read(from).map_err(Z::Error::custom))?)
    }
}

/// A collection while it is read: in a place of its own, of which the handle is taken at the end.
struct Filling<C: Persistent>(Ptr<C>);

impl<C: Persistent> Filling<C> {
    fn new<E: de::Error>() -> Result<Filling<C>, E> {
        store(|tx| tx.alloc_zeroed(1).map(Filling))
    }

    fn add<E: de::Error>(
        &self,
        one: impl FnOnce(Ptr<C>, &mut Target<'_>) -> Result<(), crate::Error>,
    ) -> Result<(), E> {
        store(|tx| one(self.0, tx))
    }

    fn end<E: de::Error>(self) -> Result<C, E> {
        store(|tx| {
            let collection = tx.get(self.0)?;
            tx.free(self.0)?;
            Ok(collection)
        })
    }
}

/// Makes collections of what it visits.
struct Collected<C>(PhantomData<C>);

macro_rules! deserialise {
    ($([$($parameters:tt)*] $collection:ty $(where [$($bounds:tt)*])?: $method:ident $visit:ident $access:ident, $expected:literal, $fill:expr;)*) => {$(
        impl<'de, $($parameters)*> Visitor<'de> for Collected<$collection> $(where $($bounds)*)? {
            type Value = $collection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expected)
            }

            fn $visit<A: $access<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
                let _level = level(<A::Error as de::Error>::custom)?;
                let fill: fn(A) -> Result<Self::Value, A::Error> = $fill;
                fill(access)
            }
        }

        impl<'de, $($parameters)*> Deserialize<'de> for $collection $(where $($bounds)*)? {
            fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<Self, Z::Error> {
                from.$method(Collected::<$collection>(PhantomData))
            }
        }
    )*};
}

/// Reads the elements of a sequence into a collection, by what puts one in.
fn elements<'de, C: Persistent, T: Deserialize<'de>, A: SeqAccess<'de>>(
    mut access: A,
    put: impl Fn(Ptr<C>, &mut Target<'_>, T) -> Result<(), crate::Error>,
) -> Result<C, A::Error> {
    let filling = Filling::new()?;
    while let Some(element) = access.next_element()? {
        filling.add(|at, tx| put(at, tx, element))?;
    }
    filling.end()
}

/// The same of a map's entries.
fn entries<'de, C: Persistent, K: Deserialize<'de>, V: Deserialize<'de>, A: MapAccess<'de>>(
    mut access: A,
    put: impl Fn(Ptr<C>, &mut Target<'_>, K, V) -> Result<(), crate::Error>,
) -> Result<C, A::Error> {
    let filling = Filling::new()?;
    while let Some((key, value)) = access.next_entry()? {
        filling.add(|at, tx| put(at, tx, key, value))?;
    }
    filling.end()
}

deserialise! {
    [T: Persistent + Deserialize<'de>] PVec<T>: deserialize_seq visit_seq SeqAccess, "a sequence", |mut access| {
        let mut values: Vec<T> = Vec::new();
        while let Some(value) = access.next_element()? {
            values.push(value);
        }
        store(|tx| PVec::with(tx, &values))
    };
    [T: Persistent + Deserialize<'de>] PQueue<T>: deserialize_seq visit_seq SeqAccess, "a sequence", |access| {
        elements(access, |at: Ptr<PQueue<T>>, tx, value| at.push(tx, value))
    };
    [K: Key] PHashSet<K> where [K::Owned: Deserialize<'de> + Borrow<K::Query>]: deserialize_seq visit_seq SeqAccess, "a sequence of keys", |access| {
        elements(access, |at: Ptr<PHashSet<K>>, tx, key: K::Owned| at.insert(tx, key.borrow()).map(drop))
    };
    [K: Key] PBTreeSet<K> where [K::Owned: Deserialize<'de> + Borrow<K::Query>]: deserialize_seq visit_seq SeqAccess, "a sequence of keys", |access| {
        elements(access, |at: Ptr<PBTreeSet<K>>, tx, key: K::Owned| at.insert(tx, key.borrow()).map(drop))
    };
    [K: Key, V: Persistent + Deserialize<'de>] PHashMap<K, V> where [K::Owned: Deserialize<'de> + Borrow<K::Query>]: deserialize_map visit_map MapAccess, "a map", |access| {
        entries(access, |at: Ptr<PHashMap<K, V>>, tx, key: K::Owned, value| {
            // The last of two with one key stays, as in the standard library's maps; the first was
            // never anywhere, and is freed with all that is left over.
            at.insert(tx, key.borrow(), value).map(drop)
        })
    };
    [K: Key, V: Persistent + Deserialize<'de>] PBTreeMap<K, V> where [K::Owned: Deserialize<'de> + Borrow<K::Query>]: deserialize_map visit_map MapAccess, "a map", |access| {
        entries(access, |at: Ptr<PBTreeMap<K, V>>, tx, key: K::Owned, value| {
            // The last of two with one key stays, as in the standard library's maps; the first was
            // never anywhere, and is freed with all that is left over.
            at.insert(tx, key.borrow(), value).map(drop)
        })
    };
}

impl<'de> Deserialize<'de> for PString {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<PString, Z::Error> {
        let text = String::deserialize(from)?;
        store(|tx| PString::with(tx, &text))
    }
}

/// Takes bytes in the forms that formats give them: as such, or as a sequence of numbers.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = PBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<PBytes, E> {
        store(|tx| PBytes::with(tx, bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<PBytes, A::Error> {
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(byte) = access.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for PBytes {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<PBytes, Z::Error> {
        from.deserialize_byte_buf(Bytes)
    }
}
