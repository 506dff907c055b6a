//! Checkpoints.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::rc::Rc;

use nearpm_gpm::{Checkpoint, table2};
use nearpm_gpu::Device;

use crate::error::{Refusal, call, status};
use crate::library::{find, number, path, unknown, with};

/// Makes or opens checkpoints, and keeps them under a number that no address is.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
unsafe fn made(
    name: *const c_char,
    make: impl FnOnce(Rc<dyn Device>, &Path) -> Result<Checkpoint, Refusal>,
) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let path = unsafe { path(name) }?;
        with(|library| {
            let checkpoint = make(library.device.clone(), path)?;
            let handle = library.next_checkpoint;
            library.next_checkpoint += 1;
            library.checkpoints.insert(handle, checkpoint);
            Ok(std::ptr::without_provenance_mut(handle as usize))
        })
    })
}

/// Creates checkpoints.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpmcp_create(name: *const c_char, size: usize, elements: c_int, groups: c_int) -> *mut c_void {
    let make = |device, path: &Path| {
        let (elements, groups) = (number(elements, "the number of elements")?, number(groups, "the number of groups")?);
        Ok(table2::gpmcp_create(device, path, size as u64, elements, groups)?)
    };
    // SAFETY: as the caller says.
    unsafe { made(name, make) }
}

/// Opens checkpoints.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpmcp_open(name: *const c_char) -> *mut c_void {
    // SAFETY: as the caller says.
    unsafe { made(name, |device, path| Ok(table2::gpmcp_open(device, path)?)) }
}

/// Closes checkpoints.
#[unsafe(no_mangle)]
pub extern "C" fn gpmcp_close(checkpoint: *mut c_void) -> c_int {
    status(|| {
        with(|library| match library.checkpoints.remove(&(checkpoint as u64)) {
            Some(checkpoint) => {
                table2::gpmcp_close(checkpoint);
                Ok(())
            }
            None => Err(unknown(checkpoint as u64, "checkpoint")),
        })
    })
}

/// Does something with a group of checkpoints.
fn group<T>(
    checkpoint: *mut c_void,
    group: c_int,
    act: impl FnOnce(&Checkpoint, u32) -> Result<T, nearpm_gpm::Error>,
) -> Result<T, Refusal> {
    let group = number(group, "the group")?;
    with(|library| Ok(act(find(&library.checkpoints, checkpoint as u64, "checkpoint")?, group)?))
}

/// Adds device memory to a group.
#[unsafe(no_mangle)]
pub extern "C" fn gpmcp_register(checkpoint: *mut c_void, address: *mut c_void, size: usize, of: c_int) -> c_int {
    status(|| {
        group(checkpoint, of, |checkpoint, group| {
            table2::gpmcp_register(checkpoint, address as u64, size as u64, group)
        })
    })
}

/// Takes a checkpoint of a group.
#[unsafe(no_mangle)]
pub extern "C" fn gpmcp_checkpoint(checkpoint: *mut c_void, of: c_int) -> c_int {
    status(|| group(checkpoint, of, table2::gpmcp_checkpoint).map(drop))
}

/// Restores a group; 1 where there is no checkpoint.
#[unsafe(no_mangle)]
pub extern "C" fn gpmcp_restore(checkpoint: *mut c_void, of: c_int) -> c_int {
    call(-1, || Ok(if group(checkpoint, of, table2::gpmcp_restore)?.is_some() { 0 } else { 1 }))
}
