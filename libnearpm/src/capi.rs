//! The C interface: `include/nearpm.h` documents it, a test compiles and runs a C program against it.
//!
//! Unsafe code here does three things: it reads strings and buffers that C hands over, it writes results to where C asks, and
//! it exports the names. What a caller must keep to is in the header.

#![allow(non_snake_case, unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Problem};
use crate::options::{Mechanism, PoolOptions};
use crate::pool::Pool;

macro_rules! codes {
    ($( $(#[doc = $doc:literal])* $name:ident = $code:literal ),* $(,)?) => {
        /// Error codes, as `NearPM_errno` gives them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Code { $( $(#[doc = $doc])* $name = $code ),* }

        impl Code {
            /// Every code with its name in C and its meaning.
            pub const ALL: &'static [(Code, &'static str, &'static str)] =
                &[ $( (Code::$name, stringify!($name), concat!($($doc),*)) ),* ];
        }
    };
}

codes! {
    /// No error.
    OK = 0,
    /// An argument makes no sense: a null pointer, a size of zero, a bad name or option.
    EINVAL = 1,
    /// The pool does not exist, or no pool has this identifier.
    ENOENT = 2,
    /// Something with this name exists already.
    EEXIST = 3,
    /// The pool is open already.
    EBUSY = 4,
    /// The pool may not be written.
    EACCES = 5,
    /// No space on the medium, or no free space in the pool.
    ENOSPC = 6,
    /// The pool is foreign, unfinished, newer, truncated or corrupt.
    EBADPOOL = 7,
    /// A range leaves the pool, is not aligned, or is not an allocated object.
    ERANGE = 8,
    /// The log of the thread is full, or there is none.
    ELOG = 9,
    /// The card failed or has gone.
    EDEVICE = 10,
    /// An earlier failure: close and open the pool.
    EPOISONED = 11,
    /// The operating system refused.
    ESYSTEM = 12,
    /// A fault of this library.
    EINTERNAL = 13,
}

impl Code {
    fn of(error: &Error) -> Code {
        match error {
            Error::Pool { problem, .. } => match problem {
                Problem::NotFound | Problem::UnknownCard { .. } => Code::ENOENT,
                Problem::Exists => Code::EEXIST,
                Problem::InUse { .. } => Code::EBUSY,
                Problem::ReadOnly => Code::EACCES,
                Problem::NoSpace { .. } | Problem::DirectoryFull { .. } => Code::ENOSPC,
                Problem::Foreign { .. }
                | Problem::RepairInterrupted
                | Problem::Unfinished
                | Problem::Newer { .. }
                | Problem::Truncated { .. }
                | Problem::Corrupt { .. } => Code::EBADPOOL,
                Problem::TooSmall { .. } | Problem::BadName { .. } | Problem::BadOption { .. } => Code::EINVAL,
            },
            Error::System { .. } => Code::ESYSTEM,
            Error::OutOfRange { .. }
            | Error::Misaligned { .. }
            | Error::NotAllocated { .. }
            | Error::NotALog { .. } => Code::ERANGE,
            Error::ZeroSize { .. } | Error::Nested | Error::RootType { .. } | Error::Aborted(_) => Code::EINVAL,
            Error::Full { .. } => Code::ENOSPC,
            Error::TooLarge { .. } | Error::NoLane { .. } | Error::LogInUse { .. } => Code::ELOG,
            Error::ReadOnly => Code::EACCES,
            Error::Poisoned => Code::EPOISONED,
            Error::Corrupt { .. } => Code::EBADPOOL,
            Error::Card(_) | Error::Damaged { .. } | Error::LogFailed { .. } => Code::EDEVICE,
        }
    }
}

/// A failure on its way to C.
struct Failure {
    code: Code,
    message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { code: Code::of(&error), message: error.to_string() }
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure { code: Code::EINVAL, message: message.into() }
}

thread_local! {
    static LAST: RefCell<(Code, CString)> = RefCell::new((Code::OK, CString::default()));
}

/// Runs a call, keeps its error for `NearPM_errno`, and lets no panic pass into C.
fn call<T>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Failure { code: Code::EINTERNAL, message: "the library panicked; its message is on standard error".into() })
    });
    result.unwrap_or_else(|failure| {
        let message = CString::new(failure.message.replace('\0', "?")).expect("zeros were replaced");
        LAST.with(|last| *last.borrow_mut() = (failure.code, message));
        failed
    })
}

/// Pools that C has open, by identifier.
static POOLS: Mutex<BTreeMap<u32, Arc<Pool>>> = Mutex::new(BTreeMap::new());

fn pool(id: u32) -> Result<Arc<Pool>, Failure> {
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.get(&id).cloned().ok_or_else(|| Failure {
        code: Code::ENOENT,
        message: format!("no pool with identifier {id:#x} is open; open or create it first"),
    })
}

/// Reads a string of C.
///
/// # Safety
/// `text` is null, or points to a string that ends with a zero.
unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(format!("{what} is a null pointer")));
    }
    // SAFETY: it is not null, and the caller says that it is a string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(format!("{what} is not UTF-8")))
}

/// Reads a buffer of C.
///
/// # Safety
/// `data` is null, or points to `bytes` readable bytes.
unsafe fn buffer<'a>(data: *const c_void, bytes: usize) -> Result<&'a [u8], Failure> {
    if data.is_null() || bytes == 0 {
        return Err(invalid("the new value is a null pointer, or has no bytes"));
    }
    // SAFETY: it is not null, and the caller says that it has these bytes.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) })
}

/// Offset in the pool of a pointer into it.
fn offset(pool: &Pool, pointer: *const c_void) -> Result<u64, Failure> {
    let base = pool.address().ok_or_else(|| invalid("this pool has no addresses"))? as usize;
    (pointer as usize)
        .checked_sub(base)
        .map(|o| o as u64)
        .filter(|&o| o < pool.bytes())
        .ok_or_else(|| Failure { code: Code::ERANGE, message: format!("{pointer:p} does not point into the pool") })
}

/// Pointer to an offset in the pool; null for 0.
fn pointer(pool: &Pool, offset: u64) -> Result<*mut c_void, Failure> {
    let base = pool.address().ok_or_else(|| invalid("this pool has no addresses"))?;
    if offset >= pool.bytes() {
        return Err(Failure { code: Code::ERANGE, message: format!("offset {offset:#x} is not in the pool") });
    }
    Ok(if offset == 0 { std::ptr::null_mut() } else { base.wrapping_add(offset as usize).cast() })
}

fn open(location: &str, start: impl FnOnce(&PoolOptions) -> Result<Pool, Error>) -> Result<u32, Failure> {
    if location.starts_with("card:") {
        return Err(invalid(
            "C programs store through pointers, which the memory of a card does not have here; use a pool in a file",
        ));
    }
    let pool = start(&PoolOptions::new().mechanism(Mechanism::Undo))?;
    let id = pool.id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if pools.contains_key(&id) {
        let message = format!(
            "pool {location}: a pool with its identifier {id:#x} (a copy of it?) is open already; close that first"
        );
        return Err(Failure { code: Code::EBUSY, message });
    }
    pools.insert(id, Arc::new(pool));
    Ok(id)
}

/// Stores a result where C asked for it.
///
/// # Safety
/// `to` is null, or points to a writable `uint32_t`.
unsafe fn give_id(to: *mut u32, id: impl FnOnce() -> Result<u32, Failure>) -> Result<c_int, Failure> {
    if to.is_null() {
        return Err(invalid("the place for the pool's identifier is a null pointer"));
    }
    let id = id()?;
    // SAFETY: it is not null, and the caller says that it may be written.
    unsafe { *to = id };
    Ok(0)
}

/// See `nearpm.h`.
///
/// # Safety
/// `device_path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_init_device(device_path: *const c_char) -> c_int {
    call(-1, || {
        if device_path.is_null() {
            return Ok(0);
        }
        // SAFETY: as for this function.
        match unsafe { string(device_path, "the path of the device") }? {
            "cpu" => Ok(0),
            path => Err(Failure {
                code: Code::EDEVICE,
                message: format!("{path}: this build of the library reaches no card from C; use \"cpu\""),
            }),
        }
    })
}

/// See `nearpm.h`.
///
/// # Safety
/// `location` is null or a string; `pool_id` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_pool_create(location: *const c_char, bytes: u64, pool_id: *mut u32) -> c_int {
    // SAFETY: as for this function.
    call(-1, || unsafe {
        let location = string(location, "the location of the pool")?;
        give_id(pool_id, || open(location, |options| options.create(location, bytes)))
    })
}

/// See `nearpm.h`.
///
/// # Safety
/// `location` is null or a string; `pool_id` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_pool_open(location: *const c_char, pool_id: *mut u32) -> c_int {
    // SAFETY: as for this function.
    call(-1, || unsafe {
        let location = string(location, "the location of the pool")?;
        give_id(pool_id, || open(location, |options| options.open(location)))
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_pool_close(pool_id: u32) -> c_int {
    call(-1, || {
        let closed = pool(pool_id)?;
        POOLS.lock().unwrap_or_else(PoisonError::into_inner).remove(&pool_id);
        match Arc::try_unwrap(closed) {
            Ok(pool) => pool.close()?,
            Err(_) => return Err(invalid("another thread is in a call on the pool; it is closed when that returns")),
        }
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_direct(pool_id: u32, at: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || pointer(&*pool(pool_id)?, at))
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_offset(pool_id: u32, address: *const c_void) -> u64 {
    call(0, || offset(&*pool(pool_id)?, address))
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_alloc(pool_id: u32, size: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let object = pool.tx(|tx| tx.alloc_zeroed(size))?;
        pointer(&pool, object)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_free(pool_id: u32, address: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let object = offset(&pool, address)?;
        pool.tx(|tx| tx.free(object))?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_root(pool_id: u32) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let root = pool.root()?;
        pointer(&pool, root)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_set_root(pool_id: u32, address: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let root = if address.is_null() { 0 } else { offset(&pool, address)? };
        pool.tx(|tx| tx.set_root(root))?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_persist(pool_id: u32, address: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.flush(offset(&pool, address)?, size)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_undolog_create(pool_id: u32, thread_id: u16, old_data_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.undolog_create(thread_id, offset(&pool, old_data_ptr)?, size)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
///
/// # Safety
/// `new_data` is null or points to `size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_redolog_create(
    pool_id: u32,
    thread_id: u16,
    destination: *const c_void,
    new_data: *const c_void,
    size: u64,
) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        // SAFETY: as for this function.
        let value = unsafe { buffer(new_data, size as usize) }?;
        let entry = pool.redolog_create(thread_id, offset(&pool, destination)?, value)?;
        pointer(&pool, entry)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_applylog(pool_id: u32, thread_id: u16, redolog_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.applylog(thread_id, offset(&pool, redolog_ptr)?, size)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_commit_log(pool_id: u32, thread_id: u16) -> c_int {
    call(-1, || {
        pool(pool_id)?.commit_log(thread_id)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_abort_log(pool_id: u32, thread_id: u16) -> c_int {
    call(-1, || {
        pool(pool_id)?.abort_log(thread_id)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_ckpoint_create(pool_id: u32, thread_id: u16, old_data_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.ckpoint_create(thread_id, offset(&pool, old_data_ptr)?, size)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_shadowcpy(pool_id: u32, thread_id: u16, page_ptr: *const c_void, size: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let copy = pool.shadowcpy(thread_id, offset(&pool, page_ptr)?, size)?;
        pointer(&pool, copy)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_switch_page(pool_id: u32, reference: *mut u64, copy: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.switch_page(offset(&pool, reference.cast())?, offset(&pool, copy)?)?;
        Ok(0)
    })
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_errno() -> c_int {
    LAST.with(|last| last.borrow().0 as c_int)
}

/// See `nearpm.h`.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_errormsg() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}
