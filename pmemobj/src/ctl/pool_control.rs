//! What `pmemobj_ctl_*` keeps for a pool.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::class::AllocClass;
use crate::error::{Errno, fail};

/// Values that an open pool has.
pub struct PoolControl {
    pub(super) skip_expensive_checks: AtomicI64,
    pub(super) verify_user_buffers: AtomicI64,
    pub(super) cache_size: AtomicI64,
    pub(super) granularity: AtomicI64,
    pub(super) statistics: AtomicI64,
    alloc_pattern: AtomicI64,
    pub(super) max_arenas: AtomicI64,
    /// Arenas that the program has made, beyond the automatic ones.
    pub(super) made_arenas: AtomicU64,
    classes: Mutex<BTreeMap<u64, AllocClass>>,
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
            max_arenas: AtomicI64::new(1024),
            made_arenas: AtomicU64::new(0),
            classes: Mutex::default(),
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

    pub(super) fn alloc_pattern_value(&self) -> &AtomicI64 {
        &self.alloc_pattern
    }

    /// Arenas that the program may name.
    pub(super) fn arenas(&self) -> u64 {
        super::default_arenas() + self.made_arenas.load(Ordering::Relaxed)
    }

    /// Makes an arena; gives its identifier.
    pub(super) fn make_arena(&self) -> Result<u64, Errno> {
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
    pub fn class(&self, id: u64) -> Option<AllocClass> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }

    /// Registers a class, under the first free identifier if none is given; gives the identifier.
    pub(super) fn register(&self, id: Option<u64>, class: AllocClass) -> Result<u64, Errno> {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        if id.is_some_and(|id| id < AllocClass::FIRST || classes.contains_key(&id)) {
            return Err(fail(libc::EEXIST, format_args!("attempted to overwrite an allocation class")));
        }
        let free = || (AllocClass::FIRST..=AllocClass::LAST).find(|id| !classes.contains_key(id));
        match id.or_else(free) {
            Some(id) if id <= AllocClass::LAST && !classes.values().any(|other| *other == class) => {
                classes.insert(id, class);
                Ok(id)
            }
            _ => Err(fail(libc::EINVAL, format_args!("unable to register allocation class"))),
        }
    }
}
