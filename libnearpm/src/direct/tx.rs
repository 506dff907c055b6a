//! Transactions of typed objects: closures that get what they may do.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{DirectPool, Transaction};
use crate::error::Error;
use crate::inside::Inside;
use crate::memory::words::Neighbours;
use crate::typed::gate::{Gate, Role};
use crate::typed::locks::{Hold, LockTable};
use crate::typed::window::Window;
use crate::typed::{Later, Load, PLock, Persistent, Ptr, Store};

/// Who is in a pool, and which locks they hold.
#[derive(Default)]
pub(super) struct Entrance {
    gate: Gate,
    locks: LockTable,
}

/// A thread that is inside of a pool.
pub(super) struct Entered<'p> {
    entrance: &'p Entrance,
    _inside: Inside,
}

impl Entrance {
    /// Enters, waiting if need be.
    ///
    /// # Errors
    /// [`Error::Nested`] for a thread that is inside already: it would wait for itself.
    fn enter(&self, role: Role) -> Result<Entered<'_>, Error> {
        let _inside = Inside::enter(self)?;
        self.gate.enter(role);
        Ok(Entered { entrance: self, _inside })
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.entrance.gate.leave();
    }
}

/// A read transaction: nobody changes what it sees while it runs. From [`DirectPool::read`] and
/// [`Locked::read`].
pub struct Reader<'p> {
    window: Window<'p>,
    pool: &'p DirectPool,
    /// It belongs to the thread that is inside.
    thread: PhantomData<*const ()>,
}

impl Load for Reader<'_> {
    #[inline(always)]
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        self.window.get(at)
    }

    #[inline]
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.window.read(offset, data)
    }

    #[inline]
    fn root_object(&self) -> Result<u64, Error> {
        Ok(self.pool.root())
    }
}

/// A transaction: it sees its own stores, and nothing of it remains when it is aborted. From
/// [`DirectPool::tx`] and [`Locked::tx`].
pub struct Tx<'p> {
    window: Window<'p>,
    /// A range that was added, or allocated: mostly the one that is stored to next.
    last: Window<'p>,
    neighbours: Neighbours,
    /// The root that it has set.
    root: Option<u64>,
    pool: &'p DirectPool,
    /// See [`Store::changes`].
    changes: u64,
    /// See [`Store::doom`].
    doomed: bool,
    /// See [`Store::later`].
    later: Later<Self>,
    /// None once it has ended.
    transaction: Option<Transaction>,
    thread: PhantomData<*const ()>,
}

const ENDED: &str = "a transaction is used before it ends";

impl<'p> Tx<'p> {
    fn begin(pool: &'p DirectPool, neighbours: Neighbours) -> Result<Tx<'p>, Error> {
        let (window, mut transaction) = (pool.window(), pool.begin()?);
        transaction.log_differences(pool);
        let transaction = Some(transaction);
        let (last, thread, later) = (window.part(0..0), PhantomData, Later::default());
        Ok(Tx { window, last, neighbours, root: None, pool, changes: 0, doomed: false, later, transaction, thread })
    }

    /// Makes sure that a range of the heap may be stored to.
    #[inline(never)]
    fn add(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.window.check_bytes(range.start, range.end - range.start)?;
        self.transaction.as_mut().expect(ENDED).add(self.pool, range.clone())?;
        self.last = self.window.part(range);
        Ok(())
    }

    /// Stores to a range that is not the last one.
    #[inline(never)]
    fn set_elsewhere<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        self.window.check(at)?;
        self.add(Ptr::offset(at)..Ptr::offset(at) + size_of::<T>() as u64)?;
        self.changes += 1;
        self.window.set(at, value, self.neighbours)
    }

    /// Lends words that the transaction is about to store to, from an offset in the pool on: for
    /// bytes that are computed, or copied from where others may store to, so that they go to their
    /// place without a stop.
    ///
    /// # Errors
    /// As [`Store::write`]; [`Error::Misaligned`].
    ///
    /// ```
    /// # use nearpm::prelude::*;
    /// use std::sync::atomic::Ordering::Relaxed;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pool");
    /// # let pool = DirectPool::create(path.to_str().unwrap(), 1 << 20, &Options::new())?;
    /// let squares = pool.tx(|tx| {
    ///     let object = tx.alloc_bytes(8 * 1000)?;
    ///     tx.words(object, 1000)?.iter().zip(0..).for_each(|(word, n)| word.store(n * n, Relaxed));
    ///     Ok(object)
    /// })?;
    /// let mut last = [0; 8];
    /// pool.read(|from| from.read(squares + 8 * 999, &mut last))?;
    /// assert_eq!(u64::from_ne_bytes(last), 999 * 999);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn words(&mut self, offset: u64, count: u64) -> Result<&[AtomicU64], Error> {
        let bytes = count.saturating_mul(8);
        if !self.last.holds(offset, bytes) && count > 0 {
            // Refused before anything is added.
            self.window.words(offset, count)?;
            self.add(offset..offset + bytes)?;
        }
        self.changes += 1;
        self.last.words(offset, count)
    }

    fn commit(mut self) -> Result<(), Error> {
        if self.doomed {
            return Err(Error::half_done());
        }
        self.transaction.take().expect(ENDED).commit(self.pool)
    }
}

impl Drop for Tx<'_> {
    /// A transaction that did not commit is taken back, also when a panic unwinds.
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            // An abort that fails poisons the pool, and every later call says so.
            let _ = transaction.abort(self.pool);
        }
    }
}

impl Load for Tx<'_> {
    #[inline(always)]
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        self.window.get(at)
    }

    #[inline]
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.window.read(offset, data)
    }

    #[inline]
    fn root_object(&self) -> Result<u64, Error> {
        Ok(self.root.unwrap_or_else(|| self.pool.root()))
    }
}

impl Store for Tx<'_> {
    #[inline(always)]
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        if !self.last.has(at) {
            return self.set_elsewhere(at, value);
        }
        self.changes += 1;
        self.last.set(at, value, self.neighbours)
    }

    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let bytes = data.len() as u64;
        if !self.last.holds(offset, bytes) && bytes > 0 {
            self.window.check_bytes(offset, bytes)?;
            self.add(offset..offset + bytes)?;
        }
        self.changes += 1;
        self.last.write(offset, data, self.neighbours)
    }

    #[inline]
    fn declare(&mut self, range: Range<u64>) -> Result<(), Error> {
        if range.is_empty() { Ok(()) } else { self.add(range) }
    }

    #[inline]
    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error> {
        let object = self.transaction.as_mut().expect(ENDED).alloc(self.pool, bytes)?.offset;
        if !self.window.holds(object, bytes) {
            // The pool has grown for it.
            self.window = self.pool.window();
        }
        self.last = self.window.part(object..object + bytes);
        self.changes += 1;
        Ok(object)
    }

    fn prefers_new(&self, bytes: u64) -> bool {
        self.pool.prefers_new(bytes)
    }

    #[inline]
    fn free_object(&mut self, object: u64) -> Result<(), Error> {
        self.transaction.as_mut().expect(ENDED).free(self.pool, object)?;
        self.changes += 1;
        Ok(())
    }

    fn set_root_object(&mut self, object: u64) -> Result<(), Error> {
        if object != 0 {
            self.pool.usable_bytes(object)?;
        }
        self.transaction.as_mut().expect(ENDED).set_root(object);
        self.root = Some(object);
        self.changes += 1;
        Ok(())
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn doom(&mut self) {
        self.doomed = true;
    }

    fn later(&mut self) -> &mut Later<Self> {
        &mut self.later
    }
}

impl DirectPool {
    /// Enters the pool, unless it is the parent's: whoever was inside at the fork never leaves it
    /// here.
    pub(super) fn enter(&self, role: Role) -> Result<Entered<'_>, Error> {
        if self.belongs_here() { self.entrance.enter(role) } else { Err(Error::Forked) }
    }

    fn run<R, E: From<Error>>(
        &self,
        neighbours: Neighbours,
        body: impl FnOnce(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut tx = Tx::begin(self, neighbours)?;
        let done = body(&mut tx);
        // It may have been misled by zeros in the place of what the file has lost.
        self.alive().map_err(|error| self.poison(error))?;
        let value = done?;
        tx.commit()?;
        Ok(value)
    }

    fn look<R, E: From<Error>>(&self, body: impl FnOnce(&Reader<'_>) -> Result<R, E>) -> Result<R, E> {
        self.refuse_poisoned()?;
        let done = body(&Reader { window: self.window(), pool: self, thread: PhantomData });
        self.alive().map_err(|error| self.poison(error))?;
        done
    }

    /// Runs a transaction: all of `body` happens or nothing. It is taken back when `body` returns
    /// an error or panics, and committed otherwise. It waits until no other transaction and no
    /// reader of the pool is left, and the others wait for it.
    ///
    /// # Errors
    /// That of `body`; [`Error::Nested`] inside of a transaction of the same pool and thread; those
    /// of the commit, after which everything was taken back.
    pub fn tx<R>(&self, body: impl FnOnce(&mut Tx<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.try_tx(body)
    }

    /// As [`DirectPool::tx`], for a program with errors of its own.
    ///
    /// # Errors
    /// As [`DirectPool::tx`].
    pub fn try_tx<R, E: From<Error>>(&self, body: impl FnOnce(&mut Tx<'_>) -> Result<R, E>) -> Result<R, E> {
        let _inside = self.enter(Role::Writer)?;
        self.run(Neighbours::Quiet, body)
    }

    /// Runs a read transaction, beside others; transactions that store wait until it has ended.
    ///
    /// # Errors
    /// That of `body`; [`Error::Nested`] inside of a transaction of the same pool and thread.
    pub fn read<R>(&self, body: impl FnOnce(&Reader<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.try_read(body)
    }

    /// As [`DirectPool::read`], for a program with errors of its own.
    ///
    /// # Errors
    /// As [`DirectPool::read`].
    pub fn try_read<R, E: From<Error>>(&self, body: impl FnOnce(&Reader<'_>) -> Result<R, E>) -> Result<R, E> {
        let _inside = self.enter(Role::Reader)?;
        self.look(body)
    }

    /// Transactions that hold locks and run beside others that hold theirs.
    pub fn locked<'p>(&'p self, locks: &[Ptr<PLock>]) -> Locked<'p> {
        Locked { pool: self, places: locks.iter().copied().map(Ptr::offset).collect() }
    }
}

/// Locks of a pool, to run a transaction with; from [`DirectPool::locked`].
///
/// Transactions that hold locks run beside each other, and no other transaction runs meanwhile.
/// What a lock protects is the program's to say: a transaction must touch nothing that a lock
/// protects which it does not hold. One that does may see and leave values that no order of
/// transactions gives, though no undefined behaviour: each 8-byte word of a pool is loaded and
/// stored as a whole. Where another thread frees meanwhile what it stores to, the store may damage
/// whatever lies there next, the log included.
pub struct Locked<'p> {
    pool: &'p DirectPool,
    places: Vec<u64>,
}

impl Locked<'_> {
    /// Runs a transaction that holds the locks alone, to its end. Otherwise as [`DirectPool::tx`].
    ///
    /// # Errors
    /// As [`DirectPool::tx`].
    pub fn tx<R>(self, body: impl FnOnce(&mut Tx<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.try_tx(body)
    }

    /// As [`Locked::tx`], for a program with errors of its own.
    ///
    /// # Errors
    /// As [`DirectPool::tx`].
    pub fn try_tx<R, E: From<Error>>(self, body: impl FnOnce(&mut Tx<'_>) -> Result<R, E>) -> Result<R, E> {
        let _inside = self.pool.enter(Role::Holder)?;
        let _held = self.pool.entrance.locks.take_all(self.places, Hold::Alone);
        self.pool.run(Neighbours::Busy, body)
    }

    /// Runs a read transaction that shares the locks with others that read. Otherwise as
    /// [`DirectPool::read`].
    ///
    /// # Errors
    /// As [`DirectPool::read`].
    pub fn read<R>(self, body: impl FnOnce(&Reader<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.try_read(body)
    }

    /// As [`Locked::read`], for a program with errors of its own.
    ///
    /// # Errors
    /// As [`DirectPool::read`].
    pub fn try_read<R, E: From<Error>>(self, body: impl FnOnce(&Reader<'_>) -> Result<R, E>) -> Result<R, E> {
        let _inside = self.pool.enter(Role::Holder)?;
        let _held = self.pool.entrance.locks.take_all(self.places, Hold::Shared);
        self.pool.look(body)
    }
}
