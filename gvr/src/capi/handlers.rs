//! Handlers of errors, and checks that look for some.
//!
//! A local error is of the rank that raises it, and handled there at once. A global one is handled
//! by all ranks, when they next come to `GDS_check_all_errors` or `GDS_version_inc` of the array
//! together. Until an error is resumed, no version of the array is made on any rank.

use std::ffi::c_int;

use super::descriptors::{self, Description, Predicate};
use super::state::{Check, Gds, Handler, Scope, array};
use super::status::{answer, refuse, status};
use crate::error::{Error, Result};

/// An error that a handler has refused to handle, or that none is for.
fn unhandled(status: Option<c_int>) -> Error {
    refuse(match status {
        None => {
            "no handler is registered for this error: register one, or call GDS_resume_local when it was acted upon"
                .to_owned()
        }
        Some(status) => format!("the handler of the error has answered {status}: it is not handled"),
    })
}

/// Calls the newest handler that an error is for.
fn handle(gds: &Gds, scope: Scope, error: &Description) -> Result<()> {
    let chosen = {
        let handlers = gds.handlers.handlers.borrow();
        let fits = |entry: &&(Scope, Predicate, Handler)| entry.0 == scope && entry.1.holds(error);
        handlers.iter().rev().find(fits).and_then(|(_, _, handler)| *handler)
    };
    let Some(handler) = chosen else { return Err(unhandled(None)) };
    let mut shown = error.clone();
    // SAFETY: by the header a handler takes any array and descriptor, and keeps neither.
    match unsafe { handler(std::ptr::from_ref(gds).cast_mut(), &mut shown) } {
        0 => Ok(()),
        status => Err(unhandled(Some(status))),
    }
}

/// Tells the handlers of an error that a call has met; its status stays what it is.
pub fn detected<T>(gds: &Gds, index: u64, count: u64, result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        let description = Description::default()
            .with(descriptors::INDEX, index)
            .with(descriptors::COUNT, count)
            .with(descriptors::STATUS, status(error) as u64)
            .with(descriptors::RANK, gds.member.core.rma.rank() as u64);
        // Without a handler the status is all there is.
        let _ = handle(gds, Scope::Local, &description);
    }
    result
}

/// Handles the global errors of all ranks, on all. All ranks call it alike. Gives whether all were
/// handled here: where not, and they are not resumed, no rank makes the next version.
///
/// # Errors
/// [`Error::DeadRank`]
pub fn deliver(gds: &Gds) -> Result<Result<()>> {
    let rma = &*gds.member.core.rma;
    let mine: Vec<u64> = gds.handlers.raised.take().iter().flat_map(Description::words).collect();
    let counts = rma.allgather(&[mine.len() as u64])?;
    let mut first = Ok(());
    for (root, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let mut bytes = if root == rma.rank() { bytemuck::cast_slice(&mine).to_vec() } else { Vec::new() };
        rma.broadcast(root, &mut bytes)?;
        let words: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        for error in Description::all_of_words(&words) {
            gds.member.core.fail();
            let done = handle(gds, Scope::Global, &error);
            first = first.and(done);
        }
    }
    Ok(first)
}

/// # Safety
/// As the header says.
unsafe fn register(gds: *mut Gds, pred: *const Predicate, handler: Handler, scope: Scope) -> c_int {
    answer(|| {
        // SAFETY: by the caller; without a predicate it is for every error.
        let (gds, pred) = unsafe { (array(gds)?, pred.as_ref().cloned().unwrap_or_default()) };
        if handler.is_none() {
            return Err(refuse("the handler is a null pointer"));
        }
        gds.handlers.handlers.borrow_mut().push((scope, pred, handler));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_register_local_error_handler(
    gds: *mut Gds,
    pred: *const Predicate,
    handler: Handler,
) -> c_int {
    // SAFETY: by the header.
    unsafe { register(gds, pred, handler, Scope::Local) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_register_global_error_handler(
    gds: *mut Gds,
    pred: *const Predicate,
    handler: Handler,
) -> c_int {
    // SAFETY: by the header.
    unsafe { register(gds, pred, handler, Scope::Global) }
}

/// # Safety
/// As the header says.
unsafe fn register_check(gds: *mut Gds, check: Check, priority: c_int) -> c_int {
    answer(|| {
        if check.is_none() {
            return Err(refuse("the check is a null pointer"));
        }
        // SAFETY: by the caller.
        unsafe { array(gds)? }.handlers.checks.borrow_mut().push((priority, check));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_register_local_error_check(gds: *mut Gds, check: Check, priority: c_int) -> c_int {
    // SAFETY: by the header.
    unsafe { register_check(gds, check, priority) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_register_global_error_check(gds: *mut Gds, check: Check, priority: c_int) -> c_int {
    // Both are called at the same place; whether an error is local or global is the check's to say,
    // by how it raises it.
    // SAFETY: by the header.
    unsafe { register_check(gds, check, priority) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_raise_local_error(gds: *mut Gds, desc: *const Description) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let (gds, error) = unsafe { (array(gds)?, desc.as_ref().ok_or_else(|| refuse("the descriptor is null"))?) };
        gds.member.core.fail();
        handle(gds, Scope::Local, error)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_raise_global_error(gds: *mut Gds, desc: *const Description) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let (gds, error) = unsafe { (array(gds)?, desc.as_ref().ok_or_else(|| refuse("the descriptor is null"))?) };
        gds.handlers.raised.borrow_mut().push(error.clone());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_check_all_errors(gds: *mut Gds) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        let mut checks = gds.handlers.checks.borrow().clone();
        checks.sort_by_key(|(priority, _)| -priority);
        let mut failed = Ok(());
        for (priority, check) in checks {
            // SAFETY: by the header a check takes any array, and does not keep it.
            let answered = check.map_or(0, |check| unsafe { check(std::ptr::from_ref(gds).cast_mut(), priority) });
            if answered != 0 {
                failed = Err(refuse(format!("a check has answered {answered}")));
            }
        }
        // The others wait for this rank there, whatever its checks say.
        deliver(gds)?.and(failed)
    })
}

/// # Safety
/// As the header says.
unsafe fn resume(gds: *mut Gds) -> c_int {
    // SAFETY: by the caller.
    answer(|| unsafe { array(gds) }.map(|gds| gds.member.core.acknowledge()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_resume_local(gds: *mut Gds, _desc: *const Description) -> c_int {
    // SAFETY: by the header.
    unsafe { resume(gds) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_resume_global(gds: *mut Gds, _desc: *const Description) -> c_int {
    // SAFETY: by the header.
    unsafe { resume(gds) }
}
