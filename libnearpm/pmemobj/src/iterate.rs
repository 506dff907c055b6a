//! Objects one after the other, without the root and what is the library's own.

use crate::abi::{Handle, Oid};
use crate::object::{self, HEADER, Space};
use crate::registry::{Pool, pool_of, pool_of_oid};

/// The object behind the one that begins at an offset; 0 for the first.
fn next(pool: &Pool, after: u64) -> Oid {
    let root = pool.head.root().0;
    let mut start = after;
    while let Some(found) = pool.direct.next_object(start) {
        start = found;
        if found == pool.head.offset {
            continue;
        }
        let data = object::data(pool, found);
        if data != root {
            return pool.oid(data);
        }
    }
    Oid::NULL
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_first(handle: Handle) -> Oid {
    pool_of(handle).map_or(Oid::NULL, |pool| next(pool, 0))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_next(oid: Oid) -> Oid {
    match pool_of_oid(oid) {
        Some(pool) if !oid.is_null() => {
            object::find(pool, oid.off).map_or(Oid::NULL, |space| next(pool, space.start()))
        }
        _ => Oid::NULL,
    }
}

/// Whether what the headers of all objects say fits what the pool knows of them. The recovery has
/// checked the rest at open.
pub fn is_consistent(pool: &Pool) -> bool {
    let mut start = 0;
    let mut root_seen = pool.head.root().0 == 0;
    while let Some(found) = pool.direct.next_object(start) {
        start = found;
        if found == pool.head.offset {
            continue;
        }
        let Ok(bytes) = pool.direct.usable_bytes(found) else { return false };
        let data = object::data(pool, found);
        if data < found + HEADER || data > found + bytes {
            return false;
        }
        let space = Space::of(pool, data);
        let reservation = space.reservation();
        if reservation.offset != found || reservation.bytes > bytes {
            return false;
        }
        root_seen |= data == pool.head.root().0;
    }
    root_seen
}
