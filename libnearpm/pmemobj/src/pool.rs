//! Create, open, close, check; the root object; pools by object and address.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use nearpm::direct::DirectPool;
use nearpm::pmdk::uuid_lo;
use nearpm_place::{Place, is_location};

use crate::abi::{Constructor, Handle, MAX_ALLOC, MAX_LAYOUT, MIN_POOL, Oid, VERSION, flag};
use crate::alloc::{Change, construct};
use crate::control::{self, PoolControl};
use crate::ctl;
use crate::environment;
use crate::error::{Errno, fail, fail_below, fail_place, fatal};
use crate::head::Head;
use crate::object;
use crate::registry::{self, Pool, Refused, pool_of, pool_of_address, pool_of_oid};
use crate::set::Part;
use crate::thread::{RootOf, thread};

/// Bytes of a C string.
///
/// # Safety
/// It is null or has a closing zero.
unsafe fn bytes_of<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// # Safety
/// As [`bytes_of`].
unsafe fn location_of<'a>(path: *const c_char) -> Result<&'a str, Errno> {
    // SAFETY: by the caller.
    let path = unsafe { bytes_of(path) };
    let Some(path) = path else { return Err(fail(libc::EINVAL, format_args!("no path was given (NULL)"))) };
    str::from_utf8(path).map_err(|_| fail(libc::EINVAL, format_args!("the path is not UTF-8")))
}

/// # Safety
/// As [`bytes_of`].
unsafe fn layout_of<'a>(layout: *const c_char) -> Result<Option<&'a [u8]>, Errno> {
    // SAFETY: by the caller.
    let layout = unsafe { bytes_of(layout) };
    if layout.is_some_and(|name| name.len() >= MAX_LAYOUT) {
        return Err(fail(libc::EINVAL, format_args!("Layout too long")));
    }
    Ok(layout)
}

/// What a run of the pool is known by: even, and not 0.
fn run_id() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the buffer has as many bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != 8 {
        fatal(format_args!("the system gives no random number"));
    }
    (u64::from_ne_bytes(bytes) & !1).max(2)
}

/// The one place where pools come into being for programs.
fn enter(direct: DirectPool, place: Place, head: Head) -> Result<&'static Pool, Errno> {
    let pool = Box::new(Pool {
        base: direct.base() as usize,
        uuid: uuid_lo(direct.id()),
        run_id: run_id(),
        head,
        root_busy: AtomicBool::new(false),
        user_data: AtomicPtr::new(null_mut()),
        control: PoolControl::default(),
        direct,
        _card: place.into_session(),
    });
    let pool = registry::enter(pool).map_err(|refused| match refused {
        Refused::SameIdentifier => {
            let what = "the pool itself, or a copy of it";
            let text = "a pool with the same identifier";
            fail(libc::EEXIST, format_args!("{text} ({what}) is open in this process"))
        }
        Refused::NoMemory => fail(libc::ENOMEM, format_args!("no memory to enter one more open pool")),
    })?;
    pool.control.set_allocated(pool.head.allocated());
    if let Err(errno) = ctl::apply_configuration(Some(pool)) {
        drop(registry::leave(pool));
        return Err(errno);
    }
    Ok(pool)
}

fn create(path: &str, layout: &[u8], bytes: u64, mode: libc::mode_t) -> Result<&'static Pool, Errno> {
    ctl::apply_configuration(None)?;
    match Part::of(path)? {
        // With a size it is the file of a pool that is asked for, and that is there.
        Some(part) if bytes == 0 => {
            check_bytes(part.bytes)?;
            create_file(&part.path, layout, part.to_create()?, mode)
        }
        _ => create_file(path, layout, bytes, mode),
    }
}

fn check_bytes(bytes: u64) -> Result<(), Errno> {
    if bytes != 0 && bytes < MIN_POOL {
        return Err(fail(libc::EINVAL, format_args!("size {bytes} smaller than {MIN_POOL}")));
    }
    if i64::try_from(bytes).is_err() {
        return Err(fail(libc::EFBIG, format_args!("size {bytes} is larger than any file")));
    }
    Ok(())
}

/// EINVAL for a folder, as with PMDK; opening one would be EISDIR.
fn refuse_folder(path: &str) -> Result<(), Errno> {
    if !is_location(path) && Path::new(path).is_dir() {
        return Err(fail(libc::EINVAL, format_args!("{path} is a folder, and no pool")));
    }
    Ok(())
}

fn create_file(path: &str, layout: &[u8], bytes: u64, mode: libc::mode_t) -> Result<&'static Pool, Errno> {
    check_bytes(bytes)?;
    let permissions = Some(mode & 0o7777);
    let options = environment::options(control::prefault_at_create())?.permissions(permissions);
    let bytes_asked = bytes;
    if bytes == 0 {
        refuse_folder(path)?;
    }
    let (mut place, bytes) = Place::of_new(path, bytes, run_id()).map_err(fail_place)?;
    let mut head = None;
    // The pool is there with its head, or not at all; on a card its path comes behind both.
    let direct = DirectPool::create_with(&place.location, bytes, &options, |direct| {
        head = Some(Head::create(direct, layout)?);
        Ok::<(), nearpm::Error>(())
    });
    let direct = direct.map_err(|error| fail_below(&error))?;
    let head = head.expect("a pool that was created has been filled");
    if let Err(errno) = place.announce(Some(mode)).map_err(fail_place) {
        drop(direct);
        // The error that led here is the one to report.
        let _ = nearpm::remove(&place.location);
        return Err(errno);
    }
    let made = place.file_made(bytes_asked);
    enter(direct, place, head).inspect_err(|_| {
        if let Some(file) = made {
            // As above. What was wrong is a setting of the pool: nothing is in it yet.
            let _ = nearpm::remove(&file);
        }
    })
}

fn open(path: &str, layout: Option<&[u8]>) -> Result<&'static Pool, Errno> {
    ctl::apply_configuration(None)?;
    let copy_on_write = control::copy_on_write();
    let options = environment::options(control::prefault_at_open())?.copy_on_write(copy_on_write);
    let part = Part::of(path)?;
    let path = part.as_ref().map_or(path, |part| &part.path);
    refuse_folder(path)?;
    let place = Place::of(path).map_err(fail_place)?;
    if copy_on_write && !place.is_file() {
        let text = "copy_on_write.at_open is not supported on a card: copy the pool into a file, and open that";
        return Err(fail(libc::ENOTSUP, format_args!("{text}")));
    }
    let direct = DirectPool::open(&place.location, &options).map_err(|error| fail_below(&error))?;
    let head = Head::open(&direct, &place.location).map_err(|error| fail_below(&error))?;
    if let Some(wanted) = layout {
        let (wanted, found) = (String::from_utf8_lossy(wanted), head.layout());
        if wanted != found {
            let text = format_args!("wrong layout (\"{wanted}\"), pool created with layout \"{found}\"");
            return Err(fail(libc::EINVAL, text));
        }
    }
    enter(direct, place, head)
}

fn handle_of(pool: Result<&'static Pool, Errno>) -> Handle {
    match pool {
        Ok(pool) => pool.handle(),
        Err(errno) => {
            crate::error::set_errno(errno);
            null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_create(
    path: *const c_char,
    layout: *const c_char,
    bytes: usize,
    mode: libc::mode_t,
) -> Handle {
    // SAFETY: the program gives strings.
    let arguments = unsafe { layout_of(layout).and_then(|layout| Ok((location_of(path)?, layout))) };
    handle_of(arguments.and_then(|(path, layout)| create(path, layout.unwrap_or_default(), bytes as u64, mode)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_open(path: *const c_char, layout: *const c_char) -> Handle {
    // SAFETY: the program gives strings.
    let arguments = unsafe { layout_of(layout).and_then(|layout| Ok((location_of(path)?, layout))) };
    handle_of(arguments.and_then(|(path, layout)| open(path, layout)))
}

/// Persistent statistics are kept when a pool is closed, if they have changed.
fn keep_statistics(pool: &Pool) {
    let allocated = pool.control.allocated();
    if pool.direct.belongs_here()
        && allocated != pool.head.allocated()
        && let Ok(mut change) = Change::begin(pool)
    {
        change.store(pool.head.allocated_at(), allocated as u64);
        // A pool that takes no change any more has no statistics that anybody could rely on.
        let _ = change.commit();
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_close(handle: Handle) {
    if handle.is_null() {
        return;
    }
    let Ok(open) = pool_of(handle) else { return };
    if thread().tx.is_open_on(open) {
        fail(libc::EBUSY, format_args!("the pool stays open: a transaction of this thread is open on it"));
        return;
    }
    keep_statistics(open);
    let Some(pool) = registry::leave(open) else { return };
    crate::memory::forget_pending(&pool);
    // A child of `fork` waits for no lock of its parent.
    if environment::statistics() && pool.direct.belongs_here() {
        eprintln!("libpmemobj: {:#?}\nlibpmemobj: {:#?}", pool.direct.statistics(), pool.direct.heap_state());
        eprintln!("libpmemobj: mode: {}", pool.direct.mode().name());
    }
    if let Err(error) = pool.direct.close() {
        // There is no return value; the next open recovers what is durable.
        fail_below(&error);
        eprintln!("libpmemobj: closing a pool: {error}");
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_check(path: *const c_char, layout: *const c_char) -> c_int {
    // SAFETY: the program gives strings.
    let arguments = unsafe { layout_of(layout).and_then(|layout| Ok((location_of(path)?, layout))) };
    let pool = match arguments.and_then(|(path, layout)| open(path, layout)) {
        Ok(pool) => pool,
        Err(_) => return -1,
    };
    let consistent = crate::iterate::is_consistent(pool);
    pmemobj_close(pool.handle());
    c_int::from(consistent)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_set_user_data(handle: Handle, data: *mut c_void) {
    if let Ok(pool) = pool_of(handle) {
        pool.user_data.store(data.cast(), Ordering::Release);
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_get_user_data(handle: Handle) -> *mut c_void {
    pool_of(handle).map_or(null_mut(), |pool| pool.user_data.load(Ordering::Acquire).cast())
}

/// Makes the root object, or a larger one with the bytes that there were; gives the offset of its
/// data.
fn grow_root(pool: &Pool, bytes: u64, constructor: Constructor, argument: *mut c_void) -> Result<u64, Errno> {
    let (former, former_bytes) = pool.head.root();
    if former != 0 && bytes <= former_bytes {
        return Ok(former);
    }
    let space = object::reserve(pool, bytes, 0, flag::ZERO)?;
    if former != 0 {
        // SAFETY: both objects have as many bytes, and they lie apart.
        unsafe { pool.at::<u8>(space.data).copy_from_nonoverlapping(pool.at::<u8>(former), former_bytes as usize) };
    }
    construct(pool, &space, constructor, argument)?;
    let mut change = Change::begin(pool).inspect_err(|_| pool.direct.cancel(space.reservation()))?;
    change.publish(&space);
    change.free(former);
    let words = pool.head.root_range();
    change.store(words.start, space.data);
    change.store(words.start + 8, bytes);
    change.commit()?;
    Ok(space.data)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_root(handle: Handle, bytes: usize) -> Oid {
    pmemobj_root_construct(handle, bytes, None, null_mut())
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_root_construct(
    handle: Handle,
    bytes: usize,
    constructor: Constructor,
    argument: *mut c_void,
) -> Oid {
    let Ok(pool) = pool_of(handle) else { return Oid::NULL };
    let bytes = bytes as u64;
    let (root, root_bytes) = pool.head.root();
    if bytes > MAX_ALLOC {
        fail(libc::ENOMEM, format_args!("requested size too large"));
        return Oid::NULL;
    }
    if bytes == 0 && root == 0 {
        fail(libc::EINVAL, format_args!("requested size cannot equals zero"));
        return Oid::NULL;
    }
    if root != 0 && bytes <= root_bytes {
        return pool.oid(root);
    }
    if thread().root_of.get().is_some() {
        fail(libc::EDEADLK, format_args!("the constructor of a root asks for a root that is not there yet"));
        return Oid::NULL;
    }
    while pool.root_busy.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    thread().root_of.set(Some(RootOf { pool, levels: thread().tx.levels() }));
    let grown = grow_root(pool, bytes, constructor, argument);
    thread().leave_root();
    grown.map_or(Oid::NULL, |root| pool.oid(root))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_root_size(handle: Handle) -> usize {
    pool_of(handle).map_or(0, |pool| pool.head.root().1 as usize)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_pool_by_oid(oid: Oid) -> Handle {
    pool_of_oid(oid).map_or(null_mut(), Pool::handle)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_pool_by_ptr(address: *const c_void) -> Handle {
    pool_of_address(address as usize).map_or(null_mut(), Pool::handle)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_oid(address: *const c_void) -> Oid {
    pool_of_address(address as usize).map_or(Oid::NULL, |pool| pool.oid((address as usize - pool.base) as u64))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_direct(oid: Oid) -> *mut c_void {
    if oid.is_null() {
        return null_mut();
    }
    pool_of_oid(oid).map_or(null_mut(), |pool| pool.at(oid.off))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_check_version(major: u32, minor: u32) -> *const c_char {
    let (ours, least) = VERSION;
    if major != ours {
        fail(libc::EINVAL, format_args!("libpmemobj major version mismatch (need {major}, found {ours})"));
    } else if minor > least {
        fail(libc::EINVAL, format_args!("libpmemobj minor version mismatch (need {minor}, found {least})"));
    } else {
        return std::ptr::null();
    }
    crate::error::pmemobj_errormsg()
}

/// The library's own memory comes from the system's allocator: other functions are not called.
#[unsafe(no_mangle)]
extern "C" fn pmemobj_set_funcs(
    _malloc: *const c_void,
    _free: *const c_void,
    _realloc: *const c_void,
    _strdup: *const c_void,
) {
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pool_has_an_identifier_of_its_own() {
        let ids = [1, 2, 3, u32::MAX, 0x8000_0000];
        for (at, &id) in ids.iter().enumerate() {
            assert_ne!(uuid_lo(id), 0);
            assert!(ids[..at].iter().all(|&other| uuid_lo(other) != uuid_lo(id)));
        }
    }

    #[test]
    fn runs_are_even_and_differ() {
        let (first, second) = (run_id(), run_id());
        assert!(first % 2 == 0 && first != 0 && first != second);
    }
}
