//! Direct pools as a store: the working copy that users have.

use nearpm::Error;
use nearpm::direct::{DirectPool, Tx};
use nearpm::typed::{Load as _, Store as _};

use super::{Store, Transaction};

impl Transaction for Tx<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        nearpm::Load::read(self, offset, data)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        nearpm::Store::write(self, offset, data)
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        nearpm::Store::declare(self, offset..offset.saturating_add(bytes))
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.alloc_bytes(bytes)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        self.free_object(offset)
    }
    fn root(&mut self) -> Result<u64, Error> {
        self.root_object()
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.set_root_object(offset)
    }
}

impl Store for DirectPool {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        self.tx(|tx| body(tx))
    }
}
