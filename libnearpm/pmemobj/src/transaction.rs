//! What a thread knows of its transaction. What a program does with it, and its locks, are in `tx`.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ops::Range;

use nearpm::direct::Transaction;

use crate::abi::{Handle, flag};
use crate::error::{Errno, fail, fail_below, no_memory};
use crate::open::Pool;
use crate::reserve;
use crate::words::{VolatileWord, store_volatile};

/// `enum pobj_tx_stage`.
pub mod stage {
    pub const NONE: i32 = 0;
    pub const WORK: i32 = 1;
    pub const ONCOMMIT: i32 = 2;
    pub const ONABORT: i32 = 3;
    pub const FINALLY: i32 = 4;
}

/// `enum pobj_tx_param`.
pub mod parameter {
    pub const NONE: u64 = 0;
    pub const MUTEX: u64 = 1;
    pub const RWLOCK: u64 = 2;
    pub const CALLBACK: u64 = 3;
}

/// Bytes of a `jmp_buf`.
const ENVIRONMENT_BYTES: usize = 200;

pub type Environment = [u64; ENVIRONMENT_BYTES / 8];

/// Of a program that wants no jump.
pub const NO_ENVIRONMENT: Environment = [0; ENVIRONMENT_BYTES / 8];

/// What a program is told of a stage by.
pub type Callback = unsafe extern "C" fn(pool: Handle, stage: c_int, argument: *mut c_void);

/// A transaction that the program has begun and not ended.
#[derive(Clone, Copy)]
pub struct Level {
    pub environment: Environment,
    /// `enum pobj_tx_failure_behavior`: 1 returns errors.
    pub failure_behavior: c_int,
    /// Of one that was refused, so that nothing of it happens: stage and error that its end goes
    /// back to.
    pub refused_in: Option<(i32, Errno)>,
}

impl Level {
    /// A level with the `jmp_buf` that the program gave, or null.
    #[inline]
    pub fn new(environment: *const u64, failure_behavior: c_int, refused_in: Option<(i32, Errno)>) -> Level {
        // SAFETY: the program gives a `jmp_buf` of so many bytes.
        let environment = unsafe { environment.cast::<Environment>().as_ref() }.copied().unwrap_or(NO_ENVIRONMENT);
        Level { environment, failure_behavior, refused_in }
    }
}

/// A lock that is held until the transaction ends.
#[derive(Clone, Copy)]
pub struct HeldLock {
    pub kind: u64,
    pub at: *mut c_void,
}

/// The transaction of a thread.
#[derive(Default)]
pub struct TxState {
    pub stage: Cell<i32>,
    pub last_errno: Cell<Errno>,
    pub pool: Cell<Option<&'static Pool>>,
    /// Begun by the first call that needs it.
    pub transaction: RefCell<Option<Transaction>>,
    pub levels: RefCell<Vec<Level>>,
    pub locks: RefCell<Vec<HeldLock>>,
    /// Words (offset, value) that are stored at commit.
    pub words: RefCell<Vec<(u64, u64)>>,
    /// Words of ordinary memory that are stored when it is durable.
    pub volatile: RefCell<Vec<VolatileWord>>,
    /// Bytes that objects get more by it.
    pub growth: Cell<i64>,
    pub callback: Cell<Option<(Callback, *mut c_void)>>,
    pub user_data: Cell<*mut c_void>,
}

/// An error of a call in a transaction: the transaction aborts, unless the caller wants the error
/// itself.
pub struct Failure {
    pub errno: Errno,
    pub flags: u64,
}

/// The outcome of a call in a transaction. Plain data, as all that lives while a transaction
/// aborts.
pub type Outcome<T> = Result<T, Failure>;

impl TxState {
    /// The pool of the transaction in work. A call in another stage, where PMDK ends the process,
    /// is refused and changes nothing.
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

    /// Parts of a range that the transaction does not make durable at commit; `false` if it has
    /// taken nothing yet.
    pub fn uncovered(&self, range: &Range<u64>, parts: &mut Vec<Range<u64>>) -> bool {
        let transaction = self.transaction.borrow();
        let Some(transaction) = transaction.as_ref() else { return false };
        transaction.uncovered(range, parts);
        true
    }

    /// Adds what the failure behaviour asks for to a call's flags.
    #[inline]
    pub fn flags(&self, flags: u64) -> u64 {
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
    pub fn grow(&self, bytes: i64) {
        self.growth.set(self.growth.get() + bytes);
    }

    /// Transactions that the thread is in, one inside of the other.
    pub fn levels(&self) -> usize {
        self.levels.borrow().len()
    }

    pub fn is_outermost(&self) -> bool {
        self.levels() == 1
    }

    /// Tells the program's callback of the outermost transaction's stage.
    pub fn call_back(&self) {
        if let Some((callback, argument)) = self.callback.get()
            && self.is_outermost()
        {
            let handle = self.pool.get().map_or(std::ptr::null_mut(), Pool::handle);
            // SAFETY: the program gave the function for this.
            unsafe { callback(handle, self.stage.get(), argument) };
        }
    }

    /// Whether the thread works on another pool than that with this handle, which need not be one.
    pub fn works_elsewhere(&self, handle: Handle) -> bool {
        self.pool_in_work().is_some_and(|pool| pool.handle() != handle)
    }

    /// Enters a level, of the pool that the thread works on, if it does.
    #[inline]
    pub fn enter(&self, pool: &'static Pool, environment: *const u64) -> Result<(), Errno> {
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

    /// Enters a level that has aborted before it did anything: its end goes back to where the
    /// thread is now.
    pub fn enter_refused(&self, environment: *const u64, errno: Errno) -> Result<(), Errno> {
        let around = Some((self.stage.get(), self.last_errno.get()));
        self.push(|| Level::new(environment, 0, around))?;
        self.last_errno.set(errno);
        self.stage.set(stage::ONABORT);
        Ok(())
    }

    /// Of the innermost level, if it was refused: stage and error around it.
    pub fn refused_in(&self) -> Option<(i32, Errno)> {
        self.levels.borrow().last().and_then(|level| level.refused_in)
    }

    #[inline]
    pub fn push(&self, level: impl FnOnce() -> Level) -> Result<(), Errno> {
        let mut levels = self.levels.borrow_mut();
        levels.try_reserve(1).map_err(|_| no_memory())?;
        levels.push(level());
        Ok(())
    }

    /// Makes durable what the outermost transaction did.
    #[inline]
    pub fn make_durable(&self) -> Result<(), Errno> {
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
    pub fn store_words(&self, pool: &Pool) -> Result<(), Errno> {
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

#[cold]
pub fn out_of_stage(function: &str, stage: i32) -> Errno {
    match stage {
        stage::NONE => fail(libc::EINVAL, format_args!("{function} called outside of transaction")),
        stage => fail(libc::EINVAL, format_args!("{function} called in invalid stage {stage}")),
    }
}
