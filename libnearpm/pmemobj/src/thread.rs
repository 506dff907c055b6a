//! What each thread has. Reached by two instructions: `thread_local!` in a shared library costs a
//! call for each access.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::error::fatal;
use crate::open::{Cache, Pool};
use crate::thread_end::ThreadEnd;
use crate::transaction::TxState;
use crate::words::Words;

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
    /// Flushed and not drained.
    pub pending: RefCell<Vec<Pending>>,
    /// What `heap.thread.arena_id` was set to last, and in which run of a pool.
    pub arena: Cell<(u64, i64)>,
    /// The pool whose root this thread makes or enlarges.
    pub root_of: Cell<Option<RootOf>>,
    /// The constructor that runs, null for none: in the frame of the call that runs it.
    pub constructing: Cell<*const Constructing>,
}

impl Thread {
    /// Whether bytes at an address are those of the object whose constructor runs: they become
    /// durable with it.
    #[inline]
    pub fn constructs(&self, address: usize, bytes: usize) -> bool {
        // SAFETY: the frame lives as long as its constructor runs, and `jump_away` forgets those
        // that do not return.
        let running = unsafe { self.constructing.get().as_ref() };
        running.is_some_and(|new| new.start <= address && address.saturating_add(bytes) <= new.end)
    }

    /// The program goes on where a transaction began that is inside of so many others, itself
    /// included: constructors that run since do not return. Those that began it go on.
    pub fn jump_away(&self, levels: usize) {
        // SAFETY: the frames that are jumped over still have what they had.
        while let Some(running) = unsafe { self.constructing.get().as_ref() }
            && levels <= running.levels
        {
            self.constructing.set(running.outer);
        }
        if self.root_of.get().is_some_and(|root| levels <= root.levels) {
            self.leave_root();
        }
    }

    /// It no longer changes a root: it is done, or its constructor has jumped away.
    pub fn leave_root(&self) {
        if let Some(root) = self.root_of.take() {
            root.pool.root_busy.store(false, Ordering::Release);
        }
    }
}

/// A pool whose root a thread makes or enlarges.
#[derive(Clone, Copy)]
pub struct RootOf {
    /// Whose.
    pub pool: &'static Pool,
    /// Transactions that the thread was in when it began.
    pub levels: usize,
}

/// A constructor that runs.
pub struct Constructing {
    /// Address of its object.
    pub start: usize,
    /// Behind it.
    pub end: usize,
    /// Transactions that the thread was in when it was called.
    pub levels: usize,
    /// The one that it was called by, or null.
    pub outer: *const Constructing,
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
    static END: ThreadEnd = ThreadEnd::new(end);
    let key = END.key().unwrap_or_else(|errno| fatal(format_args!("no key for the state of threads: error {errno}")));
    let state = Box::into_raw(Box::<Thread>::default());
    set(state);
    // SAFETY: the key's destructor takes what `Box::into_raw` gave.
    unsafe {
        libc::pthread_setspecific(key, state.cast::<c_void>());
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

unsafe extern "C" fn end(state: *mut c_void) {
    set(std::ptr::null_mut());
    // SAFETY: the value of the key is what `make` allocated.
    drop(unsafe { Box::from_raw(state.cast::<Thread>()) });
}
