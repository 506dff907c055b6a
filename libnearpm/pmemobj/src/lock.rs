//! Locks in pools, and values that are initialised once in each run.
//!
//! A lock is 64 bytes: the run that initialised it, and the system's lock. One of another run, or
//! of zeros, is initialised by whoever uses it first.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, timespec};

use crate::abi::Handle;
use crate::error::fail;
use crate::registry::{Pool, pool_of};

/// A lock in the pool.
#[repr(C)]
struct Lock<T> {
    run: AtomicU64,
    lock: T,
}

/// Bytes of a lock, as programs know it.
pub(crate) const LOCK_BYTES: usize = 64;

const _: () = assert!(size_of::<Lock<pthread_mutex_t>>() <= LOCK_BYTES);
const _: () = assert!(size_of::<Lock<pthread_rwlock_t>>() <= LOCK_BYTES);
const _: () = assert!(size_of::<Lock<pthread_cond_t>>() <= LOCK_BYTES);

/// Makes something ready for this run, once; the run is odd meanwhile.
fn once(pool: &Pool, run: &AtomicU64, initialise: impl Fn() -> bool) -> bool {
    let busy = pool.run_id - 1;
    loop {
        match run.load(Ordering::Acquire) {
            seen if seen == pool.run_id => return true,
            seen if seen == busy => std::hint::spin_loop(),
            seen => {
                if run.compare_exchange(seen, busy, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    let ready = initialise();
                    run.store(if ready { pool.run_id } else { 0 }, Ordering::Release);
                    if !ready {
                        return false;
                    }
                }
            }
        }
    }
}

/// Bytes that only this run of the program cares for: the lint leaves them alone.
fn note_volatile(pool: &Pool, address: usize, bytes: usize) {
    if let Some(offset) = pool.offset_of(address) {
        pool.direct.note_volatile(offset..offset + bytes as u64);
    }
}

/// The system's lock, ready for use; null where it cannot be initialised.
///
/// # Safety
/// `at` is a lock of this type in the pool.
#[inline]
unsafe fn ready<T>(pool: &Pool, at: *mut c_void, initialise: unsafe fn(*mut T) -> c_int) -> *mut T {
    let at = at.cast::<Lock<T>>();
    if at.is_null() || !at.is_aligned() {
        fail(libc::EINVAL, format_args!("{at:p} is not the address of a lock"));
        return std::ptr::null_mut();
    }
    // SAFETY: by the caller; only the fields are referred to.
    let (run, lock) = unsafe { (&(*at).run, &raw mut (*at).lock) };
    if run.load(Ordering::Acquire) == pool.run_id {
        return lock;
    }
    note_volatile(pool, at as usize, LOCK_BYTES);
    // SAFETY: nobody else has the lock while the run says so.
    if once(pool, run, || unsafe { initialise(lock) } == 0) {
        lock
    } else {
        fail(libc::EINVAL, format_args!("error initializing lock"));
        std::ptr::null_mut()
    }
}

unsafe fn new_mutex(at: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by the caller.
    unsafe { libc::pthread_mutex_init(at, std::ptr::null()) }
}

unsafe fn new_rwlock(at: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: by the caller.
    unsafe { libc::pthread_rwlock_init(at, std::ptr::null()) }
}

unsafe fn new_cond(at: *mut pthread_cond_t) -> c_int {
    // SAFETY: by the caller.
    unsafe { libc::pthread_cond_init(at, std::ptr::null()) }
}

/// Defines functions that make a lock ready and hand it to the system: for the library, and for
/// programs.
macro_rules! calls {
    ($( $name:ident, $exported:ident: $kind:ty, $new:ident => $call:path $(, $extra:ident: $type:ty)? );+ $(;)?) => { $(
        /// Calls the system's function on a lock.
        ///
        /// # Safety
        /// `at` is a lock of this kind in the pool.
        #[inline]
        pub unsafe fn $name(pool: &Pool, at: *mut c_void $(, $extra: $type)?) -> c_int {
            // SAFETY: by the caller.
            unsafe {
                let lock = ready::<$kind>(pool, at, $new);
                if lock.is_null() $(|| $extra.is_null())? { libc::EINVAL } else { $call(lock $(, $extra)?) }
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $exported(handle: Handle, at: *mut c_void $(, $extra: $type)?) -> c_int {
            // SAFETY: the program names a lock of this kind.
            unsafe { pool_of(handle).map_or_else(|errno| errno, |pool| $name(pool, at $(, $extra)?)) }
        }
    )+ };
}

calls! {
    mutex_lock, pmemobj_mutex_lock: pthread_mutex_t, new_mutex => libc::pthread_mutex_lock;
    mutex_try, pmemobj_mutex_trylock: pthread_mutex_t, new_mutex => libc::pthread_mutex_trylock;
    mutex_timed, pmemobj_mutex_timedlock: pthread_mutex_t, new_mutex => libc::pthread_mutex_timedlock, until: *const timespec;
    mutex_unlock, pmemobj_mutex_unlock: pthread_mutex_t, new_mutex => libc::pthread_mutex_unlock;
    rwlock_read, pmemobj_rwlock_rdlock: pthread_rwlock_t, new_rwlock => libc::pthread_rwlock_rdlock;
    rwlock_write, pmemobj_rwlock_wrlock: pthread_rwlock_t, new_rwlock => libc::pthread_rwlock_wrlock;
    rwlock_timed_read, pmemobj_rwlock_timedrdlock: pthread_rwlock_t, new_rwlock => pthread_rwlock_timedrdlock, until: *const timespec;
    rwlock_timed_write, pmemobj_rwlock_timedwrlock: pthread_rwlock_t, new_rwlock => pthread_rwlock_timedwrlock, until: *const timespec;
    rwlock_try_read, pmemobj_rwlock_tryrdlock: pthread_rwlock_t, new_rwlock => libc::pthread_rwlock_tryrdlock;
    rwlock_try_write, pmemobj_rwlock_trywrlock: pthread_rwlock_t, new_rwlock => libc::pthread_rwlock_trywrlock;
    rwlock_unlock, pmemobj_rwlock_unlock: pthread_rwlock_t, new_rwlock => libc::pthread_rwlock_unlock;
    cond_broadcast, pmemobj_cond_broadcast: pthread_cond_t, new_cond => libc::pthread_cond_broadcast;
    cond_signal, pmemobj_cond_signal: pthread_cond_t, new_cond => libc::pthread_cond_signal;
}

unsafe extern "C" {
    // POSIX; the crate libc lacks them for this system.
    fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
}

/// Waits with both locks ready.
unsafe fn wait(
    handle: Handle,
    condition: *mut c_void,
    mutex: *mut c_void,
    call: impl FnOnce(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int,
) -> c_int {
    let Ok(pool) = pool_of(handle) else { return libc::EINVAL };
    // SAFETY: the program names a condition and a mutex.
    let (condition, mutex) = unsafe { (ready(pool, condition, new_cond), ready(pool, mutex, new_mutex)) };
    if condition.is_null() || mutex.is_null() { libc::EINVAL } else { call(condition, mutex) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_cond_wait(handle: Handle, condition: *mut c_void, mutex: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { wait(handle, condition, mutex, |condition, mutex| libc::pthread_cond_wait(condition, mutex)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_cond_timedwait(
    handle: Handle,
    condition: *mut c_void,
    mutex: *mut c_void,
    until: *const timespec,
) -> c_int {
    if until.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: as for this function.
    unsafe { wait(handle, condition, mutex, |condition, mutex| libc::pthread_cond_timedwait(condition, mutex, until)) }
}

/// Makes a lock one that nobody has used, durably. Every kind begins with its run.
unsafe fn zero(handle: Handle, at: *mut c_void) {
    if at.is_null() || !at.cast::<AtomicU64>().is_aligned() {
        fail(libc::EINVAL, format_args!("{at:p} is not the address of a lock"));
        return;
    }
    // SAFETY: the program names a lock.
    unsafe { (*at.cast::<AtomicU64>()).store(0, Ordering::Release) };
    crate::memory::pmemobj_persist(handle, at, size_of::<AtomicU64>());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_mutex_zero(handle: Handle, at: *mut c_void) {
    // SAFETY: as for this function.
    unsafe { zero(handle, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_rwlock_zero(handle: Handle, at: *mut c_void) {
    // SAFETY: as for this function.
    unsafe { zero(handle, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_cond_zero(handle: Handle, at: *mut c_void) {
    // SAFETY: as for this function.
    unsafe { zero(handle, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pmemobj_volatile(
    handle: Handle,
    run: *mut AtomicU64,
    value: *mut c_void,
    bytes: usize,
    constructor: Option<unsafe extern "C" fn(value: *mut c_void, argument: *mut c_void) -> c_int>,
    argument: *mut c_void,
) -> *mut c_void {
    let Ok(pool) = pool_of(handle) else { return std::ptr::null_mut() };
    if run.is_null() || !run.is_aligned() {
        fail(libc::EINVAL, format_args!("{run:p} is not the address of a struct pmemvlt"));
        return std::ptr::null_mut();
    }
    // SAFETY: the program names a `struct pmemvlt`, which is this word.
    let run = unsafe { &*run };
    // SAFETY: the program gave the function for this.
    let initialise = || constructor.is_none_or(|constructor| unsafe { constructor(value, argument) } == 0);
    note_volatile(pool, std::ptr::from_ref(run) as usize, size_of::<AtomicU64>());
    note_volatile(pool, value as usize, bytes);
    if once(pool, run, initialise) { value } else { std::ptr::null_mut() }
}
