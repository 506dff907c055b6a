//! What a transaction does: ranges, objects, publications.

use std::ffi::{c_char, c_int, c_void};

use super::{check_flags, failure, number_or_abort, oid_or_abort};
use crate::abi::{MAX_ALLOC, Oid, flag};
use crate::action::{self, Action, Kind};
use crate::error::{fail, no_memory};
use crate::object::{self, Space};
use crate::registry::Pool;
use crate::text::{string_bytes, wide_string_bytes};
use crate::thread::{Thread, thread};
use crate::transaction::{Failure, Outcome};

const ADD_FLAGS: u64 = flag::NO_FLUSH | flag::NO_SNAPSHOT | flag::ASSUME_INITIALIZED | flag::NO_ABORT;
const ALLOC_FLAGS: u64 = flag::ZERO | flag::NO_FLUSH | flag::ARENA | flag::CLASS | flag::NO_ABORT;

#[cold]
fn invalid<T>(flags: u64, text: std::fmt::Arguments<'_>) -> Outcome<T> {
    Err(Failure { errno: fail(libc::EINVAL, text), flags })
}

#[inline]
fn add(thread: &Thread, pool: &Pool, offset: u64, bytes: u64, flags: u64) -> Outcome<()> {
    let all = thread.tx.flags(flags);
    check_flags(flags, ADD_FLAGS, all)?;
    if bytes > MAX_ALLOC {
        return invalid(all, format_args!("snapshot size too large"));
    }
    let (end, heap) = (offset.checked_add(bytes), pool.heap());
    if offset < heap.start || end.is_none_or(|end| end > heap.end) {
        return invalid(all, format_args!("object outside of heap"));
    }
    if bytes == 0 {
        return Ok(());
    }
    let range = offset..offset + bytes;
    let added = thread.tx.with(pool, |transaction| {
        if flags & flag::NO_SNAPSHOT == 0 {
            transaction.add(&pool.direct, range)
        } else {
            transaction.add_without_snapshot(&pool.direct, range)
        }
    });
    added.map_err(failure(all))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_add_range(oid: Oid, offset: u64, bytes: usize) -> c_int {
    pmemobj_tx_xadd_range(oid, offset, bytes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xadd_range(oid: Oid, offset: u64, bytes: usize, flags: u64) -> c_int {
    let thread = thread();
    number_or_abort(thread.tx.working("pmemobj_tx_add_range").and_then(|pool| {
        if oid.pool == pool.uuid {
            add(thread, pool, oid.off.saturating_add(offset), bytes as u64, flags)
        } else {
            invalid(thread.tx.flags(flags), format_args!("invalid pool uuid"))
        }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_add_range_direct(address: *const c_void, bytes: usize) -> c_int {
    pmemobj_tx_xadd_range_direct(address, bytes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xadd_range_direct(address: *const c_void, bytes: usize, flags: u64) -> c_int {
    let thread = thread();
    let added = |pool: &'static Pool| match pool.offset_of(address as usize) {
        Some(offset) => add(thread, pool, offset, bytes as u64, flags),
        None => invalid(thread.tx.flags(flags), format_args!("object outside of pool")),
    };
    number_or_abort(thread.tx.working("pmemobj_tx_add_range_direct").and_then(added))
}

/// Bytes that a new object begins with.
#[derive(Clone, Copy)]
struct Initial {
    from: *const c_void,
    bytes: usize,
}

const NOTHING: Initial = Initial { from: std::ptr::null(), bytes: 0 };

/// Allocates; `all` are the flags with what the failure behaviour asks for.
#[inline]
fn take(thread: &Thread, pool: &Pool, bytes: u64, type_num: u64, all: u64, initial: Initial) -> Outcome<Oid> {
    let space = object::reserve(pool, bytes, type_num, all).map_err(failure(all))?;
    if initial.bytes != 0 {
        // SAFETY: the new object has room for them, and the program gave as many.
        unsafe { space.address(pool).cast::<u8>().copy_from_nonoverlapping(initial.from.cast(), initial.bytes) };
    }
    adopt(thread, pool, &space).inspect_err(|_| pool.direct.cancel(space.reservation())).map_err(failure(all))?;
    Ok(space.oid(pool))
}

#[inline]
fn adopt(thread: &Thread, pool: &Pool, space: &Space) -> Result<(), crate::error::Errno> {
    thread.tx.with(pool, |transaction| {
        transaction.make_room(&pool.direct, space.reservation(), true)?;
        transaction.publish(space.reservation(), true);
        Ok(())
    })?;
    thread.tx.grow(space.counted());
    Ok(())
}

#[inline]
fn allocate(name: &str, bytes: usize, type_num: u64, flags: u64) -> Oid {
    let thread = thread();
    let all = thread.tx.flags(flags);
    oid_or_abort(thread.tx.working(name).and_then(|pool| {
        if bytes == 0 {
            return invalid(all, format_args!("allocation with size 0"));
        }
        check_flags(flags, ALLOC_FLAGS, all)?;
        take(thread, pool, bytes as u64, type_num, all, NOTHING)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_alloc(bytes: usize, type_num: u64) -> Oid {
    allocate("pmemobj_tx_alloc", bytes, type_num, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_zalloc(bytes: usize, type_num: u64) -> Oid {
    allocate("pmemobj_tx_zalloc", bytes, type_num, flag::ZERO)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xalloc(bytes: usize, type_num: u64, flags: u64) -> Oid {
    allocate("pmemobj_tx_xalloc", bytes, type_num, flags)
}

fn reallocate(oid: Oid, bytes: usize, type_num: u64, zero: u64) -> Oid {
    let thread = thread();
    let all = thread.tx.flags(zero);
    let outcome = |pool: &'static Pool| match (oid.is_null(), bytes) {
        (true, 0) => invalid(all, format_args!("allocation with size 0")),
        (true, _) => take(thread, pool, bytes as u64, type_num, all, NOTHING),
        (false, 0) => free(thread, pool, oid, all).map(|()| Oid::NULL),
        (false, _) => {
            let bytes = bytes as u64;
            let old = object::of_oid(pool, oid).map_err(failure(all))?;
            let initial = Initial { from: old.address(pool), bytes: old.usable.min(bytes) as usize };
            let new = take(thread, pool, bytes, type_num, all, initial)?;
            free(thread, pool, oid, all)?;
            Ok(new)
        }
    };
    oid_or_abort(thread.tx.working("pmemobj_tx_realloc").and_then(outcome))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_realloc(oid: Oid, bytes: usize, type_num: u64) -> Oid {
    reallocate(oid, bytes, type_num, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_zrealloc(oid: Oid, bytes: usize, type_num: u64) -> Oid {
    reallocate(oid, bytes, type_num, flag::ZERO)
}

/// A copy of a string of so many bytes, the closing zero included.
fn duplicate(text: *const c_void, bytes: impl FnOnce() -> usize, type_num: u64, flags: u64) -> Oid {
    let thread = thread();
    let all = thread.tx.flags(flags);
    let outcome = thread.tx.working("pmemobj_tx_strdup").and_then(|pool| {
        check_flags(flags, ALLOC_FLAGS, all)?;
        if text.is_null() {
            return invalid(all, format_args!("cannot duplicate NULL string"));
        }
        let initial = Initial { from: text, bytes: bytes() };
        take(thread, pool, initial.bytes as u64, type_num, all, initial)
    });
    oid_or_abort(outcome)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_strdup(text: *const c_char, type_num: u64) -> Oid {
    pmemobj_tx_xstrdup(text, type_num, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xstrdup(text: *const c_char, type_num: u64, flags: u64) -> Oid {
    // SAFETY: the program gives a string.
    duplicate(text.cast(), || unsafe { string_bytes(text) }, type_num, flags)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_wcsdup(text: *const i32, type_num: u64) -> Oid {
    pmemobj_tx_xwcsdup(text, type_num, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xwcsdup(text: *const i32, type_num: u64, flags: u64) -> Oid {
    // SAFETY: the program gives a string.
    duplicate(text.cast(), || unsafe { wide_string_bytes(text) }, type_num, flags)
}

fn free(thread: &Thread, pool: &Pool, oid: Oid, all: u64) -> Outcome<()> {
    if oid.is_null() {
        return Ok(());
    }
    let space = object::of_oid(pool, oid).map_err(failure(all))?;
    thread.tx.with(pool, |transaction| transaction.free(&pool.direct, space.start())).map_err(failure(all))?;
    thread.tx.grow(-space.counted());
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_free(oid: Oid) -> c_int {
    pmemobj_tx_xfree(oid, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xfree(oid: Oid, flags: u64) -> c_int {
    let thread = thread();
    let all = thread.tx.flags(flags);
    number_or_abort(thread.tx.working("pmemobj_tx_free").and_then(|pool| {
        check_flags(flags, flag::NO_ABORT, all)?;
        free(thread, pool, oid, all)
    }))
}

fn publish(thread: &Thread, pool: &Pool, action: &Action, all: u64) -> Outcome<()> {
    match action.kind() {
        Kind::Reserve => {
            let space = action::reserved(pool, action).map_err(failure(all))?;
            let front = space.front();
            // The program has made the data durable; the header is the library's.
            let published = thread.tx.with(pool, |transaction| {
                transaction.make_room(&pool.direct, space.reservation(), false)?;
                transaction.add_without_snapshot(&pool.direct, front)?;
                transaction.publish(space.reservation(), false);
                Ok(())
            });
            published.map_err(failure(all))?;
            thread.tx.grow(space.counted());
            Ok(())
        }
        Kind::Free => free(thread, pool, pool.oid(action.offset()), all),
        Kind::SetValue => {
            let mut words = thread.tx.words.borrow_mut();
            words.try_reserve(1).map_err(|_| Failure { errno: no_memory(), flags: all })?;
            words.push((action.offset(), action.value()));
            Ok(())
        }
        Kind::SetVolatile => {
            let mut words = thread.tx.volatile.borrow_mut();
            words.try_reserve(1).map_err(|_| Failure { errno: no_memory(), flags: all })?;
            words.push(action.volatile_word());
            Ok(())
        }
        Kind::Unknown => invalid(all, format_args!("an action is none that this library made")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_publish(actions: *const Action, count: usize) -> c_int {
    pmemobj_tx_xpublish(actions, count, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xpublish(actions: *const Action, count: usize, flags: u64) -> c_int {
    let thread = thread();
    let all = thread.tx.flags(flags);
    number_or_abort(thread.tx.working("pmemobj_tx_publish").and_then(|pool| {
        check_flags(flags, flag::NO_ABORT, all)?;
        // SAFETY: the program gives as many actions.
        let actions = unsafe { action::slice(actions, count) }.map_err(failure(all))?;
        actions.iter().try_for_each(|action| publish(thread, pool, action, all))
    }))
}
