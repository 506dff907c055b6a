//! Errors on their way to C.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nearpm::{Error, Problem};

/// Error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum NearPM_code {
    /// No error.
    NEARPM_OK = 0,
    /// An argument makes no sense: a null pointer, a size of zero, a bad name or option, a handle
    /// that is none.
    NEARPM_EINVAL = 1,
    /// The pool does not exist, or no pool has this identifier.
    NEARPM_ENOENT = 2,
    /// Something with this name exists already.
    NEARPM_EEXIST = 3,
    /// The pool is open already, or is still in use.
    NEARPM_EBUSY = 4,
    /// The pool may not be written.
    NEARPM_EACCES = 5,
    /// No space on the medium, or no free space in the pool.
    NEARPM_ENOSPC = 6,
    /// The pool is foreign, unfinished, newer, truncated or corrupt.
    NEARPM_EBADPOOL = 7,
    /// A range leaves the pool, is not aligned, or is not an allocated object.
    NEARPM_ERANGE = 8,
    /// The log of the thread is full, or there is none.
    NEARPM_ELOG = 9,
    /// The card failed or has gone.
    NEARPM_EDEVICE = 10,
    /// An earlier failure: close and open the pool.
    NEARPM_EPOISONED = 11,
    /// The operating system refused.
    NEARPM_ESYSTEM = 12,
    /// A fault of this library.
    NEARPM_EINTERNAL = 13,
}

use NearPM_code::*;

impl NearPM_code {
    fn of(error: &Error) -> NearPM_code {
        match error {
            Error::Pool { problem, .. } => match problem {
                Problem::NotFound | Problem::UnknownCard { .. } => NEARPM_ENOENT,
                Problem::Exists => NEARPM_EEXIST,
                Problem::InUse { .. } => NEARPM_EBUSY,
                Problem::ReadOnly | Problem::Unreadable => NEARPM_EACCES,
                Problem::NoSpace { .. } | Problem::DirectoryFull { .. } => NEARPM_ENOSPC,
                Problem::Foreign { .. }
                | Problem::NotAFile { .. }
                | Problem::MemberAlone { .. }
                | Problem::OtherMember { .. }
                | Problem::RepairInterrupted
                | Problem::Unfinished
                | Problem::Newer { .. }
                | Problem::Truncated { .. }
                | Problem::Corrupt { .. } => NEARPM_EBADPOOL,
                Problem::NoAnswer { .. } => NEARPM_EDEVICE,
                Problem::TooSmall { .. } | Problem::BadName { .. } | Problem::BadOption { .. } => NEARPM_EINVAL,
                // Of a newer version of the library, which says more.
                _ => NEARPM_EBADPOOL,
            },
            Error::System { .. } => NEARPM_ESYSTEM,
            Error::OutOfRange { .. }
            | Error::Misaligned { .. }
            | Error::NotAllocated { .. }
            | Error::NotALog { .. } => NEARPM_ERANGE,
            Error::ZeroSize { .. } | Error::Nested | Error::RootType { .. } | Error::Aborted(_) => NEARPM_EINVAL,
            Error::Full { .. } => NEARPM_ENOSPC,
            Error::TooLarge { .. } | Error::NoLane { .. } | Error::LogInUse { .. } => NEARPM_ELOG,
            Error::ReadOnly => NEARPM_EACCES,
            Error::Forked => NEARPM_EBUSY,
            Error::NoMemory { .. } => NEARPM_ESYSTEM,
            Error::Poisoned => NEARPM_EPOISONED,
            Error::Corrupt { .. } => NEARPM_EBADPOOL,
            Error::Card(_) | Error::Damaged { .. } | Error::LogFailed { .. } | Error::StoresLost { .. } => {
                NEARPM_EDEVICE
            }
            _ => NEARPM_EINTERNAL,
        }
    }
}

/// A failure on its way to C.
pub(super) struct Failure {
    pub code: NearPM_code,
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { code: NearPM_code::of(&error), message: error.to_string() }
    }
}

/// A senseless argument.
pub(super) fn invalid(message: impl Into<String>) -> Failure {
    Failure { code: NEARPM_EINVAL, message: message.into() }
}

thread_local! {
    static LAST: RefCell<(NearPM_code, CString)> = RefCell::new((NEARPM_OK, CString::default()));
}

/// Runs a call, keeps its error for this thread, and lets no panic pass into C.
fn attempt<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, NearPM_code> {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let message = "the library panicked; its message is on standard error".into();
        Err(Failure { code: NEARPM_EINTERNAL, message })
    });
    result.map_err(|failure| {
        let message = CString::new(failure.message.replace('\0', "?")).expect("zeros were replaced");
        LAST.with(|last| *last.borrow_mut() = (failure.code, message));
        failure.code
    })
}

/// Runs a call that gives `failed` where it fails.
#[inline]
pub(super) fn call<T>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    attempt(body).unwrap_or(failed)
}

/// Runs a call that gives a code.
#[inline]
pub(super) fn status(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    attempt(body).err().unwrap_or(NEARPM_OK) as c_int
}

/// Gives the code of this thread's last failure.
///
/// Calls that succeed leave it as it was. Functions that give a code give the same one; this is for
/// those that give a pointer or an offset.
///
/// # Returns
/// A value of `enum NearPM_code`, `NEARPM_OK` if no call of this thread has failed.
///
/// # Errors
/// None.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_errno() -> c_int {
    LAST.with(|last| last.borrow().0 as c_int)
}

/// Gives the text of this thread's last failure: what went wrong, where, and what to do.
///
/// # Returns
/// A text that is valid until the next failure of this thread; an empty one if no call of this
/// thread has failed.
///
/// # Errors
/// None.
///
/// # Example
/// ```c
/// if (nearpm_open("/mnt/pmem/a.pool", NULL, &pool) != NEARPM_OK)
///     fprintf(stderr, "%s\n", nearpm_errormsg());
/// ```
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_errormsg() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}

/// Gives the version of the library.
///
/// # Returns
/// A text such as `0.1.0`, valid as long as the program runs.
///
/// # Errors
/// None.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
