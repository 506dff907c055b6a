//! An open pool, and those that a thread looked up last.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use nearpm::direct::DirectPool;
use nearpm::{Durability, Error};
use nearpm_place::Session;

use crate::abi::{Handle, Oid};
use crate::control::PoolControl;
use crate::head::Head;

/// An open pool.
pub struct Pool {
    /// The pool below.
    pub direct: DirectPool,
    /// The card that it lies on, which stays in until the pool is closed: fields are dropped in
    /// this order.
    pub _card: Option<Session>,
    /// Address of its first byte, which programs know as `PMEMobjpool *`.
    pub base: usize,
    /// `pool_uuid_lo` of its objects.
    pub uuid: u64,
    /// Even, and different each time it is opened: locks with another one are not initialised.
    pub run_id: u64,
    /// Layout and root.
    pub head: Head,
    /// A thread makes or enlarges the root; [`crate::thread::Thread::leave_root`] ends that also
    /// where the constructor jumps away.
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

    /// Offsets of objects, as far as the pool has grown.
    #[inline]
    pub fn heap(&self) -> Range<u64> {
        self.direct.heap()
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

    /// Waits until all that has committed is durable. Transactions have waited for that themselves
    /// unless the environment has let them off (`NEARPM_DURABILITY`); every other call that
    /// promises something durable asks here.
    ///
    /// # Errors
    /// What the medium refuses poisons the pool.
    #[inline]
    pub fn wait_durable(&self) -> Result<(), Error> {
        match self.direct.durability() {
            Durability::Durable => Ok(()),
            Durability::Asynchronous => self.direct.wait_durable(),
        }
    }

    /// An object of this pool.
    #[inline]
    pub fn oid(&self, off: u64) -> Oid {
        Oid { pool: self.uuid, off }
    }
}

/// The pools that a thread looked up last.
#[derive(Default)]
pub struct Cache {
    /// What is remembered counts in this generation of open pools.
    pub generation: Cell<u32>,
    /// Address of the pool in `by_base`, 0 for none.
    pub base: Cell<usize>,
    /// The pool of the last handle.
    pub by_base: Cell<usize>,
    /// Identifier of the pool in `by_uuid`, 0 for none.
    pub uuid: Cell<u64>,
    /// The pool of the last object.
    pub by_uuid: Cell<usize>,
}

impl Cache {
    /// Forgets what was looked up in another generation of open pools than this one.
    pub fn check(&self, generation: u32) {
        if self.generation.replace(generation) != generation {
            self.base.set(0);
            self.uuid.set(0);
        }
    }
}
