//! Snapshots: reads of the pool as it was at one moment, which no writer waits for.
//!
//! A snapshot is taken between transactions. From then on every page is copied before its first
//! change, for each snapshot that is alive (`typed/page_copies.rs`): ranges that a transaction
//! adds, space that it takes for objects, chunks that become part of the log.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::DirectPool;
use crate::error::Error;
use crate::events::event;
use crate::memory::View;
use crate::typed::gate::Role;
use crate::typed::page_copies::{Lost, PAGE, PageCopies};
use crate::typed::persistent::value_of;
use crate::typed::window::Window;
use crate::typed::{Load, Persistent, Ptr};

/// Those of a pool that are alive. Writers that copy pages take turns.
pub(super) type Snapshots = Mutex<Vec<Arc<PageCopies>>>;

/// Keeps a range of a view as it is for snapshots, before it changes.
pub(super) fn keep(snapshots: &Snapshots, view: &View, range: &Range<u64>) {
    let copy = |offset: u64, page: &mut [u8]| {
        let bytes = (view.bytes().saturating_sub(offset) as usize).min(PAGE);
        view.load(offset, &mut page[..bytes]);
    };
    let alive = snapshots.lock().unwrap_or_else(PoisonError::into_inner);
    alive.iter().for_each(|copies| copies.keep(range, copy));
}

/// The pool as it was at one moment, whatever is committed since; from [`DirectPool::snapshot`]. It
/// may be sent and shared between threads.
///
/// Nobody waits for it. While it is alive a transaction copies each page of 4 KiB before it changes
/// it first, and those copies take memory until the snapshot is dropped: at most as much as the
/// pool has in use.
///
/// ```
/// use nearpm::prelude::*;
///
/// fn sum(pool: &DirectPool, numbers: Ptr<PVec<u64>>) -> Result<u64, Error> {
///     let snapshot = pool.snapshot()?;
///     // Others commit meanwhile, and this thread may as well.
///     pool.tx(|tx| numbers.push(tx, 1_000_000))?;
///     snapshot.read(|from| numbers.iter(from)?.sum())
/// }
///
/// let memory = nearpm::memory::VolatileMemory::new(1 << 20);
/// let pool = DirectPool::create_in(Box::new(memory), &Options::new()).unwrap();
/// let numbers = pool.tx(|tx| tx.root_or_zeroed::<PVec<u64>>()).unwrap();
/// pool.tx(|tx| numbers.extend(tx, &[1, 2, 3])).unwrap();
/// assert_eq!(sum(&pool, numbers).unwrap(), 6);
/// assert_eq!(sum(&pool, numbers).unwrap(), 1_000_006);
/// ```
pub struct Snapshot<'p> {
    pool: &'p DirectPool,
    copies: Arc<PageCopies>,
    root: u64,
}

impl DirectPool {
    /// Takes a snapshot: what all transactions did that have been committed. It waits for one that
    /// is running, as [`DirectPool::read`] does, and is then in nobody's way.
    ///
    /// Stores that no transaction names ([`DirectPool::base`], and transactions of
    /// [`DirectPool::begin`] beside the call) may show in it.
    ///
    /// # Errors
    /// [`Error::Nested`] inside of a transaction of the same pool and thread; [`Error::Poisoned`],
    /// [`Error::Forked`].
    pub fn snapshot(&self) -> Result<Snapshot<'_>, Error> {
        let _inside = self.enter(Role::Reader)?;
        self.refuse_poisoned()?;
        let copies = PageCopies::new(self.heap().start..self.heap().end);
        let copies = Arc::new(copies.map_err(Error::no_memory("the copies of a snapshot"))?);
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).push(copies.clone());
        self.watchers.fetch_add(1, Ordering::Relaxed);
        event!(debug, "snapshot taken");
        Ok(Snapshot { pool: self, copies, root: self.root() })
    }
}

impl Snapshot<'_> {
    /// Runs a read transaction on what the pool was. Transactions of the same pool may run inside
    /// of it.
    ///
    /// # Errors
    /// That of `body`; [`Error::NoMemory`] if there was none to copy a page; [`Error::Poisoned`],
    /// [`Error::Forked`].
    pub fn read<R>(&self, body: impl FnOnce(&SnapshotReader<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.try_read(body)
    }

    /// As [`Snapshot::read`], for a program with errors of its own.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn try_read<R, E: From<Error>>(&self, body: impl FnOnce(&SnapshotReader<'_>) -> Result<R, E>) -> Result<R, E> {
        if !self.pool.belongs_here() {
            return Err(Error::Forked.into());
        }
        self.pool.refuse_poisoned()?;
        let window = self.pool.view().window(self.copies.range());
        let done = body(&SnapshotReader { window, view: self.pool.view(), copies: &self.copies, root: self.root });
        self.pool.alive().map_err(|error| self.pool.poison(error))?;
        done
    }

    /// Bytes of memory that its copies take.
    pub fn copied_bytes(&self) -> u64 {
        self.copies.count() * PAGE as u64
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if !self.pool.belongs_here() {
            // A thread that the fork left behind may have held the list.
            return;
        }
        let mut alive = self.pool.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        alive.retain(|copies| !Arc::ptr_eq(copies, &self.copies));
        self.pool.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a snapshot sees; from [`Snapshot::read`].
pub struct SnapshotReader<'s> {
    window: Window<'s>,
    view: &'s View,
    copies: &'s PageCopies,
    root: u64,
}

fn no_memory(_: Lost) -> Error {
    Error::NoMemory { what: "a page that a snapshot sees" }
}

impl SnapshotReader<'_> {
    /// Reads bytes of the heap, some of which have changed.
    #[cold]
    fn read_changed(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.copies.read(offset, data, |offset, piece| self.view.load(offset, piece)).map_err(no_memory)
    }
}

impl Load for SnapshotReader<'_> {
    #[inline]
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        let value = self.window.get(at)?;
        let (start, bytes) = (Ptr::offset(at), size_of::<T>() as u64);
        if bytes == 0 || !self.copies.changed(&(start..start + bytes)).map_err(no_memory)? {
            return Ok(value);
        }
        value_of(|bytes| self.read_changed(start, bytes))
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        // As of a transaction: nothing may be read anywhere.
        if data.is_empty() {
            return Ok(());
        }
        self.window.check_bytes(offset, data.len() as u64)?;
        self.read_changed(offset, data)
    }

    #[inline]
    fn root_object(&self) -> Result<u64, Error> {
        Ok(self.root)
    }
}
