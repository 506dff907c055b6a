//! Open pools by address and by identifier.
//!
//! A look-up that finds the pool of the last one costs a comparison. Others read a table of words without a lock.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use nearpm::direct::DirectPool;

use crate::abi::{_pobj_cache_invalidate, Handle, Oid};
use crate::ctl::PoolControl;
use crate::error::fatal;
use crate::head::Head;
use crate::place::Session;
use crate::thread::{Thread, thread};

/// Most pools that are open at the same time.
pub const MAX_POOLS: usize = 1024;

/// An open pool.
pub struct Pool {
    /// The pool below.
    pub direct: DirectPool,
    /// The card that it lies on, which stays in until the pool is closed: fields are dropped in this order.
    pub _card: Option<Session>,
    /// Address of its first byte, which programs know as `PMEMobjpool *`.
    pub base: usize,
    /// `pool_uuid_lo` of its objects.
    pub uuid: u64,
    /// Even, and different each time it is opened: locks with another one are not initialised.
    pub run_id: u64,
    /// Offsets of objects.
    pub heap: Range<u64>,
    /// Layout and root.
    pub head: Head,
    /// The root changes. No guard: the program's constructor may jump away meanwhile.
    pub root_busy: AtomicBool,
    /// `pmemobj_set_user_data`.
    pub user_data: AtomicPtr<u8>,
    /// What `pmemobj_ctl_*` keeps for a pool.
    pub control: PoolControl,
}

impl Pool {
    /// The handle of the pool.
    pub fn handle(&self) -> Handle {
        self.base as Handle
    }

    /// Address of an offset.
    #[inline]
    pub fn at<T>(&self, offset: u64) -> *mut T {
        (self.base + offset as usize) as *mut T
    }

    /// The offset of an address that lies in the pool.
    #[inline]
    pub fn offset_of(&self, address: usize) -> Option<u64> {
        let offset = address.wrapping_sub(self.base) as u64;
        (offset < self.direct.bytes()).then_some(offset)
    }

    /// An object of this pool.
    #[inline]
    pub fn oid(&self, off: u64) -> Oid {
        Oid { pool: self.uuid, off }
    }
}

#[derive(Default)]
struct Slot {
    base: AtomicUsize,
    end: AtomicUsize,
    uuid: AtomicU64,
    pool: AtomicPtr<Pool>,
}

static SLOTS: [Slot; MAX_POOLS] = [const {
    Slot {
        base: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        uuid: AtomicU64::new(0),
        pool: AtomicPtr::new(std::ptr::null_mut()),
    }
}; MAX_POOLS];
/// Slots from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Counts closed pools: what threads remember of before does not count.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Held while pools are entered and removed.
static CHANGES: Mutex<()> = Mutex::new(());

/// The pools that a thread looked up last.
#[derive(Default)]
pub struct Cache {
    generation: Cell<u32>,
    base: Cell<usize>,
    by_base: Cell<usize>,
    uuid: Cell<u64>,
    by_uuid: Cell<usize>,
}

impl Cache {
    fn check(&self) {
        let generation = GENERATION.load(Ordering::Acquire);
        if self.generation.replace(generation) != generation {
            self.base.set(0);
            self.uuid.set(0);
        }
    }
}

/// Enters a pool; gives it back where that is not possible, with the reason.
pub fn enter(pool: Box<Pool>) -> Result<&'static Pool, (Box<Pool>, &'static str)> {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let used = USED.load(Ordering::Relaxed);
    if SLOTS[..used].iter().any(|slot| slot.uuid.load(Ordering::Relaxed) == pool.uuid) {
        return Err((
            pool,
            "a pool with the same identifier (the pool itself, or a copy of it) is open in this process",
        ));
    }
    let free = SLOTS[..used].iter().position(|slot| slot.uuid.load(Ordering::Relaxed) == 0);
    let Some(slot) = SLOTS.get(free.unwrap_or(used)) else {
        return Err((pool, "too many pools are open in this process"));
    };
    let (base, end, uuid) = (pool.base, pool.base + pool.direct.bytes() as usize, pool.uuid);
    let pool = Box::into_raw(pool);
    slot.pool.store(pool, Ordering::Release);
    slot.end.store(end, Ordering::Release);
    slot.base.store(base, Ordering::Release);
    slot.uuid.store(uuid, Ordering::Release);
    if free.is_none() {
        USED.store(used + 1, Ordering::Release);
    }
    // SAFETY: it lives until `leave` gives it back.
    Ok(unsafe { &*pool })
}

/// Removes a pool that nobody uses any more.
pub fn leave(pool: &'static Pool) -> Box<Pool> {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let raw = std::ptr::from_ref(pool).cast_mut();
    let slot = SLOTS.iter().find(|slot| slot.pool.load(Ordering::Relaxed) == raw);
    let Some(slot) = slot else { fatal(format_args!("the pool at {:#x} is not open", pool.base)) };
    slot.uuid.store(0, Ordering::Release);
    slot.base.store(0, Ordering::Release);
    slot.end.store(0, Ordering::Release);
    slot.pool.store(std::ptr::null_mut(), Ordering::Release);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    // SAFETY: a plain variable of this library (or the program's copy of it).
    unsafe { _pobj_cache_invalidate.fetch_add(1, Ordering::AcqRel) };
    // SAFETY: `enter` took it from a box, and the table no longer has it.
    unsafe { Box::from_raw(raw) }
}

fn search(found: impl Fn(&Slot) -> bool) -> Option<&'static Pool> {
    let slot = SLOTS[..USED.load(Ordering::Acquire)].iter().find(|slot| found(slot))?;
    let pool = slot.pool.load(Ordering::Acquire);
    // SAFETY: a program does not use a pool while it closes it.
    unsafe { pool.as_ref() }
}

/// The pool of a handle, for a caller that has the thread's state at hand.
#[inline]
pub fn pool_in(thread: &Thread, handle: Handle) -> &'static Pool {
    let cache = &thread.cache;
    if cache.base.get() == handle as usize && cache.generation.get() == GENERATION.load(Ordering::Acquire) {
        // SAFETY: the address of an open pool: closing one changes the generation.
        return unsafe { &*(cache.by_base.get() as *const Pool) };
    }
    pool_in_slowly(cache, handle)
}

#[cold]
fn pool_in_slowly(cache: &Cache, handle: Handle) -> &'static Pool {
    let base = handle as usize;
    let pool = if base == 0 { None } else { search(|slot| slot.base.load(Ordering::Relaxed) == base) };
    let Some(pool) = pool else { fatal(format_args!("{handle:p} is not the handle of an open pool")) };
    cache.check();
    cache.base.set(base);
    cache.by_base.set(std::ptr::from_ref(pool) as usize);
    pool
}

/// The pool of a handle.
#[inline]
pub fn pool_of(handle: Handle) -> &'static Pool {
    pool_in(thread(), handle)
}

/// The pool that an object belongs to.
#[inline]
pub fn pool_of_oid(oid: Oid) -> Option<&'static Pool> {
    let cache = &thread().cache;
    if oid.pool == 0 {
        return None;
    }
    if cache.uuid.get() == oid.pool && cache.generation.get() == GENERATION.load(Ordering::Acquire) {
        // SAFETY: as in `pool_in`.
        return Some(unsafe { &*(cache.by_uuid.get() as *const Pool) });
    }
    let pool = search(|slot| slot.uuid.load(Ordering::Relaxed) == oid.pool)?;
    cache.check();
    cache.uuid.set(oid.pool);
    cache.by_uuid.set(std::ptr::from_ref(pool) as usize);
    Some(pool)
}

/// The pool that an address lies in.
pub fn pool_of_address(address: usize) -> Option<&'static Pool> {
    search(|slot| slot.base.load(Ordering::Relaxed) <= address && address < slot.end.load(Ordering::Relaxed))
}
