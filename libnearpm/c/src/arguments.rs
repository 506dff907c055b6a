//! Checks of what C hands over.

use std::ffi::{CStr, c_char, c_void};

use super::error::{Failure, NearPM_code, invalid};
use nearpm::Error;
use nearpm::direct::DirectPool;

/// Reads a string of C.
///
/// # Safety
/// `text` is null, or points to a string that ends with a zero.
pub(super) unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(format!("{what} is a null pointer")));
    }
    // SAFETY: it is not null, and the caller says that it is a string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(format!("{what} is not UTF-8")))
}

/// Refuses a null pointer.
pub(super) fn not_null<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(invalid(format!("{what} is a null pointer"))) } else { Ok(()) }
}

/// The addresses of an open pool.
#[derive(Clone, Copy)]
pub(super) struct Window {
    base: *mut u8,
    bytes: u64,
}

impl Window {
    pub fn new(base: *mut u8, bytes: u64) -> Window {
        Window { base, bytes }
    }

    pub fn of(pool: &DirectPool) -> Window {
        Window::new(pool.base(), pool.bytes())
    }

    /// Offset of an address, if it lies in the pool.
    pub fn find(self, address: *const c_void) -> Option<u64> {
        let offset = (address as usize).checked_sub(self.base as usize)? as u64;
        (offset < self.bytes).then_some(offset)
    }

    /// Offset of an address.
    pub fn offset(self, address: *const c_void) -> Result<u64, Failure> {
        self.find(address).ok_or_else(|| Failure {
            code: NearPM_code::NEARPM_ERANGE,
            message: format!("{address:p} does not point into the pool: nothing was done"),
        })
    }

    /// Offsets of a range that is not empty. That it ends in the pool is checked by the pool.
    pub fn range(self, address: *const c_void, bytes: u64) -> Result<std::ops::Range<u64>, Failure> {
        if bytes == 0 {
            return Err(Error::ZeroSize { what: "a range" }.into());
        }
        let start = self.offset(address)?;
        Ok(start..start.wrapping_add(bytes))
    }

    /// Address of an offset; null for 0.
    pub fn pointer(self, offset: u64) -> Result<*mut c_void, Failure> {
        if offset >= self.bytes {
            return Err(Failure {
                code: NearPM_code::NEARPM_ERANGE,
                message: format!("offset {offset:#x} is not in the pool, which has {:#x} bytes", self.bytes),
            });
        }
        Ok(if offset == 0 { std::ptr::null_mut() } else { self.base.wrapping_add(offset as usize).cast() })
    }
}

/// Bits of a handle that tell what kind it is. No address looks like one.
pub(super) const POOL_HANDLE: usize = 0x4e50 << 48;
pub(super) const TRANSACTION_HANDLE: usize = 0x4e54 << 48;

/// A number in the clothes of a pointer.
pub(super) fn handle<T>(kind: usize, number: u64) -> *mut T {
    std::ptr::without_provenance_mut(kind | number as usize)
}

/// The number of a handle, if it is one of this kind.
#[inline]
pub(super) fn number<T>(kind: usize, handle: *const T) -> Option<u64> {
    let value = handle.addr();
    (value >> 48 == kind >> 48).then_some((value & !kind) as u64)
}
