//! A small store over a direct pool, its model, and a driver of random operations.

use std::ops::Range;

use nearpm::direct::{DirectOptions, DirectPool, Mode, Transaction};
use nearpm::memory::TestMemory;
use nearpm::{Durability, Error};
use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::RngExt;

/// Places of the store: words of the root object, each the offset of an object or 0.
pub const SLOTS: u64 = 12;
/// Bytes behind the words that transactions scribble on.
const SCRATCH: u64 = 256;

/// Contents of each slot, and of the scratch bytes.
pub type Model = (Vec<Option<Vec<u8>>>, Vec<u8>);

/// The empty store.
pub fn empty() -> Model {
    (vec![None; SLOTS as usize], vec![0; SCRATCH as usize])
}

/// Options of the tests.
pub fn options(mode: Mode) -> DirectOptions {
    DirectOptions { mode, durability: Durability::Durable, id: Some(9), ..DirectOptions::default() }
}

/// What the program sees.
pub fn peek(pool: &DirectPool, range: Range<u64>) -> Vec<u8> {
    assert!(range.end <= pool.bytes());
    let mut bytes = vec![0; (range.end - range.start) as usize];
    // SAFETY: the range lies in the pool's memory, and no other thread stores there.
    unsafe { pool.base().add(range.start as usize).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    bytes
}

/// A plain store of the program.
pub fn poke(pool: &DirectPool, offset: u64, bytes: &[u8]) {
    assert!(offset + bytes.len() as u64 <= pool.bytes());
    // SAFETY: as for `peek`.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(pool.base().add(offset as usize), bytes.len()) };
}

fn word(pool: &DirectPool, offset: u64) -> u64 {
    u64::from_le_bytes(peek(pool, offset..offset + 8).try_into().unwrap())
}

/// Creates a pool with an empty store.
pub fn create(memory: TestMemory, mode: Mode) -> Result<DirectPool, Error> {
    let pool = DirectPool::create_in(Box::new(memory), &options(mode))?;
    let mut tx = pool.begin()?;
    let root = tx.alloc(&pool, SLOTS * 8 + SCRATCH)?.offset;
    poke(&pool, root, &[0; (SLOTS * 8 + SCRATCH) as usize]);
    tx.set_root(root);
    tx.commit(&pool)?;
    Ok(pool)
}

/// Reads the store, and checks that the allocated objects are those that it refers to.
pub fn contents(pool: &DirectPool) -> Result<Model, String> {
    let root = pool.root();
    let mut model = empty();
    let mut expected = vec![root];
    for slot in 0..SLOTS {
        let object = word(pool, root + slot * 8);
        if object != 0 {
            let length = word(pool, object);
            let usable = pool.usable_bytes(object).map_err(|e| e.to_string())?;
            if length + 8 > usable {
                return Err(format!("object {object:#x} says {length} bytes and has {usable}"));
            }
            model.0[slot as usize] = Some(peek(pool, object + 8..object + 8 + length));
            expected.push(object);
        }
    }
    model.1 = peek(pool, root + SLOTS * 8..root + SLOTS * 8 + SCRATCH);
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
    Ok(model)
}

/// Random operations, the same for the same seed.
pub struct Operations(TestRng);

impl Operations {
    pub fn new(seed: u64) -> Operations {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Operations(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    fn bytes(&mut self, range: Range<usize>) -> Vec<u8> {
        let length = self.0.random_range(range);
        (0..length).map(|_| self.0.random()).collect()
    }

    /// One transaction of a few changes; gives the model after it and whether it is to commit.
    pub fn transaction(&mut self, pool: &DirectPool, before: &Model) -> Result<(Transaction, Model, bool), Error> {
        let mut tx = pool.begin()?;
        let mut model = before.clone();
        for _ in 0..self.0.random_range(1..5) {
            let slot = self.0.random_range(0..SLOTS);
            match self.0.random_range(0..8) {
                0..3 => self.replace(pool, &mut tx, &mut model, slot)?,
                3 => remove(pool, &mut tx, &mut model, slot)?,
                4..6 => self.change(pool, &mut tx, &mut model, slot)?,
                _ => self.scribble(pool, &mut tx, &mut model)?,
            }
        }
        let commits = self.0.random_range(0..6) != 0;
        Ok((tx, model, commits))
    }

    fn replace(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model, slot: u64) -> Result<(), Error> {
        let longest = *[40, 200, 900, 6000, 40_000].get(self.0.random_range(0..9)).unwrap_or(&120);
        let data = self.bytes(1..longest);
        let object = tx.alloc(pool, data.len() as u64 + 8)?.offset;
        poke(pool, object, &(data.len() as u64).to_le_bytes());
        poke(pool, object + 8, &data);
        remove(pool, tx, model, slot)?;
        poke(pool, pool.root() + slot * 8, &object.to_le_bytes());
        model.0[slot as usize] = Some(data);
        Ok(())
    }

    fn change(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model, slot: u64) -> Result<(), Error> {
        let object = word(pool, pool.root() + slot * 8);
        let Some(data) = &mut model.0[slot as usize] else { return Ok(()) };
        let start = self.0.random_range(0..data.len());
        let end = self.0.random_range(start..data.len()) + 1;
        tx.add(pool, object + 8 + start as u64..object + 8 + end as u64)?;
        for byte in &mut data[start..end] {
            *byte = self.0.random();
        }
        poke(pool, object + 8 + start as u64, &data[start..end]);
        Ok(())
    }

    fn scribble(&mut self, pool: &DirectPool, tx: &mut Transaction, model: &mut Model) -> Result<(), Error> {
        let start = self.0.random_range(0..SCRATCH as usize);
        let end = self.0.random_range(start..SCRATCH as usize) + 1;
        let at = pool.root() + SLOTS * 8;
        tx.add(pool, at + start as u64..at + end as u64)?;
        model.1[start..end].fill(self.0.random());
        poke(pool, at + start as u64, &model.1[start..end]);
        Ok(())
    }

    /// Changes scratch bytes outside of transactions and persists one aligned word of them: as atomic as memory is.
    pub fn persist(&mut self, pool: &DirectPool, model: &mut Model) -> Range<u64> {
        let at = self.0.random_range(0..SCRATCH / 8) * 8;
        let offset = pool.root() + SLOTS * 8 + at;
        let data: [u8; 8] = self.0.random();
        model.1[at as usize..][..8].copy_from_slice(&data);
        poke(pool, offset, &data);
        offset..offset + 8
    }

    /// Yes, once in so many times.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.0.random_range(0..times) == 0
    }
}

fn remove(pool: &DirectPool, tx: &mut Transaction, model: &mut Model, slot: u64) -> Result<(), Error> {
    let place = pool.root() + slot * 8;
    tx.add(pool, place..place + 8)?;
    let old = word(pool, place);
    if old != 0 {
        tx.free(pool, old)?;
        poke(pool, place, &[0; 8]);
        model.0[slot as usize] = None;
    }
    Ok(())
}
