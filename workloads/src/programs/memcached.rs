//! memcached's SET, in one transaction: a chunk of the slab is taken, filled, and hung into hash
//! chain and LRU list.
//!
//! The slab is one object that exists from the beginning, so that what is received overwrites old
//! memory and is logged: 1 to 1.4 KB. When no chunk is free the least recently set item gives its
//! own.

use std::collections::BTreeSet;

use nearpm::Error;

use super::chain::{Chains, create, damage};
use super::rows::{Table, set_word, word};
use super::ycsb::{Request, requests, value};
use super::{Rows, Setup, Workload};
use crate::map::Fault;
use crate::store::{Store, Transaction};

/// Bytes of the slab in the paper's set-up.
const SLAB_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 1536;
/// Free chunks that are linked in a transaction: each may take a page of an epoch.
const LINKED_TOGETHER: usize = 32;
/// Item: next of chain (or of the free list), neighbours in the LRU list, key, length, and behind
/// them the data.
const NEXT: u64 = 0;
const HOTTER: u64 = 8;
const COLDER: u64 = 16;
const KEY: u64 = 24;
const LENGTH: u64 = 32;
const DATA: u64 = 64;
/// Root object: array, slab, first free chunk, ends of the LRU list.
const ARRAY: u64 = 0;
const SLAB: u64 = 8;
const FREE: u64 = 16;
const HOTTEST: u64 = 24;
const COLDEST: u64 = 32;
/// Where [`Rows`] have the keys of the LRU list, hottest first; no record has this key.
const BY_HEAT: u64 = u64::MAX;

/// The program.
pub struct Memcached {
    first: Vec<Request>,
    requests: Vec<Request>,
    slab: Table,
    buckets: u64,
}

/// The store in a transaction.
struct Open<'t> {
    tx: &'t mut dyn Transaction,
    root: u64,
    chains: Chains,
}

impl Open<'_> {
    /// Takes an item out of the LRU list.
    fn leave(&mut self, item: u64) -> Result<(), Error> {
        let (hotter, colder) = (self.tx.read_u64(item + HOTTER)?, self.tx.read_u64(item + COLDER)?);
        let of_hotter = if hotter == 0 { self.root + HOTTEST } else { hotter + COLDER };
        let of_colder = if colder == 0 { self.root + COLDEST } else { colder + HOTTER };
        self.tx.write_u64(of_hotter, colder)?;
        self.tx.write_u64(of_colder, hotter)
    }

    /// Takes the item that a link leads to out of chain and list.
    fn unlink(&mut self, link: u64, item: u64) -> Result<(), Error> {
        let next = self.tx.read_u64(item + NEXT)?;
        self.tx.write_u64(link, next)?;
        self.leave(item)
    }

    /// A chunk for a new item: a free one, or that of the coldest item.
    fn take(&mut self) -> Result<u64, Error> {
        let free = self.tx.read_u64(self.root + FREE)?;
        if free != 0 {
            let next = self.tx.read_u64(free + NEXT)?;
            self.tx.write_u64(self.root + FREE, next)?;
            return Ok(free);
        }
        let coldest = self.tx.read_u64(self.root + COLDEST)?;
        let key = self.tx.read_u64(coldest + KEY)?;
        let (link, found) = self.chains.find(self.tx, key)?;
        assert_eq!(found, coldest, "the coldest item hangs in its chain");
        self.unlink(link, coldest)?;
        Ok(coldest)
    }

    fn set(&mut self, key: u64, data: &[u8]) -> Result<(), Error> {
        let chunk = self.take()?;
        let (link, old) = self.chains.find(self.tx, key)?;
        if old != 0 {
            self.unlink(link, old)?;
        }
        let first = self.chains.first(key);
        let hottest = self.tx.read_u64(self.root + HOTTEST)?;
        let mut bytes = vec![0; DATA as usize];
        set_word(&mut bytes, NEXT as usize, self.tx.read_u64(first)?);
        set_word(&mut bytes, COLDER as usize, hottest);
        set_word(&mut bytes, KEY as usize, key);
        set_word(&mut bytes, LENGTH as usize, data.len() as u64);
        bytes.extend(data);
        self.tx.write(chunk, &bytes)?;
        self.tx.write_u64(first, chunk)?;
        let of_hottest = if hottest == 0 { self.root + COLDEST } else { hottest + HOTTER };
        self.tx.write_u64(of_hottest, chunk)?;
        self.tx.write_u64(self.root + HOTTEST, chunk)?;
        if old != 0 {
            let free = self.tx.read_u64(self.root + FREE)?;
            self.tx.write_u64(old + NEXT, free)?;
            self.tx.write_u64(self.root + FREE, old)?;
        }
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<Vec<u8>>, Error> {
        let (_, item) = self.chains.find(self.tx, key)?;
        if item == 0 {
            return Ok(None);
        }
        let mut data = vec![0; (self.tx.read_u64(item + LENGTH)? as usize).min(CHUNK_BYTES - DATA as usize)];
        self.tx.read(item + DATA, &mut data)?;
        Ok(Some(data))
    }
}

impl Memcached {
    pub fn new(setup: Setup) -> Self {
        let (first, requests) = requests(&setup);
        // Two are free in the smallest, so that items are soon evicted.
        let chunks = setup.rows(SLAB_BYTES / CHUNK_BYTES, 32, first.len() + 2);
        let slab = Table { number: 0, row_bytes: CHUNK_BYTES, rows: chunks, populated: false };
        Memcached { first, requests, buckets: (slab.rows as u64).next_power_of_two(), slab }
    }

    fn open<'t>(&self, tx: &'t mut dyn Transaction, root: u64) -> Result<Open<'t>, Error> {
        let chains = Chains { array: tx.read_u64(root + ARRAY)?, buckets: self.buckets, key_at: KEY };
        Ok(Open { tx, root, chains })
    }

    fn serve(&self, tx: &mut dyn Transaction, root: u64, request: Request) -> Result<(), Error> {
        let mut open = self.open(tx, root)?;
        match request.value {
            Some((seed, bytes)) => open.set(request.key, &value(seed, bytes)),
            None => open.get(request.key).map(drop),
        }
    }

    /// Does a request in the model.
    fn remember(&self, rows: &mut Rows, request: Request) {
        let Some((seed, bytes)) = request.value else { return };
        let mut by_heat = rows.remove(&BY_HEAT).unwrap_or_default();
        // A chunk is taken before the old one is given back.
        if rows.len() == self.slab.rows {
            let coldest = by_heat.split_off(by_heat.len() - 8);
            rows.remove(&word(&coldest, 0));
        }
        rows.insert(request.key, value(seed, bytes));
        let key = request.key.to_le_bytes();
        if let Some(at) = by_heat.chunks_exact(8).position(|other| other == key) {
            by_heat.drain(8 * at..8 * at + 8);
        }
        by_heat.splice(0..0, key);
        rows.insert(BY_HEAT, by_heat);
    }

    /// Items of the LRU list, hottest first.
    fn list(&self, tx: &mut dyn Transaction, root: u64) -> Result<Vec<u64>, Fault> {
        let (mut items, mut hotter) = (Vec::new(), 0);
        let mut at = tx.read_u64(root + HOTTEST)?;
        while at != 0 {
            if tx.read_u64(at + HOTTER)? != hotter || items.len() > self.slab.rows {
                return Err(damage(at, "the LRU list does not lead back"));
            }
            items.push(at);
            hotter = at;
            at = tx.read_u64(at + COLDER)?;
        }
        if tx.read_u64(root + COLDEST)? != hotter {
            return Err(damage(root, "the LRU list ends elsewhere"));
        }
        Ok(items)
    }
}

impl Workload for Memcached {
    fn count(&self) -> usize {
        self.requests.len()
    }

    fn bytes(&self) -> u64 {
        (256 << 10) + 8 * self.buckets + self.slab.bytes()
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        let array = create(store, self.buckets)?;
        let slab = self.slab.create(store)?;
        let mut root = 0;
        store.transaction(&mut |tx| {
            root = tx.alloc_zeroed(64)?;
            tx.write_u64(root + ARRAY, array)?;
            tx.write_u64(root + SLAB, slab)?;
            tx.write_u64(root + FREE, slab)
        })?;
        let chunks: Vec<usize> = (0..self.slab.rows - 1).collect();
        for together in chunks.chunks(LINKED_TOGETHER) {
            store.transaction(&mut |tx| {
                together.iter().try_for_each(|&chunk| {
                    tx.write_u64(self.slab.at(slab, chunk) + NEXT, self.slab.at(slab, chunk + 1))
                })
            })?;
        }
        for &request in &self.first {
            store.transaction(&mut |tx| self.serve(tx, root, request))?;
        }
        store.transaction(&mut |tx| tx.set_root(root))
    }

    fn initial(&self) -> Rows {
        let mut rows = Rows::new();
        self.first.iter().for_each(|&request| self.remember(&mut rows, request));
        rows
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        self.serve(tx, root, self.requests[number])
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        self.remember(rows, self.requests[number]);
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let chains = self.open(tx, root)?.chains;
        let entries = chains.entries(tx, self.slab.rows)?;
        let by_heat = self.list(tx, root)?;
        let list: BTreeSet<u64> = by_heat.iter().copied().collect();
        if list != entries.iter().map(|(_, item)| *item).collect() {
            return Err(damage(root, "LRU list and chains hold different items"));
        }
        let (mut free, mut at) = (0, tx.read_u64(root + FREE)?);
        while at != 0 {
            free += 1;
            if list.contains(&at) || free > self.slab.rows {
                return Err(damage(at, "a free chunk is in use, or free twice"));
            }
            at = tx.read_u64(at + NEXT)?;
        }
        if free + list.len() != self.slab.rows {
            return Err(damage(root, format!("{free} free and {} used of {} chunks", list.len(), self.slab.rows)));
        }
        let mut rows = Rows::new();
        for (key, item) in entries {
            let mut header = [0; DATA as usize];
            tx.read(item, &mut header)?;
            let bytes = word(&header, LENGTH as usize);
            if bytes > CHUNK_BYTES as u64 - DATA {
                return Err(damage(item, format!("an item of {bytes} bytes")));
            }
            let mut data = vec![0; bytes as usize];
            tx.read(item + DATA, &mut data)?;
            rows.insert(key, data);
        }
        if !by_heat.is_empty() {
            let mut keys = Vec::new();
            for item in by_heat {
                keys.extend(tx.read_u64(item + KEY)?.to_le_bytes());
            }
            rows.insert(BY_HEAT, keys);
        }
        Ok(rows)
    }
}
