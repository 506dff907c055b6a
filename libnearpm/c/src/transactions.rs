//! Transactions on direct pools.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arguments::{TRANSACTION_HANDLE, Window, handle, not_null, number};
use super::error::{Failure, invalid, status};
use super::opened::Opened;
use super::pools::{nearpm_pool, pool};
use nearpm::Error;
use nearpm::direct::{DirectPool, Transaction};

/// An open transaction. It names the transaction and is no address.
pub struct nearpm_tx {
    _opaque: [u8; 0],
}

/// A range of bytes in a pool.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct nearpm_range {
    /// Its first byte.
    pub address: *const c_void,
    /// Bytes, not 0.
    pub bytes: u64,
}

/// Reads ranges.
///
/// # Safety
/// `ranges` is null, or points to `count` readable ranges.
pub(super) unsafe fn read_ranges(
    window: Window,
    ranges: *const nearpm_range,
    count: usize,
) -> Result<Vec<Range<u64>>, Failure> {
    if count == 0 || count > isize::MAX as usize / size_of::<nearpm_range>() || !ranges.is_aligned() {
        return Err(invalid("the ranges have a senseless number or address: nothing was done"));
    }
    not_null(ranges, "the array of ranges")?;
    // SAFETY: it is neither null nor unaligned, and the caller says that it has these elements.
    let ranges = unsafe { std::slice::from_raw_parts(ranges, count) };
    ranges.iter().map(|range| window.range(range.address, range.bytes)).collect()
}

/// A transaction of this thread.
struct Open {
    number: u64,
    pool: Arc<Opened<DirectPool>>,
    transaction: Transaction,
    /// Objects that it allocated and did not free.
    allocated: Vec<u64>,
    /// The root that it will set.
    root: Option<u64>,
}

impl Open {
    fn window(&self) -> Window {
        Window::of(&self.pool)
    }

    fn alloc(&mut self, bytes: u64) -> Result<*mut c_void, Failure> {
        let object = self.transaction.alloc(&self.pool, bytes)?;
        self.allocated.push(object.offset);
        self.window().pointer(object.offset)
    }

    fn free(&mut self, object: u64) -> Result<(), Failure> {
        refuse_root(&self.pool, self.root, object)?;
        self.transaction.free(&self.pool, object)?;
        self.allocated.retain(|&own| own != object);
        Ok(())
    }

    fn set_root(&mut self, object: u64) -> Result<(), Failure> {
        // An object of another transaction that is open would not be there if that is taken back.
        if object != 0 && !self.allocated.contains(&object) && !is_object(&self.pool, object) {
            return Err(Error::NotAllocated { offset: object }.into());
        }
        self.transaction.set_root(object);
        self.root = Some(object);
        Ok(())
    }
}

/// Whether an object is there for everybody.
pub(super) fn is_object(pool: &DirectPool, offset: u64) -> bool {
    offset != 0 && pool.next_object(offset - 1) == Some(offset)
}

/// A root that is freed would leave a pool that cannot be opened.
pub(super) fn refuse_root(pool: &DirectPool, new_root: Option<u64>, object: u64) -> Result<(), Failure> {
    if object != 0 && new_root.unwrap_or_else(|| pool.root()) == object {
        return Err(invalid("the object is the root: set another root first; nothing was freed"));
    }
    Ok(())
}

/// The open transactions of a thread. Those that it leaves open are taken back.
struct Mine(Vec<Open>);

impl Drop for Mine {
    fn drop(&mut self) {
        for open in self.0.drain(..) {
            // A failure poisons the pool, and the next call on it says so.
            let _ = open.transaction.abort(&open.pool);
        }
    }
}

thread_local! {
    static OPEN: RefCell<Mine> = const { RefCell::new(Mine(Vec::new())) };
    /// Numbers for transactions of this thread: the next one, and where they end.
    static NUMBERS: RefCell<Range<u64>> = const { RefCell::new(0..0) };
}

/// A number that no other transaction has or had.
fn new_number() -> u64 {
    /// Threads take numbers by the block, so that they do not share a counter.
    const BLOCK: u64 = 1 << 16;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NUMBERS.with_borrow_mut(|numbers| {
        numbers.next().unwrap_or_else(|| {
            let start = NEXT.fetch_add(BLOCK, Ordering::Relaxed);
            *numbers = start + 1..start + BLOCK;
            start
        })
    })
}

fn find(mine: &Mine, tx: *const nearpm_tx) -> Result<usize, Failure> {
    let found = number(TRANSACTION_HANDLE, tx).and_then(|n| mine.0.iter().rposition(|open| open.number == n));
    found.ok_or_else(|| {
        invalid("no open transaction of this thread: it has ended, or another thread began it; nothing was done")
    })
}

/// Works on an open transaction.
#[inline]
fn with<T>(tx: *const nearpm_tx, body: impl FnOnce(&mut Open) -> Result<T, Failure>) -> Result<T, Failure> {
    OPEN.with_borrow_mut(|mine| {
        let at = find(mine, tx)?;
        body(&mut mine.0[at])
    })
}

/// Takes a transaction out, to end it.
fn take(tx: *const nearpm_tx) -> Result<Open, Failure> {
    OPEN.with_borrow_mut(|mine| {
        let at = find(mine, tx)?;
        Ok(mine.0.swap_remove(at))
    })
}

/// Begins a transaction on a direct pool.
///
/// It belongs to the calling thread, and ends with `nearpm_tx_commit` or `nearpm_tx_abort`; one
/// that is open when its thread ends is taken back. A thread may have several, also on one pool;
/// two open transactions must not add the same bytes.
///
/// # Returns
/// `NEARPM_OK` with the transaction in `*tx`, or the code of the failure with `NULL` there.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, or a null pointer.
/// - `NEARPM_EACCES`: the pool was opened for reading.
/// - `NEARPM_EPOISONED`: an earlier failure.
///
/// # Safety
/// `tx` is `NULL` or writable.
///
/// # Example
/// ```c
/// uint64_t *counter;
/// if (nearpm_root(pool, sizeof *counter, (void **)&counter) != NEARPM_OK) return;
/// if (nearpm_tx_begin(pool, &tx) != NEARPM_OK) return;
/// if (nearpm_tx_add(tx, counter, sizeof *counter) == NEARPM_OK) {
///     *counter += 1;
///     nearpm_tx_commit(tx);
/// } else {
///     nearpm_tx_abort(tx);
/// }
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_tx_begin(pool: *mut nearpm_pool, tx: *mut *mut nearpm_tx) -> c_int {
    status(|| {
        not_null(tx, "the place for the transaction")?;
        // SAFETY: it is not null, and the caller says that it may be written.
        unsafe { tx.write_unaligned(std::ptr::null_mut()) };
        let pool = self::pool(pool)?;
        let transaction = pool.begin()?;
        let number = new_number();
        let open = Open { number, pool, transaction, allocated: Vec::new(), root: None };
        OPEN.with_borrow_mut(|mine| mine.0.push(open));
        // SAFETY: as above.
        unsafe { tx.write_unaligned(handle(TRANSACTION_HANDLE, number)) };
        Ok(())
    })
}

/// Tells that the program is about to change a range.
///
/// Must be called before the program stores there. An abort or a crash gives the bytes back as they
/// are now; a commit makes them durable as they are then. Bytes that were added before, or that
/// belong to an object that the transaction allocated, cost nothing.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: the range was not added, and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, or no bytes.
/// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
/// - `NEARPM_ENOSPC`: no room for the log.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_add(tx: *mut nearpm_tx, address: *const c_void, bytes: u64) -> c_int {
    status(|| {
        with(tx, |open| {
            let range = open.window().range(address, bytes)?;
            Ok(open.transaction.add(&open.pool, range)?)
        })
    })
}

/// Tells that the program is about to change several ranges.
///
/// As `nearpm_tx_add` of each of them, all or none, and in place with one fence for all.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: no range was added, and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, no ranges, or one without bytes.
/// - `NEARPM_ERANGE`: a range leaves the part of the pool that objects lie in.
/// - `NEARPM_ENOSPC`: no room for the log.
///
/// # Safety
/// `ranges` is `NULL` or points to `count` ranges.
///
/// # Example
/// ```c
/// uint64_t *words;
/// if (nearpm_root(pool, 4096, (void **)&words) != NEARPM_OK) return;
/// const struct nearpm_range ranges[] = {{&words[0], 8}, {&words[500], 8}};
/// int code = nearpm_tx_add_all(tx, ranges, 2);
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_tx_add_all(tx: *mut nearpm_tx, ranges: *const nearpm_range, count: usize) -> c_int {
    status(|| {
        with(tx, |open| {
            // SAFETY: as for this function.
            let ranges = unsafe { read_ranges(open.window(), ranges, count) }?;
            Ok(open.transaction.add_all(&open.pool, &ranges)?)
        })
    })
}

/// Makes a range durable with the commit, and keeps no old bytes.
///
/// For bytes that nobody reads if the transaction does not commit: after an abort or a crash they
/// may be old or new.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: the range was not added, and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, or no bytes.
/// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_add_new(tx: *mut nearpm_tx, address: *const c_void, bytes: u64) -> c_int {
    status(|| {
        with(tx, |open| {
            let range = open.window().range(address, bytes)?;
            Ok(open.transaction.add_without_snapshot(&open.pool, range)?)
        })
    })
}

/// Allocates an object, with the commit.
///
/// Its bytes are what the space held before; what they are at the commit becomes durable with it.
/// It need not be added. A size that is a multiple of 16, 64 or 4096 gives an address that is one.
///
/// # Returns
/// `NEARPM_OK` with the address in `*object`, or the code of the failure: nothing was allocated,
/// and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, no bytes, or a null pointer.
/// - `NEARPM_ENOSPC`: the pool has no room.
///
/// # Safety
/// `object` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_tx_alloc(tx: *mut nearpm_tx, bytes: u64, object: *mut *mut c_void) -> c_int {
    status(|| {
        not_null(object, "the place for the address")?;
        let address = with(tx, |open| open.alloc(bytes))?;
        // SAFETY: it is not null, and the caller says that it may be written.
        unsafe { object.write_unaligned(address) };
        Ok(())
    })
}

/// Allocates an object of zeros, with the commit.
///
/// Otherwise as `nearpm_tx_alloc`.
///
/// # Returns
/// `NEARPM_OK` with the address in `*object`, or the code of the failure: nothing was allocated,
/// and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, no bytes, or a null pointer.
/// - `NEARPM_ENOSPC`: the pool has no room.
///
/// # Safety
/// `object` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_tx_zalloc(tx: *mut nearpm_tx, bytes: u64, object: *mut *mut c_void) -> c_int {
    status(|| {
        not_null(object, "the place for the address")?;
        let address = with(tx, |open| open.alloc(bytes))?;
        // SAFETY: the object has these bytes, and nobody else knows it; `object` is as above.
        unsafe {
            address.cast::<u8>().write_bytes(0, bytes as usize);
            object.write_unaligned(address);
        }
        Ok(())
    })
}

/// Frees an object, with the commit.
///
/// Also one that the same transaction allocated. Until the commit its bytes stay as they are. The
/// root can only be freed after `nearpm_tx_set_root` of another one.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: nothing was freed, and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread, or the object is the root.
/// - `NEARPM_ERANGE`: the address is not that of an object (freed twice, or never allocated).
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_free(tx: *mut nearpm_tx, object: *mut c_void) -> c_int {
    status(|| with(tx, |open| open.free(open.window().offset(object)?)))
}

/// Makes an object the root, with the commit.
///
/// `NULL`: there is no root from then on. The former root stays allocated.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: the root stays as it was, and the transaction goes on.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread.
/// - `NEARPM_ERANGE`: the address is not that of an object that this transaction or a committed one
///   allocated.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_set_root(tx: *mut nearpm_tx, object: *mut c_void) -> c_int {
    status(|| {
        with(tx, |open| {
            let offset = if object.is_null() { 0 } else { open.window().offset(object)? };
            open.set_root(offset)
        })
    })
}

/// Commits a transaction: all of it becomes durable, and the transaction has ended.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: all of it was taken back, and the transaction has ended
/// as well.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread.
/// - `NEARPM_ENOSPC`: no room for the log.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused; whether the transaction survives
///   shows when the pool is opened again.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_commit(tx: *mut nearpm_tx) -> c_int {
    status(|| {
        let open = take(tx)?;
        Ok(open.transaction.commit(&open.pool)?)
    })
}

/// Takes a transaction back, and ends it.
///
/// Ranges get the bytes that they had when they were added, objects that were allocated are gone,
/// objects that were freed are there.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: the transaction has ended, and the pool must be opened
/// again.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open transaction of this thread.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_tx_abort(tx: *mut nearpm_tx) -> c_int {
    status(|| {
        let open = take(tx)?;
        Ok(open.transaction.abort(&open.pool)?)
    })
}
