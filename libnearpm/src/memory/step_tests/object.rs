//! An object all bytes of which have one value, which runs change and look at in a pool wherever it
//! lies.

use super::{same, say};
use crate::{Error, Pool};

/// Where it lies, and how large it is.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub offset: u64,
    pub bytes: usize,
}

impl Object {
    /// Makes one with this value.
    pub fn new(pool: &Pool, bytes: usize, value: u8) -> Result<Object, String> {
        let made = pool.tx(|tx| {
            let offset = tx.alloc(bytes as u64)?;
            tx.write(offset, &vec![value; bytes])?;
            Ok(Object { offset, bytes })
        });
        made.map_err(say)
    }

    /// Gives it another value.
    pub fn set(&self, pool: &Pool, value: u8) -> Result<(), Error> {
        pool.tx(|tx| tx.write(self.offset, &vec![value; self.bytes]))
    }

    /// The same by primitives: its old value is logged, and the program stores to it.
    pub fn store(&self, pool: &Pool, value: u8) -> Result<(), Error> {
        self.log_and_store(pool, value)?;
        pool.commit_log(0)
    }

    /// The same, without the commit.
    pub fn log_and_store(&self, pool: &Pool, value: u8) -> Result<(), Error> {
        pool.undolog_create(0, self.offset, self.bytes as u64)?;
        pool.store(self.offset, &vec![value; self.bytes])
    }

    /// The same by primitives: the new value is logged and applied.
    pub fn apply(&self, pool: &Pool, value: u8) -> Result<(), Error> {
        let entry = pool.redolog_create(0, self.offset, &vec![value; self.bytes])?;
        pool.applylog(0, entry, self.bytes as u64)?;
        pool.commit_log(0)
    }

    /// Its value.
    ///
    /// # Errors
    /// If the pool cannot be read, or not all bytes have one value.
    pub fn value(&self, pool: &Pool) -> Result<u8, String> {
        let found = pool.tx(|tx| tx.read_vec(self.offset, self.bytes)).map_err(say)?;
        same(found.iter().find(|&&byte| byte != found[0]), None, &format!("bytes that are not {}", found[0]))?;
        Ok(found[0])
    }

    /// Fills the logs of a thread and of transactions with entries that would put back single words
    /// of it, and leaves them behind.
    pub fn leave_entries(&self, pool: &Pool) -> Result<(), String> {
        /// Bytes between two words that are logged, each by an entry of two lines: some entry is
        /// whole unless nearly all zeros come to it.
        const APART: u64 = 128;
        for words in [1, 1, 1, 1, self.bytes as u64 / APART] {
            let mut places = (0..words).map(|n| self.offset + n * APART);
            let logged = places.clone().try_for_each(|place| pool.undolog_create(0, place, 8));
            logged.and_then(|()| pool.commit_log(0)).map_err(say)?;
            pool.tx(|tx| places.try_for_each(|place| tx.write(place, &[0xdd; 8]))).map_err(say)?;
        }
        Ok(())
    }
}
