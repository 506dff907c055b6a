//! Lists that change atomically: circles of objects, with entries inside of them (`POBJ_LIST_*`).

use std::ffi::{c_int, c_void};

use crate::abi::{Constructor, Handle, Oid};
use crate::alloc::{Change, construct};
use crate::error::{Errno, fail, fail_system};
use crate::lock;
use crate::object;
use crate::registry::{Pool, pool_of};

/// `POBJ_LIST_ENTRY`.
#[repr(C)]
struct Entry {
    next: Oid,
    previous: Oid,
}

/// `POBJ_LIST_HEAD`; a lock follows.
#[repr(C)]
struct Head {
    first: Oid,
}

/// A list: its head, and where its objects have their entries.
#[derive(Clone, Copy)]
struct List<'a> {
    pool: &'a Pool,
    head: *mut Head,
    entry: u64,
}

/// Where in a list: beside an object, or at an end of the list.
#[derive(Clone, Copy)]
struct Place {
    beside: u64,
    before: bool,
}

/// Holds the locks of one or two heads, in the order of their addresses.
struct Locked<'a> {
    pool: &'a Pool,
    locks: [*mut c_void; 2],
}

impl<'a> Locked<'a> {
    fn take(pool: &'a Pool, one: *mut Head, other: *mut Head) -> Result<Locked<'a>, Errno> {
        let lock_of = |head: *mut Head| head.wrapping_add(1).cast::<c_void>();
        let mut locks = [lock_of(one), lock_of(other)];
        locks.sort();
        let locked = |taken: c_int| {
            if taken == 0 { Ok(()) } else { Err(fail_system(taken, "pmemobj_mutex_lock")) }
        };
        // SAFETY: behind a head lies its lock.
        unsafe {
            locked(lock::mutex_lock(pool, locks[0]))?;
            if locks[0] != locks[1]
                && let Err(errno) = locked(lock::mutex_lock(pool, locks[1]))
            {
                lock::mutex_unlock(pool, locks[0]);
                return Err(errno);
            }
        }
        Ok(Locked { pool, locks })
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: `take` has locked them.
        unsafe {
            lock::mutex_unlock(self.pool, self.locks[0]);
            if self.locks[0] != self.locks[1] {
                lock::mutex_unlock(self.pool, self.locks[1]);
            }
        }
    }
}

impl<'a> List<'a> {
    fn new(pool: &'a Pool, head: *mut c_void, entry: usize) -> Result<List<'a>, Errno> {
        if entry as u64 >= pool.direct.bytes() {
            return Err(fail(libc::EINVAL, format_args!("pe_offset ({entry}) too big")));
        }
        let offset = pool.offset_of(head as usize).unwrap_or(0);
        let range = offset..offset + (size_of::<Head>() + lock::LOCK_BYTES) as u64;
        if range.start % align_of::<Head>() as u64 != 0 || !pool.direct.holds_objects(&range) {
            return Err(fail(
                libc::EINVAL,
                format_args!("the head of a list at {head:p} lies in no object of the pool"),
            ));
        }
        Ok(List { pool, head: head.cast(), entry: entry as u64 })
    }

    /// Refuses what is no object with an entry of this list: what a program names, and what the
    /// list itself leads to.
    fn check(&self, object: u64) -> Result<(), Errno> {
        let space = object::find(self.pool, object)?;
        let fits = self.entry.is_multiple_of(8) && self.entry + size_of::<Entry>() as u64 <= space.usable;
        if fits {
            Ok(())
        } else {
            Err(fail(libc::EINVAL, format_args!("an object at {object:#x} has no entry of the list")))
        }
    }

    /// As [`List::check`], for an object and its neighbours.
    fn check_around(&self, object: u64) -> Result<(), Errno> {
        self.check(object)?;
        self.check(self.next(object))?;
        self.check(self.previous(object))
    }

    /// Checks what an insertion at a place reads and changes.
    fn check_place(&self, place: Place) -> Result<(), Errno> {
        match (self.first(), place.beside) {
            (0, _) => Ok(()),
            (first, 0) => self.check_around(first),
            (first, beside) => self.check_around(first).and_then(|()| self.check_around(beside)),
        }
    }

    fn entry(&self, object: u64) -> *mut Entry {
        self.pool.at(object + self.entry)
    }

    fn first(&self) -> u64 {
        // SAFETY: the program names the head of a list, and its lock is held.
        unsafe { (*self.head).first.off }
    }

    fn next(&self, object: u64) -> u64 {
        // SAFETY: objects of the list have entries.
        unsafe { (*self.entry(object)).next.off }
    }

    fn previous(&self, object: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.entry(object)).previous.off }
    }

    fn set_first(&self, change: &mut Change<'_>, object: u64) {
        // SAFETY: only the address is taken.
        change.store_oid(unsafe { &raw mut (*self.head).first }, self.pool.oid(object));
    }

    fn set_next(&self, change: &mut Change<'_>, object: u64, next: u64) {
        // SAFETY: only the address is taken.
        change.store_oid(unsafe { &raw mut (*self.entry(object)).next }, self.pool.oid(next));
    }

    fn set_previous(&self, change: &mut Change<'_>, object: u64, previous: u64) {
        // SAFETY: only the address is taken.
        change.store_oid(unsafe { &raw mut (*self.entry(object)).previous }, self.pool.oid(previous));
    }

    fn insert(&self, change: &mut Change<'_>, object: u64, place: Place) {
        let first = self.first();
        if first == 0 {
            self.set_next(change, object, object);
            self.set_previous(change, object, object);
            return self.set_first(change, object);
        }
        // Without an object to be beside: before the first, or behind the last.
        let beside = match (place.beside, place.before) {
            (0, true) => first,
            (0, false) => self.previous(first),
            (beside, _) => beside,
        };
        let (previous, next) = if place.before { (self.previous(beside), beside) } else { (beside, self.next(beside)) };
        self.set_next(change, object, next);
        self.set_previous(change, object, previous);
        self.set_next(change, previous, object);
        self.set_previous(change, next, object);
        if place.before && beside == first {
            self.set_first(change, object);
        }
    }

    fn remove(&self, change: &mut Change<'_>, object: u64) {
        let (previous, next) = (self.previous(object), self.next(object));
        if next == object {
            return self.set_first_to_none(change);
        }
        self.set_next(change, previous, next);
        self.set_previous(change, next, previous);
        if self.first() == object {
            self.set_first(change, next);
        }
    }

    /// An empty list keeps the pool's identifier, as with PMDK.
    fn set_first_to_none(&self, change: &mut Change<'_>) {
        self.set_first(change, 0);
    }

    /// A removed object has an entry of zeros.
    fn clear_entry(&self, change: &mut Change<'_>, object: u64) {
        // SAFETY: only addresses are taken.
        unsafe {
            change.store_oid(&raw mut (*self.entry(object)).next, Oid::NULL);
            change.store_oid(&raw mut (*self.entry(object)).previous, Oid::NULL);
        }
    }

    /// Moves an object inside of the list. The words are read after a removal that has not happened
    /// yet, so that it is done in one go.
    fn reinsert(&self, change: &mut Change<'_>, object: u64, place: Place) {
        let first = self.first();
        let beside = match (place.beside, place.before) {
            (0, true) => first,
            (0, false) => self.previous(first),
            (beside, _) => beside,
        };
        let stays = beside == object
            || place.before && self.next(object) == beside && beside != first
            || !place.before && self.previous(object) == beside && object != first;
        if stays || self.next(object) == object {
            return;
        }
        let (former_previous, former_next) = (self.previous(object), self.next(object));
        let new_first = if place.before && beside == first {
            object
        } else if first == object {
            former_next
        } else {
            first
        };
        // The circle without the object, then with it at its new place.
        let after = |at: u64| if at == former_previous { former_next } else { self.next(at) };
        let before = |at: u64| if at == former_next { former_previous } else { self.previous(at) };
        let (previous, next) = if place.before { (before(beside), beside) } else { (beside, after(beside)) };
        self.set_next(change, former_previous, former_next);
        self.set_previous(change, former_next, former_previous);
        self.set_next(change, previous, object);
        self.set_previous(change, next, object);
        self.set_next(change, object, next);
        self.set_previous(change, object, previous);
        if new_first != first {
            self.set_first(change, new_first);
        }
    }
}

fn place(list: List<'_>, beside: Oid, before: c_int) -> Result<Place, Errno> {
    if !beside.is_null() {
        object::of_oid(list.pool, beside)?;
    }
    Ok(Place { beside: beside.off, before: before != 0 })
}

fn result(outcome: Result<(), Errno>) -> c_int {
    if outcome.is_ok() { 0 } else { -1 }
}

fn insert(list: List<'_>, object: u64, place: Place) -> Result<(), Errno> {
    let _locked = Locked::take(list.pool, list.head, list.head)?;
    list.check(object)?;
    list.check_place(place)?;
    let mut change = Change::begin(list.pool)?;
    list.insert(&mut change, object, place);
    change.commit()
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_list_insert(
    handle: Handle,
    entry: usize,
    head: *mut c_void,
    beside: Oid,
    before: c_int,
    oid: Oid,
) -> c_int {
    let list = pool_of(handle).and_then(|pool| List::new(pool, head, entry));
    result(list.and_then(|list| {
        object::of_oid(list.pool, oid)?;
        insert(list, oid.off, place(list, beside, before)?)
    }))
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the interface has as many")]
extern "C" fn pmemobj_list_insert_new(
    handle: Handle,
    entry: usize,
    head: *mut c_void,
    beside: Oid,
    before: c_int,
    bytes: usize,
    type_num: u64,
    constructor: Constructor,
    argument: *mut c_void,
) -> Oid {
    let new = || {
        let pool = pool_of(handle)?;
        let list = List::new(pool, head, entry)?;
        let place = place(list, beside, before)?;
        if bytes == 0 {
            return Err(fail(libc::EINVAL, format_args!("allocation with size 0")));
        }
        let space = object::reserve(pool, bytes as u64, type_num, 0)?;
        let give_back = |_: &Errno| pool.direct.cancel(space.reservation());
        // Before the lock is taken: the constructor may jump away.
        construct(pool, &space, constructor, argument)?;
        let _locked = Locked::take(pool, list.head, list.head).inspect_err(give_back)?;
        list.check(space.data).and_then(|()| list.check_place(place)).inspect_err(give_back)?;
        let mut change = Change::begin(pool).inspect_err(give_back)?;
        change.publish(&space);
        list.insert(&mut change, space.data, place);
        change.commit()?;
        Ok(space.oid(pool))
    };
    new().unwrap_or(Oid::NULL)
}

fn remove(list: List<'_>, object: u64, free: bool) -> Result<(), Errno> {
    let _locked = Locked::take(list.pool, list.head, list.head)?;
    list.check_around(object)?;
    let mut change = Change::begin(list.pool)?;
    list.remove(&mut change, object);
    if free {
        change.free(object);
    } else {
        list.clear_entry(&mut change, object);
    }
    change.commit()
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_list_remove(handle: Handle, entry: usize, head: *mut c_void, oid: Oid, free: c_int) -> c_int {
    let list = pool_of(handle).and_then(|pool| List::new(pool, head, entry));
    result(list.and_then(|list| {
        object::of_oid(list.pool, oid)?;
        remove(list, oid.off, free != 0)
    }))
}

fn move_between(from: List<'_>, to: List<'_>, object: u64, place: Place) -> Result<(), Errno> {
    let _locked = Locked::take(from.pool, from.head, to.head)?;
    from.check_around(object)?;
    to.check(object)?;
    to.check_place(place)?;
    let mut change = Change::begin(from.pool)?;
    if from.head == to.head && from.entry == to.entry {
        from.reinsert(&mut change, object, place);
    } else {
        from.remove(&mut change, object);
        if from.entry != to.entry {
            from.clear_entry(&mut change, object);
        }
        to.insert(&mut change, object, place);
    }
    change.commit()
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the interface has as many")]
extern "C" fn pmemobj_list_move(
    handle: Handle,
    from_entry: usize,
    from_head: *mut c_void,
    to_entry: usize,
    to_head: *mut c_void,
    beside: Oid,
    before: c_int,
    oid: Oid,
) -> c_int {
    let moved = || {
        let pool = pool_of(handle)?;
        let (from, to) = (List::new(pool, from_head, from_entry)?, List::new(pool, to_head, to_entry)?);
        object::of_oid(pool, oid)?;
        move_between(from, to, oid.off, place(to, beside, before)?)
    };
    result(moved())
}
