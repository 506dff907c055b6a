//! What each thread has. Reached by two instructions: `thread_local!` in a shared library costs a call for each access.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::OnceLock;

use crate::alloc::Words;
use crate::error::Message;
use crate::registry::{Cache, Pool};
use crate::tx::TxState;

/// A range that the program will make durable by `pmemobj_drain`.
pub struct Pending {
    /// Where.
    pub pool: *const Pool,
    /// What, as offsets in the pool.
    pub range: std::ops::Range<u64>,
}

/// Everything of a thread. Borrows of its cells end before anything of the program is called.
#[derive(Default)]
pub struct Thread {
    /// The pools that were looked up last.
    pub cache: Cache,
    /// The transaction.
    pub tx: TxState,
    /// Space for atomic changes.
    pub words: Cell<Words>,
    /// For `pmemobj_errormsg`.
    pub message: RefCell<Message>,
    /// Flushed and not drained.
    pub pending: RefCell<Vec<Pending>>,
    /// What `heap.thread.arena_id` was set to last, and in which run of a pool.
    pub arena: Cell<(u64, i64)>,
    /// The pool whose root this thread makes or enlarges.
    pub root_of: Cell<Option<&'static Pool>>,
    /// Bytes of the object whose constructor runs: they become durable with it.
    pub constructing: Cell<(usize, usize)>,
}

/// The state of the calling thread. It lives until the thread ends.
#[inline]
pub fn thread() -> &'static Thread {
    let state: *const Thread;
    // SAFETY: reads the word that `abi` defines, relative to the thread's own base.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr [rip + nearpm_pmemobj_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) state,
            options(nostack, readonly, preserves_flags),
        );
        // SAFETY: it is null or what `make` put there.
        if state.is_null() { make() } else { &*state }
    }
}

#[cold]
fn make() -> &'static Thread {
    let state = Box::into_raw(Box::<Thread>::default());
    set(state);
    // SAFETY: the key's destructor takes what `Box::into_raw` gave.
    unsafe {
        libc::pthread_setspecific(key(), state.cast::<c_void>());
        &*state
    }
}

fn set(state: *mut Thread) {
    // SAFETY: writes the word of the calling thread.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr [rip + nearpm_pmemobj_thread@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) state,
            options(nostack, preserves_flags),
        );
    }
}

/// The key whose destructor runs at the end of each thread that has a state.
fn key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor gets the pointers that `make` stores.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end)) };
        if made != 0 {
            crate::error::fatal(format_args!("no key for the state of threads: error {made}"));
        }
        key
    })
}

unsafe extern "C" fn end(state: *mut c_void) {
    set(std::ptr::null_mut());
    // SAFETY: the value of the key is what `make` allocated.
    drop(unsafe { Box::from_raw(state.cast::<Thread>()) });
}
