//! errno, messages, and the end of a process that cannot go on.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::{Arguments, Write};

use nearpm::{Error, Problem};
use nearpm_place::Refused;

use crate::thread_end::ThreadEnd;

/// An error number.
pub type Errno = c_int;

/// Text for `pmemobj_errormsg`, closed by a zero.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn set(&mut self, text: Arguments<'_>) {
        let mut all = std::mem::take(&mut self.0);
        all.clear();
        let mut text_of = String::from_utf8(all).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = text_of.write_fmt(text);
        self.0 = text_of.into_bytes();
        self.0.retain(|&byte| byte != 0);
        self.0.push(0);
    }
}

/// The message of the calling thread. Errors are rare: it is looked up by a call, and lives as long
/// as the thread.
fn own_message() -> &'static RefCell<Message> {
    static END: ThreadEnd = ThreadEnd::new(end);
    unsafe extern "C" fn end(message: *mut c_void) {
        // SAFETY: the value of the key is what is allocated below.
        drop(unsafe { Box::from_raw(message.cast::<RefCell<Message>>()) });
    }
    let key =
        END.key().unwrap_or_else(|errno| fatal(format_args!("no key for the messages of threads: error {errno}")));
    // SAFETY: the key is one, and its values are null or what is allocated here.
    unsafe {
        let mut message = libc::pthread_getspecific(key).cast::<RefCell<Message>>().cast_const();
        if message.is_null() {
            message = Box::into_raw(Box::default());
            libc::pthread_setspecific(key, message.cast());
        }
        &*message
    }
}

/// Sets errno.
pub fn set_errno(errno: Errno) {
    // SAFETY: the location is that of the calling thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Notes what went wrong, sets errno and gives it.
#[cold]
pub fn fail(errno: Errno, text: Arguments<'_>) -> Errno {
    own_message().borrow_mut().set(text);
    set_errno(errno);
    errno
}

/// The message of the last error of this thread.
pub fn message() -> String {
    let message = own_message().borrow();
    String::from_utf8_lossy(message.0.strip_suffix(b"\0").unwrap_or(&message.0)).into_owned()
}

/// As [`fail`], with the system's text for the error behind the message.
#[cold]
pub fn fail_system(errno: Errno, text: &str) -> Errno {
    // SAFETY: the text lives until the next call by this thread.
    let reason = unsafe { CStr::from_ptr(libc::strerror(errno)) };
    fail(errno, format_args!("{text}: {}", reason.to_string_lossy()))
}

/// As [`fail`], for an error of the library below.
#[cold]
pub fn fail_below(error: &Error) -> Errno {
    fail(errno_of(error), format_args!("{error}"))
}

/// As [`fail`], for a pool that has no place.
#[cold]
pub fn fail_place(refused: Refused) -> Errno {
    let errno = match refused {
        Refused::Pool(error) => return fail_below(&error),
        Refused::System(what, error) => return fail_system(error.raw_os_error().unwrap_or(libc::EIO), &what),
        Refused::NoCard => libc::ENOTSUP,
        Refused::Forked => libc::EBUSY,
        Refused::Card(_) => libc::EIO,
    };
    fail(errno, format_args!("{refused}"))
}

/// The number that C programs expect for an error.
pub fn errno_of(error: &Error) -> Errno {
    match error {
        Error::Pool { problem, .. } => match problem {
            Problem::NotFound => libc::ENOENT,
            Problem::Exists => libc::EEXIST,
            Problem::InUse { .. } => libc::EWOULDBLOCK,
            Problem::ReadOnly | Problem::Unreadable => libc::EACCES,
            Problem::NoSpace { .. } => libc::ENOSPC,
            Problem::DirectoryFull { .. } => libc::ENOSPC,
            Problem::UnknownCard { .. } => libc::ENODEV,
            _ => libc::EINVAL,
        },
        Error::System { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        Error::Full { .. } | Error::TooLarge { .. } | Error::NoMemory { .. } => libc::ENOMEM,
        Error::OutOfRange { .. }
        | Error::Misaligned { .. }
        | Error::ZeroSize { .. }
        | Error::NotAllocated { .. }
        | Error::Nested
        | Error::RootType { .. }
        | Error::NotALog { .. } => libc::EINVAL,
        Error::ReadOnly => libc::EACCES,
        Error::Forked => libc::EBUSY,
        Error::Aborted(_) => libc::ECANCELED,
        Error::NoLane { .. } | Error::LogInUse { .. } => libc::EBUSY,
        // The medium: LogFailed, StoresLost, Poisoned, Corrupt, Card, Damaged, and what a later
        // library adds.
        _ => libc::EIO,
    }
}

/// The error where there is no memory for what a transaction has to remember.
#[cold]
pub fn no_memory() -> Errno {
    fail(libc::ENOMEM, format_args!("no memory for the transaction"))
}

/// Ends the process: the medium fails in a call that cannot say so (as PMDK does), or the system
/// has not even a key or a random number.
#[cold]
pub fn fatal(text: Arguments<'_>) -> ! {
    eprintln!("libpmemobj: {text}");
    std::process::abort()
}

/// Text of the last error of this thread; empty if there was none. Valid until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn pmemobj_errormsg() -> *const c_char {
    let mut message = own_message().borrow_mut();
    if message.0.is_empty() {
        message.0.push(0);
    }
    message.0.as_ptr().cast()
}
