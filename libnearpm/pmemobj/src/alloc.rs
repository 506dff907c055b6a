//! Allocation outside of transactions: each call is one atomic change.

use std::ffi::{c_char, c_int, c_void};

use nearpm::direct::Transaction;

use crate::abi::{Constructor, Handle, MAX_ALLOC, Oid, flag};
use crate::error::{Errno, fail, fail_below, no_memory};
use crate::object::{self, Space};
use crate::registry::{Pool, pool_of, pool_of_oid};
use crate::reserve;
use crate::text::{string_bytes, wide_string_bytes};
use crate::thread::{Constructing, thread};
use crate::words::{VolatileWord, Words, store_volatile};

/// An atomic change: words that get values, objects that come and go. The first error refuses all
/// of it.
pub struct Change<'a> {
    pool: &'a Pool,
    transaction: Transaction,
    words: Words,
    refused: Option<Errno>,
    /// Bytes that objects get more by it.
    growth: i64,
}

impl<'a> Change<'a> {
    /// Begins a change.
    pub fn begin(pool: &'a Pool) -> Result<Change<'a>, Errno> {
        if reserve::is_full() { Change::begin_small(pool) } else { Err(no_memory()) }
    }

    /// As [`Change::begin`], for one that needs little: it is served also while the system has no
    /// memory, so that objects can be freed.
    fn begin_small(pool: &'a Pool) -> Result<Change<'a>, Errno> {
        let transaction = pool.direct.begin().map_err(|error| fail_below(&error))?;
        Ok(Change { pool, transaction, words: thread().words.take(), refused: None, growth: 0 })
    }

    /// Refuses the change.
    pub fn refuse(&mut self, errno: Errno) {
        self.refused.get_or_insert(errno);
    }

    /// Reserved space becomes an object, with its bytes.
    pub fn publish(&mut self, space: &Space) {
        self.adopt(space, true);
    }

    /// Reserved space becomes an object whose bytes the program makes durable itself.
    pub fn publish_written(&mut self, space: &Space) {
        if let Err(error) = self.transaction.add_without_snapshot(&self.pool.direct, space.front()) {
            self.refuse(fail_below(&error));
        }
        self.adopt(space, false);
    }

    fn adopt(&mut self, space: &Space, contents: bool) {
        match self.transaction.make_room(&self.pool.direct, space.reservation(), contents) {
            Ok(()) => {
                self.transaction.publish(space.reservation(), contents);
                self.growth += space.counted();
            }
            Err(error) => self.refuse_space(space, fail_below(&error)),
        }
    }

    /// Space becomes nothing, because the change is refused.
    fn refuse_space(&mut self, space: &Space, errno: Errno) {
        self.pool.direct.cancel(space.reservation());
        self.refuse(errno);
    }

    /// Frees the object whose data is at an offset; 0 for none.
    pub fn free(&mut self, data: u64) {
        if data != 0
            && let Err(errno) = self.free_object(data)
        {
            self.refuse(errno);
        }
    }

    fn free_object(&mut self, data: u64) -> Result<(), Errno> {
        let space = object::find(self.pool, data)?;
        self.transaction.free(&self.pool.direct, space.start()).map_err(|error| fail_below(&error))?;
        self.growth -= space.counted();
        Ok(())
    }

    /// A word of the pool gets a value.
    pub fn store(&mut self, offset: u64, value: u64) {
        if self.words.values.try_reserve(1).and_then(|()| self.words.ranges.try_reserve(1)).is_err() {
            return self.refuse(no_memory());
        }
        self.words.values.push((offset, value));
        match self.words.ranges.last_mut() {
            Some(last) if last.end == offset => last.end += 8,
            _ => self.words.ranges.push(offset..offset + 8),
        }
    }

    /// A word of ordinary memory gets a value when the change is made.
    pub fn store_volatile(&mut self, word: VolatileWord) {
        if self.words.volatile.try_reserve(1).is_err() {
            return self.refuse(no_memory());
        }
        self.words.volatile.push(word);
    }

    /// An identifier gets a value; only one that lies in the pool is part of the change.
    pub fn store_oid(&mut self, at: *mut Oid, value: Oid) {
        if let Some(offset) = self.pool.offset_of(at as usize) {
            self.store(offset, value.pool);
            self.store(offset + 8, value.off);
        }
    }

    /// Makes the change, or nothing of it.
    pub fn commit(mut self) -> Result<(), Errno> {
        if self.refused.is_none() {
            self.refused =
                self.transaction.add_all(&self.pool.direct, &self.words.ranges).err().map(|e| fail_below(&e));
        }
        let done = match self.refused {
            Some(errno) => {
                self.transaction.abort(&self.pool.direct).map_err(|error| fail_below(&error)).and(Err(errno))
            }
            None => {
                for &(offset, value) in &self.words.values {
                    // SAFETY: the word lies in the heap, as the transaction has checked.
                    unsafe { self.pool.at::<u64>(offset).write_unaligned(value) };
                }
                let committed = self.transaction.commit(&self.pool.direct);
                committed.and_then(|()| self.pool.wait_durable()).map_err(|error| fail_below(&error))
            }
        };
        if done.is_ok() {
            self.pool.control.count(self.growth);
            store_volatile(self.words.volatile.iter().copied());
        }
        self.words.volatile.clear();
        self.words.values.clear();
        self.words.ranges.clear();
        thread().words.set(self.words);
        done
    }
}

/// Runs the program's constructor on new space; whatever it makes durable there becomes so with the
/// object.
pub fn construct(pool: &Pool, space: &Space, constructor: Constructor, argument: *mut c_void) -> Result<(), Errno> {
    let Some(constructor) = constructor else { return Ok(()) };
    let address = space.address(pool) as usize;
    let thread = thread();
    let running = Constructing {
        start: address,
        end: address + space.usable as usize,
        levels: thread.tx.levels(),
        outer: thread.constructing.get(),
    };
    thread.constructing.set(&raw const running);
    // SAFETY: the program gave the function for this.
    let refused = unsafe { constructor(pool.handle(), address as *mut c_void, argument) };
    thread.constructing.set(running.outer);
    if refused == 0 {
        return Ok(());
    }
    pool.direct.cancel(space.reservation());
    Err(fail(libc::ECANCELED, format_args!("the constructor cancelled the allocation")))
}

/// Stores an identifier that does not lie in the pool.
pub fn store_to_volatile(pool: &Pool, at: *mut Oid, value: Oid) {
    if !at.is_null() && pool.offset_of(at as usize).is_none() {
        // SAFETY: the program gives room for an identifier.
        unsafe { at.write(value) };
    }
}

/// New space, and an identifier that names it, in one change that also frees an object (0: none).
/// The data needs no care where it `is_done`: see [`object::reserve_to_publish`].
fn publish_at(pool: &Pool, space: &Space, is_done: bool, at: *mut Oid, former: u64) -> Result<(), Errno> {
    let mut change = Change::begin(pool).inspect_err(|_| pool.direct.cancel(space.reservation()))?;
    let oid = space.oid(pool);
    if is_done {
        change.publish_written(space)
    } else {
        change.publish(space)
    }
    change.free(former);
    change.store_oid(at, oid);
    change.commit()?;
    store_to_volatile(pool, at, oid);
    Ok(())
}

fn result(outcome: Result<(), Errno>) -> c_int {
    if outcome.is_ok() { 0 } else { -1 }
}

fn allocate(
    pool: &Pool,
    at: *mut Oid,
    bytes: usize,
    type_num: u64,
    flags: u64,
    constructor: Constructor,
    argument: *mut c_void,
) -> Result<(), Errno> {
    const VALID: u64 = flag::ZERO | flag::CLASS | flag::ARENA;
    if bytes == 0 {
        return Err(fail(libc::EINVAL, format_args!("allocation with size 0")));
    }
    if flags & !VALID != 0 {
        return Err(fail(libc::EINVAL, format_args!("unknown flags 0x{:x}", flags & !VALID)));
    }
    if constructor.is_none() {
        let (space, is_done) = object::reserve_to_publish(pool, bytes as u64, type_num, flags)?;
        return publish_at(pool, &space, is_done, at, 0);
    }
    let space = object::reserve(pool, bytes as u64, type_num, flags)?;
    construct(pool, &space, constructor, argument)?;
    publish_at(pool, &space, false, at, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_alloc(
    handle: Handle,
    at: *mut Oid,
    bytes: usize,
    type_num: u64,
    constructor: Constructor,
    argument: *mut c_void,
) -> c_int {
    result(pool_of(handle).and_then(|pool| allocate(pool, at, bytes, type_num, 0, constructor, argument)))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_xalloc(
    handle: Handle,
    at: *mut Oid,
    bytes: usize,
    type_num: u64,
    flags: u64,
    constructor: Constructor,
    argument: *mut c_void,
) -> c_int {
    result(pool_of(handle).and_then(|pool| allocate(pool, at, bytes, type_num, flags, constructor, argument)))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_zalloc(handle: Handle, at: *mut Oid, bytes: usize, type_num: u64) -> c_int {
    let zeroed = |pool| allocate(pool, at, bytes, type_num, flag::ZERO, None, std::ptr::null_mut());
    result(pool_of(handle).and_then(zeroed))
}

/// The identifier at an address.
fn named(at: *const Oid) -> Result<Oid, Errno> {
    if at.is_null() {
        return Err(fail(libc::EINVAL, format_args!("no identifier of an object was given (NULL)")));
    }
    // SAFETY: the program names an identifier.
    Ok(unsafe { at.read() })
}

fn free(pool: &Pool, at: *mut Oid, oid: Oid) -> Result<(), Errno> {
    object::of_oid(pool, oid)?;
    let mut change = Change::begin_small(pool)?;
    change.free(oid.off);
    change.store_oid(at, Oid::NULL);
    change.commit()?;
    store_to_volatile(pool, at, Oid::NULL);
    Ok(())
}

fn reallocate(pool: &Pool, at: *mut Oid, bytes: usize, type_num: u64, flags: u64) -> Result<(), Errno> {
    let oid = named(at)?;
    match (oid.is_null(), bytes) {
        (true, 0) => Ok(()),
        (true, _) => allocate(pool, at, bytes, type_num, flags, None, std::ptr::null_mut()),
        (false, 0) => free(pool, at, oid),
        (false, _) => {
            let old = object::of_oid(pool, oid)?;
            let new = object::reserve(pool, bytes as u64, type_num, flags)?;
            copy(pool, old.address(pool), &new, old.usable.min(bytes as u64) as usize);
            publish_at(pool, &new, false, at, oid.off)
        }
    }
}

/// Copies into new space, which lies apart from everything.
pub fn copy(pool: &Pool, from: *const c_void, to: &Space, bytes: usize) {
    // SAFETY: the callers give so many bytes, and the space has room for them.
    unsafe { to.address(pool).cast::<u8>().copy_from_nonoverlapping(from.cast(), bytes) }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_realloc(handle: Handle, at: *mut Oid, bytes: usize, type_num: u64) -> c_int {
    result(pool_of(handle).and_then(|pool| reallocate(pool, at, bytes, type_num, 0)))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_zrealloc(handle: Handle, at: *mut Oid, bytes: usize, type_num: u64) -> c_int {
    result(pool_of(handle).and_then(|pool| reallocate(pool, at, bytes, type_num, flag::ZERO)))
}

/// Duplicates text of the program, of which `bytes` tells the length.
fn duplicate(handle: Handle, at: *mut Oid, text: *const c_void, bytes: impl FnOnce() -> usize, type_num: u64) -> c_int {
    if text.is_null() {
        fail(libc::EINVAL, format_args!("cannot duplicate NULL string"));
        return -1;
    }
    result(pool_of(handle).and_then(|pool| {
        let bytes = bytes();
        let space = object::reserve(pool, bytes as u64, type_num, 0)?;
        copy(pool, text, &space, bytes);
        publish_at(pool, &space, false, at, 0)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_strdup(handle: Handle, at: *mut Oid, text: *const c_char, type_num: u64) -> c_int {
    // SAFETY: the program gives a string, if it is not null.
    duplicate(handle, at, text.cast(), || unsafe { string_bytes(text) }, type_num)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_wcsdup(handle: Handle, at: *mut Oid, text: *const i32, type_num: u64) -> c_int {
    // SAFETY: the program gives a string, if it is not null.
    duplicate(handle, at, text.cast(), || unsafe { wide_string_bytes(text) }, type_num)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_free(at: *mut Oid) {
    let Ok(oid) = named(at) else { return };
    if oid.is_null() {
        return;
    }
    let Some(pool) = pool_of_oid(oid) else {
        fail(libc::EINVAL, format_args!("the object belongs to no open pool"));
        return;
    };
    if let Err(errno) = free(pool, at, oid) {
        crate::error::set_errno(errno);
    }
}

/// The object of an identifier, in whatever pool.
fn object_of(oid: Oid) -> Option<(&'static Pool, Space)> {
    let pool = pool_of_oid(oid)?;
    object::of_oid(pool, oid).ok().map(|space| (pool, space))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_alloc_usable_size(oid: Oid) -> usize {
    if oid.is_null() {
        return 0;
    }
    object_of(oid).map_or(0, |(_, space)| space.usable as usize)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_type_num(oid: Oid) -> u64 {
    object_of(oid).map_or(0, |(pool, space)| object::header(pool, space.data).type_num)
}

const _: () = assert!(MAX_ALLOC < 1 << 44, "the header has 44 bits for the size");
