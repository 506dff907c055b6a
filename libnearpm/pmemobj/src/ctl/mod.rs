//! `pmemobj_ctl_*`, and configuration by `PMEMOBJ_CONF` and `PMEMOBJ_CONF_FILE`.
//!
//! Entries by name: values that the library keeps and uses, values that it keeps because programs read back what they set, and
//! figures. `docs/pmdk-abi.md` says of each which it is.

mod built_in;
mod class;
mod configuration;
mod entry;
mod pool_control;

pub use configuration::apply as apply_configuration;
pub use pool_control::PoolControl;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::abi::Handle;
use crate::error::{Errno, fail};
use crate::registry::{Pool, pool_of};
use entry::Entry;

/// Values of `enum pobj_stats_enabled` under which persistent statistics are counted.
const STATISTICS_BOTH: i64 = 1;
const STATISTICS_PERSISTENT: i64 = 2;

/// Arenas that a pool may have; the program may allow more.
const MAX_ARENAS: i64 = 1024;

/// Values of the process.
struct Globals {
    prefault_at_create: AtomicI64,
    prefault_at_open: AtomicI64,
    sds_at_create: AtomicI64,
    fallocate_at_create: AtomicI64,
    copy_on_write: AtomicI64,
    assignment_type: AtomicI64,
    /// 0: as many as there are processors.
    default_arenas: AtomicI64,
}

static GLOBALS: Globals = Globals {
    prefault_at_create: AtomicI64::new(0),
    prefault_at_open: AtomicI64::new(0),
    sds_at_create: AtomicI64::new(1),
    fallocate_at_create: AtomicI64::new(1),
    copy_on_write: AtomicI64::new(0),
    assignment_type: AtomicI64::new(0),
    default_arenas: AtomicI64::new(0),
};

/// Whether new pools get their memory at once.
pub fn prefault_at_create() -> bool {
    GLOBALS.prefault_at_create.load(Ordering::Relaxed) != 0
}

/// Whether pools get their memory when they are opened.
pub fn prefault_at_open() -> bool {
    GLOBALS.prefault_at_open.load(Ordering::Relaxed) != 0
}

/// Whether stores to pools shall be forgotten when they are closed.
pub fn copy_on_write() -> bool {
    GLOBALS.copy_on_write.load(Ordering::Relaxed) != 0
}

/// Processors of the machine. The system says it by files, which takes too long for an allocation.
fn processors() -> u64 {
    static PROCESSORS: OnceLock<u64> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64))
}

/// Arenas that a program is told of: threads allocate apart from each other without asking.
fn default_arenas() -> u64 {
    match GLOBALS.default_arenas.load(Ordering::Relaxed) {
        0 => processors(),
        set => set as u64,
    }
}

/// What is asked of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Query {
    Get,
    Set,
    Execute,
}

fn find(pool: Option<&Pool>, name: &str) -> Result<Entry, Errno> {
    Entry::find(pool.is_some(), name)
        .ok_or_else(|| fail(libc::EINVAL, format_args!("invalid query entry point {name}")))
}

/// # Safety
/// `name` is a string, `argument` what the entry takes.
unsafe fn ask(handle: Handle, name: *const c_char, argument: *mut c_void, query: Query) -> c_int {
    let answer = || {
        let pool = if handle.is_null() { None } else { Some(pool_of(handle)?) };
        if name.is_null() {
            return Err(fail(libc::EINVAL, format_args!("invalid query")));
        }
        // What the environment says comes before what the program says. A wrong value of it is an error of create and open.
        let _ = apply_configuration(None);
        // SAFETY: by the caller.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let entry = find(pool, &name)?;
        if !entry.takes(query) {
            return Err(fail(libc::EINVAL, format_args!("invalid query entry point {name}")));
        }
        if argument.is_null() {
            return Err(fail(libc::EINVAL, format_args!("{name} requires a non-NULL argument")));
        }
        // SAFETY: by the caller.
        unsafe {
            match query {
                Query::Get => entry.get(pool, argument),
                Query::Set => entry.set(pool, argument),
                Query::Execute => entry.execute(pool, argument),
            }
        }
    };
    if answer().is_ok() { 0 } else { -1 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_get(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Get) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_set(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Set) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_ctl_exec(handle: Handle, name: *const c_char, argument: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { ask(handle, name, argument, Query::Execute) }
}
