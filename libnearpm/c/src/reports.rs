//! What a direct pool is, has done, and found at open.

use std::ffi::{c_int, c_void};

use super::error::{Failure, invalid, status};
use super::pools::{nearpm_mode, nearpm_pool, pool};
use nearpm::Recovery;
use nearpm::direct::{DirectPool, Mode};
use nearpm::{HeapState, Statistics};

/// What an open direct pool is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct nearpm_info {
    /// Where the program sees offset 0.
    pub base: *mut c_void,
    /// Bytes of the pool.
    pub bytes: u64,
    /// First offset that an object may have.
    pub heap_start: u64,
    /// Offset behind the last object.
    pub heap_end: u64,
    /// Bytes that are free, in pieces.
    pub free_bytes: u64,
    /// Identifier of the pool.
    pub id: u32,
    /// A value of `enum nearpm_mode`.
    pub mode: u32,
}

/// What a direct pool has done since it was opened.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct nearpm_statistics {
    /// Transactions that were committed, read-only ones and the library's own for `nearpm_alloc`
    /// and the like included.
    pub transactions: u64,
    /// Transactions that were taken back.
    pub aborts: u64,
    /// Transactions whose commit was durable when it returned.
    pub acknowledged: u64,
    /// Records in the log.
    pub log_entries: u64,
    /// Bytes of them: heads, data and what fills up lines.
    pub log_bytes: u64,
    /// Fences and synchronisations.
    pub fences: u64,
    /// Lines of 64 bytes whose write-back was asked for.
    pub lines_written_back: u64,
    /// Commands that were posted to the card; 0 where the processor makes all copies.
    pub commands: u64,
}

/// The allocator of a direct pool. What open transactions have allocated counts as objects.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct nearpm_heap {
    /// Objects.
    pub objects: u64,
    /// Bytes of all objects, as large as their places are.
    pub used_bytes: u64,
    /// Free bytes: whole chunks, and places in chunks of small objects.
    pub free_bytes: u64,
    /// The largest object that fits.
    pub largest_free_bytes: u64,
    /// Bytes that the log has taken.
    pub log_bytes: u64,
}

/// What the recovery at open found and did.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct nearpm_recovery {
    /// Log records that were rolled back.
    pub undone: u64,
    /// Log records that were applied again.
    pub redone: u64,
    /// Bytes that both wrote.
    pub bytes: u64,
    /// Log records that were not whole, or belong to a transaction that is not.
    pub torn: u64,
}

impl nearpm_info {
    fn of(pool: &DirectPool) -> nearpm_info {
        let heap = pool.heap();
        let mode = match pool.mode() {
            Mode::InPlace => nearpm_mode::NEARPM_IN_PLACE,
            _ => nearpm_mode::NEARPM_WORKING_COPY,
        };
        nearpm_info {
            base: pool.base().cast(),
            bytes: pool.bytes(),
            heap_start: heap.start,
            heap_end: heap.end,
            free_bytes: pool.free_bytes(),
            id: pool.id(),
            mode: mode as u32,
        }
    }
}

impl From<Statistics> for nearpm_statistics {
    fn from(statistics: Statistics) -> nearpm_statistics {
        // What else cards did is not told here.
        let Statistics {
            transactions,
            aborts,
            acknowledged,
            log_entries,
            bytes_logged,
            fences,
            lines_written_back,
            commands,
            ..
        } = statistics;
        nearpm_statistics {
            transactions,
            aborts,
            acknowledged,
            log_entries,
            log_bytes: bytes_logged,
            fences,
            lines_written_back,
            commands,
        }
    }
}

impl From<HeapState> for nearpm_heap {
    fn from(state: HeapState) -> nearpm_heap {
        nearpm_heap {
            objects: state.objects,
            used_bytes: state.used_bytes,
            free_bytes: state.free_bytes,
            largest_free_bytes: state.largest_free_bytes,
            log_bytes: state.log_bytes,
        }
    }
}

impl From<Recovery> for nearpm_recovery {
    fn from(recovery: Recovery) -> nearpm_recovery {
        let Recovery { undone, redone, bytes, torn, .. } = recovery;
        nearpm_recovery { undone, redone, bytes, torn }
    }
}

/// Gives a report to a program that may know fewer or more fields.
///
/// # Safety
/// `to` is null, or has `size` writable bytes.
pub(super) unsafe fn give<T: Copy>(
    to: *mut T,
    size: usize,
    report: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if to.is_null() || size == 0 {
        return Err(invalid("the place for the report is a null pointer, or has no bytes"));
    }
    let report = report()?;
    let known = size.min(size_of::<T>());
    // SAFETY: the caller says that there are `size` bytes; the report has `known` ones and is
    // another place.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const report).cast::<u8>(), to.cast::<u8>(), known);
        to.cast::<u8>().add(known).write_bytes(0, size - known);
    }
    Ok(())
}

/// Says what an open direct pool is.
///
/// `size` is `sizeof *info`: fields that the library does not know become 0.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
///
/// # Safety
/// `info` is `NULL` or has `size` writable bytes.
///
/// # Example
/// ```c
/// struct nearpm_info info;
/// if (nearpm_get_info(pool, &info, sizeof info) == NEARPM_OK)
///     printf("%llu of %llu bytes are free\n", (unsigned long long)info.free_bytes, (unsigned long long)info.bytes);
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_get_info(pool: *const nearpm_pool, info: *mut nearpm_info, size: usize) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe { give(info, size, || Ok(nearpm_info::of(&*self::pool(pool)?))) })
}

/// Says what a direct pool has done since it was opened.
///
/// `size` is `sizeof *statistics`: fields that the library does not know become 0. Counting costs
/// nothing and cannot be turned off.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
///
/// # Safety
/// `statistics` is `NULL` or has `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_get_statistics(
    pool: *const nearpm_pool,
    statistics: *mut nearpm_statistics,
    size: usize,
) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe { give(statistics, size, || Ok(self::pool(pool)?.statistics().into())) })
}

/// Says how full a direct pool is, and in which pieces.
///
/// `size` is `sizeof *heap`: fields that the library does not know become 0. The whole index of the
/// pool is looked through, which takes time in large pools.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
///
/// # Safety
/// `heap` is `NULL` or has `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_get_heap(pool: *const nearpm_pool, heap: *mut nearpm_heap, size: usize) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe { give(heap, size, || Ok(self::pool(pool)?.heap_state().into())) })
}

/// Says what the recovery found and did when a direct pool was opened.
///
/// `size` is `sizeof *recovery`: fields that the library does not know become 0. All zeros: the
/// pool had been closed in order, or nothing was under way.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
///
/// # Safety
/// `recovery` is `NULL` or has `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_get_recovery(
    pool: *const nearpm_pool,
    recovery: *mut nearpm_recovery,
    size: usize,
) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe { give(recovery, size, || Ok(self::pool(pool)?.recovery().into())) })
}
