//! Pools: files, card memory, or any [`Memory`].

use crate::error::Error;
use crate::memory::Memory;
use crate::options::{Durability, Mechanism, PoolOptions};
use crate::statistics::Statistics;
use crate::transaction::Tx;

/// Where a pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(std::path::PathBuf),
    /// `card:NAME/POOL`: a pool on a card that was registered with [`crate::cards::register`].
    Card {
        /// Name of the card.
        card: String,
        /// Name of the pool, 1 to 32 bytes.
        pool: String,
    },
}

/// What the recovery at open found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Log entries that were rolled back, checkpoints included.
    pub undone: u64,
    /// Redo entries that were applied again, page switches included.
    pub redone: u64,
    /// Bytes that both wrote.
    pub bytes: u64,
    /// Slots that looked like entries and were not whole.
    pub torn: u64,
}

/// An open pool. Dropping it closes it.
pub struct Pool {}

impl PoolOptions {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL`, and opens it.
    pub fn create(&self, location: &str, bytes: u64) -> Result<Pool, Error> {
        todo!("{location} {bytes}")
    }
    /// Opens a pool, recovering it first.
    pub fn open(&self, location: &str) -> Result<Pool, Error> {
        todo!("{location}")
    }
    /// Creates a pool that fills a memory.
    pub fn create_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        todo!("{}", memory.bytes())
    }
    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        todo!("{}", memory.bytes())
    }
}

/// Removes a pool that is not open.
pub fn remove(location: &str) -> Result<(), Error> {
    todo!("{location}")
}

impl Pool {
    /// Runs a transaction: all of `body` happens or nothing. It is rolled back when `body` returns an
    /// error or panics, and committed otherwise, with the durability of [`PoolOptions::durability`].
    pub fn tx<T>(&self, body: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.tx_with(Durability::Durable, body)
    }
    /// The same with a durability of its own.
    pub fn tx_with<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _ = (durability, body);
        todo!()
    }
    /// Acknowledges every transaction so far: makes asynchronous commits durable, and cuts the epoch.
    pub fn persist(&self) -> Result<(), Error> {
        todo!()
    }
    /// Cuts the epoch (checkpoint and shadow paging); the same as [`Pool::persist`] elsewhere.
    pub fn cut(&self) -> Result<(), Error> {
        todo!()
    }
    /// Offset of the root object, 0 where none was set.
    pub fn root(&self) -> Result<u64, Error> {
        self.tx(|tx| tx.root())
    }
    /// Persists and closes; dropping a pool does the same but keeps errors to itself.
    pub fn close(self) -> Result<(), Error> {
        todo!()
    }
    /// Counters since the pool was opened.
    pub fn statistics(&self) -> Statistics {
        todo!()
    }
    /// What the recovery at open found.
    pub fn recovery(&self) -> Recovery {
        todo!()
    }
    /// Identifier of the pool, unique on a card.
    pub fn id(&self) -> u32 {
        todo!()
    }
    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
    /// Mechanism that it was opened with.
    pub fn mechanism(&self) -> Mechanism {
        todo!()
    }
}
