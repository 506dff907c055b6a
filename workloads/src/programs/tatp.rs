//! TATP's update_location: four bytes of one subscriber's entry of 128.

use nearpm::Error;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::rows::Table;
use super::{Inputs, Rows, Setup, Workload};
use crate::map::Fault;
use crate::store::{Store, Transaction};

/// Subscribers of the paper's set-up.
const SUBSCRIBERS: usize = 100_000;
const ENTRY_BYTES: u64 = 128;
/// The location in an entry.
const LOCATION: u64 = 8;
/// Bytes of a location.
const LOCATION_BYTES: usize = 4;

/// The program.
pub struct Tatp {
    subscribers: Table,
    /// Subscriber and new location.
    updates: Vec<(usize, [u8; LOCATION_BYTES])>,
    inputs: Inputs,
}

impl Tatp {
    pub fn new(setup: Setup) -> Self {
        let rows = setup.rows(SUBSCRIBERS, 64, 8);
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        let updates = (0..setup.count)
            .map(|_| {
                let subscriber = rng.random_range(0..rows);
                let subscriber = if setup.inputs == Inputs::Released { 0 } else { subscriber };
                (subscriber, rng.random::<u32>().to_le_bytes())
            })
            .collect();
        let subscribers = Table { number: 0, row_bytes: ENTRY_BYTES as usize, rows, populated: true };
        Tatp { subscribers, updates, inputs: setup.inputs }
    }
}

impl Workload for Tatp {
    fn count(&self) -> usize {
        self.updates.len()
    }

    fn bytes(&self) -> u64 {
        self.subscribers.bytes() + (64 << 10)
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        let table = self.subscribers.create(store)?;
        store.transaction(&mut |tx| tx.set_root(table))
    }

    fn initial(&self) -> Rows {
        let mut rows = Rows::new();
        self.subscribers.initial(&mut rows);
        rows
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        let (subscriber, location) = self.updates[number];
        let entry = self.subscribers.at(root, subscriber);
        match self.inputs {
            Inputs::Corrected => tx.declare(entry, ENTRY_BYTES)?,
            // The size of a pointer, where the size of what it points to was meant.
            Inputs::Released => tx.declare(entry + LOCATION, 8)?,
        }
        tx.write(entry + LOCATION, &location)
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        let (subscriber, location) = self.updates[number];
        let entry = rows.get_mut(&self.subscribers.key(subscriber)).expect("a subscriber");
        entry[LOCATION as usize..][..LOCATION_BYTES].copy_from_slice(&location);
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let mut rows = Rows::new();
        self.subscribers.contents(tx, root, &mut rows)?;
        Ok(rows)
    }
}
