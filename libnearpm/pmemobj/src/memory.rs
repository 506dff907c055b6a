//! Persist, flush and drain; copies that are durable when they return.
//!
//! What is flushed is remembered until the drain: only there it becomes durable. Bytes of an object
//! whose constructor runs, and bytes that the thread's transaction has taken, become durable with
//! those: earlier they would survive what takes them back.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use nearpm::Error;
use nearpm::direct::{DirectPool, Mode};

use crate::abi::{Handle, memory_flag};
use crate::error::{fail, fail_below, fatal};
use crate::registry::{Pool, pool_in};
use crate::thread::{Pending, Thread, thread};

/// Ranges that are remembered before they become durable without a drain.
const MAX_PENDING: usize = 64;

/// The range of the pool that a program names; `None` if it becomes durable with a new object, or
/// lies in no object.
#[inline]
fn range_of(thread: &Thread, pool: &Pool, address: usize, bytes: usize) -> Option<Range<u64>> {
    if bytes == 0 || thread.constructs(address, bytes) {
        return None;
    }
    let (start, heap) = (pool.offset_of(address)?, pool.heap());
    let range = start.max(heap.start)..start.saturating_add(bytes as u64).min(heap.end);
    (range.start < range.end).then_some(range)
}

/// Hands on what the thread's transaction has not taken of a range.
#[inline]
fn each_part(thread: &Thread, pool: &Pool, range: Range<u64>, mut part: impl FnMut(Range<u64>)) {
    if thread.tx.pool_in_work().is_none_or(|open| !std::ptr::eq(open, pool)) {
        return part(range);
    }
    let mut parts = Vec::new();
    if thread.tx.uncovered(&range, &mut parts) {
        parts.into_iter().for_each(part);
    } else {
        part(range);
    }
}

/// Bytes that become durable at once where there is little memory.
const PIECE: u64 = 4096;

/// Makes ranges durable little by little, which takes little memory: only the whole of what a call
/// names would be more than PMDK promises.
#[cold]
fn persist_in_pieces(pool: &Pool, ranges: &[Range<u64>]) {
    for range in ranges {
        for start in range.clone().step_by(PIECE as usize) {
            let piece = start..range.end.min(start + PIECE);
            check(pool.direct.persist_words(std::slice::from_ref(&piece)));
        }
    }
}

/// Makes ranges durable, as far as they lie in objects: nobody finds other bytes again, and they
/// may belong to the log.
fn persist(pool: &Pool, ranges: &[Range<u64>]) {
    match pool.direct.persist_words(ranges) {
        Err(Error::NotAllocated { .. }) => {
            let parts = ranges.iter().flat_map(|range| pool.direct.parts_with_objects(range));
            parts.for_each(|part| check(pool.direct.persist_words(&[part])));
        }
        Err(Error::NoMemory { .. }) => persist_in_pieces(pool, ranges),
        done => check(done),
    }
}

fn persist_one(pool: &Pool, range: Range<u64>) {
    persist(pool, &[range]);
}

/// As [`persist`] of a range that a copy or a fill has just written.
fn persist_written(pool: &Pool, range: Range<u64>) {
    match pool.direct.persist_written(range.clone()) {
        Err(Error::NotAllocated { .. } | Error::NoMemory { .. }) => persist(pool, &[range]),
        done => check(done),
    }
}

/// A persist cannot report an error: where the medium fails the process ends, as with PMDK, because
/// nothing can be promised.
fn check(done: Result<(), Error>) {
    match done {
        // The rest was freed meanwhile, by another thread.
        Ok(()) | Err(Error::NotAllocated { .. }) => {}
        // Nothing became durable, and the pool is sound: errno says so, as there is no result.
        Err(error @ (Error::Forked | Error::NoMemory { .. })) => {
            fail_below(&error);
        }
        Err(error) => fatal(format_args!("bytes cannot be made durable: {error}")),
    }
}

fn remember(thread: &Thread, pool: &Pool, range: Range<u64>) {
    let mut pending = thread.pending.borrow_mut();
    if let Some(last) = pending.last_mut()
        && std::ptr::eq(last.pool, pool)
        && last.range.end == range.start
    {
        last.range.end = range.end;
        return;
    }
    pending.push(Pending { pool, range });
    let full = pending.len() >= MAX_PENDING;
    drop(pending);
    if full {
        drain(thread, pool);
    }
}

fn drain(thread: &Thread, pool: &Pool) {
    let mut pending = thread.pending.borrow_mut();
    if pending.is_empty() {
        return;
    }
    let mut ranges = [const { 0..0 }; MAX_PENDING];
    let mut count = 0;
    pending.retain(|entry| {
        let ours = std::ptr::eq(entry.pool, pool) && count < MAX_PENDING;
        if ours {
            ranges[count] = entry.range.clone();
            count += 1;
        }
        !ours
    });
    drop(pending);
    if count > 0 {
        persist(pool, &ranges[..count]);
    }
}

/// A pool is closed: nothing of it is pending. Closing keeps what was stored.
pub fn forget_pending(pool: &Pool) {
    thread().pending.borrow_mut().retain(|entry| !std::ptr::eq(entry.pool, pool));
}

/// Makes a range durable now; `persist` does it.
#[inline]
fn persist_address(handle: Handle, address: usize, bytes: usize, persist: impl Fn(&Pool, Range<u64>)) {
    let thread = thread();
    let Ok(pool) = pool_in(thread, handle) else { return };
    if !thread.pending.borrow().is_empty() {
        drain(thread, pool);
    }
    if let Some(range) = range_of(thread, pool, address, bytes) {
        each_part(thread, pool, range, |part| persist(pool, part));
    }
}

fn flush_address(handle: Handle, address: usize, bytes: usize) {
    let thread = thread();
    let Ok(pool) = pool_in(thread, handle) else { return };
    if let Some(range) = range_of(thread, pool, address, bytes) {
        each_part(thread, pool, range, |part| remember(thread, pool, part));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pmemobj_persist(handle: Handle, address: *const c_void, bytes: usize) {
    persist_address(handle, address as usize, bytes, persist_one);
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_flush(handle: Handle, address: *const c_void, bytes: usize) {
    flush_address(handle, address as usize, bytes);
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_drain(handle: Handle) {
    let thread = thread();
    if let Ok(pool) = pool_in(thread, handle) {
        drain(thread, pool);
        check(pool.wait_durable());
    }
}

fn check_flags(flags: u32) -> c_int {
    if flags & !memory_flag::RELAXED == 0 {
        return 0;
    }
    fail(libc::EINVAL, format_args!("invalid flags 0x{flags:x}"));
    -1
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_xpersist(handle: Handle, address: *const c_void, bytes: usize, flags: u32) -> c_int {
    let checked = check_flags(flags);
    if checked == 0 {
        persist_address(handle, address as usize, bytes, persist_one);
    }
    checked
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_xflush(handle: Handle, address: *const c_void, bytes: usize, flags: u32) -> c_int {
    let checked = check_flags(flags);
    if checked == 0 {
        flush_address(handle, address as usize, bytes);
    }
    checked
}

/// Whether a call that stores bytes has a pool, and an address; notes an error where not.
fn may_store(handle: Handle, to: *mut c_void, bytes: usize) -> bool {
    if pool_in(thread(), handle).is_err() {
        return false;
    }
    if to.is_null() && bytes != 0 {
        fail(libc::EINVAL, format_args!("no address was given (NULL): nothing was stored"));
        return false;
    }
    true
}

/// From so many bytes on a copy that is durable when it returns goes around the processor's cache,
/// as PMDK's does: nothing is read first to be overwritten, and no line has to be written back.
const AROUND_CACHE: usize = 512;

/// Copies bytes that lie beside those that are written, and makes them durable on the way; see
/// [`DirectPool::copy_durable`](nearpm::direct::DirectPool::copy_durable). `false`: it is the
/// caller's to do so, one after the other.
fn copy_durable(handle: Handle, to: *mut c_void, from: *const c_void, bytes: usize, flags: u32) -> bool {
    let (start, source) = (to as usize, from as usize);
    let is_apart = source.saturating_add(bytes) <= start || start.saturating_add(bytes) <= source;
    if !is_apart {
        return false;
    }
    let (to, from) = (to.cast::<u8>(), from.cast::<u8>());
    let piece = |part: Range<usize>, store: bool| {
        // SAFETY: the program names as many bytes on both sides, which do not overlap, and nobody
        // changes the source of a copy while it runs.
        unsafe {
            if store {
                to.add(part.start).copy_from_nonoverlapping(from.add(part.start), part.len());
            }
            std::slice::from_raw_parts(from.add(part.start), part.len())
        }
    };
    store_durable(handle, start, bytes, flags, |_| true, piece)
}

/// As [`copy_durable`], of one byte over and over. In place alone: a working copy has gained
/// nothing by it.
fn fill_durable(handle: Handle, to: *mut c_void, byte: u8, bytes: usize, flags: u32) -> bool {
    /// As long as any piece.
    const FILLING: usize = DirectPool::PIECE_BYTES as usize;
    /// Shorter ones are filled sooner in the cache: no byte has to come from elsewhere.
    const LONG: usize = 2048;
    if bytes < LONG {
        return false;
    }
    let filling = [byte; FILLING];
    let to = to.cast::<u8>();
    let piece = |part: Range<usize>, store: bool| {
        if store {
            // SAFETY: the program names as many bytes.
            unsafe { to.add(part.start).write_bytes(byte, part.len()) };
        }
        &filling[..part.len()]
    };
    store_durable(handle, to as usize, bytes, flags, |pool| pool.direct.mode() == Mode::InPlace, piece)
}

/// Stores pieces, durable when this returns, where that may be done in one pass.
fn store_durable<'d>(
    handle: Handle,
    start: usize,
    bytes: usize,
    flags: u32,
    is_for: impl FnOnce(&Pool) -> bool,
    piece: impl FnMut(Range<usize>, bool) -> &'d [u8],
) -> bool {
    if bytes < AROUND_CACHE || flags & (memory_flag::NO_FLUSH | memory_flag::NO_DRAIN | memory_flag::CACHED) != 0 {
        return false;
    }
    let thread = thread();
    let Ok(pool) = pool_in(thread, handle) else { return false };
    if !is_for(pool) {
        return false;
    }
    let range = range_of(thread, pool, start, bytes);
    let Some(range) = range.filter(|range| range.end - range.start == bytes as u64) else { return false };
    if thread.tx.pool_in_work().is_some() {
        return false;
    }
    if !thread.pending.borrow().is_empty() {
        drain(thread, pool);
    }
    // What is refused is refused once more, and told, by what the caller does then.
    pool.direct.copy_durable(range, piece).unwrap_or(false)
}

/// After a copy: durable, flushed or neither, as its flags say.
fn finish(handle: Handle, to: *mut c_void, bytes: usize, flags: u32) -> *mut c_void {
    if flags & memory_flag::NO_FLUSH != 0 {
        return to;
    }
    if flags & memory_flag::NO_DRAIN != 0 {
        flush_address(handle, to as usize, bytes);
    } else {
        persist_address(handle, to as usize, bytes, persist_written);
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_memcpy(
    handle: Handle,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    flags: u32,
) -> *mut c_void {
    if !may_store(handle, to, bytes) || from.is_null() && bytes != 0 {
        return to;
    }
    if copy_durable(handle, to, from, bytes, flags) {
        return to;
    }
    // SAFETY: the program names as many bytes on both sides; PMDK's copies may overlap.
    unsafe { to.cast::<u8>().copy_from(from.cast(), bytes) };
    finish(handle, to, bytes, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_memmove(
    handle: Handle,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    flags: u32,
) -> *mut c_void {
    // SAFETY: as for this function.
    unsafe { pmemobj_memcpy(handle, to, from, bytes, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_memset(
    handle: Handle,
    to: *mut c_void,
    byte: c_int,
    bytes: usize,
    flags: u32,
) -> *mut c_void {
    if !may_store(handle, to, bytes) {
        return to;
    }
    if fill_durable(handle, to, byte as u8, bytes, flags) {
        return to;
    }
    // SAFETY: the program names as many bytes.
    unsafe { to.cast::<u8>().write_bytes(byte as u8, bytes) };
    finish(handle, to, bytes, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_memcpy_persist(
    handle: Handle,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: as for this function.
    unsafe { pmemobj_memcpy(handle, to, from, bytes, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_memset_persist(handle: Handle, to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void {
    // SAFETY: as for this function.
    unsafe { pmemobj_memset(handle, to, byte, bytes, 0) }
}
