//! Open pools by address and by identifier.
//!
//! A look-up that finds the pool of the last one costs a comparison. Others share the lock of a
//! table.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::abi::{_pobj_cache_invalidate, Handle, Oid};
use crate::error::{Errno, fail};
use crate::open::Cache;
pub use crate::open::Pool;
use crate::thread::{Thread, thread};

/// An open pool, as look-ups find it.
#[derive(Clone, Copy)]
struct Entry {
    base: usize,
    end: usize,
    uuid: u64,
    pool: *const Pool,
}

// SAFETY: a pool may be used by any thread.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// The open pools, by address and by identifier. They are as many as the process has address space
/// and file descriptors for.
#[derive(Default)]
struct Table {
    by_base: Vec<Entry>,
    by_uuid: Vec<Entry>,
}

impl Table {
    fn at(&self, address: usize) -> Option<&Entry> {
        let behind = self.by_base.partition_point(|entry| entry.base <= address);
        self.by_base[..behind].last().filter(|entry| address < entry.end)
    }

    fn of(&self, uuid: u64) -> Result<&Entry, usize> {
        self.by_uuid.binary_search_by_key(&uuid, |entry| entry.uuid).map(|at| &self.by_uuid[at])
    }

    fn insert(&mut self, entry: Entry) -> Result<(), Refused> {
        let Err(uuid_place) = self.of(entry.uuid) else { return Err(Refused::SameIdentifier) };
        self.by_base.try_reserve(1).and_then(|()| self.by_uuid.try_reserve(1)).map_err(|_| Refused::NoMemory)?;
        let base_place = self.by_base.partition_point(|other| other.base < entry.base);
        self.by_base.insert(base_place, entry);
        self.by_uuid.insert(uuid_place, entry);
        Ok(())
    }

    fn remove(&mut self, base: usize) -> Option<Entry> {
        let at = self.by_base.binary_search_by_key(&base, |entry| entry.base).ok()?;
        let entry = self.by_base.remove(at);
        self.by_uuid.retain(|other| other.base != base);
        Some(entry)
    }
}

/// Why a pool is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// One with its identifier is open.
    SameIdentifier,
    /// The table cannot grow.
    NoMemory,
}

static TABLE: RwLock<Table> = RwLock::new(Table { by_base: Vec::new(), by_uuid: Vec::new() });

/// The table, locked by a thread that forks. A thread of the parent that held it otherwise would
/// hold it in the child, where it is not.
struct Forking(UnsafeCell<Option<RwLockWriteGuard<'static, Table>>>);

// SAFETY: it is accessed by handlers of `fork` alone, which run in the thread that forks, one
// thread after the other: the first of them waits for the table.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

unsafe extern "C" fn before_fork() {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: whoever has the table is the only one here.
    unsafe { *FORKING.0.get() = Some(table) };
}

unsafe extern "C" fn after_fork() {
    // SAFETY: as above, in the parent and in the child alike: the guard goes back before the table
    // is free.
    drop(unsafe { (*FORKING.0.get()).take() });
}

/// From the first pool on: a program that has none forks as ever.
fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handlers are functions of this library, which stays where it is.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    });
}

fn table() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Counts closed pools: what threads remember of before does not count.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Enters a pool. It lives until [`leave`] gives it back; one that is refused is closed.
pub fn enter(pool: Box<Pool>) -> Result<&'static Pool, Refused> {
    // With the addresses that it may grow to, which are nobody else's.
    let most = pool.direct.growth().map_or(0, |growth| growth.most).max(pool.direct.bytes());
    let (base, end, uuid) = (pool.base, pool.base + most as usize, pool.uuid);
    let entry = Entry { base, end, uuid, pool: &raw const *pool };
    watch_forks();
    TABLE.write().unwrap_or_else(PoisonError::into_inner).insert(entry)?;
    // SAFETY: the box is not dropped, so that the pool lives on.
    Ok(unsafe { &*Box::into_raw(pool) })
}

/// Removes a pool that nobody uses any more; `None` where it is not open.
pub fn leave(pool: &'static Pool) -> Option<Box<Pool>> {
    let entry = TABLE.write().unwrap_or_else(PoisonError::into_inner).remove(pool.base)?;
    GENERATION.fetch_add(1, Ordering::AcqRel);
    // SAFETY: a plain variable of this library (or the program's copy of it).
    unsafe { _pobj_cache_invalidate.fetch_add(1, Ordering::AcqRel) };
    // SAFETY: `enter` took it from a box, and the table no longer has it.
    Some(unsafe { Box::from_raw(entry.pool.cast_mut()) })
}

/// The pool of a handle, for a caller that has the thread's state at hand.
///
/// # Errors
/// EINVAL for whatever is not the handle of an open pool.
#[inline]
pub fn pool_in(thread: &Thread, handle: Handle) -> Result<&'static Pool, Errno> {
    let cache = &thread.cache;
    if cache.base.get() == handle as usize
        && cache.generation.get() == GENERATION.load(Ordering::Acquire)
        && !handle.is_null()
    {
        // SAFETY: the address of an open pool: closing one changes the generation.
        return Ok(unsafe { &*(cache.by_base.get() as *const Pool) });
    }
    pool_in_slowly(cache, handle)
}

#[cold]
fn pool_in_slowly(cache: &Cache, handle: Handle) -> Result<&'static Pool, Errno> {
    let base = handle as usize;
    let found = table().at(base).filter(|entry| entry.base == base).map(|entry| entry.pool);
    let Some(pool) = found else {
        return Err(fail(libc::EINVAL, format_args!("{handle:p} is not the handle of an open pool")));
    };
    cache.check(GENERATION.load(Ordering::Acquire));
    cache.base.set(base);
    cache.by_base.set(pool as usize);
    // SAFETY: a program does not use a pool while it closes it.
    Ok(unsafe { &*pool })
}

/// The pool of a handle.
///
/// # Errors
/// As [`pool_in`].
#[inline]
pub fn pool_of(handle: Handle) -> Result<&'static Pool, Errno> {
    pool_in(thread(), handle)
}

/// The pool that an object belongs to.
#[inline]
pub fn pool_of_oid(oid: Oid) -> Option<&'static Pool> {
    let cache = &thread().cache;
    if oid.pool == 0 {
        return None;
    }
    if cache.uuid.get() == oid.pool && cache.generation.get() == GENERATION.load(Ordering::Acquire) {
        // SAFETY: as in `pool_in`.
        return Some(unsafe { &*(cache.by_uuid.get() as *const Pool) });
    }
    let pool = table().of(oid.pool).ok()?.pool;
    cache.check(GENERATION.load(Ordering::Acquire));
    cache.uuid.set(oid.pool);
    cache.by_uuid.set(pool as usize);
    // SAFETY: a program does not use a pool while it closes it.
    Some(unsafe { &*pool })
}

/// The pool that an address lies in.
pub fn pool_of_address(address: usize) -> Option<&'static Pool> {
    let cache = &thread().cache;
    if cache.base.get() != 0 && cache.generation.get() == GENERATION.load(Ordering::Acquire) {
        // SAFETY: as in `pool_in`.
        let last = unsafe { &*(cache.by_base.get() as *const Pool) };
        if last.offset_of(address).is_some() {
            return Some(last);
        }
    }
    let pool = table().at(address)?.pool;
    // SAFETY: as above.
    Some(unsafe { &*pool })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn entry(base: usize, uuid: u64) -> Entry {
        Entry { base, end: base + 100, uuid, pool: std::ptr::null() }
    }

    #[test]
    fn thousands_of_pools_are_found_by_address_and_by_identifier() {
        let mut table = Table::default();
        let uuid = |n: usize| (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let numbers: Vec<usize> = (1..5000).map(|n| n * 7919 % 4999 + 1).collect();
        for &n in &numbers {
            assert_eq!(table.insert(entry(n * 1000, uuid(n))), Ok(()));
        }
        assert_eq!(table.insert(entry(7_000_000, uuid(3))), Err(Refused::SameIdentifier));
        for &n in numbers.iter().step_by(3) {
            assert!(table.remove(n * 1000).is_some() && table.remove(n * 1000).is_none());
        }
        for (at, &n) in numbers.iter().enumerate() {
            let there = at % 3 != 0;
            assert_eq!(table.at(n * 1000 + 99).map(|e| e.uuid), there.then(|| uuid(n)));
            assert!(table.at(n * 1000 + 100).is_none() && table.at(n * 1000 - 1).is_none());
            assert_eq!(table.of(uuid(n)).ok().map(|e| e.base), there.then_some(n * 1000));
        }
    }

    /// A child looks pools up although another thread of the parent had the table locked when it
    /// was made.
    #[test]
    fn a_child_finds_the_table_free() {
        watch_forks();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _held = TABLE.write().unwrap_or_else(PoisonError::into_inner);
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
            });
            for _ in 0..20 {
                // SAFETY: the child looks into the table, and ends without anything of the test.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let free = TABLE.try_read().is_ok();
                    // SAFETY: as above.
                    unsafe { libc::_exit(i32::from(!free)) };
                }
                let mut status = 0;
                // SAFETY: the child is this one's.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0, "the table is locked in a child");
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
