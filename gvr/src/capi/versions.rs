//! Versions of C programs' arrays.

use std::ffi::{c_char, c_int};

use super::present;
use super::state::{Gds, array, with_world};
use super::status::{answer, refuse};
use crate::array::version_inc_all;
use crate::error::Result;

/// A label that a caller gives: so many bytes, or up to a zero.
///
/// # Safety
/// `label` is null or points to `size` bytes.
unsafe fn label(label: *const c_char, size: usize) -> Result<String> {
    if label.is_null() {
        return Ok(String::new());
    }
    // SAFETY: by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(label.cast::<u8>(), size) };
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
    String::from_utf8(bytes[..end].to_vec()).map_err(|_| refuse("the label is no UTF-8"))
}

fn current(gds: &Gds) -> Result<()> {
    match gds.at() {
        None => Ok(()),
        Some((version, _)) => Err(refuse(format!("the handle is at version {version}: call GDS_move_to_newest first"))),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_wait(gds: *mut Gds) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { array(gds)? }.member.core.wait())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_wait_local(gds: *mut Gds) -> c_int {
    // Puts copy what they are given, and gets return when the buffer is filled.
    // SAFETY: by the header.
    answer(|| unsafe { array(gds) }.map(drop))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_fence(gds: *mut Gds) -> c_int {
    answer(|| {
        if !gds.is_null() {
            // SAFETY: by the header.
            unsafe { array(gds)? }.member.core.wait()?;
        }
        with_world(|world| world.world.barrier())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_version_inc(gds: *mut Gds, inc: usize, text: *const c_char, size: usize) -> c_int {
    answer(|| {
        if inc != 1 {
            return Err(refuse(format!("a version is made by inc = 1, not {inc}")));
        }
        // SAFETY: by the header.
        let (gds, label) = unsafe { (array(gds)?, label(text, size)?) };
        current(gds)?;
        // What is not handled keeps all ranks from the version.
        let _handled = super::handlers::deliver(gds)?;
        version_inc_all(&[gds.face()], &label).map(drop)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gvr_version_inc_all(
    gds: *mut *mut Gds,
    count: usize,
    text: *const c_char,
    size: usize,
) -> c_int {
    answer(|| {
        present(gds, "the row of handles")?;
        // SAFETY: by the header.
        let (handles, label) = unsafe { (std::slice::from_raw_parts(gds, count), label(text, size)?) };
        // SAFETY: by the header.
        let arrays: Vec<&Gds> = handles.iter().map(|gds| unsafe { array(*gds) }).collect::<Result<_>>()?;
        arrays.iter().try_for_each(|gds| current(gds))?;
        arrays.iter().try_for_each(|gds| super::handlers::deliver(gds).map(drop))?;
        let faces: Vec<_> = arrays.iter().map(|gds| gds.face()).collect();
        version_inc_all(&faces, &label).map(drop)
    })
}

/// Moves a handle to a version; to the current one where it is that of the next version.
fn go(gds: &Gds, version: Option<u64>) -> Result<()> {
    let core = &gds.member.core;
    let version = version.ok_or_else(|| refuse("there is no version there"))?;
    if version == core.version() {
        gds.move_to(None);
    } else {
        gds.move_to(Some((version, core.pin(version)?)));
    }
    Ok(())
}

fn number(gds: &Gds) -> u64 {
    gds.at().map_or_else(|| gds.member.core.version(), |(version, _)| version)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_version_dec(gds: *mut Gds, dec: usize) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        go(gds, number(gds).checked_sub(dec as u64))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_move_to_newest(gds: *mut Gds) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { array(gds) }.map(|gds| gds.move_to(None)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_move_to_prev(gds: *mut Gds) -> c_int {
    // SAFETY: by the header.
    unsafe { GDS_version_dec(gds, 1) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_move_to_next(gds: *mut Gds) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        let next = gds.at().map(|(version, _)| version + 1);
        go(gds, next)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_version_number(gds: *mut Gds, to: *mut usize) -> c_int {
    answer(|| {
        present(to, "the number")?;
        // SAFETY: by the header.
        unsafe { *to = number(array(gds)?) as usize };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_version_label(gds: *mut Gds, to: *mut c_char, size: usize) -> c_int {
    answer(|| {
        present(to, "the label")?;
        if size == 0 {
            return Err(refuse("a label needs room for the zero behind it"));
        }
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        let at = number(gds);
        let label =
            gds.member.core.versions().into_iter().find(|version| version.number == at).map(|version| version.label);
        let label = label.unwrap_or_default();
        let length = label.len().min(size - 1);
        // SAFETY: by the header there is room for `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(label.as_ptr(), to.cast::<u8>(), length);
            *to.add(length) = 0;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gvr_restore(gds: *mut Gds, version: usize) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        current(gds)?;
        let core = &gds.member.core;
        let old = core.pin(version as u64)?;
        // Others may still read what is about to change.
        with_world(|world| world.world.barrier())?;
        let done = core.restore_part(&old);
        core.unpin(&old);
        done?;
        with_world(|world| world.world.barrier())
    })
}
