//! Hash map by linear hashing (Litwin, VLDB 1980): it grows by one bucket at a time, so that no
//! operation rehashes everything and no transaction outgrows its log.
//!
//! The head object names a directory of segments of 512 buckets each; a bucket is the offset of its
//! first entry.

use std::collections::BTreeMap;

use nearpm::Error;

use crate::map::{Damage, Fault, Map, Value, read_value};
use crate::store::Transaction;

/// Buckets of a segment, and segments of the directory.
const PER_SEGMENT: u64 = 512;
/// Most buckets; beyond `PER_BUCKET` times as many entries the chains grow instead.
const MOST_BUCKETS: u64 = PER_SEGMENT * PER_SEGMENT;
/// Entries per bucket, on average, above which the map grows.
const PER_BUCKET: u64 = 2;
/// Buckets of an empty map.
const FIRST_BUCKETS: u64 = 8;

/// Head object: directory, number of buckets, number of entries.
const HEAD_BYTES: u64 = 64;
const DIRECTORY_AT: u64 = 0;
const BUCKETS_AT: u64 = 8;
const ENTRIES_AT: u64 = 16;

/// Entry object: next entry, key, value.
const KEY_AT: u64 = 8;
const VALUE_AT: u64 = 16;

/// A hash map in a pool, which keeps the first `V` bytes of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashMap<const V: usize = 64> {
    head: u64,
}

/// Finaliser of SplitMix64: every bit of the key moves every bit of the hash.
pub(crate) fn hash(key: u64) -> u64 {
    let z = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bucket of a key among `buckets`.
fn bucket_of(key: u64, buckets: u64) -> u64 {
    let level = 1u64 << buckets.ilog2();
    let bucket = hash(key) & (2 * level - 1);
    if bucket < buckets { bucket } else { bucket & (level - 1) }
}

impl<const V: usize> HashMap<V> {
    /// Offset of the word of a bucket.
    fn bucket(&self, tx: &mut dyn Transaction, bucket: u64) -> Result<u64, Error> {
        let directory = tx.read_u64(self.head + DIRECTORY_AT)?;
        let segment = tx.read_u64(directory + 8 * (bucket / PER_SEGMENT))?;
        Ok(segment + 8 * (bucket % PER_SEGMENT))
    }

    /// Next entry and key of an entry.
    fn entry(tx: &mut dyn Transaction, at: u64) -> Result<(u64, u64), Error> {
        let mut bytes = [0; 16];
        tx.read(at, &mut bytes)?;
        let [next, key] = [0, 8].map(|i| u64::from_le_bytes(bytes[i..i + 8].try_into().expect("eight bytes")));
        Ok((next, key))
    }

    /// The word that leads to the entry of `key`, and the entry's offset (0 where there is none).
    fn find(&self, tx: &mut dyn Transaction, key: u64) -> Result<(u64, u64), Error> {
        let buckets = tx.read_u64(self.head + BUCKETS_AT)?;
        let mut link = self.bucket(tx, bucket_of(key, buckets))?;
        loop {
            let at = tx.read_u64(link)?;
            if at == 0 || Self::entry(tx, at)?.1 == key {
                return Ok((link, at));
            }
            link = at;
        }
    }

    /// Adds one bucket and moves to it what belongs there.
    fn grow(&self, tx: &mut dyn Transaction, buckets: u64) -> Result<(), Error> {
        if buckets.is_multiple_of(PER_SEGMENT) {
            let directory = tx.read_u64(self.head + DIRECTORY_AT)?;
            let segment = tx.alloc_zeroed(8 * PER_SEGMENT)?;
            tx.write_u64(directory + 8 * (buckets / PER_SEGMENT), segment)?;
        }
        let old = self.bucket(tx, buckets - (1 << buckets.ilog2()))?;
        let new = self.bucket(tx, buckets)?;
        // Both chains keep their entries' order; `old_end` and `new_end` are the words to hang the
        // next entry on.
        let (mut old_end, mut new_end) = (old, new);
        let mut at = tx.read_u64(old)?;
        while at != 0 {
            let (next, key) = Self::entry(tx, at)?;
            let end = if bucket_of(key, buckets + 1) == buckets { &mut new_end } else { &mut old_end };
            if tx.read_u64(*end)? != at {
                tx.write_u64(*end, at)?;
            }
            *end = at;
            at = next;
        }
        for end in [old_end, new_end] {
            if tx.read_u64(end)? != 0 {
                tx.write_u64(end, 0)?;
            }
        }
        tx.write_u64(self.head + BUCKETS_AT, buckets + 1)
    }
}

fn damage(offset: u64, what: impl Into<String>) -> Fault {
    Damage { structure: HashMap::<64>::NAME, offset, what: what.into() }.into()
}

impl<const V: usize> Map for HashMap<V> {
    const NAME: &'static str = "hash map";

    fn create(tx: &mut dyn Transaction) -> Result<Self, Error> {
        let directory = tx.alloc_zeroed(8 * PER_SEGMENT)?;
        let segment = tx.alloc_zeroed(8 * PER_SEGMENT)?;
        tx.write_u64(directory, segment)?;
        let head = tx.alloc_zeroed(HEAD_BYTES)?;
        tx.write_u64(head + DIRECTORY_AT, directory)?;
        tx.write_u64(head + BUCKETS_AT, FIRST_BUCKETS)?;
        Ok(HashMap { head })
    }

    fn at(offset: u64) -> Self {
        HashMap { head: offset }
    }

    fn offset(&self) -> u64 {
        self.head
    }

    fn get(&self, tx: &mut dyn Transaction, key: u64) -> Result<Option<Value>, Error> {
        let (_, at) = self.find(tx, key)?;
        if at == 0 {
            return Ok(None);
        }
        read_value(tx, at + VALUE_AT, V).map(Some)
    }

    fn insert(&self, tx: &mut dyn Transaction, key: u64, value: &Value) -> Result<bool, Error> {
        let (link, at) = self.find(tx, key)?;
        if at != 0 {
            tx.write(at + VALUE_AT, &value[..V])?;
            return Ok(false);
        }
        let mut bytes = vec![0; VALUE_AT as usize + V];
        let entry = tx.alloc(bytes.len() as u64)?;
        bytes[KEY_AT as usize..][..8].copy_from_slice(&key.to_le_bytes());
        bytes[VALUE_AT as usize..].copy_from_slice(&value[..V]);
        tx.write(entry, &bytes)?;
        tx.write_u64(link, entry)?;
        let entries = tx.read_u64(self.head + ENTRIES_AT)? + 1;
        tx.write_u64(self.head + ENTRIES_AT, entries)?;
        let buckets = tx.read_u64(self.head + BUCKETS_AT)?;
        if entries > PER_BUCKET * buckets && buckets < MOST_BUCKETS {
            self.grow(tx, buckets)?;
        }
        Ok(true)
    }

    fn remove(&self, tx: &mut dyn Transaction, key: u64) -> Result<bool, Error> {
        let (link, at) = self.find(tx, key)?;
        if at == 0 {
            return Ok(false);
        }
        let (next, _) = Self::entry(tx, at)?;
        tx.write_u64(link, next)?;
        tx.free(at)?;
        let entries = tx.read_u64(self.head + ENTRIES_AT)? - 1;
        tx.write_u64(self.head + ENTRIES_AT, entries)?;
        Ok(true)
    }

    fn contents(&self, tx: &mut dyn Transaction) -> Result<BTreeMap<u64, Value>, Fault> {
        let buckets = tx.read_u64(self.head + BUCKETS_AT)?;
        let entries = tx.read_u64(self.head + ENTRIES_AT)?;
        if !(FIRST_BUCKETS..=MOST_BUCKETS).contains(&buckets) {
            return Err(damage(self.head, format!("{buckets} buckets")));
        }
        let mut contents = BTreeMap::new();
        for bucket in 0..buckets {
            let word = self.bucket(tx, bucket)?;
            let mut at = tx.read_u64(word)?;
            while at != 0 {
                let (next, key) = Self::entry(tx, at)?;
                if bucket_of(key, buckets) != bucket {
                    return Err(damage(at, format!("key {key:#x} hangs in bucket {bucket}")));
                }
                let value = read_value(tx, at + VALUE_AT, V)?;
                if contents.insert(key, value).is_some() {
                    return Err(damage(at, format!("key {key:#x} is there twice, or its chain is a ring")));
                }
                at = next;
            }
        }
        if contents.len() as u64 != entries {
            return Err(damage(self.head, format!("{} entries, {entries} counted", contents.len())));
        }
        Ok(contents)
    }
}
