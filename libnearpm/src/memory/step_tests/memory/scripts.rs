//! Short scripts on an object all bytes of which have one value, cut at nearly each event.

use nearpm_interface::media::MIN_RING_BYTES;

use super::super::super::{Image, TestMemory};
use super::{POOL_BYTES, Survivors, memory, open, options, same, say, with_cuts};
use crate::{Durability, Error, Mechanism, Pool, PoolOptions};

/// An object in a pool.
#[derive(Clone)]
struct Object {
    options: PoolOptions,
    offset: u64,
    bytes: usize,
    survivors: Survivors<u8>,
}

impl Object {
    /// A pool with an object of zeros.
    fn new(options: PoolOptions, seed: u64, bytes: usize) -> Result<(Object, TestMemory), String> {
        let memory = memory(vec![0; POOL_BYTES], seed);
        let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
        let offset = pool.tx(|tx| {
            let offset = tx.alloc(bytes as u64)?;
            tx.write(offset, &vec![0; bytes])?;
            Ok(offset)
        });
        let offset = offset.map_err(say)?;
        pool.close().map_err(say)?;
        Ok((Object { options, offset, bytes, survivors: Survivors::new(0) }, memory))
    }

    /// Gives the object another value.
    fn set(&self, pool: &Pool, value: u8) -> Result<(), Error> {
        pool.tx(|tx| tx.write(self.offset, &vec![value; self.bytes]))
    }

    fn recovers(&self, image: Image) -> Result<(), String> {
        let pool = open(&self.options, &TestMemory::from_image(image))?;
        let found = pool.tx(|tx| tx.read_vec(self.offset, self.bytes)).map_err(say)?;
        same(found.iter().find(|&&byte| byte != found[0]), None, &format!("bytes that are not {}", found[0]))?;
        self.survivors.check(&found[0])
    }

    /// Begins the next value, which nobody waits for.
    fn begun(&self) -> u8 {
        let value = self.survivors.last() + 1;
        self.survivors.begin(value);
        value
    }

    /// Begins the next value, which is durable when `does` has succeeded.
    fn acknowledged(&self, does: impl FnOnce(u8) -> Result<(), Error>) -> Result<(), Error> {
        does(self.begun())?;
        self.survivors.acknowledge();
        Ok(())
    }

    /// Opens the pool, does this, and cuts the power at one event in so many.
    fn cuts(
        &self,
        memory: &TestMemory,
        one_in: u64,
        script: impl FnOnce(Pool) -> Result<(), Error>,
    ) -> Result<(), String> {
        let object = self.clone();
        with_cuts(memory, one_in, Box::new(move |image| object.recovers(image)), || {
            script(open(&self.options, memory)?).map_err(say)
        })?;
        (0..4).try_for_each(|cut| self.recovers(memory.surviving(cut)))
    }
}

/// Large transactions, each of which takes the slots of the one before it, and the end of the pool.
pub fn slots_used_again(seed: u64) -> Result<(), String> {
    // The ring has no room for two.
    let (object, memory) = Object::new(options(Mechanism::Redo, seed), seed, MIN_RING_BYTES as usize * 5 / 9)?;
    object.cuts(&memory, 9, |pool| {
        for _ in 0..2 {
            match seed % 2 {
                0 => object.acknowledged(|value| object.set(&pool, value))?,
                _ => object.set(&pool, object.begun())?,
            }
        }
        object.acknowledged(|value| object.set(&pool, value).and_then(|()| pool.close()))
    })
}

/// Commits that nobody waits for, and calls that make them durable.
pub fn persisted(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed).durability(Durability::Asynchronous);
    let (object, memory) = Object::new(options, seed, 300)?;
    object.cuts(&memory, 1, |pool| {
        for _ in 0..3 {
            object.set(&pool, object.begun())?;
            object.acknowledged(|value| object.set(&pool, value).and_then(|()| pool.persist()))?;
        }
        Ok(())
    })
}

/// The recovery of a redo log that is longer than the part of the ring that every recovery reads, and of which nothing is applied.
pub fn long_log(seed: u64) -> Result<(), String> {
    let options = options(Mechanism::Redo, seed).durability(Durability::Durable).ring_bytes(64 * 1024);
    let (object, memory) = Object::new(options, seed, MIN_RING_BYTES as usize * 5 / 4)?;
    let pool = open(&object.options, &memory)?;
    object.acknowledged(|value| object.set(&pool, value)).map_err(say)?;
    let logged = super::memory(memory.durable(), seed);
    object.cuts(&logged, 9, |pool| {
        drop(pool);
        Ok(())
    })
}

/// Primitives: old values that are logged, new ones, and copies of pages.
pub fn primitives(seed: u64) -> Result<(), String> {
    let (object, memory) = Object::new(options(Mechanism::Undo, seed), seed, 300)?;
    let (offset, bytes) = (object.offset, object.bytes);
    object.cuts(&memory, 1, |pool| {
        for _ in 0..2 {
            object.acknowledged(|value| {
                pool.undolog_create(0, offset, bytes as u64)?;
                pool.store(offset, &vec![value; bytes])?;
                pool.commit_log(0)
            })?;
        }
        object.acknowledged(|value| {
            let entry = pool.redolog_create(0, offset, &vec![value; bytes])?;
            pool.applylog(0, entry, bytes as u64)?;
            pool.commit_log(0)
        })?;
        // What is rolled back was never there.
        pool.undolog_create(0, offset, bytes as u64)?;
        pool.store(offset, &vec![0xee; bytes])?;
        pool.abort_log(0)
    })
}
