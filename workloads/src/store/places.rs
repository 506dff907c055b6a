//! Where objects lie: an index in ordinary memory.

use std::collections::{BTreeMap, HashMap};

use nearpm::Error;

/// Places of objects.
#[derive(Default)]
pub(super) struct Places {
    next: u64,
    /// Free places, by size.
    free: BTreeMap<u64, Vec<u64>>,
    sizes: HashMap<u64, u64>,
}

impl Places {
    /// No objects; the first will lie at `start` or behind it.
    pub(super) fn from(start: u64) -> Places {
        Places { next: start, ..Places::default() }
    }

    /// Takes a place that ends before `end`.
    pub(super) fn take(&mut self, bytes: u64, end: u64) -> Result<u64, Error> {
        // Aligned as the library's allocator does it.
        let alignment = [4096, 64, 16].into_iter().find(|&a| bytes.is_multiple_of(a)).unwrap_or(16);
        let offset = match self.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(offset) => offset,
            None => {
                let offset = self.next.next_multiple_of(alignment);
                if offset + bytes > end {
                    return Err(Error::Full { requested: bytes, free: end.saturating_sub(self.next) });
                }
                self.next = offset + bytes;
                offset
            }
        };
        self.sizes.insert(offset, bytes);
        Ok(offset)
    }

    /// Forgets an object and gives its bytes; [`Places::put`] makes its place free.
    pub(super) fn remove(&mut self, offset: u64) -> Result<u64, Error> {
        self.sizes.remove(&offset).ok_or(Error::NotAllocated { offset })
    }

    /// An object is there, again or from before.
    pub(super) fn keep(&mut self, offset: u64, bytes: u64) {
        self.next = self.next.max(offset + bytes);
        self.sizes.insert(offset, bytes);
    }

    /// A place may be taken.
    pub(super) fn put(&mut self, offset: u64, bytes: u64) {
        self.free.entry(bytes).or_default().push(offset);
    }
}
