//! Objects of direct pools, outside of transactions.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use super::arguments::{Window, not_null};
use super::error::{Failure, NearPM_code, call, status};
use super::pools::{nearpm_pool, pool};
use super::transactions::{nearpm_range, read_ranges, refuse_root};
use nearpm::direct::{DirectPool, Transaction};

/// Runs a transaction of the library's own.
fn atomically<T>(pool: &DirectPool, body: impl FnOnce(&mut Transaction) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut transaction = pool.begin()?;
    match body(&mut transaction) {
        Ok(done) => {
            transaction.commit(pool)?;
            Ok(done)
        }
        Err(failure) => {
            transaction.abort(pool)?;
            Err(failure)
        }
    }
}

/// Runs a transaction that gives an offset, and stores that where the program keeps it: in the pool
/// as part of the transaction, in ordinary memory when the commit has succeeded.
///
/// # Safety
/// `place` is aligned and may be written.
unsafe fn store_offset(
    pool: &DirectPool,
    place: *mut u64,
    body: impl FnOnce(&mut Transaction) -> Result<u64, Failure>,
) -> Result<(), Failure> {
    let within = Window::of(pool).find(place.cast());
    let offset = atomically(pool, |transaction| {
        let offset = body(transaction)?;
        if let Some(start) = within {
            transaction.add(pool, start..start + 8)?;
            // SAFETY: as for this function.
            unsafe { place.write_volatile(offset) };
        }
        Ok(offset)
    })?;
    if within.is_none() {
        // SAFETY: as above.
        unsafe { place.write_volatile(offset) };
    }
    Ok(())
}

/// Refuses a place that is null or not aligned.
fn check_place(place: *const u64) -> Result<(), Failure> {
    not_null(place, "the place for the offset")?;
    if place.is_aligned() {
        return Ok(());
    }
    let message = format!("the place for the offset, {place:p}, is not a multiple of 8: nothing was done");
    Err(Failure { code: NearPM_code::NEARPM_ERANGE, message })
}

/// Gives the address of an offset in a direct pool.
///
/// Addresses change from run to run, offsets do not: references in a pool are offsets. Offset 0 is
/// the null pointer. A program may as well add to `base` of `struct nearpm_info`.
///
/// # Returns
/// The address; `NULL` for 0 and after a failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool.
/// - `NEARPM_ERANGE`: the offset is not in the pool.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_direct(pool: *const nearpm_pool, offset: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || Window::of(&*self::pool(pool)?).pointer(offset))
}

/// Gives the offset of an address in a direct pool.
///
/// # Returns
/// The offset; 0 for `NULL` and after a failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool.
/// - `NEARPM_ERANGE`: the address does not point into the pool.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_offset(pool: *const nearpm_pool, address: *const c_void) -> u64 {
    call(0, || {
        let window = Window::of(&*self::pool(pool)?);
        if address.is_null() { Ok(0) } else { window.offset(address) }
    })
}

/// Gives the root of a direct pool: the object from which the program finds all others.
///
/// If there is none and `bytes` is not 0, an object of so many zeros is made and becomes the root,
/// atomically and durably. With `bytes` 0 the root is given as it is.
///
/// # Returns
/// `NEARPM_OK` with the address in `*root` (`NULL` if there is no root and `bytes` is 0), or the
/// code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, or a null pointer.
/// - `NEARPM_ERANGE`: the root has fewer bytes.
/// - `NEARPM_EACCES`: there is no root, and the pool was opened for reading.
/// - `NEARPM_ENOSPC`: the pool has no room.
///
/// # Safety
/// `root` is `NULL` or writable.
///
/// # Example
/// ```c
/// struct list { uint64_t first, length; } *list;
/// int code = nearpm_root(pool, sizeof *list, (void **)&list);
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_root(pool: *mut nearpm_pool, bytes: u64, root: *mut *mut c_void) -> c_int {
    /// Two threads must not both find that there is none.
    static MAKING: Mutex<()> = Mutex::new(());
    status(|| {
        not_null(root, "the place for the address")?;
        let pool = self::pool(pool)?;
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut offset = pool.root();
        if offset != 0 && bytes > 0 && pool.usable_bytes(offset)? < bytes {
            let message = format!("the root has {} bytes, not {bytes}", pool.usable_bytes(offset)?);
            return Err(Failure { code: NearPM_code::NEARPM_ERANGE, message });
        }
        if offset == 0 && bytes > 0 {
            offset = atomically(&pool, |transaction| {
                let object = new_object(&pool, transaction, bytes, std::ptr::null())?;
                transaction.set_root(object);
                Ok(object)
            })?;
        }
        // SAFETY: it is not null, and the caller says that it may be written.
        unsafe { root.write_unaligned(Window::of(&pool).pointer(offset)?) };
        Ok(())
    })
}

/// Allocates an object with contents, or with zeros where they are null.
fn new_object(
    pool: &DirectPool,
    transaction: &mut Transaction,
    bytes: u64,
    contents: *const c_void,
) -> Result<u64, Failure> {
    let object = transaction.alloc(pool, bytes)?.offset;
    let address = Window::of(pool).pointer(object)?.cast::<u8>();
    // SAFETY: the object has these bytes and nobody else knows it; the callers have the word of
    // theirs that `contents` has them, too.
    unsafe {
        if contents.is_null() {
            address.write_bytes(0, bytes as usize);
        } else {
            std::ptr::copy(contents.cast(), address, bytes as usize);
        }
    }
    Ok(object)
}

/// Allocates an object and stores its offset, atomically and durably.
///
/// `contents` becomes what the object holds; `NULL`: zeros. If `*place` lies in the pool, a crash
/// leaves both the object and its offset there, or neither, so that no object is lost; it may also
/// lie in ordinary memory. Inside of a transaction that has added or changed `*place` use
/// `nearpm_tx_alloc`: this call is a transaction of its own.
///
/// # Returns
/// `NEARPM_OK` with the object's offset in `*place`, or the code of the failure: nothing was
/// allocated or stored.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
/// - `NEARPM_ERANGE`: `place` is not a multiple of 8.
/// - `NEARPM_ENOSPC`: the pool has no room.
/// - `NEARPM_EACCES`: the pool was opened for reading.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
///
/// # Safety
/// `contents` is `NULL` or has `bytes` readable bytes, `place` is `NULL` or writable.
///
/// # Example
/// ```c
/// struct list { uint64_t first, length; } *list;
/// if (nearpm_root(pool, sizeof *list, (void **)&list) != NEARPM_OK) return;
/// int code = nearpm_alloc(pool, 6, "hello", &list->first);
/// if (code == NEARPM_OK) puts(nearpm_direct(pool, list->first));
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_alloc(
    pool: *mut nearpm_pool,
    bytes: u64,
    contents: *const c_void,
    place: *mut u64,
) -> c_int {
    status(|| {
        let pool = self::pool(pool)?;
        check_place(place)?;
        // SAFETY: `place` is as for this function, and aligned.
        unsafe { store_offset(&pool, place, |transaction| new_object(&pool, transaction, bytes, contents)) }
    })
}

/// Frees the object whose offset is in `*place`, and stores 0 there, atomically and durably.
///
/// If `*place` is 0 nothing is done. It may lie in the pool or in ordinary memory. The root can
/// only be freed after `nearpm_tx_set_root` of another one.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure: nothing was freed or stored.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or the object is the root.
/// - `NEARPM_ERANGE`: the offset is not that of an object (freed twice, or never allocated), or
///   `place` is not a multiple of 8.
/// - `NEARPM_EACCES`: the pool was opened for reading.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
///
/// # Safety
/// `place` is `NULL` or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_free(pool: *mut nearpm_pool, place: *mut u64) -> c_int {
    status(|| {
        let pool = self::pool(pool)?;
        check_place(place)?;
        // SAFETY: it is aligned and not null, and the caller says that it may be read.
        let object = unsafe { place.read_volatile() };
        if object == 0 {
            return Ok(());
        }
        refuse_root(&pool, None, object)?;
        // SAFETY: as above.
        unsafe {
            store_offset(&pool, place, |transaction| {
                transaction.free(&pool, object)?;
                Ok(0)
            })
        }
    })
}

/// Gives the bytes that an object has, at least those that were asked for.
///
/// # Returns
/// `NEARPM_OK` with the size in `*bytes`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, or a null pointer.
/// - `NEARPM_ERANGE`: the address is not that of an object.
///
/// # Safety
/// `bytes` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_usable_size(pool: *const nearpm_pool, object: *const c_void, bytes: *mut u64) -> c_int {
    status(|| {
        not_null(bytes, "the place for the size")?;
        let pool = self::pool(pool)?;
        let size = pool.usable_bytes(Window::of(&pool).offset(object)?)?;
        // SAFETY: it is not null, and the caller says that it may be written.
        unsafe { bytes.write_unaligned(size) };
        Ok(())
    })
}

/// Gives the object that follows another one, in the order of addresses.
///
/// `NULL` for `after`: the first. The root is among them; what open transactions have allocated is
/// not.
///
/// # Returns
/// `NEARPM_OK` with the address in `*object`, `NULL` behind the last one; or the code of the
/// failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, or a null pointer.
/// - `NEARPM_ERANGE`: `after` does not point into the pool.
///
/// # Safety
/// `object` is `NULL` or writable.
///
/// # Example
/// ```c
/// void *object = NULL;
/// while (nearpm_next(pool, object, &object) == NEARPM_OK && object)
///     printf("object at offset %llu\n", (unsigned long long)nearpm_offset(pool, object));
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_next(
    pool: *const nearpm_pool,
    after: *const c_void,
    object: *mut *mut c_void,
) -> c_int {
    status(|| {
        not_null(object, "the place for the address")?;
        let pool = self::pool(pool)?;
        let window = Window::of(&pool);
        let after = if after.is_null() { 0 } else { window.offset(after)? };
        let next = window.pointer(pool.next_object(after).unwrap_or(0))?;
        // SAFETY: it is not null, and the caller says that it may be written.
        unsafe { object.write_unaligned(next) };
        Ok(())
    })
}

/// Makes a range durable that the program has stored outside of transactions.
///
/// From a working copy a range of up to 64 KiB becomes durable all together or not at all. Bytes
/// that an open transaction has added become durable with its commit, without this call.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, or no bytes.
/// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
/// - `NEARPM_ENOSPC`: no room for the log.
/// - `NEARPM_EACCES`: the pool was opened for reading.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_persist(pool: *mut nearpm_pool, address: *const c_void, bytes: u64) -> c_int {
    status(|| {
        let pool = self::pool(pool)?;
        let range = Window::of(&pool).range(address, bytes)?;
        Ok(pool.persist(&[range])?)
    })
}

/// Makes several ranges durable that the program has stored outside of transactions.
///
/// As `nearpm_persist` of each of them, with one fence for all. From a working copy they become
/// durable all together or not at all, unless one of them has more than 64 KiB.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, no ranges, or one without bytes.
/// - `NEARPM_ERANGE`: a range leaves the part of the pool that objects lie in; none was made
///   durable.
/// - `NEARPM_ENOSPC`: no room for the log.
/// - `NEARPM_EACCES`: the pool was opened for reading.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
///
/// # Safety
/// `ranges` is `NULL` or points to `count` ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_persist_all(
    pool: *mut nearpm_pool,
    ranges: *const nearpm_range,
    count: usize,
) -> c_int {
    status(|| {
        let pool = self::pool(pool)?;
        // SAFETY: as for this function.
        let ranges = unsafe { read_ranges(Window::of(&pool), ranges, count) }?;
        Ok(pool.persist(&ranges)?)
    })
}

/// Waits until every asynchronous commit that has returned is durable.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool.
/// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_wait_durable(pool: *mut nearpm_pool) -> c_int {
    status(|| Ok(self::pool(pool)?.wait_durable()?))
}
