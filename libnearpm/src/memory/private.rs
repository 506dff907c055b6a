//! A file whose bytes this process may change for itself.

use std::fs::File;

use super::{Memory, View, check_range};
use crate::error::Error;

/// A private mapping of a file: it shows what the file holds, and what is stored to it stays in this process. A file that is opened for
/// reading alone is enough.
pub(crate) struct PrivateMemory {
    view: View,
    bytes: u64,
    /// Kept open: it holds the lock on the pool, unless somebody else does.
    _file: Option<File>,
}

impl PrivateMemory {
    /// The memory of a view, with the file that it shows.
    pub fn new(view: View, bytes: u64, file: Option<File>) -> PrivateMemory {
        PrivateMemory { view, bytes, _file: file }
    }

    /// Address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.view.base()
    }

    /// From now on a store, also one by pointer, is a fault of the processor.
    pub fn freeze(&self) -> Result<(), Error> {
        self.view.freeze()
    }
}

impl Memory for PrivateMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.view.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.view.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        Ok(())
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
    }
    fn address(&self) -> Option<*mut u8> {
        Some(self.view.base())
    }
}
