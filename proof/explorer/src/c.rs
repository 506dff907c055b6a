//! Pools that are used through the C interface, as a C program uses them: pointers, and calls that
//! name handles.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;

use nearpm::direct::DirectPool;
use nearpm::prelude::*;
use nearpm::typed::Later;
use nearpm_c::{
    NearPM_code, nearpm_close, nearpm_direct, nearpm_errormsg, nearpm_next, nearpm_offset, nearpm_pool, nearpm_tx,
    nearpm_tx_abort, nearpm_tx_add, nearpm_tx_alloc, nearpm_tx_begin, nearpm_tx_commit, nearpm_tx_free,
    nearpm_tx_set_root, nearpm_usable_size, nearpm_wait_durable, open_pool,
};

use crate::body::{Body, Look};

/// An open pool. It is closed when it is dropped.
pub struct CPool {
    pool: *mut nearpm_pool,
    root: u64,
}

// SAFETY: a handle is a number that nobody follows, and the library takes it from any thread.
unsafe impl Send for CPool {}

/// What a call says. What does not fit is taken back; any other failure is one of the library.
fn checked(code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the message is a string of this thread, which is copied before another call is made.
    let message = unsafe { CStr::from_ptr(nearpm_errormsg()) }.to_string_lossy().into_owned();
    assert_eq!(code, NearPM_code::NEARPM_ENOSPC as c_int, "{message}");
    Err(Error::abort(message))
}

impl CPool {
    /// Hands a pool over to C.
    pub fn new(pool: DirectPool) -> CPool {
        let root = pool.root();
        CPool { pool: open_pool(pool), root }
    }

    fn address(&self, offset: u64) -> *mut c_void {
        let address = nearpm_direct(self.pool, offset);
        assert!(!address.is_null(), "{offset:#x} is in the pool");
        address
    }

    fn read(&self, offset: u64, data: &mut [u8]) {
        if let Some(last) = data.len().checked_sub(1) {
            self.address(offset + last as u64);
            // SAFETY: the first and the last byte lie in the heap, which is one piece, and nobody
            // stores there meanwhile.
            unsafe { self.address(offset).cast::<u8>().copy_to_nonoverlapping(data.as_mut_ptr(), data.len()) };
        }
    }

    /// Runs a transaction.
    pub fn tx(&mut self, body: &mut impl Body) -> Result<(), Error> {
        let mut tx = null_mut();
        // SAFETY: the place is writable.
        checked(unsafe { nearpm_tx_begin(self.pool, &raw mut tx) })?;
        let mut store = CTx { pool: self, tx, root: self.root, changes: 0, doomed: false, later: Later::default() };
        match body.run(&mut store) {
            Ok(()) if store.doomed => {
                checked(nearpm_tx_abort(tx))?;
                Err(Error::abort("a change of a collection was left half done"))
            }
            Ok(()) => {
                let root = store.root;
                checked(nearpm_tx_commit(tx))?;
                self.root = root;
                Ok(())
            }
            Err(error) => checked(nearpm_tx_abort(tx)).and(Err(error)),
        }
    }

    /// Reads.
    pub fn look<T: Look>(&self, look: &mut T) -> Result<T::Found, Error> {
        look.look(&CTx {
            pool: self,
            tx: null_mut(),
            root: self.root,
            changes: 0,
            doomed: false,
            later: Later::default(),
        })
    }

    /// Every allocated object: offset and usable bytes.
    pub fn objects(&self) -> Result<Vec<(u64, u64)>, Error> {
        let mut objects = Vec::new();
        let mut at = null_mut();
        loop {
            let (mut next, mut bytes) = (null_mut(), 0);
            // SAFETY: the places are writable.
            checked(unsafe { nearpm_next(self.pool, at, &raw mut next) })?;
            if next.is_null() {
                return Ok(objects);
            }
            // SAFETY: as above.
            checked(unsafe { nearpm_usable_size(self.pool, next, &raw mut bytes) })?;
            objects.push((nearpm_offset(self.pool, next), bytes));
            at = next;
        }
    }

    /// Makes every transaction that was committed durable.
    pub fn wait_durable(&self) -> Result<(), Error> {
        checked(nearpm_wait_durable(self.pool))
    }

    /// Closes it.
    pub fn close(mut self) -> Result<(), Error> {
        checked(nearpm_close(std::mem::replace(&mut self.pool, null_mut())))
    }
}

impl Drop for CPool {
    fn drop(&mut self) {
        if !self.pool.is_null() {
            nearpm_close(self.pool);
        }
    }
}

/// A transaction, or a look without one.
struct CTx<'p> {
    pool: &'p CPool,
    tx: *mut nearpm_tx,
    root: u64,
    /// Stores, allocations and frees.
    changes: u64,
    /// It can only be aborted.
    doomed: bool,
    later: Later<Self>,
}

impl Load for CTx<'_> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        let mut bytes = vec![0; size_of::<T>()];
        self.read(Ptr::offset(at), &mut bytes)?;
        // SAFETY: any bytes of its size are a value of a persistent type.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.pool.read(offset, data);
        Ok(())
    }

    fn root_object(&self) -> Result<u64, Error> {
        Ok(self.root)
    }
}

impl Store for CTx<'_> {
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        // SAFETY: a persistent value has no padding, so that all its bytes hold something.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.write(Ptr::offset(at), bytes)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        self.changes += 1;
        let address = self.pool.address(offset);
        checked(nearpm_tx_add(self.tx, address, data.len() as u64))?;
        // SAFETY: the library took the range for one of the pool, and no other thread uses it.
        unsafe { address.cast::<u8>().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(())
    }

    fn declare(&mut self, range: Range<u64>) -> Result<(), Error> {
        checked(nearpm_tx_add(self.tx, self.pool.address(range.start), range.end - range.start))
    }

    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error> {
        self.changes += 1;
        let mut object = null_mut();
        // SAFETY: the place is writable.
        checked(unsafe { nearpm_tx_alloc(self.tx, bytes, &raw mut object) })?;
        Ok(nearpm_offset(self.pool.pool, object))
    }

    fn free_object(&mut self, object: u64) -> Result<(), Error> {
        self.changes += 1;
        checked(nearpm_tx_free(self.tx, self.pool.address(object)))
    }

    fn set_root_object(&mut self, object: u64) -> Result<(), Error> {
        self.changes += 1;
        checked(nearpm_tx_set_root(self.tx, self.pool.address(object)))?;
        self.root = object;
        Ok(())
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn doom(&mut self) {
        self.doomed = true;
    }

    fn later(&mut self) -> &mut Later<Self> {
        &mut self.later
    }
}
