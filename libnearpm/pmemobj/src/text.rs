//! Lengths of texts that programs hand over.

use std::ffi::{CStr, c_char};

/// Bytes of a string, the closing zero included.
///
/// # Safety
/// It has a closing zero.
pub unsafe fn string_bytes(text: *const c_char) -> usize {
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes_with_nul().len()
}

/// As [`string_bytes`], for `wchar_t`.
///
/// # Safety
/// As there.
pub unsafe fn wide_string_bytes(text: *const i32) -> usize {
    let mut length = 0;
    // SAFETY: by the caller.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    (length + 1) * size_of::<i32>()
}
