//! What workloads work on: transactions of a pool, of a baseline, or bare memory.
//!
//! [`Bare`] is the floor of every comparison: the same loads and stores with no crash consistency
//! at all. What a run costs above it is what the mechanism costs. [`Lean`] is the least that a
//! processor can do for it in place.

use std::cell::{Cell, RefCell};

use nearpm::memory::Memory;
use nearpm::{Error, OffsetTx, Pool};

use places::Places;

mod direct;
mod lean;
mod places;
mod ranges;

pub use lean::{Lean, LeanCounts};

/// An open transaction, as [`nearpm::OffsetTx`].
pub trait Transaction {
    /// Reads at an offset.
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error>;
    /// Writes at an offset.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error>;
    /// Says that parts of a range will be written.
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error>;
    /// Allocates bytes whose contents are undefined.
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error>;
    /// Frees an object.
    fn free(&mut self, offset: u64) -> Result<(), Error>;
    /// Offset of the root.
    fn root(&mut self) -> Result<u64, Error>;
    /// Sets the root.
    fn set_root(&mut self, offset: u64) -> Result<(), Error>;

    /// Allocates zeroed bytes.
    fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        let offset = self.alloc(bytes)?;
        self.write(offset, &vec![0; bytes as usize])?;
        Ok(offset)
    }
    /// Reads a little-endian word.
    fn read_u64(&mut self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    /// Writes a little-endian word.
    fn write_u64(&mut self, offset: u64, value: u64) -> Result<(), Error> {
        self.write(offset, &value.to_le_bytes())
    }
}

impl Transaction for OffsetTx<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        OffsetTx::read(self, offset, data)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        OffsetTx::write(self, offset, data)
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        OffsetTx::declare(self, offset, bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        OffsetTx::alloc(self, bytes)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        OffsetTx::free(self, offset)
    }
    fn root(&mut self) -> Result<u64, Error> {
        OffsetTx::root(self)
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        OffsetTx::set_root(self, offset)
    }
    fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        OffsetTx::alloc_zeroed(self, bytes)
    }
}

/// What transactions run on.
pub trait Store {
    /// Runs a transaction.
    ///
    /// # Errors
    /// As [`Pool::tx`].
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error>;
}

impl Store for Pool {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        self.tx(|tx| body(tx))
    }
}

/// Memory without crash consistency: no log, no write-back, no fence. The table of its objects is
/// the process's own.
pub struct Bare<M> {
    memory: M,
    places: RefCell<Places>,
    root: Cell<u64>,
}

impl<M: Memory> Bare<M> {
    /// Empty bare memory.
    pub fn new(memory: M) -> Bare<M> {
        // Offset 0 is no object.
        Bare { memory, places: RefCell::new(Places::from(4096)), root: Cell::new(0) }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: Memory> Store for Bare<M> {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        body(&mut BareTransaction { memory: &self.memory, places: &mut self.places.borrow_mut(), root: &self.root })
    }
}

/// Changes of [`Bare`]: in place, at once.
struct BareTransaction<'b> {
    memory: &'b dyn Memory,
    places: &'b mut Places,
    root: &'b Cell<u64>,
}

impl Transaction for BareTransaction<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.memory.load(offset, data);
        Ok(())
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.memory.store(offset, data);
        Ok(())
    }
    fn declare(&mut self, _offset: u64, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.places.take(bytes, self.memory.bytes())
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        let bytes = self.places.remove(offset)?;
        self.places.put(offset, bytes);
        Ok(())
    }
    fn root(&mut self) -> Result<u64, Error> {
        Ok(self.root.get())
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.root.set(offset);
        Ok(())
    }
}
