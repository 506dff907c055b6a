//! Transactions: the stages that a program goes through, nesting, locks and callbacks.
//!
//! A nested transaction joins the outer one: only the end of the outermost commits or takes back. An abort jumps to the
//! environment of the innermost; its end then aborts the next one outside.

mod calls;
mod log;
mod work;

pub use work::{string_bytes, wide_string_bytes};

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ops::Range;

use nearpm::direct::Transaction;

use crate::abi::{Handle, Oid, flag, longjmp};
use crate::action::{VolatileWord, store_volatile};
use crate::error::{Errno, fail, fail_below, fail_system, set_errno};
use crate::lock;
use crate::registry::Pool;
use crate::reserve;
use crate::thread::{Thread, thread};

/// `enum pobj_tx_stage`.
pub mod stage {
    pub const NONE: i32 = 0;
    pub const WORK: i32 = 1;
    pub const ONCOMMIT: i32 = 2;
    pub const ONABORT: i32 = 3;
    pub const FINALLY: i32 = 4;
}

/// `enum pobj_tx_param`.
mod parameter {
    pub const NONE: u64 = 0;
    pub const MUTEX: u64 = 1;
    pub const RWLOCK: u64 = 2;
    pub const CALLBACK: u64 = 3;
}

/// Bytes of a `jmp_buf`.
const ENVIRONMENT_BYTES: usize = 200;

type Environment = [u64; ENVIRONMENT_BYTES / 8];

/// Of a program that wants no jump.
const NO_ENVIRONMENT: Environment = [0; ENVIRONMENT_BYTES / 8];

type Callback = unsafe extern "C" fn(pool: Handle, stage: c_int, argument: *mut c_void);

/// A transaction that the program has begun and not ended.
#[derive(Clone, Copy)]
struct Level {
    environment: Environment,
    /// `enum pobj_tx_failure_behavior`: 1 returns errors.
    failure_behavior: c_int,
    /// Of one that was refused, so that nothing of it happens: stage and error that its end goes back to.
    refused_in: Option<(i32, Errno)>,
}

impl Level {
    /// A level with the `jmp_buf` that the program gave, or null.
    #[inline]
    fn new(environment: *const u64, failure_behavior: c_int, refused_in: Option<(i32, Errno)>) -> Level {
        // SAFETY: the program gives a `jmp_buf` of so many bytes.
        let environment = unsafe { environment.cast::<Environment>().as_ref() }.copied().unwrap_or(NO_ENVIRONMENT);
        Level { environment, failure_behavior, refused_in }
    }
}

#[derive(Clone, Copy)]
struct HeldLock {
    kind: u64,
    at: *mut c_void,
}

/// The transaction of a thread.
#[derive(Default)]
pub struct TxState {
    stage: Cell<i32>,
    last_errno: Cell<Errno>,
    pool: Cell<Option<&'static Pool>>,
    /// Begun by the first call that needs it.
    transaction: RefCell<Option<Transaction>>,
    levels: RefCell<Vec<Level>>,
    locks: RefCell<Vec<HeldLock>>,
    /// Words (offset, value) that are stored at commit.
    words: RefCell<Vec<(u64, u64)>>,
    /// Words of ordinary memory that are stored when it is durable.
    volatile: RefCell<Vec<VolatileWord>>,
    /// Bytes that objects get more by it.
    growth: Cell<i64>,
    callback: Cell<Option<(Callback, *mut c_void)>>,
    user_data: Cell<*mut c_void>,
}

/// An error of a call in a transaction: the transaction aborts, unless the caller wants the error itself.
pub struct Failure {
    errno: Errno,
    flags: u64,
}

/// The outcome of a call in a transaction. Plain data, as all that lives while a transaction aborts.
pub type Outcome<T> = Result<T, Failure>;

impl TxState {
    /// The pool of the transaction in work. A call in another stage, where PMDK ends the process, is refused and changes nothing.
    ///
    /// # Errors
    /// EINVAL, which aborts nothing.
    #[inline]
    pub fn working(&self, function: &str) -> Outcome<&'static Pool> {
        match (self.stage.get(), self.pool.get()) {
            (stage::WORK, Some(pool)) => Ok(pool),
            (stage, _) => Err(Failure { errno: out_of_stage(function, stage), flags: flag::NO_ABORT }),
        }
    }

    /// Whether there is a transaction, in whatever stage; notes an error where there is none.
    pub fn has_begun(&self, function: &str) -> bool {
        let begun = self.stage.get() != stage::NONE;
        if !begun {
            out_of_stage(function, stage::NONE);
        }
        begun
    }

    /// Whether the thread has a transaction on a pool, in whatever stage.
    pub fn is_open_on(&self, pool: &Pool) -> bool {
        self.pool.get().is_some_and(|open| std::ptr::eq(open, pool))
    }

    /// The pool of the transaction, if its stage is work.
    pub fn pool_in_work(&self) -> Option<&'static Pool> {
        if self.stage.get() == stage::WORK { self.pool.get() } else { None }
    }

    /// Parts of a range that the transaction does not make durable at commit; `false` if it has taken nothing yet.
    pub fn uncovered(&self, range: &Range<u64>, parts: &mut Vec<Range<u64>>) -> bool {
        let transaction = self.transaction.borrow();
        let Some(transaction) = transaction.as_ref() else { return false };
        transaction.uncovered(range, parts);
        true
    }

    /// Adds what the failure behaviour asks for to a call's flags.
    #[inline]
    fn flags(&self, flags: u64) -> u64 {
        let returns = self.levels.borrow().last().is_some_and(|level| level.failure_behavior == 1);
        if returns { flags | flag::NO_ABORT } else { flags }
    }

    /// Does something with the transaction below, beginning it if need be.
    #[inline]
    pub fn with<T>(
        &self,
        pool: &Pool,
        action: impl FnOnce(&mut Transaction) -> Result<T, nearpm::Error>,
    ) -> Result<T, Errno> {
        if !reserve::is_full() {
            return Err(no_memory());
        }
        let mut transaction = self.transaction.borrow_mut();
        if let Some(transaction) = transaction.as_mut() {
            return action(transaction).map_err(|error| fail_below(&error));
        }
        let begun = pool.direct.begin().map_err(|error| fail_below(&error))?;
        action(transaction.insert(begun)).map_err(|error| fail_below(&error))
    }

    /// Objects get so many bytes more, if it commits.
    #[inline]
    fn grow(&self, bytes: i64) {
        self.growth.set(self.growth.get() + bytes);
    }

    /// Transactions that the thread is in, one inside of the other.
    pub fn levels(&self) -> usize {
        self.levels.borrow().len()
    }

    fn is_outermost(&self) -> bool {
        self.levels() == 1
    }

    /// Tells the program's callback of the outermost transaction's stage.
    fn call_back(&self) {
        if let Some((callback, argument)) = self.callback.get()
            && self.is_outermost()
        {
            let handle = self.pool.get().map_or(std::ptr::null_mut(), Pool::handle);
            // SAFETY: the program gave the function for this.
            unsafe { callback(handle, self.stage.get(), argument) };
        }
    }

    /// Whether the thread works on another pool than that with this handle, which need not be one.
    fn works_elsewhere(&self, handle: Handle) -> bool {
        self.pool_in_work().is_some_and(|pool| pool.handle() != handle)
    }

    /// Enters a level, of the pool that the thread works on, if it does.
    #[inline]
    fn enter(&self, pool: &'static Pool, environment: *const u64) -> Result<(), Errno> {
        let nested = self.stage.get() == stage::WORK;
        let failure_behavior = self.levels.borrow().last().map_or(0, |level| level.failure_behavior);
        self.push(|| Level::new(environment, failure_behavior, None))?;
        if !nested {
            self.pool.set(Some(pool));
            self.user_data.set(std::ptr::null_mut());
        }
        self.last_errno.set(0);
        self.stage.set(stage::WORK);
        Ok(())
    }

    /// Enters a level that has aborted before it did anything: its end goes back to where the thread is now.
    fn enter_refused(&self, environment: *const u64, errno: Errno) -> Result<(), Errno> {
        let around = Some((self.stage.get(), self.last_errno.get()));
        self.push(|| Level::new(environment, 0, around))?;
        self.last_errno.set(errno);
        self.stage.set(stage::ONABORT);
        Ok(())
    }

    /// Of the innermost level, if it was refused: stage and error around it.
    fn refused_in(&self) -> Option<(i32, Errno)> {
        self.levels.borrow().last().and_then(|level| level.refused_in)
    }

    #[inline]
    fn push(&self, level: impl FnOnce() -> Level) -> Result<(), Errno> {
        let mut levels = self.levels.borrow_mut();
        levels.try_reserve(1).map_err(|_| no_memory())?;
        levels.push(level());
        Ok(())
    }

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

    /// Takes back what the outermost transaction did. Locks that it holds keep their state, also inside of ranges.
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

    /// Makes durable what the outermost transaction did.
    #[inline]
    fn make_durable(&self) -> Result<(), Errno> {
        let pool = self.pool.get().expect("a transaction has a pool");
        let stored = self.store_words(pool);
        let transaction = self.transaction.borrow_mut().take();
        let done = match (stored, transaction) {
            (stored, None) => stored,
            (Ok(()), Some(transaction)) => transaction.commit(&pool.direct).map_err(|error| fail_below(&error)),
            (Err(errno), Some(transaction)) => {
                transaction.abort(&pool.direct).map_err(|error| fail_below(&error)).and(Err(errno))
            }
        };
        let mut volatile = self.volatile.borrow_mut();
        let growth = self.growth.take();
        if done.is_ok() {
            pool.control.count(growth);
            store_volatile(volatile.iter().copied());
        }
        volatile.clear();
        done.map_err(|errno| if errno == 0 { libc::EIO } else { errno })
    }

    /// Stores the words of `pmemobj_set_value` that were published here.
    #[inline]
    fn store_words(&self, pool: &Pool) -> Result<(), Errno> {
        let mut words = self.words.borrow_mut();
        if words.is_empty() {
            return Ok(());
        }
        let mut ranges = Vec::new();
        ranges.try_reserve(words.len()).map_err(|_| no_memory())?;
        ranges.extend(words.iter().map(|&(offset, _)| offset..offset + 8));
        self.with(pool, |transaction| transaction.add_all(&pool.direct, &ranges))?;
        for (offset, value) in words.drain(..) {
            // SAFETY: the program named a word of the pool, and the transaction has taken it.
            unsafe { pool.at::<u64>(offset).write_unaligned(value) };
        }
        Ok(())
    }
}

/// Aborts the transaction, and goes on where its environment was saved; returns where there is none.
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
        // SAFETY: the program saved it by setjmp in a frame that still lives; the frames that are jumped over hold plain data.
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

#[cold]
fn out_of_stage(function: &str, stage: i32) -> Errno {
    match stage {
        stage::NONE => fail(libc::EINVAL, format_args!("{function} called outside of transaction")),
        stage => fail(libc::EINVAL, format_args!("{function} called in invalid stage {stage}")),
    }
}

/// The error where there is no memory for what a transaction has to remember.
#[cold]
pub fn no_memory() -> Errno {
    fail(libc::ENOMEM, format_args!("no memory for the transaction"))
}

/// The error of a call, with the call's flags.
fn failure(flags: u64) -> impl FnOnce(Errno) -> Failure {
    move |errno| Failure { errno, flags }
}
