//! Ordinary memory that a working copy lies in: which of its lines the processor's cache holds.

use std::cell::RefCell;

use nearpm::Error;
use nearpm_interface::geometry::LINE_U64;
use nearpm_workloads::store::{Store, Transaction};

/// Lines of a set of the cache.
const WAYS: usize = 16;

/// A cache of lines, each set in the order of use.
struct Cache(Vec<Vec<u64>>);

impl Cache {
    fn new(lines: usize) -> Cache {
        Cache(vec![Vec::with_capacity(WAYS); (lines / WAYS).max(1)])
    }

    /// Uses the lines of a range, and gives how many were not there.
    fn touch(&mut self, offset: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let lines = offset / LINE_U64..=(offset + bytes - 1) / LINE_U64;
        let sets = self.0.len() as u64;
        let is_missed = |line: &u64| {
            let set = &mut self.0[(line % sets) as usize];
            let found = set.iter().position(|there| there == line);
            match found {
                Some(at) => drop(set.remove(at)),
                None if set.len() == WAYS => drop(set.pop()),
                None => {}
            }
            set.insert(0, *line);
            found.is_none()
        };
        lines.filter(is_missed).count() as u64
    }
}

/// A store whose transactions tell which lines of ordinary memory they miss.
pub struct Touched<S, F> {
    store: S,
    cache: RefCell<Cache>,
    /// Told of each access that misses so many lines.
    misses: F,
}

impl<S, F: Fn(u64)> Touched<S, F> {
    /// A store in ordinary memory, behind a cache of so many lines.
    pub fn new(store: S, lines: usize, misses: F) -> Touched<S, F> {
        Touched { store, cache: RefCell::new(Cache::new(lines)), misses }
    }

    /// The store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// The store.
    pub fn into_inner(self) -> S {
        self.store
    }
}

impl<S: Store, F: Fn(u64)> Store for Touched<S, F> {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        self.store
            .transaction(&mut |inner| body(&mut TouchedTransaction { inner, cache: &self.cache, misses: &self.misses }))
    }
}

struct TouchedTransaction<'t> {
    inner: &'t mut dyn Transaction,
    cache: &'t RefCell<Cache>,
    misses: &'t dyn Fn(u64),
}

impl TouchedTransaction<'_> {
    fn touch(&self, offset: u64, bytes: u64) {
        let missed = self.cache.borrow_mut().touch(offset, bytes);
        if missed > 0 {
            (self.misses)(missed);
        }
    }
}

impl Transaction for TouchedTransaction<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.touch(offset, data.len() as u64);
        self.inner.read(offset, data)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.touch(offset, data.len() as u64);
        self.inner.write(offset, data)
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.touch(offset, bytes);
        self.inner.declare(offset, bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.inner.alloc(bytes)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        self.inner.free(offset)
    }
    fn root(&mut self) -> Result<u64, Error> {
        self.inner.root()
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.inner.set_root(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_there() {
        let mut cache = Cache::new(2 * WAYS);
        assert_eq!(cache.touch(0, 130), 3);
        assert_eq!(cache.touch(64, 64), 0);
        // Even lines have a set of their own; line 0 is the one that was used longest ago.
        (1..WAYS as u64).for_each(|n| assert_eq!(cache.touch(n * 2 * 64, 1), if n == 1 { 0 } else { 1 }));
        assert_eq!(cache.touch(0, 1), 0);
        assert_eq!(cache.touch(WAYS as u64 * 2 * 64, 1), 1);
        assert_eq!(cache.touch(2 * 64, 1), 1, "the least recently used line has gone");
        assert_eq!(cache.touch(0, 0), 0);
    }
}
