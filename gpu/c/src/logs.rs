//! Logs. A handle is the address of the log's description in the device's memory, so that it is the
//! kernels' argument, too.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::rc::Rc;

use nearpm_gpm::{Log, table2};
use nearpm_gpu::Device;

use crate::error::{Refusal, call, status};
use crate::library::{find, number, path, unknown, with};

/// Makes or opens a log, and keeps it.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
unsafe fn made(name: *const c_char, make: impl FnOnce(Rc<dyn Device>, &Path) -> Result<Log, Refusal>) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let path = unsafe { path(name) }?;
        with(|library| {
            let log = make(library.device.clone(), path)?;
            let address = log.address();
            library.logs.insert(address, log);
            Ok(std::ptr::with_exposed_provenance_mut(address as usize))
        })
    })
}

/// Creates a conventional log.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpmlog_create_conv(name: *const c_char, size: usize, partitions: c_int) -> *mut c_void {
    let make = |device, path: &Path| {
        Ok(table2::gpmlog_create_conv(device, path, size as u64, number(partitions, "the number of partitions")?)?)
    };
    // SAFETY: as the caller says.
    unsafe { made(name, make) }
}

/// Creates a hierarchical log.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpmlog_create_hcl(
    name: *const c_char,
    size: usize,
    blocks: c_int,
    threads: c_int,
    entry: usize,
) -> *mut c_void {
    let make = |device, path: &Path| {
        let (blocks, threads) = (number(blocks, "the number of blocks")?, number(threads, "the number of threads")?);
        Ok(table2::gpmlog_create_hcl(device, path, size as u64, blocks, threads, entry as u64)?)
    };
    // SAFETY: as the caller says.
    unsafe { made(name, make) }
}

/// Opens a log.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpmlog_open(name: *const c_char) -> *mut c_void {
    // SAFETY: as the caller says.
    unsafe { made(name, |device, path| Ok(table2::gpmlog_open(device, path)?)) }
}

/// Closes a log.
#[unsafe(no_mangle)]
pub extern "C" fn gpmlog_close(log: *mut c_void) -> c_int {
    status(|| {
        with(|library| match library.logs.remove(&(log as u64)) {
            Some(log) => {
                table2::gpmlog_close(log);
                Ok(())
            }
            None => Err(unknown(log as u64, "log")),
        })
    })
}

/// Entries of a hierarchical log, words of a conventional one.
#[unsafe(no_mangle)]
pub extern "C" fn gpmlog_count(log: *mut c_void) -> i64 {
    call(-1, || {
        with(|library| {
            let log = find(&library.logs, log as u64, "log")?;
            let (mut entries, conventional) = (0, log.entry_bytes() == 0);
            log.visit(&mut |_, _, words| entries += if conventional { words.len() as i64 } else { 1 })?;
            Ok(entries)
        })
    })
}

/// Removes everything from a log.
#[unsafe(no_mangle)]
pub extern "C" fn gpmlog_clear_all(log: *mut c_void) -> c_int {
    status(|| with(|library| Ok(find(&library.logs, log as u64, "log")?.clear()?)))
}

/// Says what kernels did wrong with a log.
#[unsafe(no_mangle)]
pub extern "C" fn gpmlog_check(log: *mut c_void) -> c_int {
    status(|| with(|library| Ok(find(&library.logs, log as u64, "log")?.check()?)))
}
