//! What workloads work on: transactions of a pool, or bare memory.
//!
//! [`Bare`] is the floor of every comparison: the same loads and stores with no crash consistency at all. What a run costs above it
//! is what the mechanism costs.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use nearpm::memory::Memory;
use nearpm::{Error, Pool, Tx};

/// An open transaction, as [`nearpm::Tx`].
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

impl Transaction for Tx<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        Tx::read(self, offset, data)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        Tx::write(self, offset, data)
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        Tx::declare(self, offset, bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        Tx::alloc(self, bytes)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        Tx::free(self, offset)
    }
    fn root(&mut self) -> Result<u64, Error> {
        Tx::root(self)
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        Tx::set_root(self, offset)
    }
    fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        Tx::alloc_zeroed(self, bytes)
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

/// Places of objects in bare memory.
#[derive(Default)]
struct Places {
    next: u64,
    /// Freed places, by size.
    free: BTreeMap<u64, Vec<u64>>,
    sizes: HashMap<u64, u64>,
    root: u64,
}

/// Memory without crash consistency: no log, no write-back, no fence. The table of its objects is the process's own.
pub struct Bare<M> {
    memory: M,
    places: RefCell<Places>,
}

impl<M: Memory> Bare<M> {
    /// Empty bare memory.
    pub fn new(memory: M) -> Bare<M> {
        // Offset 0 is no object.
        Bare { memory, places: RefCell::new(Places { next: 4096, ..Places::default() }) }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: Memory> Store for Bare<M> {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        body(&mut BareTransaction { memory: &self.memory, places: &mut self.places.borrow_mut() })
    }
}

/// Changes of [`Bare`]: in place, at once.
struct BareTransaction<'b> {
    memory: &'b dyn Memory,
    places: &'b mut Places,
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
        // Aligned as the library's allocator does it.
        let alignment = [4096, 64, 16].into_iter().find(|&a| bytes.is_multiple_of(a)).unwrap_or(16);
        let places = &mut *self.places;
        let offset = match places.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(offset) => offset,
            None => {
                let offset = places.next.next_multiple_of(alignment);
                if offset + bytes > self.memory.bytes() {
                    let free = self.memory.bytes() - places.next;
                    return Err(Error::Full { requested: bytes, free });
                }
                places.next = offset + bytes;
                offset
            }
        };
        places.sizes.insert(offset, bytes);
        Ok(offset)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        let bytes = self.places.sizes.remove(&offset).ok_or(Error::NotAllocated { offset })?;
        self.places.free.entry(bytes).or_default().push(offset);
        Ok(())
    }
    fn root(&mut self) -> Result<u64, Error> {
        Ok(self.places.root)
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.places.root = offset;
        Ok(())
    }
}
