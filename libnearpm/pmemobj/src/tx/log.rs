//! The program's say in logs. The logs of this library grow by themselves, so that nothing of it is
//! needed; the checks are PMDK's.

use std::ffi::{c_int, c_void};

use super::{check_flags, number_or_abort};
use crate::abi::flag;
use crate::error::{fail, set_errno};
use crate::registry::Pool;
use crate::thread::thread;
use crate::transaction::{Failure, Outcome};

/// `enum pobj_log_type`.
const SNAPSHOT: c_int = 0;
const INTENT: c_int = 1;

/// PMDK's bytes around the data of a log, which programs add up to size their buffers.
const BUFFER_OVERHEAD: usize = 64;
const SNAPSHOT_HEADER: usize = 16;
const LINE: usize = 64;
const INTENT_BYTES: usize = 16;
/// Fewest bytes of a buffer: its own head and a line.
const MIN_BUFFER: usize = 2 * LINE;

fn check_buffer(pool: &Pool, kind: c_int, address: *mut c_void, bytes: usize, all: u64) -> Outcome<()> {
    let invalid = |text| Err(Failure { errno: fail(libc::EINVAL, text), flags: all });
    match kind {
        SNAPSHOT | INTENT => {}
        other => return invalid(format_args!("unsupported transaction log type {other}")),
    }
    if pool.offset_of(address as usize).is_none() {
        return invalid(format_args!("buffer outside of the pool"));
    }
    if bytes < MIN_BUFFER {
        return invalid(format_args!("buffer of {bytes} bytes too small, it needs {MIN_BUFFER}"));
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_log_append_buffer(kind: c_int, address: *mut c_void, bytes: usize) -> c_int {
    pmemobj_tx_xlog_append_buffer(kind, address, bytes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xlog_append_buffer(kind: c_int, address: *mut c_void, bytes: usize, flags: u64) -> c_int {
    let tx = &thread().tx;
    let all = tx.flags(flags);
    let outcome = tx.working("pmemobj_tx_log_append_buffer").and_then(|pool| {
        check_flags(flags, flag::NO_ABORT, all)?;
        check_buffer(pool, kind, address, bytes, all)
    });
    number_or_abort(outcome)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_log_auto_alloc(kind: c_int, _on: c_int) -> c_int {
    let tx = &thread().tx;
    if let Err(failure) = tx.working("pmemobj_tx_log_auto_alloc") {
        return number_or_abort(Err(failure));
    }
    if matches!(kind, SNAPSHOT | INTENT) {
        return 0;
    }
    fail(libc::EINVAL, format_args!("unsupported transaction log type {kind}"))
}

/// Sums up; what does not fit is the largest number, and ERANGE.
fn sum(first: usize, mut bytes: impl Iterator<Item = Option<usize>>) -> usize {
    let total = bytes.try_fold(first, |sum, bytes| sum.checked_add(bytes?));
    total.unwrap_or_else(|| {
        set_errno(libc::ERANGE);
        usize::MAX
    })
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_log_snapshots_max_size(sizes: *const usize, count: usize) -> usize {
    if sizes.is_null() && count != 0 {
        fail(libc::EINVAL, format_args!("no sizes were given (NULL)"));
        return usize::MAX;
    }
    // SAFETY: the program gives as many sizes.
    let sizes = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(sizes, count) } };
    let rounded = |&bytes: &usize| bytes.checked_add(SNAPSHOT_HEADER)?.checked_next_multiple_of(LINE);
    sum(BUFFER_OVERHEAD, sizes.iter().map(rounded))
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_log_intents_max_size(intents: usize) -> usize {
    let bytes = intents.checked_mul(INTENT_BYTES).and_then(|bytes| bytes.checked_next_multiple_of(LINE));
    sum(BUFFER_OVERHEAD, std::iter::once(bytes))
}
