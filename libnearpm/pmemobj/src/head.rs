//! Layout and root of a pool, on the medium.
//!
//! What lies there is defined by [`nearpm::pmdk`].

use std::ops::Range;

use nearpm::direct::DirectPool;
use nearpm::pmdk::{self, HEAD_BYTES, MAX_LAYOUT, ROOT_WORDS};
use nearpm::{Error, Problem};

/// The head of an open pool.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Where it is.
    pub offset: u64,
    at: *mut u8,
}

// SAFETY: the fields are read and written as the pool's memory is: by whoever holds the pool's lock
// on its root.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

impl Head {
    /// Gives a new pool its head.
    pub fn create(pool: &DirectPool, layout: &[u8]) -> Result<Head, Error> {
        let offset = pmdk::create(pool, layout)?;
        Ok(Head { offset, at: pool.base().wrapping_add(offset as usize) })
    }

    /// Finds the head of an existing pool.
    pub fn open(pool: &DirectPool, location: &str) -> Result<Head, Error> {
        let refused = |problem| Err(Error::Pool { location: location.to_owned(), problem });
        let others = "it was made by other programs, not through this interface";
        let offset = pool.root();
        if offset == 0 {
            let what = "it has no layout: give it one when it is made (nearpm pool create --direct --layout NAME)";
            return refused(Problem::BadOption { what });
        }
        if pool.usable_bytes(offset).is_ok_and(|bytes| bytes < HEAD_BYTES as u64) {
            return refused(Problem::BadOption { what: others });
        }
        let at = pool.base().wrapping_add(offset as usize);
        // SAFETY: the root of a pool is an object, and it has as many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(at, HEAD_BYTES) };
        match pmdk::Head::read(bytes, offset) {
            Ok(Some(_)) => Ok(Head { offset, at }),
            Ok(None) => refused(Problem::BadOption { what: others }),
            Err(problem) => refused(problem),
        }
    }

    /// The layout's name.
    pub fn layout(&self) -> String {
        // SAFETY: the head is an object of the open pool, and the name does not change.
        pmdk::layout_of(unsafe { std::slice::from_raw_parts(self.at, MAX_LAYOUT) })
    }

    fn root_words(&self) -> *mut [u64; 2] {
        self.at.wrapping_add(ROOT_WORDS).cast()
    }

    /// Offset and bytes of the root object, 0 if there is none.
    pub fn root(&self) -> (u64, u64) {
        // SAFETY: two words of the head, aligned because objects are.
        let [offset, bytes] = unsafe { self.root_words().read_volatile() };
        (offset, bytes)
    }

    /// What `stats.heap.curr_allocated` was when the pool was closed.
    pub fn allocated(&self) -> i64 {
        // SAFETY: a word of the head, as the root's are.
        unsafe { self.at.wrapping_add(ROOT_WORDS + 16).cast::<i64>().read_volatile() }
    }

    /// Where that is in the pool.
    pub fn allocated_at(&self) -> u64 {
        self.offset + ROOT_WORDS as u64 + 16
    }

    /// Where offset and bytes of the root object are in the pool: what a transaction adds.
    pub fn root_range(&self) -> Range<u64> {
        let start = self.offset + ROOT_WORDS as u64;
        start..start + 16
    }
}
