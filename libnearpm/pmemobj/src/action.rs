//! Reserve first, publish later: space, frees and words that become one atomic change.

use std::ffi::c_int;

use crate::abi::{Handle, Oid, flag};
use crate::alloc::Change;
use crate::error::{Errno, fail};
use crate::object::{self, Space};
use crate::registry::{Pool, pool_of};
use crate::words::VolatileWord;

/// `struct pobj_action`, on the program's stack.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    /// `enum pobj_action_type`.
    class: u32,
    kind: u32,
    unused: [u32; 2],
    /// `heap.offset`: of the object's data; of a word in the pool; address of a word elsewhere.
    offset: u64,
    /// `heap.usable_size`; the value of a word.
    amount: u64,
    unused2: [u64; 12],
}

const _: () = assert!(size_of::<Action>() == 128);

/// `POBJ_ACTION_TYPE_*`.
const CLASS_HEAP: u32 = 0;
const CLASS_MEMORY: u32 = 1;

const RESERVE: u32 = 0x5273_7601;
const FREE: u32 = 0x5273_7602;
const SET_VALUE: u32 = 0x5273_7603;
const SET_VOLATILE: u32 = 0x5273_7604;
/// Of an action that was refused when it was made; publishing refuses it as well.
const NOTHING: u32 = 0x5273_7605;

/// What an action does.
pub enum Kind {
    /// Reserved space becomes an object.
    Reserve,
    /// An object is freed.
    Free,
    /// A word of the pool gets a value.
    SetValue,
    /// A word of ordinary memory gets a value.
    SetVolatile,
    /// Not made by this library.
    Unknown,
}

impl Action {
    fn new(class: u32, kind: u32, offset: u64, amount: u64) -> Action {
        Action { class, kind, unused: [0; 2], offset, amount, unused2: [0; 12] }
    }

    /// What it does.
    pub fn kind(&self) -> Kind {
        match self.kind {
            RESERVE => Kind::Reserve,
            FREE => Kind::Free,
            SET_VALUE => Kind::SetValue,
            SET_VOLATILE => Kind::SetVolatile,
            _ => Kind::Unknown,
        }
    }

    /// Offset of the object's data, or of the word.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The value of a word.
    pub fn value(&self) -> u64 {
        self.amount
    }

    /// A word of ordinary memory, and its value.
    pub fn volatile_word(&self) -> VolatileWord {
        VolatileWord { address: self.offset as usize, value: self.amount }
    }
}

/// Refuses an action, or actions, that are nowhere.
fn check_room(actions: *const Action) -> Result<(), Errno> {
    if actions.is_null() { Err(fail(libc::EINVAL, format_args!("no action was given (NULL)"))) } else { Ok(()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_reserve(handle: Handle, action: *mut Action, bytes: usize, type_num: u64) -> Oid {
    // SAFETY: as for this function.
    unsafe { pmemobj_xreserve(handle, action, bytes, type_num, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_xreserve(
    handle: Handle,
    action: *mut Action,
    bytes: usize,
    type_num: u64,
    flags: u64,
) -> Oid {
    const VALID: u64 = flag::CLASS | flag::ARENA | flag::ZERO;
    let take = || {
        let pool = pool_of(handle)?;
        check_room(action)?;
        if bytes == 0 {
            return Err(fail(libc::EINVAL, format_args!("allocation with size 0")));
        }
        if flags & !VALID != 0 {
            return Err(fail(libc::EINVAL, format_args!("unknown flags 0x{:x}", flags & !VALID)));
        }
        let space = object::reserve(pool, bytes as u64, type_num, flags)?;
        // SAFETY: the program gives room for an action.
        unsafe { action.write(Action::new(CLASS_HEAP, RESERVE, space.data, space.usable)) };
        Ok(space.oid(pool))
    };
    take().unwrap_or(Oid::NULL)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_set_value(handle: Handle, action: *mut Action, word: *mut u64, value: u64) {
    let (Ok(pool), Ok(())) = (pool_of(handle), check_room(action)) else { return };
    let (kind, place) = match pool.offset_of(word as usize) {
        Some(offset) => (SET_VALUE, offset),
        None => (SET_VOLATILE, word as u64),
    };
    // SAFETY: the program gives room for an action.
    unsafe { action.write(Action::new(CLASS_MEMORY, kind, place, value)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_defer_free(handle: Handle, oid: Oid, action: *mut Action) {
    let (Ok(pool), Ok(())) = (pool_of(handle), check_room(action)) else { return };
    let named = if oid.is_null() { Ok(()) } else { object::of_oid(pool, oid).map(drop) };
    let kind = if named.is_ok() { FREE } else { NOTHING };
    // SAFETY: the program gives room for an action.
    unsafe { action.write(Action::new(CLASS_HEAP, kind, oid.off, 0)) };
}

/// The actions that a program gives.
///
/// # Safety
/// There are as many actions, or the address is null.
pub unsafe fn slice<'a>(actions: *const Action, count: usize) -> Result<&'a [Action], Errno> {
    if count == 0 {
        return Ok(&[]);
    }
    check_room(actions)?;
    // SAFETY: by the caller.
    Ok(unsafe { std::slice::from_raw_parts(actions, count) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_publish(handle: Handle, actions: *const Action, count: usize) -> c_int {
    // SAFETY: the program gives as many.
    let done = pool_of(handle).and_then(|pool| publish(pool, unsafe { slice(actions, count) }?));
    if done.is_ok() { 0 } else { -1 }
}

/// The space that an action of this pool has reserved.
pub fn reserved(pool: &Pool, action: &Action) -> Result<Space, Errno> {
    let space = object::find(pool, action.offset)?;
    if pool.direct.is_reserved(space.start()) {
        return Ok(space);
    }
    Err(fail(libc::EINVAL, format_args!("an action was published already")))
}

fn publish(pool: &Pool, actions: &[Action]) -> Result<(), Errno> {
    let mut change = Change::begin(pool)?;
    for action in actions {
        match action.kind() {
            Kind::Reserve => match reserved(pool, action) {
                Ok(space) => change.publish_written(&space),
                Err(errno) => change.refuse(errno),
            },
            Kind::Free => change.free(action.offset),
            Kind::SetValue => change.store(action.offset, action.amount),
            Kind::SetVolatile => change.store_volatile(action.volatile_word()),
            Kind::Unknown => {
                change.refuse(fail(libc::EINVAL, format_args!("an action is none that this library made")));
            }
        }
    }
    change.commit()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_cancel(handle: Handle, actions: *const Action, count: usize) {
    // SAFETY: the program gives as many.
    let (Ok(pool), Ok(actions)) = (pool_of(handle), unsafe { slice(actions, count) }) else { return };
    for action in actions {
        if let Kind::Reserve = action.kind()
            && let Ok(space) = reserved(pool, action)
        {
            pool.direct.cancel(space.reservation());
        }
    }
}
