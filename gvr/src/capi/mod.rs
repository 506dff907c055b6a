//! The C interface, by GVR's names: `include/gds.h` says what each call does.
//!
//! Handles are pointers to boxes; a world is the thread's that joined it. No call unwinds into C.

#![allow(unsafe_code, non_snake_case, missing_docs, clippy::missing_safety_doc)]

mod access;
mod descriptors;
mod handlers;
mod handles;
mod lent;
mod state;
mod status;
mod versions;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;

use crate::array::{Core, Options};
use crate::error::{Error, Result};
use crate::persist::{Flush, Folder, Job};
use crate::rma::Kind;
use crate::rma::shm::Shm;
use crate::world::World;
use state::{Gds, Member, with_world};
use status::{answer, refuse};

pub use access::*;
pub use descriptors::*;
pub use handlers::*;
pub use handles::*;
pub use lent::*;
pub use versions::*;

/// Bytes of memory of a rank that is started alone, or by MPI.
const ALONE: u64 = 1 << 30;

/// `GDS_THREAD_FUNNELED`.
const FUNNELED: c_int = 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_init(
    _: *mut c_int,
    _: *mut *mut *mut c_char,
    requested: c_int,
    provided: *mut c_int,
) -> c_int {
    answer(|| {
        // A second handle of this rank would say, when it goes, that the rank does.
        state::check_first()?;
        let world = match World::launched(ALONE)? {
            Some(world) => world,
            None => World::new(Shm::threads(1, ALONE)?.pop().ok_or_else(|| Error::option("no rank was made"))?),
        };
        state::join(world)?;
        if !provided.is_null() {
            // SAFETY: by the caller, it points to a number of its own.
            unsafe { *provided = requested.min(FUNNELED) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn GDS_finalize() -> c_int {
    answer(state::leave)
}

/// The sizes that a caller gives.
///
/// # Safety
/// `counts` is null or points to `count` numbers.
unsafe fn sizes(count: usize, counts: *const usize) -> Result<Vec<u64>> {
    if counts.is_null() || count == 0 || count > crate::array::MOST_DIMENSIONS {
        return Err(refuse(format!(
            "{count} dimensions, or a null pointer to their sizes: give 1 to {}",
            crate::array::MOST_DIMENSIONS
        )));
    }
    // SAFETY: by the caller.
    Ok(unsafe { std::slice::from_raw_parts(counts, count) }.iter().map(|count| *count as u64).collect())
}

fn kind(code: c_int) -> Result<Kind> {
    let known = u32::try_from(code).ok().and_then(|code| Kind::of_code(code).ok());
    known.ok_or_else(|| refuse(format!("{code} is no GDS_datatype_t")))
}

/// A text that a caller gives.
///
/// # Safety
/// `text` is null or a string of C.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(refuse("a text is a null pointer"));
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| refuse("a text is no UTF-8"))
}

/// Hands an array out.
///
/// # Safety
/// `gds` points to a handle of the caller's.
unsafe fn hand_out(gds: *mut *mut Gds, make: impl FnOnce() -> Result<Gds>) -> Result<()> {
    if gds.is_null() {
        return Err(refuse("the pointer to the new handle is null"));
    }
    let made = Box::into_raw(Box::new(make()?));
    state::count(1);
    // SAFETY: by the caller.
    unsafe { *gds = made };
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_alloc(
    ndims: usize,
    counts: *const usize,
    _min_chunks: *const usize,
    datatype: c_int,
    _priority: c_int,
    _comm: c_int,
    _info: c_int,
    gds: *mut *mut Gds,
) -> c_int {
    answer(|| {
        // SAFETY: by the header, `counts` points to `ndims` numbers and `gds` to a handle.
        unsafe {
            let (dims, kind) = (sizes(ndims, counts)?, kind(datatype)?);
            hand_out(gds, || {
                let core = with_world(|world| Core::new(Rc::clone(&world.world.rma), &dims, kind, Options::default()))?;
                Ok(Gds::new(Member { core: Rc::new(core), job: None }))
            })
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_free(gds: *mut *mut Gds) -> c_int {
    answer(|| {
        if gds.is_null() {
            return Err(refuse("the pointer to the handle is null"));
        }
        // SAFETY: by the header, it points to a handle of the caller's.
        let place = unsafe { &mut *gds };
        if place.is_null() {
            return Err(refuse("the handle is null: was it freed before?"));
        }
        // SAFETY: a handle comes from `hand_out`, and is null once it was freed.
        let boxed = unsafe { Box::from_raw(std::mem::replace(place, std::ptr::null_mut())) };
        state::count(-1);
        boxed.move_to(None);
        // That of a job stays open with it, and others as long as they have handles.
        if boxed.member.job.is_none() && boxed.is_last() { boxed.member.core.free() } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_rank() -> c_int {
    with_world(|world| Ok(world.world.rank() as c_int)).unwrap_or(-1)
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_ranks() -> c_int {
    with_world(|world| Ok(world.world.ranks() as c_int)).unwrap_or(-1)
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_message() -> *const c_char {
    status::message()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gvr_open_job(folder: *const c_char, pool_bytes: u64) -> c_int {
    answer(|| {
        // SAFETY: by the header, a string.
        open_job(Folder::new(unsafe { text(folder)? }), pool_bytes)
    })
}

fn open_job(folder: Folder, pool_bytes: u64) -> Result<()> {
    let world = with_world(|world| Ok(world.world.clone()))?;
    if with_world(|world| Ok(world.job.is_some()))? {
        return Err(refuse("a job is open already: a program has one"));
    }
    let job = Job::open_or_create(&world, &folder, pool_bytes)?;
    with_world(|world| {
        world.job = Some(job);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gvr_open_job_with_partners(folder: *const c_char, pool_bytes: u64) -> c_int {
    answer(|| {
        // SAFETY: by the header, a string.
        open_job(Folder::new(unsafe { text(folder)? }).with_partners(), pool_bytes)
    })
}

/// Works on the job that is open.
fn with_job(act: impl FnOnce(&Job) -> Result<()>) -> c_int {
    answer(|| {
        with_world(|world| act(world.job.as_ref().ok_or_else(|| refuse("no job is open: call gvr_open_job first"))?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_flush_in_background(yes: c_int) -> c_int {
    with_job(|job| job.set_flush(if yes == 0 { Flush::Wait } else { Flush::Background }))
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_version_wait() -> c_int {
    with_job(Job::version_wait)
}

#[unsafe(no_mangle)]
pub extern "C" fn gvr_scrub() -> c_int {
    with_job(|job| job.scrub().map(drop))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gvr_alloc_durable(
    name: *const c_char,
    ndims: usize,
    counts: *const usize,
    datatype: c_int,
    gds: *mut *mut Gds,
) -> c_int {
    answer(|| {
        // SAFETY: as in `GDS_alloc`; the name is a string.
        unsafe {
            let (name, dims, kind) = (text(name)?, sizes(ndims, counts)?, kind(datatype)?);
            hand_out(gds, || {
                with_world(|world| {
                    let job = world.job.as_ref().ok_or_else(|| refuse("no job is open: call gvr_open_job first"))?;
                    let (core, job) = job.untyped(name, &dims, kind, Options::default())?;
                    Ok(Gds::new(Member { core, job: Some(job) }))
                })
            })
        }
    })
}

/// A pointer of a caller's that must not be null.
fn present<T>(pointer: *const T, what: &str) -> Result<()> {
    if pointer.is_null() { Err(refuse(format!("{what} is a null pointer"))) } else { Ok(()) }
}

/// Reads or writes an element at a pointer.
///
/// # Safety
/// `at` points to 8 bytes of the caller's.
unsafe fn word(at: *const c_void) -> u64 {
    // SAFETY: by the caller; it may be aligned less.
    unsafe { at.cast::<u64>().read_unaligned() }
}
