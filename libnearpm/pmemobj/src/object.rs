//! Headers of objects, and space for new ones.
//!
//! What a header is like is defined by [`nearpm::pmdk`].

use std::ffi::c_void;

use nearpm::direct::Reservation;
use nearpm::pmdk::Header;

use crate::abi::{MAX_ALLOC, Oid, flag};
use crate::error::{Errno, fail, fail_below};
use crate::registry::Pool;

/// Bytes of a header.
pub const HEADER: u64 = Header::BYTES;

/// The header of the object whose data is at an offset, which the pool has.
#[inline]
pub fn header(pool: &Pool, data: u64) -> Header {
    // SAFETY: in front of an object's data lies its header.
    unsafe { pool.at::<Header>(data - HEADER).read() }
}

/// The object, or the reserved space, whose data is at an offset that a program names.
///
/// # Errors
/// EINVAL where no object has its data: the offset may be any number.
#[inline]
pub fn find(pool: &Pool, data: u64) -> Result<Space, Errno> {
    let heap = pool.heap();
    if data.is_multiple_of(HEADER) && heap.start + HEADER <= data && data < heap.end {
        let space = Space::of(pool, data);
        let begins = space.start >= heap.start && pool.direct.usable_bytes(space.start).is_ok();
        // What lies there may look like a header: the first one of the object knows where its data
        // is.
        if begins && self::data(pool, space.start) == data {
            return Ok(space);
        }
    }
    Err(no_object(data))
}

/// As [`find`], for an identifier that must be one of this pool.
#[inline]
pub fn of_oid(pool: &Pool, oid: Oid) -> Result<Space, Errno> {
    if oid.pool == pool.uuid { find(pool, oid.off) } else { Err(foreign()) }
}

#[cold]
fn no_object(data: u64) -> Errno {
    fail(libc::EINVAL, format_args!("offset {data:#x} is not that of an object (freed already, or never allocated)"))
}

#[cold]
fn foreign() -> Errno {
    fail(libc::EINVAL, format_args!("invalid pool uuid"))
}

/// Where the data of the object is that begins at an offset.
pub fn data(pool: &Pool, start: u64) -> u64 {
    start + header(pool, start + HEADER).ahead() + HEADER
}

/// Space that was taken for an object.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Where the data is.
    pub data: u64,
    /// Bytes that the program may use.
    pub usable: u64,
    start: u64,
}

impl Space {
    /// The space of a reserved or allocated object, by its header.
    pub fn of(pool: &Pool, data: u64) -> Space {
        let header = header(pool, data);
        Space { data, usable: header.bytes(), start: (data - HEADER).saturating_sub(header.distance()) }
    }

    /// What becomes an object: the header, and the bytes that the program may use.
    pub fn reservation(&self) -> Reservation {
        Reservation { offset: self.start, bytes: self.data - self.start + self.usable }
    }

    /// What `stats.heap.curr_allocated` counts for it.
    pub fn counted(&self) -> i64 {
        (self.usable + HEADER) as i64
    }

    /// Where the object begins.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The bytes in front of the data.
    pub fn front(&self) -> std::ops::Range<u64> {
        self.start..self.data
    }

    /// Address of the data.
    pub fn address(&self, pool: &Pool) -> *mut c_void {
        pool.at(self.data)
    }

    /// The object.
    pub fn oid(&self, pool: &Pool) -> Oid {
        pool.oid(self.data)
    }
}

/// What an object should be like: bytes of data, alignment of the data.
#[derive(Clone, Copy)]
struct Shape {
    bytes: u64,
    alignment: u64,
}

/// Takes space for an object and writes its header; zeroes the data where `flags` say so.
#[inline]
pub fn reserve(pool: &Pool, bytes: u64, type_num: u64, flags: u64) -> Result<Space, Errno> {
    let space = reserve_unfilled(pool, bytes, type_num, flags)?;
    fill(pool, &space, flags);
    Ok(space)
}

/// As [`reserve`] of space that nobody stores to before it is published. Gives whether its data
/// needs no care: nobody relies on it, or it is durable with the next drain of this thread.
#[inline]
pub fn reserve_to_publish(pool: &Pool, bytes: u64, type_num: u64, flags: u64) -> Result<(Space, bool), Errno> {
    let space = reserve_unfilled(pool, bytes, type_num, flags)?;
    if flags & flag::ZERO != 0 {
        match pool.direct.zero_reserved(space.data..space.data + space.usable) {
            Ok(true) => return Ok((space, true)),
            Ok(false) => {}
            Err(error) => {
                pool.direct.cancel(space.reservation());
                return Err(fail_below(&error));
            }
        }
    }
    fill(pool, &space, flags);
    Ok((space, flags & flag::ZERO == 0))
}

fn reserve_unfilled(pool: &Pool, bytes: u64, type_num: u64, flags: u64) -> Result<Space, Errno> {
    if bytes > MAX_ALLOC {
        return Err(fail(libc::ENOMEM, format_args!("requested size too large")));
    }
    let (mut shape, mut type_num) = (Shape { bytes: (bytes + 15) & !15, alignment: HEADER }, type_num);
    if flags & (flag::CLASS | flag::ARENA) != 0 {
        let class = class(pool, bytes, flags)?;
        if let Some((of_class, keeps_type)) = class {
            shape = of_class;
            type_num = if keeps_type { type_num } else { 0 };
        }
    }
    place(pool, shape, type_num)
}

/// The shape by an allocation class, and whether its objects have type numbers.
fn class(pool: &Pool, bytes: u64, flags: u64) -> Result<Option<(Shape, bool)>, Errno> {
    pool.control.check_arena((flags & flag::ARENA) >> 32)?;
    let id = ((flags & flag::CLASS) >> 48) as i64;
    if id == 0 {
        return Ok(None);
    }
    let Some(class) = pool.control.class(id) else {
        return Err(fail(libc::EINVAL, format_args!("no allocation class for size {bytes} bytes")));
    };
    let Some(bytes) = class.usable(bytes) else {
        return Err(fail(libc::EINVAL, format_args!("allocation class not suitable for size {bytes} bytes")));
    };
    Ok(Some((Shape { bytes, alignment: class.alignment().max(HEADER) }, class.has_type())))
}

fn place(pool: &Pool, shape: Shape, type_num: u64) -> Result<Space, Errno> {
    let spare = if shape.alignment > HEADER { shape.alignment } else { 0 };
    let taken = pool.direct.reserve(shape.bytes + HEADER + spare).map_err(|error| out_of_memory(&error))?;
    let first = pool.base as u64 + taken.offset + HEADER;
    // Whatever the heap gives out is aligned as headers are.
    let distance = if spare == 0 { 0 } else { first.next_multiple_of(shape.alignment) - first };
    let space = Space { data: taken.offset + HEADER + distance, usable: shape.bytes, start: taken.offset };
    // SAFETY: the space is this object's alone; it has room for both headers.
    unsafe {
        if distance != 0 {
            pool.at::<Header>(space.start).write(Header::forward(distance));
        }
        let header = Header::new(type_num, space.usable, distance);
        let header = if spare != 0 { header.aligned() } else { header };
        pool.at::<Header>(space.data - HEADER).write(header);
    }
    Ok(space)
}

#[cold]
fn out_of_memory(error: &nearpm::Error) -> Errno {
    match error {
        nearpm::Error::Full { .. } => fail(libc::ENOMEM, format_args!("out of memory: {error}")),
        other => fail_below(other),
    }
}

fn fill(pool: &Pool, space: &Space, flags: u64) {
    let pattern = match flags & flag::ZERO {
        0 => match pool.control.alloc_pattern() {
            None => return,
            Some(pattern) => pattern,
        },
        _ => 0,
    };
    // SAFETY: the data of the new object.
    unsafe { pool.at::<u8>(space.data).write_bytes(pattern, space.usable as usize) };
}
