//! What calls answer: an error becomes a status, and a message that the thread may ask for.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// An error of an argument.
pub fn refuse(what: impl Into<String>) -> Error {
    Error::option(what)
}

pub(super) fn status(error: &Error) -> c_int {
    match error {
        Error::OutOfRange { .. } | Error::Buffer { .. } => 2,
        Error::LogFull { .. } | Error::NoMemory { .. } | Error::Pinned { .. } => 3,
        Error::NoVersion { .. } => 4,
        Error::DeadRank { .. } | Error::Elsewhere { .. } | Error::Unpublished { .. } => 5,
        Error::MissingPool { .. } | Error::Job { .. } | Error::Damaged { .. } | Error::Pool(_) => 6,
        Error::BadOption { .. } | Error::OtherType { .. } => 1,
        _ => 7,
    }
}

/// Runs a call: its error becomes a status and a message.
pub fn answer(act: impl FnOnce() -> Result<()>) -> c_int {
    let (status, message) = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => (status(&error), error.to_string()),
        Err(_) => (7, "the library has failed at a point where it must not: please report what was called".to_owned()),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with_borrow_mut(|place| *place = message);
    status
}

pub fn message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}
