//! `pmemobj_ctl_*`, and configuration by `PMEMOBJ_CONF` and `PMEMOBJ_CONF_FILE`.
//!
//! Entries by name: values that the library keeps and uses, values that it keeps because programs
//! read back what they set, and figures. `docs/pmdk-abi.md` says of each which it is.

mod configuration;
mod entry;

pub use configuration::apply as apply_configuration;

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::abi::Handle;
use crate::error::{Errno, fail};
use crate::registry::{Pool, pool_of};
use entry::Entry;

/// What is asked of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Query {
    Get,
    Set,
    Execute,
}

fn find(pool: Option<&Pool>, name: &str) -> Result<Entry, Errno> {
    Entry::find(pool.is_some(), name)
        .ok_or_else(|| fail(libc::EINVAL, format_args!("invalid query entry point {name}")))
}

/// # Safety
/// `name` is a string, `argument` what the entry takes.
unsafe fn ask(handle: Handle, name: *const c_char, argument: *mut c_void, query: Query) -> c_int {
    let answer = || {
        let pool = if handle.is_null() { None } else { Some(pool_of(handle)?) };
        if name.is_null() {
            return Err(fail(libc::EINVAL, format_args!("invalid query")));
        }
        // What the environment says comes before what the program says. A wrong value of it is an
        // error of create and open.
        let _ = apply_configuration(None);
        // SAFETY: by the caller.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let entry = find(pool, &name)?;
        if !entry.takes(query) {
            return Err(fail(libc::EINVAL, format_args!("invalid query entry point {name}")));
        }
        if argument.is_null() {
            return Err(fail(libc::EINVAL, format_args!("{name} requires a non-NULL argument")));
        }
        // SAFETY: by the caller.
        unsafe {
            match query {
                Query::Get => entry.get(pool, argument),
                Query::Set => entry.set(pool, argument),
                Query::Execute => entry.execute(pool, argument),
            }
        }
    };
    if answer().is_ok() { 0 } else { -1 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_get(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Get) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_set(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Set) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_exec(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Execute) }
}
