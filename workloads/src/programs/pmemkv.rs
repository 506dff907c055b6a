//! The put of pmemkv's concurrent hash map, by pmemkv-bench's fillrandom: keys of 16 bytes, values
//! of 100, each key as likely as another one.
//!
//! A new key's entry is allocated and hung into its chain; a value that is there is overwritten in
//! place.

use nearpm::Error;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::chain::{Chains, create, damage};
use super::ycsb::value;
use super::{Rows, Setup, Workload};
use crate::map::Fault;
use crate::store::{Store, Transaction};

/// Entry: next, key (its number and its complement, as 16 bytes), length, value.
const KEY: u64 = 8;
const LENGTH: u64 = 24;
const VALUE: u64 = 32;
const VALUE_BYTES: usize = 100;
/// Root object: array, entries.
const ARRAY: u64 = 0;
const ENTRIES: u64 = 8;

/// The program.
pub struct Pmemkv {
    /// Key, and seed of the value.
    puts: Vec<(u64, u64)>,
    buckets: u64,
}

impl Pmemkv {
    pub fn new(setup: Setup) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        let puts = (0..setup.count).map(|_| (rng.random_range(0..setup.count as u64), rng.random())).collect();
        Pmemkv { puts, buckets: (setup.count as u64).next_power_of_two() }
    }

    fn chains(&self, tx: &mut dyn Transaction, root: u64) -> Result<Chains, Error> {
        Ok(Chains { array: tx.read_u64(root + ARRAY)?, buckets: self.buckets, key_at: KEY })
    }
}

impl Workload for Pmemkv {
    fn count(&self) -> usize {
        self.puts.len()
    }

    fn bytes(&self) -> u64 {
        (128 << 10) + 8 * self.buckets + 200 * self.puts.len() as u64
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        let array = create(store, self.buckets)?;
        store.transaction(&mut |tx| {
            let root = tx.alloc_zeroed(64)?;
            tx.write_u64(root + ARRAY, array)?;
            tx.set_root(root)
        })
    }

    fn initial(&self) -> Rows {
        Rows::new()
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        let (key, seed) = self.puts[number];
        let data = value(seed, VALUE_BYTES);
        let chains = self.chains(tx, root)?;
        let (_, found) = chains.find(tx, key)?;
        if found != 0 {
            return tx.write(found + VALUE, &data);
        }
        let first = chains.first(key);
        let next = tx.read_u64(first)?;
        let entry = tx.alloc(VALUE + VALUE_BYTES as u64)?;
        let mut bytes: Vec<u8> = [next, key, !key, VALUE_BYTES as u64].into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.extend(&data);
        tx.write(entry, &bytes)?;
        tx.write_u64(first, entry)?;
        let entries = tx.read_u64(root + ENTRIES)?;
        tx.write_u64(root + ENTRIES, entries + 1)
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        let (key, seed) = self.puts[number];
        rows.insert(key, value(seed, VALUE_BYTES));
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let entries = self.chains(tx, root)?.entries(tx, self.puts.len())?;
        let counted = tx.read_u64(root + ENTRIES)?;
        if counted != entries.len() as u64 {
            return Err(damage(root, format!("{} entries, {counted} counted", entries.len())));
        }
        let mut rows = Rows::new();
        for (key, entry) in entries {
            if tx.read_u64(entry + KEY + 8)? != !key || tx.read_u64(entry + LENGTH)? != VALUE_BYTES as u64 {
                return Err(damage(entry, "the key's second half or the length is wrong"));
            }
            let mut data = vec![0; VALUE_BYTES];
            tx.read(entry + VALUE, &mut data)?;
            rows.insert(key, data);
        }
        Ok(rows)
    }
}
