//! The hash map of `evaluation/pmdk/programs/hashmap.c`, over typed objects.

use nearpm::prelude::*;

use crate::Map;

const FIRST_BUCKETS: u64 = 10;
const LONG_CHAIN: u32 = 5;
const LONGEST_CHAIN: u32 = 7;

type Link = Option<Ptr<Entry>>;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Entry {
    key: u64,
    value: Ptr64,
    next: Link,
}

type Ptr64 = Option<Ptr<u64>>;

/// The size, and behind it the buckets.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Table {
    size: u64,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct HashMap {
    count: u64,
    table: Option<Ptr<Table>>,
}

fn bucket_of(size: u64, key: u64) -> u64 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % size
}

fn bucket(table: Ptr<Table>, index: u64) -> Ptr<Link> {
    Ptr::nth(Ptr::cast(table), 1 + index)
}

fn new_table(tx: &mut impl Store, size: u64) -> Result<Ptr<Table>, Error> {
    let table = Ptr::cast(tx.alloc_zeroed::<u64>(1 + size)?);
    tx.set(table, Table { size })?;
    Ok(table)
}

fn double(tx: &mut impl Store, map: Ptr<HashMap>, old: Ptr<Table>, size: u64) -> Result<(), Error> {
    let larger = new_table(tx, 2 * size)?;
    tx.declare(Ptr::offset(old)..Ptr::offset(bucket(old, size)))?;
    for index in 0..size {
        let mut next = tx.get(bucket(old, index))?;
        while let Some(entry) = next {
            next = tx.get(entry.next())?;
            let to = bucket(larger, bucket_of(2 * size, tx.get(entry.key())?));
            let head = tx.get(to)?;
            tx.set(entry.next(), head)?;
            tx.set(to, Some(entry))?;
        }
    }
    tx.set(map.table(), Some(larger))?;
    tx.free(old)
}

impl Map for HashMap {
    fn insert(tx: &mut impl Store, map: Ptr<HashMap>, key: u64, value: Ptr<u64>) -> Result<(), Error> {
        let table = match tx.get(map.table())? {
            Some(table) => table,
            None => {
                let table = new_table(tx, FIRST_BUCKETS)?;
                tx.set(map.table(), Some(table))?;
                table
            }
        };
        let size = tx.get(table.size())?;
        let place = bucket(table, bucket_of(size, key));
        let head = tx.get(place)?;
        let (mut chain, mut at) = (1, head);
        while let Some(entry) = at {
            chain += 1;
            at = tx.get(entry.next())?;
        }
        let entry = tx.alloc(Entry { key, value: Some(value), next: head })?;
        tx.set(place, Some(entry))?;
        let count = tx.update(map.count(), |count| count + 1)?;
        if chain > LONGEST_CHAIN || (chain > LONG_CHAIN && count > 2 * size) {
            double(tx, map, table, size)?;
        }
        Ok(())
    }

    fn find(from: &impl Load, map: Ptr<HashMap>, key: u64) -> Result<Option<u64>, Error> {
        let Some(table) = from.get(map.table())? else { return Ok(None) };
        let mut at = from.get(bucket(table, bucket_of(from.get(table.size())?, key)))?;
        while let Some(entry) = at {
            if from.get(entry.key())? == key {
                return from.get(entry.value())?.map(|value| from.get(value)).transpose();
            }
            at = from.get(entry.next())?;
        }
        Ok(None)
    }
}
