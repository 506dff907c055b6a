//! The calls that lead a program through a transaction's stages.

use std::ffi::{c_int, c_void};

use super::{abort, check_flags, give_up, number_or_abort};
use crate::abi::{Handle, flag};
use crate::error::{Errno, fail, set_errno};
use crate::registry::pool_in;
use crate::thread::{Thread, thread};
use crate::transaction::{Callback, Failure, TxState, out_of_stage, parameter, stage};

/// The variable arguments of a call: four in registers, the others on the stack.
struct Arguments {
    registers: *const u64,
    stack: *const u64,
    taken: usize,
}

impl Arguments {
    /// # Safety
    /// The caller gave so many.
    unsafe fn next(&mut self) -> u64 {
        const IN_REGISTERS: usize = 4;
        let at = self.taken;
        self.taken += 1;
        // SAFETY: by the caller.
        unsafe { if at < IN_REGISTERS { *self.registers.add(at) } else { *self.stack.add(at - IN_REGISTERS) } }
    }
}

/// `int pmemobj_tx_begin(PMEMobjpool *pop, jmp_buf env, ...)`: lays the variable arguments out for
/// [`begin`].
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_tx_begin() -> c_int {
    std::arch::naked_asm!(
        "sub rsp, 40",
        "mov qword ptr [rsp], rdx",
        "mov qword ptr [rsp + 8], rcx",
        "mov qword ptr [rsp + 16], r8",
        "mov qword ptr [rsp + 24], r9",
        "mov rdx, rsp",
        "lea rcx, [rsp + 48]",
        "call {begin}",
        "add rsp, 40",
        "ret",
        begin = sym begin,
    )
}

unsafe extern "C" fn begin(handle: Handle, environment: *const u64, registers: *const u64, stack: *const u64) -> c_int {
    let thread = thread();
    let tx = &thread.tx;
    let entered = match tx.stage.get() {
        // Also where the handle is none of an open pool: as with PMDK, which compares it alone.
        stage::WORK if !handle.is_null() && tx.works_elsewhere(handle) => {
            Err(fail(libc::EINVAL, format_args!("nested transaction for different pool")))
        }
        stage::NONE | stage::WORK => pool_in(thread, handle).and_then(|pool| tx.enter(pool, environment)),
        stage => Err(fail(libc::EINVAL, format_args!("Invalid stage {stage} to begin new transaction"))),
    };
    if let Err(errno) = entered {
        return refuse(thread, environment, errno);
    }
    let mut arguments = Arguments { registers, stack, taken: 0 };
    loop {
        // SAFETY: the program closes the list by TX_PARAM_NONE.
        let kind = unsafe { arguments.next() } & 0xffff_ffff;
        match kind {
            parameter::NONE => return 0,
            parameter::CALLBACK => {
                // SAFETY: this parameter has two arguments, the first of them a function.
                let (callback, argument) = unsafe {
                    let callback: Callback = std::mem::transmute::<usize, Callback>(arguments.next() as usize);
                    (callback, arguments.next() as *mut c_void)
                };
                if let Err(errno) = set_callback(tx, callback, argument) {
                    abort(thread, errno, false);
                    return errno;
                }
            }
            _ => {
                // SAFETY: every other parameter has one argument.
                let lock = unsafe { arguments.next() } as *mut c_void;
                if let Err(errno) = tx.lock(kind, lock) {
                    abort(thread, errno, false);
                    return errno;
                }
            }
        }
    }
}

/// A transaction that cannot begin. In the work stage of another one that aborts; else it has a
/// stage of abort and an end of its own, so that the program's macros come to an end, and nothing
/// of what is around it changes.
fn refuse(thread: &'static Thread, environment: *const u64, errno: Errno) -> Errno {
    let tx = &thread.tx;
    if tx.stage.get() == stage::WORK {
        abort(thread, errno, false);
    } else if let Err(no_memory) = tx.enter_refused(environment, errno) {
        return no_memory;
    }
    set_errno(errno);
    errno
}

/// # Errors
/// EINVAL where another one is set.
fn set_callback(tx: &TxState, callback: Callback, argument: *mut c_void) -> Result<(), Errno> {
    if tx.callback.get().is_some_and(|(set, with)| set as usize != callback as usize || with != argument) {
        return Err(fail(libc::EINVAL, format_args!("transaction callback is already set")));
    }
    tx.callback.set(Some((callback, argument)));
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_stage() -> c_int {
    thread().tx.stage.get()
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_errno() -> c_int {
    thread().tx.last_errno.get()
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_abort(errno: c_int) {
    let thread = thread();
    if let Err(failure) = thread.tx.working("pmemobj_tx_abort") {
        return set_errno(failure.errno);
    }
    abort(thread, errno, true);
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_commit() {
    let thread = thread();
    if let Err(failure) = thread.tx.working("pmemobj_tx_commit") {
        return set_errno(failure.errno);
    }
    commit(thread);
}

fn commit(thread: &'static Thread) {
    let tx = &thread.tx;
    tx.call_back();
    if tx.is_outermost()
        && let Err(errno) = tx.make_durable()
    {
        // PMDK has no such case: its logs are reserved before. Everything has been taken back.
        return give_up(thread, errno, false);
    }
    tx.stage.set(stage::ONCOMMIT);
    tx.call_back();
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_process() {
    let thread = thread();
    let tx = &thread.tx;
    match tx.stage.get() {
        stage::WORK => commit(thread),
        stage::ONCOMMIT | stage::ONABORT => {
            tx.stage.set(stage::FINALLY);
            tx.call_back();
        }
        stage::FINALLY => tx.stage.set(stage::NONE),
        stage => {
            out_of_stage("pmemobj_tx_process", stage);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_end() -> c_int {
    let thread = thread();
    let tx = &thread.tx;
    if tx.stage.get() == stage::WORK {
        return fail(libc::EINVAL, format_args!("pmemobj_tx_end called without pmemobj_tx_commit"));
    }
    // One that was refused has an error.
    if tx.last_errno.get() != 0
        && let Some(around) = tx.refused_in()
    {
        return end_refused(tx, around);
    }
    let Some(pool) = tx.pool.get() else {
        return fail(libc::EINVAL, format_args!("pmemobj_tx_end called without pmemobj_tx_begin"));
    };
    if tx.callback.get().is_some() && matches!(tx.stage.get(), stage::ONCOMMIT | stage::ONABORT) {
        tx.stage.set(stage::FINALLY);
        tx.call_back();
    }
    let left = {
        let mut levels = tx.levels.borrow_mut();
        levels.pop();
        levels.len()
    };
    if left == 0 {
        tx.release_locks();
        tx.pool.set(None);
        tx.stage.set(stage::NONE);
        if let Some((callback, argument)) = tx.callback.take() {
            // SAFETY: the program gave the function for this.
            unsafe { callback(pool.handle(), stage::NONE, argument) };
        }
    } else {
        tx.stage.set(stage::WORK);
        if tx.last_errno.get() != 0 {
            abort(thread, tx.last_errno.get(), false);
        }
    }
    tx.last_errno.get()
}

/// Ends a transaction that was refused.
fn end_refused(tx: &TxState, (stage, errno): (i32, Errno)) -> Errno {
    tx.levels.borrow_mut().pop();
    tx.stage.set(stage);
    tx.last_errno.replace(errno)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_lock(kind: c_int, lock: *mut c_void) -> c_int {
    pmemobj_tx_xlock(kind, lock, flag::NO_ABORT)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_xlock(kind: c_int, lock: *mut c_void, flags: u64) -> c_int {
    let tx = &thread().tx;
    let all = tx.flags(flags);
    let outcome = tx
        .working("pmemobj_tx_xlock")
        .and_then(|_| check_flags(flags, flag::NO_ABORT, all))
        .and_then(|()| tx.lock(kind as u64, lock).map_err(|errno| Failure { errno, flags: all }));
    number_or_abort(outcome)
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_set_user_data(data: *mut c_void) {
    let tx = &thread().tx;
    if tx.has_begun("pmemobj_tx_set_user_data") {
        tx.user_data.set(data);
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_get_user_data() -> *mut c_void {
    let tx = &thread().tx;
    if tx.has_begun("pmemobj_tx_get_user_data") { tx.user_data.get() } else { std::ptr::null_mut() }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_set_failure_behavior(behavior: c_int) {
    let tx = &thread().tx;
    if let Err(failure) = tx.working("pmemobj_tx_set_failure_behavior") {
        return set_errno(failure.errno);
    }
    if let Some(level) = tx.levels.borrow_mut().last_mut() {
        level.failure_behavior = behavior;
    }
}

#[unsafe(no_mangle)]
extern "C" fn pmemobj_tx_get_failure_behavior() -> c_int {
    let tx = &thread().tx;
    if let Err(failure) = tx.working("pmemobj_tx_get_failure_behavior") {
        set_errno(failure.errno);
        return 0;
    }
    tx.levels.borrow().last().map_or(0, |level| level.failure_behavior)
}
