//! Values that `pmemobj_ctl_*` and the environment set: those of the process, and those of a pool.

mod built_in;
mod class;
mod pool_control;

pub use class::{AllocClass, Description};
pub use pool_control::PoolControl;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// Values of `enum pobj_stats_enabled` under which persistent statistics are counted.
pub(crate) const STATISTICS_BOTH: i64 = 1;
pub(crate) const STATISTICS_PERSISTENT: i64 = 2;

/// Arenas that a pool may have; the program may allow more.
pub(crate) const MAX_ARENAS: i64 = 1024;

/// Values of the process.
pub(crate) struct Globals {
    pub prefault_at_create: AtomicI64,
    pub prefault_at_open: AtomicI64,
    pub sds_at_create: AtomicI64,
    pub fallocate_at_create: AtomicI64,
    pub copy_on_write: AtomicI64,
    pub assignment_type: AtomicI64,
    /// 0: as many as there are processors.
    pub default_arenas: AtomicI64,
}

pub(crate) static GLOBALS: Globals = Globals {
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
pub(crate) fn default_arenas() -> u64 {
    arenas_by(GLOBALS.default_arenas.load(Ordering::Relaxed))
}

/// Arenas by what `heap.arenas_default_max` was set to: as many as a pool may have, whatever number
/// it is.
fn arenas_by(set: i64) -> u64 {
    match set {
        0 => processors().min(MAX_ARENAS as u64),
        set => set.clamp(1, MAX_ARENAS) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_makes_more_arenas_than_there_may_be() {
        assert_eq!([1, 4, 1024, 1025, i64::from(i32::MAX), -1].map(arenas_by), [1, 4, 1024, 1024, 1024, 1]);
        assert!((1..=1024).contains(&arenas_by(0)));
    }
}
