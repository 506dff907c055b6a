//! Values by keys, in no order: linear hashing (Litwin, VLDB 1980).
//!
//! The table grows by one bucket at a time, so that no insertion rewrites the whole of it: what a
//! transaction logs does not grow with the map. Buckets lie in segments, each as large as all
//! before it together, so that none moves. An entry is one object: its link and hash, the key, the
//! value.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::Key;
use super::entry::Places;
use crate::error::Error;
use crate::typed::{later, pointer, whole};
use crate::{Load, Persistent, Ptr, Store};

/// In front of key and value.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Entry {
    next: Link,
    hash: u64,
}

/// A bucket, or the end of an entry.
type Link = Option<Ptr<Entry>>;

/// Segments of a table, the first bucket of each.
type Directory = [Option<Ptr<Link>>; SEGMENTS];

const SEGMENTS: usize = 40;

/// Buckets of the first segment.
const FIRST: u64 = 8;

/// Entries for each bucket, on average, before another bucket is made.
const LOAD: u64 = 2;

/// A hash map; see [`collections`](crate::collections). Its methods are those of
/// `Ptr<PHashMap<K, V>>`; keys are looked up by a reference, text by a `&str`.
///
/// ```
/// use nearpm::prelude::*;
///
/// fn rename(tx: &mut impl Store, ages: Ptr<PHashMap<PString, u64>>) -> Result<(), Error> {
///     if let Some(age) = ages.remove(tx, "Ada Byron")? {
///         ages.insert(tx, "Ada Lovelace", age)?;
///     }
///     Ok(())
/// }
/// ```
///
/// `len`, `is_empty`, `get`, `slot`, `contains_key`, `insert` and `remove` take O(1) on average. An
/// insertion may move the entries of one bucket, never more; once for each doubling it takes a new
/// segment of zeros. The table does not shrink before `clear`. The hash has no secret: whoever
/// chooses keys can choose such as collide.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
#[persistent(release = release)]
pub struct PHashMap<K: Key, V: Persistent> {
    pub(super) length: u64,
    /// Buckets in use, 0 before the first insertion.
    buckets: u64,
    directory: Option<Ptr<Directory>>,
    keys: PhantomData<K>,
    values: PhantomData<V>,
}

/// Where the buckets of a segment begin.
fn segment_start(segment: usize) -> u64 {
    if segment == 0 { 0 } else { FIRST << (segment - 1) }
}

/// Segment of a bucket.
fn segment_of(bucket: u64) -> usize {
    if bucket < FIRST { 0 } else { (bucket / FIRST).ilog2() as usize + 1 }
}

/// Buckets of a segment.
fn segment_buckets(segment: usize) -> u64 {
    if segment == 0 { FIRST } else { segment_start(segment) }
}

fn corrupt<T: Persistent>(at: Ptr<T>) -> Error {
    Error::Corrupt { what: "the table of a hash map contradicts itself", offset: Ptr::offset(at) }
}

impl<K: Key, V: Persistent> PHashMap<K, V> {
    const EMPTY: PHashMap<K, V> =
        PHashMap { length: 0, buckets: 0, directory: None, keys: PhantomData, values: PhantomData };

    const VALUE: u64 = (size_of::<Entry>() + size_of::<K>()).next_multiple_of(align_of::<V>()) as u64;
    const ENTRY_BYTES: u64 = Self::VALUE + size_of::<V>() as u64;

    fn key(entry: Ptr<Entry>) -> Ptr<K> {
        Ptr::behind(entry, size_of::<Entry>() as u64)
    }

    fn value(entry: Ptr<Entry>) -> Ptr<V> {
        Ptr::behind(entry, Self::VALUE)
    }

    /// The bucket of a hash.
    fn index(&self, hash: u64) -> u64 {
        // A damaged number of buckets leads to one that is not there.
        let mask = self.buckets.checked_next_power_of_two().map_or(u64::MAX, |all| all - 1);
        let index = hash & mask;
        // Of the buckets that this round of doubling has not split, half the mask counts.
        if index < self.buckets { index } else { index & mask >> 1 }
    }

    fn bucket(&self, from: &impl Load, index: u64) -> Result<Ptr<Link>, Error> {
        let segment = segment_of(index);
        let directory = self.directory.filter(|_| segment < SEGMENTS);
        let directory = directory.ok_or(Error::NotAllocated { offset: 0 })?;
        let first = from.get(directory.at(segment))?.ok_or_else(|| corrupt(directory))?;
        Ok(Ptr::nth(first, index - segment_start(segment)))
    }

    /// The link that leads to a key's entry, and the entry; or the last link of its bucket.
    fn find(&self, from: &impl Load, query: &K::Query, hash: u64) -> Result<(Ptr<Link>, Link), Error> {
        let mut link = self.bucket(from, self.index(hash))?;
        while let Some(entry) = from.get(link)? {
            if from.get(entry.hash())? == hash && from.get(Self::key(entry))?.compare(from, query)? == Ordering::Equal {
                return Ok((link, Some(entry)));
            }
            link = entry.next();
        }
        Ok((link, None))
    }

    /// The next entry behind one, or of the buckets from `index` on.
    fn next(&self, from: &impl Load, behind: Link, index: &mut u64) -> Result<Link, Error> {
        let mut next = behind.map_or(Ok(None), |entry| from.get(entry.next()))?;
        while next.is_none() && *index < self.buckets {
            next = from.get(self.bucket(from, *index)?)?;
            *index += 1;
        }
        Ok(next)
    }
}

/// Frees what a map holds.
fn release<K: Key, V: Persistent, S: Store>(map: PHashMap<K, V>, tx: &mut S) -> Result<(), Error> {
    let Some(directory) = map.directory else { return Ok(()) };
    let mut index = 0;
    let first = map.next(tx, None, &mut index)?;
    release_from(map, directory, first, index, tx)
}

/// Frees what is left of a map: the entries from one on, of which the buckets from `index` on hold
/// those behind the next, and the table.
fn release_from<K: Key, V: Persistent, S: Store>(
    map: PHashMap<K, V>,
    directory: Ptr<Directory>,
    mut next: Link,
    mut index: u64,
    tx: &mut S,
) -> Result<(), Error> {
    while let Some(entry) = next {
        next = map.next(tx, next, &mut index)?;
        let key = if K::OWNS { Some(tx.get(PHashMap::<K, V>::key(entry))?) } else { None };
        let value = if V::OWNS { Some(tx.get(PHashMap::<K, V>::value(entry))?) } else { None };
        tx.free(entry)?;
        if K::OWNS || V::OWNS {
            let rest = [Ptr::offset(directory), map.buckets, next.map_or(0, Ptr::offset), index];
            later(tx, release_rest::<K, V, S>, rest)?;
            key.map_or(Ok(()), |key| key.release(tx))?;
            return value.map_or(Ok(()), |value| value.release(tx));
        }
    }
    for segment in tx.get(directory)?.into_iter().flatten() {
        tx.free(segment)?;
    }
    tx.free(directory)
}

fn release_rest<K: Key, V: Persistent, S: Store>(
    tx: &mut S,
    [directory, buckets, next, index]: [u64; 4],
) -> Result<(), Error> {
    let directory = pointer(directory)?;
    let map = PHashMap::<K, V> { buckets, directory: Some(directory), ..PHashMap::EMPTY };
    release_from(map, directory, Ptr::from_offset(next), index, tx)
}

impl<K: Key, V: Persistent> Ptr<PHashMap<K, V>> {
    /// How many entries there are.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        from.get(self.length())
    }

    /// Whether there are none.
    pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
        Ok(self.len(from)? == 0)
    }

    /// Where the value of a key lies, until the key is removed.
    pub fn slot(self, from: &impl Load, key: &K::Query) -> Result<Option<Ptr<V>>, Error> {
        let map = from.get(self)?;
        if map.length == 0 {
            return Ok(None);
        }
        Ok(map.find(from, key, K::hash(key))?.1.map(PHashMap::<K, V>::value))
    }

    /// The value of a key.
    pub fn get(self, from: &impl Load, key: &K::Query) -> Result<Option<V>, Error> {
        self.slot(from, key)?.map(|slot| from.get(slot)).transpose()
    }

    /// Whether the key is there.
    pub fn contains_key(self, from: &impl Load, key: &K::Query) -> Result<bool, Error> {
        Ok(self.slot(from, key)?.is_some())
    }

    /// Frees everything that the map holds.
    pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
        whole(tx, |tx| {
            tx.get(self)?.release(tx)?;
            tx.set(self, PHashMap::EMPTY)
        })
    }

    /// The entries, in no order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Entries<'_, L, K, V>, Error> {
        from.get(self)?.iterate(from)
    }

    /// Makes the first buckets, and gives the map that has them.
    fn begin(self, tx: &mut impl Store) -> Result<PHashMap<K, V>, Error> {
        let directory: Ptr<Directory> = tx.alloc_zeroed(1)?;
        let first = tx.alloc_zeroed(FIRST)?;
        tx.set(directory.at(0), Some(first))?;
        let map = PHashMap { buckets: FIRST, directory: Some(directory), ..PHashMap::EMPTY };
        tx.set(self, map)?;
        Ok(map)
    }

    /// Makes one more bucket, and moves to it what belongs there of the one that it splits.
    fn split(self, tx: &mut impl Store, mut map: PHashMap<K, V>) -> Result<(), Error> {
        let fresh = map.buckets;
        let segment = segment_of(fresh);
        let Some(directory) = map.directory.filter(|_| segment < SEGMENTS) else { return Ok(()) };
        if fresh == segment_start(segment) {
            let buckets = tx.alloc_zeroed(segment_buckets(segment))?;
            tx.set(directory.at(segment), Some(buckets))?;
        }
        let half = (fresh + 1).next_power_of_two() >> 1;
        let mut stays = map.bucket(tx, fresh & (half - 1))?;
        map.buckets += 1;
        let mut goes = map.bucket(tx, fresh)?;
        let mut next = tx.get(stays)?;
        // Chains keep their order, and only links that change are stored.
        let (mut stay_link, mut go_link): (Link, Link) = (next, None);
        while let Some(entry) = next {
            next = tx.get(entry.next())?;
            let moves = map.index(tx.get(entry.hash())?) == fresh;
            let (link, known) = if moves { (&mut goes, &mut go_link) } else { (&mut stays, &mut stay_link) };
            if *known != Some(entry) {
                tx.set(*link, Some(entry))?;
            }
            (*link, *known) = (entry.next(), next);
        }
        for (link, known) in [(stays, stay_link), (goes, go_link)] {
            if known.is_some() {
                tx.set(link, None)?;
            }
        }
        tx.set(self.buckets(), map.buckets)
    }
}

/// An entry of a map, with the link that leads to it.
pub struct Found<K: Key, V: Persistent> {
    map: PHashMap<K, V>,
    link: Ptr<Link>,
    entry: Ptr<Entry>,
}

/// Where an entry with a hash belongs in a map: the last link of its bucket, or none if there are
/// no buckets yet.
pub struct Missing<K: Key, V: Persistent> {
    map: PHashMap<K, V>,
    link: Option<Ptr<Link>>,
    hash: u64,
}

impl<K: Key, V: Persistent> Places for PHashMap<K, V> {
    type Key = K;
    type Value = V;
    type Found = Found<K, V>;
    type Missing = Missing<K, V>;

    #[inline]
    fn look_up(map: Ptr<Self>, from: &impl Load, key: &K::Query) -> Result<Result<Self::Found, Self::Missing>, Error> {
        let (map, hash) = (from.get(map)?, K::hash(key));
        if map.buckets == 0 {
            return Ok(Err(Missing { map, link: None, hash }));
        }
        let (link, found) = map.find(from, key, hash)?;
        Ok(found.map(|entry| Found { map, link, entry }).ok_or(Missing { map, link: Some(link), hash }))
    }

    #[inline]
    fn slot(found: &Self::Found) -> Ptr<V> {
        Self::value(found.entry)
    }

    #[inline]
    fn fill(
        table: Ptr<Self>,
        tx: &mut impl Store,
        key: &K::Query,
        missing: Self::Missing,
        value: V,
    ) -> Result<Ptr<V>, Error> {
        let Missing { mut map, link, hash } = missing;
        let link = match link {
            Some(link) => link,
            None => {
                map = table.begin(tx)?;
                map.bucket(tx, map.index(hash))?
            }
        };
        let key = K::make(tx, key)?;
        let entry: Ptr<Entry> = pointer(tx.alloc_bytes(Self::ENTRY_BYTES)?)?;
        tx.set(entry, Entry { next: None, hash })?;
        tx.set(Self::key(entry), key)?;
        tx.set(Self::value(entry), value)?;
        tx.set(link, Some(entry))?;
        map.length = map.length.saturating_add(1);
        tx.set(table.length(), map.length)?;
        if map.length > map.buckets.saturating_mul(LOAD) {
            table.split(tx, map)?;
        }
        Ok(Self::value(entry))
    }

    #[inline]
    fn take(table: Ptr<Self>, tx: &mut impl Store, _: &K::Query, found: Self::Found) -> Result<V, Error> {
        let Found { map, link, entry } = found;
        let value = tx.get(Self::value(entry))?;
        let next = tx.get(entry.next())?;
        tx.set(link, next)?;
        tx.set(table.length(), map.length.saturating_sub(1))?;
        if K::OWNS {
            tx.get(Self::key(entry))?.release(tx)?;
        }
        tx.free(entry)?;
        Ok(value)
    }
}

/// The entries of a [`PHashMap`].
pub struct Entries<'t, L, K: Key, V: Persistent> {
    from: &'t L,
    map: PHashMap<K, V>,
    /// The next bucket.
    index: u64,
    entry: Link,
}

impl<L: Load, K: Key, V: Persistent> Iterator for Entries<'_, L, K, V> {
    type Item = Result<(K::Owned, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.map.next(self.from, self.entry, &mut self.index).and_then(|next| {
            self.entry = next;
            let Some(entry) = next else { return Ok(None) };
            let key = self.from.get(PHashMap::<K, V>::key(entry))?.owned(self.from)?;
            Ok(Some((key, self.from.get(PHashMap::<K, V>::value(entry))?)))
        });
        if item.is_err() {
            // Behind an error there is nothing.
            (self.entry, self.map) = (None, PHashMap::EMPTY);
        }
        item.transpose()
    }
}

impl<K: Key, V: Persistent> PHashMap<K, V> {
    /// The entries, in no order.
    pub(super) fn iterate<L: Load>(self, from: &L) -> Result<Entries<'_, L, K, V>, Error> {
        Ok(Entries { from, map: self, index: 0, entry: None })
    }

    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        Self::EMPTY
    }
}

impl<K: Key, V: Persistent> Default for PHashMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
