//! Defragmentation: objects move to lower addresses, so that the space above them becomes free in
//! larger pieces.
//!
//! Every object moves in one atomic change with all identifiers of it that the program names.
//! Identifiers may lie in objects that move themselves, also in the one that they name. The highest
//! objects move first: into the gaps that are lowest.

use std::ffi::c_int;
use std::ops::Range;

use crate::abi::{Handle, Oid};
use crate::alloc::{Change, copy, store_to_volatile};
use crate::error::{Errno, fail, no_memory};
use crate::object::{self, Space};
use crate::registry::{Pool, pool_of};

/// `struct pobj_defrag_result`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Defragmented {
    /// Objects that were named.
    total: usize,
    /// Those of them that have moved.
    relocated: usize,
}

/// The identifiers that a program names, and where they are now.
struct Identifiers<'a> {
    pool: &'a Pool,
    /// Address when it was named, and now; by the former.
    places: Vec<(usize, *mut Oid)>,
}

impl<'a> Identifiers<'a> {
    /// # Safety
    /// Each address is that of an identifier, or null.
    unsafe fn of(pool: &'a Pool, named: &[*mut Oid]) -> Result<Identifiers<'a>, Errno> {
        let mut places = Vec::new();
        places.try_reserve_exact(named.len()).map_err(|_| no_memory())?;
        places.extend(named.iter().filter(|at| !at.is_null()).map(|&at| (at as usize, at)));
        places.sort_unstable();
        places.dedup();
        Ok(Identifiers { pool, places })
    }

    /// Objects of the pool that they name, rising, each with an identifier that names it.
    ///
    /// # Errors
    /// EINVAL for an identifier of another pool, or of no object; ENOMEM.
    fn by_object(&self) -> Result<Vec<(u64, usize)>, Errno> {
        let mut objects = Vec::new();
        objects.try_reserve_exact(self.places.len()).map_err(|_| no_memory())?;
        for (index, &(_, at)) in self.places.iter().enumerate() {
            // SAFETY: by the caller of `of`; it has not moved yet.
            let oid = unsafe { at.read_unaligned() };
            if !oid.is_null() {
                object::of_oid(self.pool, oid)?;
                objects.push((oid.off, index));
            }
        }
        objects.sort_unstable();
        Ok(objects)
    }

    /// Those that lie in an object's data, which has not moved yet.
    fn within(&self, space: &Space) -> Range<usize> {
        let data = space.address(self.pool) as usize;
        let place = |address| self.places.partition_point(|&(former, _)| former < address);
        place(data)..place(data + space.usable as usize)
    }

    /// Moves an object if there is space below it. Tells whether it has moved.
    fn move_down(&mut self, data: u64, names: &[(u64, usize)]) -> Result<bool, Errno> {
        let pool = self.pool;
        let (old, type_num) = (Space::of(pool, data), object::header(pool, data).type_num);
        let Ok(new) = object::reserve(pool, old.usable, type_num, 0) else { return Ok(false) };
        if new.data > old.data {
            pool.direct.cancel(new.reservation());
            return Ok(false);
        }
        copy(pool, old.address(pool), &new, old.usable as usize);
        let (inner, oid) = (self.within(&old), new.oid(pool));
        let moved = |at: *mut Oid| at.wrapping_byte_sub((old.data - new.data) as usize);
        let mut change = Change::begin(pool).inspect_err(|_| pool.direct.cancel(new.reservation()))?;
        for &(_, name) in names {
            match self.places[name].1 {
                // SAFETY: the copy is this call's alone until it is published, with its bytes.
                at if inner.contains(&name) => unsafe { moved(at).write_unaligned(oid) },
                at => change.store_oid(at, oid),
            }
        }
        change.publish(&new);
        change.free(old.data);
        change.commit()?;
        for &(_, name) in names {
            store_to_volatile(pool, self.places[name].1, oid);
        }
        for place in &mut self.places[inner] {
            place.1 = moved(place.1);
        }
        Ok(true)
    }
}

/// # Safety
/// Each address is that of an identifier, or null.
unsafe fn defragment(pool: &Pool, named: &[*mut Oid], done: &mut Defragmented) -> Result<(), Errno> {
    // SAFETY: by the caller.
    let mut identifiers = unsafe { Identifiers::of(pool, named) }?;
    let named = identifiers.by_object()?;
    let objects = || named.chunk_by(|(one, _), (other, _)| one == other);
    done.total = objects().count();
    for names in objects().rev() {
        let data = names[0].0;
        // What a class has aligned stays where it is: its header does not tell by how much.
        if !object::header(pool, data).is_aligned() && identifiers.move_down(data, names)? {
            done.relocated += 1;
        }
    }
    Ok(())
}

/// # Safety
/// `oids` names `count` addresses of identifiers.
#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_defrag(
    handle: Handle,
    oids: *const *mut Oid,
    count: usize,
    result: *mut Defragmented,
) -> c_int {
    let mut done = Defragmented::default();
    let outcome = pool_of(handle).and_then(|pool| {
        if oids.is_null() && count != 0 {
            return Err(fail(libc::EINVAL, format_args!("no identifiers were given (NULL)")));
        }
        // SAFETY: by the caller; none have no address.
        let named = if count == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(oids, count) } };
        // SAFETY: by the caller.
        unsafe { defragment(pool, named, &mut done) }
    });
    if !result.is_null() {
        // SAFETY: the program gives room for a result.
        unsafe { result.write(done) };
    }
    if outcome.is_ok() { 0 } else { -1 }
}
