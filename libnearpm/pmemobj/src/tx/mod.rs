//! Transactions: the stages that a program goes through, nesting, locks and callbacks.
//!
//! A nested transaction joins the outer one: only the end of the outermost commits or takes back.
//! An abort jumps to the environment of the innermost; its end then aborts the next one outside.

mod calls;
mod log;
mod work;

use std::ffi::{c_int, c_void};

use crate::abi::{Oid, flag, longjmp};
use crate::error::{Errno, fail, fail_below, fail_system, no_memory, set_errno};
use crate::lock;
use crate::thread::{Thread, thread};
use crate::transaction::{Failure, HeldLock, NO_ENVIRONMENT, Outcome, TxState, parameter, stage};

impl TxState {
    /// Takes a lock until the outermost transaction ends; once is enough.
    fn lock(&self, kind: u64, at: *mut c_void) -> Result<(), Errno> {
        if self.locks.borrow().iter().any(|held| held.at == at) {
            return Ok(());
        }
        self.locks.borrow_mut().try_reserve(1).map_err(|_| no_memory())?;
        let pool = self.pool.get().expect("a transaction has a pool");
        let (taken, name) = match kind {
            // SAFETY: the program names a lock of its kind.
            parameter::MUTEX => (unsafe { lock::mutex_lock(pool, at) }, "pmemobj_mutex_lock"),
            // SAFETY: as above.
            parameter::RWLOCK => (unsafe { lock::rwlock_write(pool, at) }, "pmemobj_rwlock_wrlock"),
            _ => return Err(fail(libc::EINVAL, format_args!("Unrecognized lock type"))),
        };
        if taken != 0 {
            return Err(fail_system(taken, name));
        }
        self.locks.borrow_mut().push(HeldLock { kind, at });
        Ok(())
    }

    #[inline]
    fn release_locks(&self) {
        let pool = self.pool.get().expect("a transaction has a pool");
        while let Some(held) = { self.locks.borrow_mut().pop() } {
            // SAFETY: `lock` took it.
            unsafe {
                match held.kind {
                    parameter::MUTEX => lock::mutex_unlock(pool, held.at),
                    _ => lock::rwlock_unlock(pool, held.at),
                }
            };
        }
    }

    /// Takes back what the outermost transaction did. Locks that it holds keep their state, also
    /// inside of ranges.
    fn take_back(&self) {
        self.words.borrow_mut().clear();
        self.volatile.borrow_mut().clear();
        self.growth.set(0);
        let pool = self.pool.get().expect("a transaction has a pool");
        let Some(transaction) = self.transaction.borrow_mut().take() else { return };
        let offset = |held: &HeldLock| pool.offset_of(held.at as usize);
        let locks = self.locks.borrow();
        let done = if locks.is_empty() {
            transaction.abort(&pool.direct)
        } else {
            let held: Vec<_> = locks.iter().filter_map(offset).map(|at| at..at + lock::LOCK_BYTES as u64).collect();
            transaction.abort_except(&pool.direct, &held)
        };
        if let Err(error) = done {
            // The pool refuses everything from now on; the program hears of it at its next call.
            fail_below(&error);
        }
    }
}

/// Aborts the transaction, and goes on where its environment was saved; returns where there is
/// none.
fn abort(thread: &'static Thread, errno: Errno, by_program: bool) {
    let tx = &thread.tx;
    if tx.is_outermost() {
        tx.take_back();
    }
    give_up(thread, errno, by_program);
}

/// The second half of [`abort`], when everything is taken back already.
fn give_up(thread: &'static Thread, errno: Errno, by_program: bool) {
    let tx = &thread.tx;
    tx.stage.set(stage::ONABORT);
    let errno = if errno == 0 { libc::ECANCELED } else { errno };
    tx.last_errno.set(errno);
    set_errno(errno);
    if by_program {
        fail_system(errno, "explicit transaction abort");
    }
    tx.call_back();
    jump(tx, errno);
}

/// Jumps to the innermost environment. Nothing in this frame has a destructor.
fn jump(tx: &'static TxState, errno: Errno) {
    let environment = {
        let levels = tx.levels.borrow();
        let level = levels.last().expect("an aborting transaction has a level");
        if level.environment == NO_ENVIRONMENT { std::ptr::null() } else { level.environment.as_ptr() }
    };
    if !environment.is_null() {
        thread().jump_away(tx.levels());
        // SAFETY: the program saved it by setjmp in a frame that still lives; the frames that are
        // jumped over hold plain data.
        unsafe { longjmp(environment.cast(), errno) }
    }
}

/// What a call gives, after the abort that an error brings.
fn or_abort<T: Copy>(outcome: Outcome<T>, otherwise: impl FnOnce(Errno) -> T) -> T {
    match outcome {
        Ok(value) => value,
        Err(Failure { errno, flags }) => {
            if flags & flag::NO_ABORT == 0 {
                abort(thread(), errno, false);
            }
            set_errno(errno);
            otherwise(errno)
        }
    }
}

fn number_or_abort(outcome: Outcome<()>) -> c_int {
    or_abort(outcome.map(|()| 0), |errno| errno)
}

fn oid_or_abort(outcome: Outcome<Oid>) -> Oid {
    or_abort(outcome, |_| Oid::NULL)
}

/// Refuses flags that a call does not have.
fn check_flags(flags: u64, valid: u64, all: u64) -> Outcome<()> {
    if flags & !valid == 0 {
        return Ok(());
    }
    Err(Failure { errno: fail(libc::EINVAL, format_args!("unknown flags 0x{:x}", flags & !valid)), flags: all })
}

/// The error of a call, with the call's flags.
fn failure(flags: u64) -> impl FnOnce(Errno) -> Failure {
    move |errno| Failure { errno, flags }
}
