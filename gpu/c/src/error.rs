//! Refusals on their way to C.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call was refused.
pub struct Refusal(pub String);

impl From<nearpm_gpm::Error> for Refusal {
    fn from(error: nearpm_gpm::Error) -> Refusal {
        Refusal(error.to_string())
    }
}

impl From<nearpm_gpu::Error> for Refusal {
    fn from(error: nearpm_gpu::Error) -> Refusal {
        Refusal(error.to_string())
    }
}

impl From<nearpm_gphash::Error> for Refusal {
    fn from(error: nearpm_gphash::Error) -> Refusal {
        Refusal(error.to_string())
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal(why)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn tell(why: &str) {
    // A zero would end the text.
    let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has nobody to be told.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Runs a call; a refusal is kept for `gpm_error`. No panic passes into C.
pub fn call<T>(refused: T, act: impl FnOnce() -> Result<T, Refusal>) -> T {
    tell("");
    let why = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(result)) => return result,
        Ok(Err(Refusal(why))) => why,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            format!("a fault of this library: {text}")
        }
    };
    tell(&why);
    refused
}

/// The same for calls that give 0.
pub fn status(act: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    call(-1, || act().map(|()| 0))
}

/// Why this thread's last call was refused; empty where none was. It stays until the thread's next
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"the thread is ending".as_ptr())
}
