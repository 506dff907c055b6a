//! Redis' SET, in one transaction: the value is an object of its own; an entry of the dictionary
//! leads to it.
//!
//! Logged are the head of the chain or the old entry's pointer, 8 bytes, and the dictionary's
//! count; the value is new memory.

use nearpm::Error;

use super::chain::{Chains, create, damage};
use super::ycsb::{Request, requests, value};
use super::{Rows, Setup, Workload};
use crate::map::Fault;
use crate::store::{Store, Transaction};

/// Entry: next, key, value.
const KEY: u64 = 8;
const VALUE: u64 = 16;
const ENTRY_BYTES: u64 = 32;
/// Value object: length, bytes.
const BYTES: u64 = 8;
/// Root object: array, entries.
const ARRAY: u64 = 0;
const ENTRIES: u64 = 8;

/// The program.
pub struct Redis {
    first: Vec<Request>,
    requests: Vec<Request>,
    buckets: u64,
}

impl Redis {
    pub fn new(setup: Setup) -> Self {
        let (first, requests) = requests(&setup);
        let buckets = ((first.len() + requests.len()) as u64).next_power_of_two();
        Redis { first, requests, buckets }
    }

    fn chains(&self, tx: &mut dyn Transaction, root: u64) -> Result<Chains, Error> {
        Ok(Chains { array: tx.read_u64(root + ARRAY)?, buckets: self.buckets, key_at: KEY })
    }

    fn new_value(tx: &mut dyn Transaction, (seed, bytes): (u64, usize)) -> Result<u64, Error> {
        let object = tx.alloc(BYTES + bytes as u64)?;
        let mut data = (bytes as u64).to_le_bytes().to_vec();
        data.extend(value(seed, bytes));
        tx.write(object, &data)?;
        Ok(object)
    }

    fn serve(&self, tx: &mut dyn Transaction, root: u64, request: Request) -> Result<(), Error> {
        let chains = self.chains(tx, root)?;
        let (_, entry) = chains.find(tx, request.key)?;
        let Some(content) = request.value else {
            if entry != 0 {
                let object = tx.read_u64(entry + VALUE)?;
                let mut data = vec![0; tx.read_u64(object)? as usize];
                tx.read(object + BYTES, &mut data)?;
            }
            return Ok(());
        };
        let object = Redis::new_value(tx, content)?;
        if entry != 0 {
            let old = tx.read_u64(entry + VALUE)?;
            tx.declare(entry + VALUE, 16)?;
            tx.write_u64(entry + VALUE, object)?;
            return tx.free(old);
        }
        let first = chains.first(request.key);
        let next = tx.read_u64(first)?;
        let entry = tx.alloc(ENTRY_BYTES)?;
        let bytes: Vec<u8> = [next, request.key, object, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        tx.write(entry, &bytes)?;
        tx.write_u64(first, entry)?;
        let entries = tx.read_u64(root + ENTRIES)?;
        tx.write_u64(root + ENTRIES, entries + 1)
    }
}

impl Workload for Redis {
    fn count(&self) -> usize {
        self.requests.len()
    }

    fn bytes(&self) -> u64 {
        (256 << 10) + 8 * self.buckets + 2100 * (self.first.len() + self.requests.len()) as u64
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        let array = create(store, self.buckets)?;
        let mut root = 0;
        store.transaction(&mut |tx| {
            root = tx.alloc_zeroed(64)?;
            tx.write_u64(root + ARRAY, array)
        })?;
        for &request in &self.first {
            store.transaction(&mut |tx| self.serve(tx, root, request))?;
        }
        store.transaction(&mut |tx| tx.set_root(root))
    }

    fn initial(&self) -> Rows {
        let set = |request: &Request| request.value.map(|(seed, bytes)| (request.key, value(seed, bytes)));
        self.first.iter().filter_map(set).collect()
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        self.serve(tx, root, self.requests[number])
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        let Request { key, value: content } = self.requests[number];
        rows.extend(content.map(|(seed, bytes)| (key, value(seed, bytes))));
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let entries = self.chains(tx, root)?.entries(tx, self.first.len() + self.requests.len())?;
        let counted = tx.read_u64(root + ENTRIES)?;
        if counted != entries.len() as u64 {
            return Err(damage(root, format!("{} entries, {counted} counted", entries.len())));
        }
        let mut rows = Rows::new();
        for (key, entry) in entries {
            let object = tx.read_u64(entry + VALUE)?;
            let bytes = tx.read_u64(object)?;
            if bytes > 4096 {
                return Err(damage(object, format!("a value of {bytes} bytes")));
            }
            let mut data = vec![0; bytes as usize];
            tx.read(object + BYTES, &mut data)?;
            rows.insert(key, data);
        }
        Ok(rows)
    }
}
