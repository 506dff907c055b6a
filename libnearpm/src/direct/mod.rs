//! Pools whose objects the program reaches by pointer.
//!
//! The program sees the pool as memory, from [`DirectPool::base`] on, and stores to it with plain stores. What it changes in a
//! transaction it names first, by [`Transaction::add`]. This is the interface under C programs, where stores cannot be seen, and under
//! everything that is to be as fast as the processor is.
//!
//! | mode | the program works on | a snapshot | a commit |
//! |---|---|---|---|
//! | [`Mode::InPlace`] | persistent memory itself | durable before the program may store: one fence | two fences |
//! | [`Mode::WorkingCopy`] | a volatile copy (a private mapping: pages that are not written cost nothing) | a copy in ordinary memory | one fence, whatever the size |

use std::ops::Range;

use crate::error::Error;
use crate::memory::{Memory, Survives};
use crate::options::Durability;

/// What the program's stores go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Persistent memory itself. A line may be evicted at any time, so that each snapshot is durable before the store.
    InPlace,
    /// A volatile copy of the pool. What a commit names is logged, durable with one fence, and written home later.
    #[default]
    WorkingCopy,
}

/// How a direct pool is created and opened.
#[derive(Clone, Debug, Default)]
pub struct DirectOptions {
    /// What the program's stores go to.
    pub mode: Mode,
    /// What a pool on an ordinary file survives.
    pub survives: Survives,
    /// What a commit waits for.
    pub durability: Durability,
    /// Touches every page at open, so that no transaction pays for a page fault.
    pub prefault: bool,
}

/// Space that is taken, and becomes an object only when a commit says so. Plain data: it may lie on a C program's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Offset of the object in the pool.
    pub offset: u64,
    /// Bytes that it has, at least those asked for.
    pub bytes: u64,
}

/// An open pool. All of it may be used by several threads at once; a transaction belongs to one.
pub struct DirectPool {}

impl DirectPool {
    /// Creates a pool of `bytes` bytes at a path and opens it. Nothing is left behind when that fails.
    pub fn create(location: &str, bytes: u64, options: &DirectOptions) -> Result<DirectPool, Error> {
        todo!()
    }
    /// Opens a pool, recovering it first.
    pub fn open(location: &str, options: &DirectOptions) -> Result<DirectPool, Error> {
        todo!()
    }
    /// Creates a pool that fills a memory.
    pub fn create_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        todo!()
    }
    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        todo!()
    }
    /// Where the program sees offset 0. Stays until the pool is closed.
    pub fn base(&self) -> *mut u8 {
        todo!()
    }
    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
    /// Identifier of the pool.
    pub fn id(&self) -> u32 {
        todo!()
    }
    /// Offsets that objects may have.
    pub fn heap(&self) -> Range<u64> {
        todo!()
    }
    /// Offset of the root object, 0 if there is none.
    pub fn root(&self) -> u64 {
        todo!()
    }
    /// Bytes of an allocated (or reserved) object.
    ///
    /// # Errors
    /// [`Error::NotAllocated`].
    pub fn usable_bytes(&self, object: u64) -> Result<u64, Error> {
        todo!()
    }
    /// The allocated object that follows an offset (0: the first), in rising order; committed ones only.
    pub fn next_object(&self, after: u64) -> Option<u64> {
        todo!()
    }
    /// Makes bytes durable that the program has stored outside of transactions. Several ranges of one call share their fence.
    /// In a working copy they become durable all together or not at all.
    pub fn persist(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        todo!()
    }
    /// Waits until what asynchronous commits have done is durable.
    pub fn wait_durable(&self) -> Result<(), Error> {
        todo!()
    }
    /// Takes space for an object. Its bytes are what the space held before. A crash or [`DirectPool::cancel`] gives it back.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, Error> {
        todo!()
    }
    /// Gives a reservation back.
    pub fn cancel(&self, reservation: Reservation) {
        todo!()
    }
    /// Begins a transaction. It must end by [`Transaction::commit`] or [`Transaction::abort`].
    pub fn begin(&self) -> Result<Transaction, Error> {
        todo!()
    }
    /// Counters since the pool was opened.
    pub fn statistics(&self) -> crate::Statistics {
        todo!()
    }
    /// Closes the pool: what was stored and never made durable is written home as well.
    pub fn close(self) -> Result<(), Error> {
        todo!()
    }
}

/// An open transaction: plain data without a borrow of its pool, so that it can live where C code jumps over frames. Every call takes
/// the pool that it was begun on.
pub struct Transaction {}

impl Transaction {
    /// The program is about to change a range. Parts that were added before, or that this transaction allocated, cost nothing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; what the medium refuses. The transaction goes on as it was.
    pub fn add(&mut self, pool: &DirectPool, range: Range<u64>) -> Result<(), Error> {
        todo!()
    }
    /// As [`Transaction::add`], but an abort (or a crash) need not restore the range: it becomes durable at commit only.
    pub fn add_without_snapshot(&mut self, pool: &DirectPool, range: Range<u64>) -> Result<(), Error> {
        todo!()
    }
    /// Allocates: an object from the commit on. All its bytes become durable at commit.
    pub fn alloc(&mut self, pool: &DirectPool, bytes: u64) -> Result<Reservation, Error> {
        todo!()
    }
    /// Turns a reservation into an object at commit. Its bytes become durable at commit if `contents`, else
    /// it is the program that made them durable.
    pub fn publish(&mut self, pool: &DirectPool, reservation: Reservation, contents: bool) -> Result<(), Error> {
        todo!()
    }
    /// Frees an object at commit, also one that this transaction allocated.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] leaves everything as it was.
    pub fn free(&mut self, pool: &DirectPool, object: u64) -> Result<(), Error> {
        todo!()
    }
    /// Makes an object the root, at commit; 0 for none.
    pub fn set_root(&mut self, pool: &DirectPool, object: u64) -> Result<(), Error> {
        todo!()
    }
    /// Commits. On an error the transaction has been aborted, unless that says that the pool is poisoned.
    pub fn commit(self, pool: &DirectPool) -> Result<(), Error> {
        todo!()
    }
    /// Takes everything back: ranges get their bytes of when they were added.
    pub fn abort(self, pool: &DirectPool) -> Result<(), Error> {
        todo!()
    }
}
