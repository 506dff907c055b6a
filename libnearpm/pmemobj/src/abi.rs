//! Types, constants and variables that programs share with the library. Source: `libpmemobj/*.h` of
//! PMDK 1.12.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicI32;

/// `PMEMoid`: an object, by the identifier of its pool and the offset of its data there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oid {
    /// `pool_uuid_lo`.
    pub pool: u64,
    /// `off`.
    pub off: u64,
}

impl Oid {
    /// `OID_NULL`.
    pub const NULL: Oid = Oid { pool: 0, off: 0 };

    /// `OID_IS_NULL`.
    pub fn is_null(self) -> bool {
        self.off == 0
    }
}

/// `PMEMobjpool *`: the address of the pool.
pub type Handle = *mut u8;

/// `pmemobj_constr`.
pub type Constructor = Option<unsafe extern "C" fn(pool: Handle, object: *mut c_void, argument: *mut c_void) -> c_int>;

/// `PMEMOBJ_MAX_ALLOC_SIZE`: most bytes of an object.
pub const MAX_ALLOC: u64 = 0x3_FFDF_FFC0;
/// `PMEMOBJ_MIN_POOL`: fewest bytes of a pool.
pub const MIN_POOL: u64 = 8 << 20;
/// `PMEMOBJ_MIN_PART`.
pub const MIN_PART: u64 = 2 << 20;
/// Bytes of a layout's name, the closing zero included.
pub const MAX_LAYOUT: usize = nearpm::pmdk::MAX_LAYOUT;
/// `PMEMOBJ_MAJOR_VERSION` and `PMEMOBJ_MINOR_VERSION`.
pub const VERSION: (u32, u32) = (2, 4);

/// `POBJ_FLAG_*`.
pub mod flag {
    /// The bytes are zero.
    pub const ZERO: u64 = 1;
    /// The program makes the bytes durable itself.
    pub const NO_FLUSH: u64 = 1 << 1;
    /// The bytes need not be restored.
    pub const NO_SNAPSHOT: u64 = 1 << 2;
    /// The bytes are initialised, for tools that check that.
    pub const ASSUME_INITIALIZED: u64 = 1 << 3;
    /// Errors are returned.
    pub const NO_ABORT: u64 = 1 << 4;
    /// Identifier of an allocation class.
    pub const CLASS: u64 = 0xffff << 48;
    /// Identifier of an arena.
    pub const ARENA: u64 = 0xffff << 32;
}

/// `PMEMOBJ_F_*`.
pub mod memory_flag {
    /// Do not wait.
    pub const NO_DRAIN: u32 = 1;
    /// Store through the cache: the bytes are used again soon (`PMEM_F_MEM_TEMPORAL`,
    /// `PMEM_F_MEM_WB`).
    pub const CACHED: u32 = 1 << 2 | 1 << 4;
    /// Do not write back.
    pub const NO_FLUSH: u32 = 1 << 5;
    /// What is not persistent need not be flushed at once.
    pub const RELAXED: u32 = 1 << 31;
}

std::arch::global_asm!(
    // `_pobj_cached_pool`, which `pmemobj_direct_inline` fills in the program, and a word of each
    // thread for this library.
    ".section .tbss.nearpm_pmemobj,\"awT\",@nobits",
    ".balign 8",
    ".globl _pobj_cached_pool",
    ".type _pobj_cached_pool, @object",
    ".size _pobj_cached_pool, 24",
    "_pobj_cached_pool: .zero 24",
    ".globl nearpm_pmemobj_thread",
    ".hidden nearpm_pmemobj_thread",
    ".type nearpm_pmemobj_thread, @object",
    ".size nearpm_pmemobj_thread, 8",
    "nearpm_pmemobj_thread: .zero 8",
    ".section .bss.nearpm_pmemobj,\"aw\",@nobits",
    ".balign 4",
    ".globl _pobj_cache_invalidate",
    ".type _pobj_cache_invalidate, @object",
    ".size _pobj_cache_invalidate, 4",
    "_pobj_cache_invalidate: .zero 4",
    ".text",
);

unsafe extern "C" {
    /// Counts what makes `_pobj_cached_pool` stale. Programs hold a copy of it, so that it is
    /// reached through the global offset table: it is declared here and defined in assembly, hence
    /// the compiler does not know where it is.
    pub static _pobj_cache_invalidate: AtomicI32;

    /// Gives control to a saved environment.
    pub fn longjmp(environment: *const c_void, value: c_int) -> !;
}

/// For debug messages of macros; programs call it often.
#[unsafe(no_mangle)]
extern "C" fn _pobj_debug_notice(_function: *const u8, _file: *const u8, _line: c_int) {}
