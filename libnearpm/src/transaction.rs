//! An open transaction.

use crate::error::Error;

/// An open transaction: reads see its own writes, and nothing of it remains when it is aborted.
///
/// Offsets count from the start of the pool, as [`Tx::alloc`] and [`crate::Pool::root`] give them; 0 is
/// never an object.
pub struct Tx<'p> {
    pub(crate) pool: std::marker::PhantomData<&'p ()>,
}

impl Tx<'_> {
    /// Reads `data.len()` bytes at `offset`.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        todo!("{offset} {data:?}")
    }
    /// Writes `data` at `offset`.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        todo!("{offset} {data:?}")
    }
    /// Reads a little-endian 8-byte word.
    pub fn read_u64(&mut self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    /// Writes a little-endian 8-byte word.
    pub fn write_u64(&mut self, offset: u64, value: u64) -> Result<(), Error> {
        self.write(offset, &value.to_le_bytes())
    }
    /// Allocates `bytes` bytes, whose contents are undefined, and gives their offset: a multiple of 16, or of
    /// 64 where `bytes` is one, or of 4096 where `bytes` is one.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        todo!("{bytes}")
    }
    /// Allocates zeroed bytes.
    pub fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        todo!("{bytes}")
    }
    /// Frees an object. Its space is used again only after the commit.
    pub fn free(&mut self, offset: u64) -> Result<(), Error> {
        todo!("{offset}")
    }
    /// Usable bytes of an object.
    pub fn size_of(&mut self, offset: u64) -> Result<u64, Error> {
        todo!("{offset}")
    }
    /// Offset of the root object, 0 where none was set.
    pub fn root(&mut self) -> Result<u64, Error> {
        todo!()
    }
    /// Makes an offset the root, from which a program finds everything else.
    pub fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        todo!("{offset}")
    }
}
