//! A small store over a direct pool, its model, and a driver of random operations.

use std::ops::Range;

use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::RngExt;

use super::super::{DirectPool, Mode, Transaction};
use crate::memory::TestMemory;
use crate::options::Options;
use crate::{Durability, Error};

/// Places of the store: words of the root object, each the offset of an object or 0.
pub const SLOTS: u64 = 12;
/// Bytes behind the words that transactions scribble on.
const SCRATCH: u64 = 256;

/// Bytes of a store in the root object. Stores of several threads lie one after the other.
pub const STORE: u64 = SLOTS * 8 + SCRATCH;

/// Contents of each slot, and of the scratch bytes.
pub type Model = (Vec<Option<Vec<u8>>>, Vec<u8>);

/// The empty store.
pub fn empty() -> Model {
    (vec![None; SLOTS as usize], vec![0; SCRATCH as usize])
}

/// Options of the tests.
pub fn options(mode: Mode) -> Options {
    Options::new().mode(mode).durability(Durability::Durable).id(9)
}

/// What the program sees.
pub fn peek(pool: &DirectPool, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    pool.view().load(range.start, &mut bytes);
    bytes
}

/// A plain store of the program.
pub fn poke(pool: &DirectPool, offset: u64, bytes: &[u8]) {
    pool.view().store(offset, bytes);
}

fn word(pool: &DirectPool, offset: u64) -> u64 {
    u64::from_le_bytes(peek(pool, offset..offset + 8).try_into().unwrap())
}

/// Creates a pool with empty stores.
pub fn create(memory: TestMemory, options: &Options, stores: u64) -> Result<DirectPool, Error> {
    let pool = DirectPool::create_in(Box::new(memory), options)?;
    prepare(&pool, stores)?;
    Ok(pool)
}

/// Makes empty stores in a new pool.
pub fn prepare(pool: &DirectPool, stores: u64) -> Result<(), Error> {
    let mut tx = pool.begin()?;
    let root = tx.alloc(pool, stores * STORE)?.offset;
    poke(pool, root, &vec![0; (stores * STORE) as usize]);
    tx.set_root(root);
    tx.commit(pool)?;
    pool.wait_durable()
}

/// Puts an object into each slot of empty stores. Those of different stores lie beside each other,
/// so that their bits share the words of the heap's tables.
pub fn fill(pool: &DirectPool, stores: u64) -> Result<Vec<Model>, Error> {
    let mut models = vec![empty(); stores as usize];
    let mut tx = pool.begin()?;
    for slot in 0..SLOTS {
        for (store, model) in (0..stores).zip(&mut models) {
            let data = vec![store as u8; 40];
            let object = tx.alloc(pool, data.len() as u64 + 8)?.offset;
            poke(pool, object, &(data.len() as u64).to_le_bytes());
            poke(pool, object + 8, &data);
            let place = pool.root() + store * STORE + slot * 8;
            tx.add(pool, place..place + 8)?;
            poke(pool, place, &object.to_le_bytes());
            model.0[slot as usize] = Some(data);
        }
    }
    tx.commit(pool)?;
    Ok(models)
}

/// Reads the stores, and checks that the allocated objects are those that they refer to.
pub fn contents(pool: &DirectPool, stores: u64) -> Result<Vec<Model>, String> {
    let mut expected = vec![pool.root()];
    let models = (0..stores).map(|store| read(pool, pool.root() + store * STORE, &mut expected)).collect();
    expected.sort_unstable();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(object) = pool.next_object(at) {
        found.push(object);
        at = object;
    }
    if found != expected {
        return Err(format!("allocated {found:x?}, referred to {expected:x?}"));
    }
    models
}

/// Reads one store; adds its objects to `objects`.
pub fn read(pool: &DirectPool, base: u64, objects: &mut Vec<u64>) -> Result<Model, String> {
    let mut model = empty();
    for slot in 0..SLOTS {
        let object = word(pool, base + slot * 8);
        if object != 0 {
            let length = word(pool, object);
            let usable = pool.usable_bytes(object).map_err(|e| e.to_string())?;
            if length + 8 > usable {
                return Err(format!("object {object:#x} says {length} bytes and has {usable}"));
            }
            model.0[slot as usize] = Some(peek(pool, object + 8..object + 8 + length));
            objects.push(object);
        }
    }
    model.1 = peek(pool, base + SLOTS * 8..base + STORE);
    Ok(model)
}

/// Random operations on a store, the same for the same seed.
pub struct Operations {
    random: TestRng,
    /// Offset of the store.
    base: u64,
}

impl Operations {
    /// Operations on the store at an offset.
    pub fn new(seed: u64, base: u64) -> Operations {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Operations { random: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes), base }
    }

    fn bytes(&mut self, range: Range<usize>) -> Vec<u8> {
        let length = self.random.random_range(range);
        (0..length).map(|_| self.random.random()).collect()
    }

    /// One transaction of a few changes; gives the model after it and whether it is to commit.
    pub fn transaction(&mut self, pool: &DirectPool, before: &Model) -> Result<(Transaction, Model, bool), Error> {
        let mut tx = pool.begin()?;
        let mut model = before.clone();
        for _ in 0..self.random.random_range(1..5) {
            let slot = self.random.random_range(0..SLOTS);
            match self.random.random_range(0..8) {
                0..3 => self.replace(pool, &mut tx, &mut model, slot)?,
                3 => remove(pool, &mut tx, &mut model, self.base, slot)?,
                4..6 => self.change(pool, &mut tx, &mut model, slot)?,
                _ => self.scribble(pool, &mut tx, &mut model)?,
            }
        }
        let commits = self.random.random_range(0..6) != 0;
        Ok((tx, model, commits))
    }

    fn replace(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model, slot: u64) -> Result<(), Error> {
        let longest = *[40, 200, 900, 6000, 40_000].get(self.random.random_range(0..9)).unwrap_or(&120);
        let data = self.bytes(1..longest);
        let object = tx.alloc(pool, data.len() as u64 + 8)?.offset;
        poke(pool, object, &(data.len() as u64).to_le_bytes());
        poke(pool, object + 8, &data);
        remove(pool, tx, model, self.base, slot)?;
        poke(pool, self.base + slot * 8, &object.to_le_bytes());
        model.0[slot as usize] = Some(data);
        Ok(())
    }

    fn change(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model, slot: u64) -> Result<(), Error> {
        let object = word(pool, self.base + slot * 8);
        let Some(data) = &mut model.0[slot as usize] else { return Ok(()) };
        let start = self.random.random_range(0..data.len());
        let end = self.random.random_range(start..data.len()) + 1;
        tx.add(pool, object + 8 + start as u64..object + 8 + end as u64)?;
        for byte in &mut data[start..end] {
            *byte = self.random.random();
        }
        poke(pool, object + 8 + start as u64, &data[start..end]);
        Ok(())
    }

    fn scribble(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model) -> Result<(), Error> {
        let start = self.random.random_range(0..SCRATCH as usize);
        let end = self.random.random_range(start..SCRATCH as usize) + 1;
        let at = self.base + SLOTS * 8;
        tx.add(pool, at + start as u64..at + end as u64)?;
        model.1[start..end].fill(self.random.random());
        poke(pool, at + start as u64, &model.1[start..end]);
        Ok(())
    }

    /// Changes scratch bytes outside of transactions and persists one aligned word of them: as
    /// atomic as memory is.
    pub fn persist(&mut self, pool: &DirectPool, model: &mut Model) -> Range<u64> {
        let at = self.random.random_range(0..SCRATCH / 8) * 8;
        let offset = self.base + SLOTS * 8 + at;
        let data: [u8; 8] = self.random.random();
        model.1[at as usize..][..8].copy_from_slice(&data);
        poke(pool, offset, &data);
        offset..offset + 8
    }

    /// Stores to scratch bytes and tells nobody.
    pub fn stray(&mut self, pool: &DirectPool, model: &mut Model) {
        self.persist(pool, model);
    }

    /// Yes, once in so many times.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.random.random_range(0..times) == 0
    }
}

fn remove(pool: &DirectPool, tx: &mut Transaction, model: &mut Model, base: u64, slot: u64) -> Result<(), Error> {
    let place = base + slot * 8;
    tx.add(pool, place..place + 8)?;
    let old = word(pool, place);
    if old != 0 {
        tx.free(pool, old)?;
        poke(pool, place, &[0; 8]);
        model.0[slot as usize] = None;
    }
    Ok(())
}
