//! Memory that forgets: for measurements and for tests that need no durability.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Memory, check_range};
use crate::error::Error;

/// Plain bytes on the heap. Nothing survives the process.
pub struct VolatileMemory {
    bytes: Mutex<Vec<u8>>,
    size: u64,
}

impl VolatileMemory {
    /// Zeroed memory of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        VolatileMemory::from_bytes(vec![0; bytes])
    }

    /// Memory with the given contents.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        VolatileMemory { size: bytes.len() as u64, bytes: Mutex::new(bytes) }
    }

    /// The contents.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory for VolatileMemory {
    fn bytes(&self) -> u64 {
        self.size
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.size, offset, data.len() as u64);
        data.copy_from_slice(&self.lock()[offset as usize..][..data.len()]);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.size, offset, data.len() as u64);
        self.lock()[offset as usize..][..data.len()].copy_from_slice(data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.size, offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        Ok(())
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.size, offset, bytes);
    }
}
