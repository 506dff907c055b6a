//! What `pmemobj_ctl_*` keeps for a pool.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::built_in;
use super::class::AllocClass;
use crate::error::{Errno, fail};

/// Values that an open pool has.
pub struct PoolControl {
    pub(crate) skip_expensive_checks: AtomicI64,
    pub(crate) verify_user_buffers: AtomicI64,
    pub(crate) cache_size: AtomicI64,
    pub(crate) granularity: AtomicI64,
    pub(crate) statistics: AtomicI64,
    alloc_pattern: AtomicI64,
    pub(crate) max_arenas: AtomicI64,
    /// Arenas that the program has made, beyond the automatic ones.
    pub(crate) made_arenas: AtomicU64,
    classes: Mutex<BTreeMap<i64, AllocClass>>,
    /// Arenas that the program has put in or out of automatic use.
    automatic: Mutex<BTreeMap<i64, bool>>,
    /// See `stats.heap.curr_allocated`.
    allocated: AtomicI64,
}

impl Default for PoolControl {
    fn default() -> PoolControl {
        PoolControl {
            skip_expensive_checks: AtomicI64::new(0),
            verify_user_buffers: AtomicI64::new(0),
            cache_size: AtomicI64::new(32 << 10),
            granularity: AtomicI64::new(128 << 20),
            statistics: AtomicI64::new(0),
            alloc_pattern: AtomicI64::new(-1),
            max_arenas: AtomicI64::new(super::MAX_ARENAS),
            made_arenas: AtomicU64::new(0),
            classes: Mutex::default(),
            automatic: Mutex::default(),
            allocated: AtomicI64::new(0),
        }
    }
}

impl PoolControl {
    /// What fills new objects, if anything does.
    #[inline]
    pub fn alloc_pattern(&self) -> Option<u8> {
        let pattern = self.alloc_pattern.load(Ordering::Relaxed);
        (pattern >= 0).then_some(pattern as u8)
    }

    pub(crate) fn alloc_pattern_value(&self) -> &AtomicI64 {
        &self.alloc_pattern
    }

    /// Arenas that the program may name.
    pub(crate) fn arenas(&self) -> u64 {
        super::default_arenas() + self.made_arenas.load(Ordering::Relaxed)
    }

    /// Whether threads may use an arena that they do not name.
    pub(crate) fn is_automatic(&self, id: i64) -> bool {
        let set = self.automatic.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        set.unwrap_or(id <= super::default_arenas() as i64)
    }

    /// Arenas in automatic use.
    pub(crate) fn automatic_arenas(&self) -> u64 {
        (1..=self.arenas() as i64).filter(|&id| self.is_automatic(id)).count() as u64
    }

    /// Puts an arena in or out of automatic use.
    pub(crate) fn set_automatic(&self, id: i64, on: i64) -> Result<(), Errno> {
        if on != 0 && on != 1 {
            return Err(fail(libc::EINVAL, format_args!("incorrect arena state, must be 0 or 1")));
        }
        if on == 0 && self.is_automatic(id) && self.automatic_arenas() == 1 {
            return Err(fail(libc::EINVAL, format_args!("at least one automatic arena must exist")));
        }
        self.automatic.lock().unwrap_or_else(PoisonError::into_inner).insert(id, on == 1);
        Ok(())
    }

    /// A change has allocated so many bytes more than it has freed. Counts where persistent
    /// statistics are enabled.
    #[inline]
    pub fn count(&self, bytes: i64) {
        let enabled = self.statistics.load(Ordering::Relaxed);
        if bytes != 0 && (enabled == super::STATISTICS_BOTH || enabled == super::STATISTICS_PERSISTENT) {
            self.allocated.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What [`PoolControl::count`] has counted, beginning with the number that the pool keeps.
    pub fn allocated(&self) -> i64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Begins with the number that the pool keeps.
    pub fn set_allocated(&self, bytes: i64) {
        self.allocated.store(bytes, Ordering::Relaxed);
    }

    /// Makes an arena; gives its identifier.
    pub(crate) fn make_arena(&self) -> Result<u64, Errno> {
        if self.arenas() >= self.max_arenas.load(Ordering::Relaxed) as u64 {
            return Err(fail(libc::ENOMEM, format_args!("cannot create a new arena: there are as many as may be")));
        }
        self.made_arenas.fetch_add(1, Ordering::Relaxed);
        Ok(self.arenas())
    }

    /// Refuses arenas that do not exist; 0 stands for none in particular.
    pub fn check_arena(&self, id: u64) -> Result<(), Errno> {
        if id <= self.arenas() {
            return Ok(());
        }
        Err(fail(libc::EINVAL, format_args!("arena id outside of the allowed range: {id}")))
    }

    /// The class of an identifier.
    pub fn class(&self, id: i64) -> Option<AllocClass> {
        if id < built_in::COUNT {
            return built_in::class(id);
        }
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }

    /// Registers a class, under the first free identifier if none is given; gives the identifier.
    pub(crate) fn register(&self, id: Option<i64>, class: AllocClass) -> Result<i64, Errno> {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        if id.is_some_and(|id| id < built_in::COUNT || classes.contains_key(&id)) {
            return Err(fail(libc::EEXIST, format_args!("attempted to overwrite an allocation class")));
        }
        let mut built_in = (0..built_in::COUNT).filter_map(built_in::class);
        if built_in.any(|other| other.is_like(&class)) || classes.values().any(|other| other.is_like(&class)) {
            return Err(fail(libc::EINVAL, format_args!("unable to register allocation class")));
        }
        let free = || (built_in::COUNT..=AllocClass::LAST).find(|id| !classes.contains_key(id));
        let none = || fail(libc::EINVAL, format_args!("no available free allocation class identifier"));
        let id = id.or_else(free).ok_or_else(none)?;
        classes.insert(id, class);
        Ok(id)
    }
}
