//! A file whose bytes this process may change for itself.

use std::fs::File;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::space::Data;
use super::{Memory, View, check_range};
use crate::error::Error;
use crate::interval::IntervalSet;

/// A private mapping of a file: it shows what the file holds, and what is stored to it stays in
/// this process. A file that is opened for reading alone is enough.
pub(crate) struct PrivateMemory {
    view: View,
    bytes: u64,
    /// What was stored to.
    stored: Mutex<IntervalSet>,
    data: Data,
    /// Kept open: it holds the lock on the pool.
    file: File,
}

impl PrivateMemory {
    /// The memory of a view, with the file that it shows.
    pub fn new(view: View, bytes: u64, file: File) -> PrivateMemory {
        PrivateMemory { view, bytes, stored: Mutex::default(), data: Data::default(), file }
    }

    /// What was stored to, rising.
    pub fn stored(&self) -> Vec<Range<u64>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).iter().collect()
    }

    /// The parts of a range that may be other than zero.
    pub fn data(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = IntervalSet::default();
        self.data.parts(&self.file, range.clone()).into_iter().for_each(|part| parts.insert(part));
        let inside = |part: Range<u64>| part.start.max(range.start)..part.end.min(range.end);
        self.stored().into_iter().map(inside).filter(|part| !part.is_empty()).for_each(|part| parts.insert(part));
        parts.iter().collect()
    }

    /// Address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.view.base()
    }

    /// Whether nothing was lost.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.view.is_whole()
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
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).insert(offset..offset + data.len() as u64);
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
    fn alive(&self) -> Result<(), Error> {
        self.view.alive()
    }
    fn address(&self) -> Option<*mut u8> {
        Some(self.view.base())
    }
}
