//! The primitives of the paper's Table 2: logs, checkpoints and shadow pages that the program
//! drives itself.

use std::ffi::{c_char, c_int, c_void};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::arguments::{Window, string};
use super::copy::WorkingCopy;
use super::error::{Failure, NearPM_code, call, invalid, nearpm_errno, nearpm_errormsg};
use super::opened::Opened;
use super::registry::{Registry, Taken};
use super::reports::{give, nearpm_statistics};
use nearpm::Error;
use nearpm::Pool;
use nearpm::{Engine, Location, Mechanism, Options, Problem};

/// An open pool for primitives.
struct ForPrimitives {
    pool: Opened<Pool>,
    /// What the program stores to, where the medium has no addresses.
    copy: Option<WorkingCopy>,
}

impl Deref for ForPrimitives {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

static POOLS: Registry<u32, ForPrimitives> = Registry::new();

/// The program has asked for the processor (`NearPM_init_device`).
static BY_PROCESSOR: AtomicBool = AtomicBool::new(false);

/// Name of a card that the program gives none.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const CARD: &str = "card";

fn unknown(id: u32) -> Failure {
    Failure {
        code: NearPM_code::NEARPM_ENOENT,
        message: format!("no pool with identifier {id:#x} is open; open or create it first"),
    }
}

fn pool(id: u32) -> Result<Arc<ForPrimitives>, Failure> {
    POOLS.get(&id).ok_or_else(|| unknown(id))
}

/// Reads a buffer of C.
///
/// # Safety
/// `data` is null, or points to `bytes` readable bytes.
unsafe fn buffer<'a>(data: *const c_void, bytes: u64) -> Result<&'a [u8], Failure> {
    if data.is_null() || bytes == 0 || bytes > isize::MAX as u64 {
        return Err(invalid("the new value is a null pointer, or has no bytes or senselessly many"));
    }
    // SAFETY: it is not null, and the caller says that it has these bytes.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes as usize) })
}

fn window(pool: &ForPrimitives) -> Result<Window, Failure> {
    let base = pool.copy.as_ref().map(WorkingCopy::base).or_else(|| pool.address());
    Ok(Window::new(base.ok_or_else(|| invalid("this pool has no addresses"))?, pool.bytes()))
}

/// Offset in the pool of a pointer into it.
fn offset(pool: &ForPrimitives, pointer: *const c_void) -> Result<u64, Failure> {
    window(pool)?.offset(pointer)
}

/// Pointer to an offset in the pool; null for 0.
fn pointer(pool: &ForPrimitives, offset: u64) -> Result<*mut c_void, Failure> {
    window(pool)?.pointer(offset)
}

fn options() -> Options {
    let engine = if BY_PROCESSOR.load(Ordering::Relaxed) { Engine::Cpu } else { Engine::Auto };
    Options::new().mechanism(Mechanism::Undo).engine(engine)
}

/// The primitives name places of one memory.
fn refuse_several(location: &str) -> Result<(), Error> {
    match Location::parse(location)? {
        Location::Card { card, .. } if card.contains('+') => {
            let what = "the primitives work on pools on one card or in one memory; name one card";
            Err(Error::Pool { location: location.to_owned(), problem: Problem::BadOption { what } })
        }
        _ => Ok(()),
    }
}

fn enter(location: &str, pool: Opened<Pool>) -> Result<u32, Failure> {
    let id = pool.id();
    let copy = if pool.address().is_none() { Some(WorkingCopy::of(&pool)?) } else { None };
    POOLS.insert(id, ForPrimitives { pool, copy }).map_err(|_| {
        let message = format!(
            "pool {location}: a pool with its identifier {id:#x} (a copy of it?) is open already; close that first"
        );
        Failure { code: NearPM_code::NEARPM_EBUSY, message }
    })?;
    Ok(id)
}

/// Stores a result where C asked for it.
///
/// # Safety
/// `to` is null, or points to a writable `uint32_t`.
unsafe fn give_id(to: *mut u32, id: impl FnOnce() -> Result<u32, Failure>) -> Result<c_int, Failure> {
    if to.is_null() {
        return Err(invalid("the place for the pool's identifier is a null pointer"));
    }
    let id = id()?;
    // SAFETY: it is not null, and the caller says that it may be written.
    unsafe { to.write_unaligned(id) };
    Ok(0)
}

fn no_device(message: String) -> Failure {
    Failure { code: NearPM_code::NEARPM_EDEVICE, message }
}

/// Opens the card of an address, or of `NAME=ADDRESS`, and makes it known.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn open_card(path: &str) -> Result<(), Failure> {
    use nearpm::cards;
    // A socket's path may have an equals sign of its own.
    let is_address = path.starts_with("vfio:") || path.starts_with("vfio-user:") || !path.contains('=');
    let (name, address) = if is_address { (CARD, path) } else { nearpm_address::named(path).map_err(no_device)? };
    let refused = |why| no_device(format!("{address}: {why}; as NAME=ADDRESS with a name; or \"cpu\" for no card"));
    let address: nearpm_address::Address = address.parse().map_err(refused)?;
    if cards::find(name).is_some() {
        let message = format!("a card is known as {name:?} already: give this one another name, NAME={address}");
        return Err(Failure { code: NearPM_code::NEARPM_EEXIST, message });
    }
    let card = address.open().map_err(|error| no_device(error.to_string()))?;
    cards::register(name, Arc::new(card));
    Ok(())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn open_card(path: &str) -> Result<(), Failure> {
    Err(no_device(format!("{path}: this library reaches cards on Linux on x86-64 alone; use \"cpu\"")))
}

/// Initialises a device.
///
/// `"vfio:ADDRESS"` is a card of this machine that is bound to vfio-pci, `"vfio-user:SOCKET"` one
/// that another process serves. It stays open until the process ends, and pools of either kind are
/// named `card:card/POOL` on it; with `"NAME=vfio:ADDRESS"` and the like, `card:NAME/POOL`. Options
/// of an address follow behind commas: `window=uncached`, `wc` or `wb`, `wait=polling` or
/// `interrupts`. A card makes the copies for pools that lie on it.
///
/// `NULL`: nothing is opened; the processor makes the copies for pools in files. `"cpu"`: likewise,
/// and pools for primitives that are created or opened from then on have the processor make them on
/// a card, too.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_EDEVICE`: the path is none of these, there is no such card, it does not start, or this
///   library is for a machine on which it reaches none.
/// - `NEARPM_EEXIST`: a card has this name already.
///
/// # Safety
/// `device_path` is `NULL` or a string.
///
/// # Example
/// ```c
/// uint32_t id;
/// if (NearPM_init_device("vfio:0000:01:00.0") == 0)
///     NearPM_pool_create("card:card/counters", 8 << 20, &id);
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_init_device(device_path: *const c_char) -> c_int {
    call(-1, || {
        if device_path.is_null() {
            return Ok(0);
        }
        // SAFETY: as for this function.
        let path = unsafe { string(device_path, "the path of the device") }?;
        if path == "cpu" {
            BY_PROCESSOR.store(true, Ordering::Relaxed);
            return Ok(0);
        }
        open_card(path)?;
        Ok(0)
    })
}

/// Creates a pool for primitives in a file, or on a card, and opens it.
///
/// `*pool_id` names it from then on. The file must not exist, and is gone again when the call
/// fails. On a card (`card:NAME/POOL`, as with `nearpm_create`) the program's addresses are those
/// of a copy: what it stores goes to the card when `NearPM_persist`, `NearPM_commit_log` or
/// `NearPM_switch_page` need it there, or when the pool is closed.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: a null pointer, a bad path, or fewer bytes than a pool needs.
/// - `NEARPM_EEXIST`: there is something at this path.
/// - `NEARPM_ENOENT`: no card has this name.
/// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set and this
///   library has none.
/// - `NEARPM_ENOSPC`: the medium has not that many bytes free.
/// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
///
/// # Safety
/// `location` is `NULL` or a string, `pool_id` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_pool_create(location: *const c_char, bytes: u64, pool_id: *mut u32) -> c_int {
    // SAFETY: as for this function.
    call(-1, || unsafe {
        let location = string(location, "the location of the pool")?;
        give_id(pool_id, || {
            let created = Opened::create(location, bytes, |at, bytes| {
                refuse_several(at)?;
                options().create(at, bytes)
            })?;
            enter(location, created)
        })
    })
}

/// Opens a pool for primitives, recovering it first.
///
/// `*pool_id` names it from then on.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_EINVAL`: a null pointer or a bad path.
/// - `NEARPM_ENOENT`: there is nothing at this path, or no card has this name.
/// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set, the pool on
///   a card, and this library has none.
/// - `NEARPM_EBUSY`: the pool is open already.
/// - `NEARPM_EBADPOOL`: the file is no pool, or a newer, truncated or corrupt one.
/// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
///
/// # Safety
/// `location` is `NULL` or a string, `pool_id` is `NULL` or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_pool_open(location: *const c_char, pool_id: *mut u32) -> c_int {
    // SAFETY: as for this function.
    call(-1, || unsafe {
        let location = string(location, "the location of the pool")?;
        give_id(pool_id, || {
            let opened = Opened::open(location, |at| {
                refuse_several(at)?;
                options().open(at)
            })?;
            enter(location, opened)
        })
    })
}

/// Closes a pool for primitives.
///
/// What was stored and never made durable becomes durable as well. What an open log covers is taken
/// back when it is opened the next time.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_EBUSY`: another thread is in a call on it; it stays open.
/// - `NEARPM_ESYSTEM`: the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_pool_close(pool_id: u32) -> c_int {
    call(-1, || match POOLS.take(pool_id) {
        Taken::Alone(ForPrimitives { pool, copy }) => {
            let finished = copy.map_or(Ok(()), |copy| copy.finish(&pool));
            pool.close(Pool::close)?;
            finished.map(|()| 0)
        }
        Taken::Unknown => Err(unknown(pool_id)),
        Taken::Shared => Err(Failure {
            code: NearPM_code::NEARPM_EBUSY,
            message: "another thread is in a call on the pool: it stays open; close it when that has returned".into(),
        }),
    })
}

/// Gives the address of an offset in a pool for primitives.
///
/// Addresses change from run to run, offsets do not: references in a pool are offsets. Offset 0 is
/// the null pointer.
///
/// # Returns
/// The address; `NULL` for 0 and after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the offset is not in the pool.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_direct(pool_id: u32, at: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || pointer(&*pool(pool_id)?, at))
}

/// Gives the offset of an address in a pool for primitives.
///
/// # Returns
/// The offset; 0 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the address does not point into the pool.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_offset(pool_id: u32, address: *const c_void) -> u64 {
    call(0, || offset(&*pool(pool_id)?, address))
}

/// Allocates zeroed bytes, atomically and durably.
///
/// A size that is a multiple of 64 or 4096 gives an address that is one.
///
/// # Returns
/// The address, or `NULL` after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_EINVAL`: no bytes.
/// - `NEARPM_ENOSPC`: the pool has no room.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_alloc(pool_id: u32, size: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let object = pool.tx(|tx| tx.alloc_zeroed(size))?;
        if let Some(copy) = &pool.copy {
            copy.zeroed(object, size);
        }
        pointer(&pool, object)
    })
}

/// Frees what `NearPM_alloc` gave, atomically and durably.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the address is not that of an object (freed twice, or never allocated).
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_free(pool_id: u32, address: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let object = offset(&pool, address)?;
        pool.tx(|tx| tx.free(object))?;
        Ok(0)
    })
}

/// Gives the object from which the program finds all others.
///
/// # Returns
/// The address; `NULL` where none was set and after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_root(pool_id: u32) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let root = pool.root()?;
        pointer(&pool, root)
    })
}

/// Makes an object the root, atomically and durably.
///
/// `NULL`: there is none from then on.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the address is not that of an object.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_set_root(pool_id: u32, address: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let root = if address.is_null() { 0 } else { offset(&pool, address)? };
        pool.tx(|tx| tx.set_root(root))?;
        Ok(0)
    })
}

/// Makes stores to a range durable.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the range leaves the pool's heap.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_persist(pool_id: u32, address: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let at = offset(&pool, address)?;
        match &pool.copy {
            Some(copy) => copy.persist(&pool, at, size)?,
            None => pool.flush(at, size)?,
        }
        Ok(0)
    })
}

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a reference.
const REFERENCE: u64 = 8;

/// Logs old bytes by `log`, which cover `range`.
fn log_old(
    pool: &ForPrimitives,
    thread: u16,
    range: Range<u64>,
    log: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Failure> {
    match &pool.copy {
        Some(copy) => copy.log_old(pool, thread, range, log),
        None => Ok(log()?),
    }
}

/// Undo logging: logs the old value of a range.
///
/// The program may then store to it; `NearPM_commit_log` makes what it stored durable and keeps it,
/// and until then a power cut restores the old value. The log of a `thread_id` is used by one
/// thread at a time, and two open logs must not cover the same bytes.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the range leaves the pool's heap.
/// - `NEARPM_EINVAL`: no bytes.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_undolog_create(pool_id: u32, thread_id: u16, old_data_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let at = offset(&pool, old_data_ptr)?;
        log_old(&pool, thread_id, at..at.saturating_add(size), || pool.undolog_create(thread_id, at, size))?;
        Ok(0)
    })
}

/// Redo logging: puts a new value into the log.
///
/// Several may follow each other. `destination` is where `NearPM_applylog` will store it.
///
/// # Returns
/// The log entry, or `NULL` after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the range leaves the pool's heap.
/// - `NEARPM_EINVAL`: a null pointer, or no bytes.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
///
/// # Safety
/// `new_data` is `NULL` or points to `size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_redolog_create(
    pool_id: u32,
    thread_id: u16,
    destination: *const c_void,
    new_data: *const c_void,
    size: u64,
) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        // SAFETY: as for this function.
        let value = unsafe { buffer(new_data, size) }?;
        let at = offset(&pool, destination)?;
        let entry = pool.redolog_create(thread_id, at, value)?;
        if let Some(copy) = &pool.copy {
            copy.noted_new(thread_id, at, value);
        }
        pointer(&pool, entry)
    })
}

/// Redo logging: applies an entry of the log.
///
/// The first call commits every value in the log of the thread, all or none. The destinations must
/// not be touched until `NearPM_commit_log`.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: no entry of this log, or not of this size.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_applylog(pool_id: u32, thread_id: u16, redolog_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        pool.applylog(thread_id, offset(&pool, redolog_ptr)?, size)?;
        Ok(0)
    })
}

/// Ends the log of a thread, durably.
///
/// What its old values covered is kept as it is now, and its new values are in place.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_commit_log(pool_id: u32, thread_id: u16) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        match &pool.copy {
            Some(copy) => copy.commit(&pool, thread_id)?,
            None => pool.commit_log(thread_id)?,
        }
        Ok(0)
    })
}

/// Ends the log of a thread, and takes back what it covers.
///
/// What its old values covered is restored, and new values that were not applied are dropped.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_abort_log(pool_id: u32, thread_id: u16) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        match &pool.copy {
            Some(copy) => copy.abort(&pool, thread_id)?,
            None => pool.abort_log(thread_id)?,
        }
        Ok(0)
    })
}

/// Checkpointing: saves the 4 KiB pages that a range touches.
///
/// Each once until `NearPM_commit_log`. Otherwise like `NearPM_undolog_create`.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the range leaves the pool's heap.
/// - `NEARPM_EINVAL`: no bytes.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_ckpoint_create(pool_id: u32, thread_id: u16, old_data_ptr: *const c_void, size: u64) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let at = offset(&pool, old_data_ptr)?;
        let end = at.saturating_add(size).div_ceil(PAGE).saturating_mul(PAGE);
        let pages = at / PAGE * PAGE..end.min(pool.bytes());
        log_old(&pool, thread_id, pages, || pool.ckpoint_create(thread_id, at, size))?;
        Ok(0)
    })
}

/// Shadow paging: copies whole 4 KiB pages to new ones.
///
/// The program stores to the copy, persists it, and switches the reference to it by
/// `NearPM_switch_page`.
///
/// # Returns
/// The copy, or `NULL` after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: not whole pages of the pool's heap.
/// - `NEARPM_ENOSPC`: the pool has no room.
/// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_shadowcpy(pool_id: u32, thread_id: u16, page_ptr: *const c_void, size: u64) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        let pool = pool(pool_id)?;
        let at = offset(&pool, page_ptr)?;
        let make = || pool.shadowcpy(thread_id, at, size);
        let made = match &pool.copy {
            Some(copy) => copy.around(&pool, at..at.saturating_add(size), size, make)?,
            None => make()?,
        };
        pointer(&pool, made)
    })
}

/// Shadow paging: makes a reference name the copy.
///
/// `*reference`, an offset in the pool, becomes that of `copy`, and what it named before is freed;
/// both or neither, and durably.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_ERANGE`: the reference does not lie in the pool, is not a multiple of 8, or names no
///   object, or the copy is none.
/// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_switch_page(pool_id: u32, reference: *mut u64, copy: *mut c_void) -> c_int {
    call(-1, || {
        let pool = pool(pool_id)?;
        let (at, to) = (offset(&pool, reference.cast())?, offset(&pool, copy)?);
        let switch = || pool.switch_page(at, to).map(|()| at);
        match &pool.copy {
            Some(copy) => copy.around(&pool, at..at.saturating_add(REFERENCE), REFERENCE, switch)?,
            None => switch()?,
        };
        Ok(0)
    })
}

/// Gives what a pool for primitives has done since it was opened.
///
/// `size` is `sizeof *statistics`: a library that knows fewer fields fills the rest with zeros.
///
/// # Returns
/// 0, or -1 after a failure.
///
/// # Errors
/// - `NEARPM_ENOENT`: no pool with this identifier is open.
/// - `NEARPM_EINVAL`: a null pointer, or no bytes.
///
/// # Safety
/// `statistics` is `NULL` or has `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NearPM_get_statistics(pool_id: u32, statistics: *mut nearpm_statistics, size: usize) -> c_int {
    call(-1, || {
        // SAFETY: as for this function.
        unsafe { give(statistics, size, || Ok(nearpm_statistics::from(pool(pool_id)?.statistics()))) }?;
        Ok(0)
    })
}

/// Gives the code of this thread's last failure: the same as `nearpm_errno`.
///
/// # Returns
/// A value of `enum NearPM_code`, `NEARPM_OK` if no call of this thread has failed.
///
/// # Errors
/// None.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_errno() -> c_int {
    nearpm_errno()
}

/// Gives the text of this thread's last failure: the same as `nearpm_errormsg`.
///
/// # Returns
/// A text that is valid until the next failure of this thread; an empty one if no call of this
/// thread has failed.
///
/// # Errors
/// None.
#[unsafe(no_mangle)]
pub extern "C" fn NearPM_errormsg() -> *const c_char {
    nearpm_errormsg()
}
