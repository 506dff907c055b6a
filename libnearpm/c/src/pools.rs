//! Direct pools: options, create, open, close.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arguments::{POOL_HANDLE, handle, not_null, number, string};
use super::error::{Failure, NearPM_code, invalid, status};
use super::opened::Opened;
use super::registry::{Registry, Taken};
use nearpm::direct::{DirectPool, Mode};
use nearpm::memory::Survives;
use nearpm::{Durability, Engine, Lint, Mechanism, Options};

/// An open direct pool. It names the pool and is no address.
pub struct nearpm_pool {
    _opaque: [u8; 0],
}

/// What the program's stores go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum nearpm_mode {
    /// A volatile copy of the pool: a private mapping of the file. What a commit names is logged,
    /// durable with one fence.
    NEARPM_WORKING_COPY = 0,
    /// Persistent memory itself: each range is durable in the log before the program may store. Not
    /// on ordinary files.
    NEARPM_IN_PLACE = 1,
}

/// How a commit of a working copy goes home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum nearpm_mechanism {
    /// By one record of new bytes, which the processor writes and brings home later.
    NEARPM_BY_RECORD = 0,
    /// Old bytes are logged, then the new ones are stored. On a card one command logs each range.
    NEARPM_BY_UNDO = 1,
    /// New bytes are logged and then applied. On a card commands apply them.
    NEARPM_BY_REDO = 2,
    /// Pages of 4 KiB are copied before they are stored to. On a card commands copy them.
    NEARPM_BY_CHECKPOINT = 3,
    /// Pages of 4 KiB are copied aside and stored to there, and all references switch at once. On a
    /// card commands copy and switch. The pool has pages to spare, an eighth of its heap, if it is
    /// created with this; the working copy is of all bytes in use.
    NEARPM_BY_SHADOW = 4,
}

/// Who makes the copies that a mechanism needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum nearpm_executor {
    /// The card that the pool lies on; the processor for pools elsewhere.
    NEARPM_AUTO = 0,
    /// The processor.
    NEARPM_CPU = 1,
    /// The card that the pool lies on. With a mechanism it is refused for pools elsewhere.
    NEARPM_CARD = 2,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum nearpm_durability {
    /// A commit that has returned survives.
    NEARPM_DURABLE = 0,
    /// A commit that has returned survives from the next `nearpm_wait_durable` on; until then a
    /// crash takes back the newest ones. For working copies of ordinary files and those with a
    /// mechanism, elsewhere as `NEARPM_DURABLE`.
    NEARPM_ASYNCHRONOUS = 1,
}

/// What a pool on an ordinary file survives. A pool on a DAX file system survives power cuts in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum nearpm_survives {
    /// A power cut: what must be durable is synchronised with the medium.
    NEARPM_POWER_CUT = 0,
    /// A crash of the process alone: nothing is synchronised.
    NEARPM_PROCESS_CRASH = 1,
    /// A power cut, if the program is right that the file lies in persistent memory although the
    /// system does not say so.
    NEARPM_AS_PERSISTENT_MEMORY = 2,
    /// As `NEARPM_AS_PERSISTENT_MEMORY`, where the power supply saves the processors' caches as
    /// well (eADR): nothing is written back.
    NEARPM_AS_PERSISTENT_CACHES = 3,
}

/// How a pool is created and opened. Zeros are the defaults: `struct nearpm_options options = {0};`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct nearpm_options {
    /// A value of `enum nearpm_mode`.
    pub mode: u32,
    /// A value of `enum nearpm_durability`.
    pub durability: u32,
    /// A value of `enum nearpm_survives`.
    pub survives: u32,
    /// 1: every page gets its memory at open, so that no transaction pays for a page fault; of a
    /// working copy that takes as much memory as the pool has bytes.
    pub prefault: u32,
    /// At creation: the identifier of the pool; 0: a random one.
    pub id: u32,
    /// At opening, 1: for reading, together with other processes that do, and without changing the
    /// file. A store ends the process.
    pub read_only: u32,
    /// 1: faults of the program are looked for and printed to standard error: stores that are not
    /// made durable, not added, or made durable twice. It takes twice the memory of the pool, and
    /// time.
    pub lint: u32,
    /// A value of `enum nearpm_mechanism`.
    pub mechanism: u32,
    /// A value of `enum nearpm_executor`.
    pub executor: u32,
    /// Zeros, for what a later library may know.
    pub reserved: [u32; 7],
}

/// The value of an option.
fn choice<T: Clone>(value: u32, what: &str, choices: &[T]) -> Result<T, Failure> {
    let known = choices.get(value as usize).cloned();
    known.ok_or_else(|| invalid(format!("{value} is no {what}: 0 to {} are", choices.len() - 1)))
}

/// Reads options.
///
/// # Safety
/// `options` is null or readable.
unsafe fn read_options(options: *const nearpm_options) -> Result<Options, Failure> {
    if options.is_null() {
        return Ok(Options::new());
    }
    // SAFETY: it is not null, and the caller says that it may be read.
    let given = unsafe { options.read_unaligned() };
    if given.reserved.iter().any(|&word| word != 0) {
        return Err(invalid("options.reserved is not zero: this library does not know what that asks for"));
    }
    // In the order of the enumerations.
    Ok(Options::new()
        .mode(choice(given.mode, "mode", &[Mode::WorkingCopy, Mode::InPlace])?)
        .mechanism(choice(
            given.mechanism,
            "mechanism",
            &[None, Some(Mechanism::Undo), Some(Mechanism::Redo), Some(Mechanism::Checkpoint), Some(Mechanism::Shadow)],
        )?)
        .engine(choice(given.executor, "executor", &[Engine::Auto, Engine::Cpu, Engine::Card])?)
        .durability(choice(given.durability, "durability", &[Durability::Durable, Durability::Asynchronous])?)
        .survives(choice(
            given.survives,
            "value of survives",
            &[Survives::PowerCut, Survives::ProcessCrash, Survives::AsPersistentMemory, Survives::AsPersistentCaches],
        )?)
        .prefault(choice(given.prefault, "value of prefault", &[false, true])?)
        .read_only(choice(given.read_only, "value of read_only", &[false, true])?)
        .lint(choice(given.lint, "value of lint", &[Lint::Off, Lint::Print])?)
        .id((given.id != 0).then_some(given.id)))
}

static POOLS: Registry<u64, Opened<DirectPool>> = Registry::new();

fn unknown() -> Failure {
    invalid("the pool is a null pointer, is closed, or was never opened: nothing was done")
}

/// The pool that a handle names.
pub(super) fn pool(pool: *const nearpm_pool) -> Result<Arc<Opened<DirectPool>>, Failure> {
    number(POOL_HANDLE, pool).and_then(|n| POOLS.get(&n)).ok_or_else(unknown)
}

/// Hands a pool that Rust opened over to C, which closes it. Rust alone opens pools in other memory
/// than files and cards.
pub fn open_pool(pool: DirectPool) -> *mut nearpm_pool {
    register(pool.into())
}

fn register(pool: Opened<DirectPool>) -> *mut nearpm_pool {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if POOLS.insert(number, pool).is_err() {
        unreachable!("numbers are given out once");
    }
    handle(POOL_HANDLE, number)
}

/// Enters a pool and gives its handle.
///
/// # Safety
/// `to` is null, or may be written.
unsafe fn enter(
    to: *mut *mut nearpm_pool,
    start: impl FnOnce() -> Result<Opened<DirectPool>, Failure>,
) -> Result<(), Failure> {
    not_null(to, "the place for the pool")?;
    // SAFETY: it is not null, and the caller says that it may be written.
    unsafe { to.write_unaligned(std::ptr::null_mut()) };
    let pool = register(start()?);
    // SAFETY: as above.
    unsafe { to.write_unaligned(pool) };
    Ok(())
}

/// Creates a direct pool in a file, or on a card, and opens it.
///
/// The file must not exist, and is gone again when the call fails. With `bytes` 0 the pool fills a
/// file that exists and whose first page is blank. A pool on a card has `card:NAME/POOL` instead of
/// a path, where NAME is that of `NearPM_init_device`; while the environment names a simulated card
/// (`NEARPM_CARD`, in the library that has one), new pools at paths lie there, too. `options` may
/// be `NULL`, for a working copy with durable commits that survive power cuts. `*pool` names the
/// pool until `nearpm_close`, for all threads; it is `NULL` after a failure.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: a null pointer, a path that is not UTF-8, an option that makes no sense or
///   that this file cannot have, or fewer bytes than a pool needs.
/// - `NEARPM_EEXIST`: there is something at this path.
/// - `NEARPM_ENOENT`: no card has this name.
/// - `NEARPM_ENOSPC`: the medium has not that many bytes free.
/// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set and this
///   library has none.
/// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
///
/// # Safety
/// `path` is `NULL` or a string, `options` is `NULL` or readable, `pool` is `NULL` or writable.
///
/// # Example
/// ```c
/// struct nearpm_options options = {.mode = NEARPM_WORKING_COPY, .survives = NEARPM_PROCESS_CRASH};
/// int code = nearpm_create("/tmp/a.pool", 64 << 20, &options, &pool);
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_create(
    path: *const c_char,
    bytes: u64,
    options: *const nearpm_options,
    pool: *mut *mut nearpm_pool,
) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe {
        enter(pool, || {
            let options = read_options(options)?;
            Opened::create(string(path, "the path of the pool")?, bytes, |at, bytes| {
                DirectPool::create(at, bytes, &options)
            })
        })
    })
}

/// Opens a direct pool, recovering it first.
///
/// What transactions committed is there, what others did is not. A pool is open once at a time, in
/// one process, unless all open it for reading. `options` may be `NULL` and may differ from those
/// at creation. `*pool` is `NULL` after a failure.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: there is nothing at this path, or no card has this name.
/// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set, the pool on
///   a card, and this library has none.
/// - `NEARPM_EBUSY`: the pool is open already; the message says in which process.
/// - `NEARPM_EBADPOOL`: the file is no pool, or a newer, truncated or corrupt one; nothing was
///   changed.
/// - `NEARPM_EINVAL`: a null pointer, or an option that makes no sense or that this file cannot
///   have.
/// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
///
/// # Safety
/// `path` is `NULL` or a string, `options` is `NULL` or readable, `pool` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearpm_open(
    path: *const c_char,
    options: *const nearpm_options,
    pool: *mut *mut nearpm_pool,
) -> c_int {
    // SAFETY: as for this function.
    status(|| unsafe {
        enter(pool, || {
            let options = read_options(options)?;
            Opened::open(string(path, "the path of the pool")?, |at| DirectPool::open(at, &options))
        })
    })
}

/// Closes a direct pool.
///
/// What was stored and never made durable becomes durable as well. Pointers into the pool are
/// invalid from then on. After a failure of the medium the pool is closed all the same, and
/// recovered when it is opened again. A process that ends without closing loses nothing that was
/// committed.
///
/// # Returns
/// `NEARPM_OK`, or the code of the failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: no open pool.
/// - `NEARPM_EBUSY`: a transaction is open on it, or another thread is in a call: the pool stays
///   open.
/// - `NEARPM_ESYSTEM`: the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn nearpm_close(pool: *mut nearpm_pool) -> c_int {
    status(|| {
        match POOLS.take(number(POOL_HANDLE, pool).ok_or_else(unknown)?) {
        Taken::Alone(pool) => pool.close(DirectPool::close),
        Taken::Unknown => Err(unknown()),
        Taken::Shared => Err(Failure {
            code: NearPM_code::NEARPM_EBUSY,
            message: "a transaction is open on the pool, or another thread is in a call on it: end that first; the pool stays open".into(),
        }),
    }
    })
}
