//! Layout and root of a pool, on the medium.
//!
//! The root of the pool below is an object of [`BYTES`] bytes, which programs do not see:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 1024 | the layout's name, filled up with zeros |
//! | 1024 | 64 | the sealed line: magic, version (`nearpm_interface::seal`, over the name and itself) |
//! | 1088 | 8 | offset of the root object's data, 0 if there is none |
//! | 1096 | 8 | bytes of it that the program asked for |
//! | 1104 | 8 | `stats.heap.curr_allocated`, as of the last time that the pool was closed |
//!
//! The last three change in transactions.

use std::ops::Range;

use nearpm::direct::DirectPool;
use nearpm::{Error, Problem};
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;

use crate::abi::MAX_LAYOUT;

const MAGIC: u64 = u64::from_le_bytes(*b"NPMOBJ\0\0");
const VERSION: u32 = 1;
const SEALED: usize = MAX_LAYOUT;
const ROOT: usize = SEALED + LINE;
/// Bytes of the head.
const BYTES: usize = ROOT + LINE;

const _: () = assert!(MAX_LAYOUT.is_multiple_of(LINE));

/// The head of an open pool.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Where it is.
    pub offset: u64,
    at: *mut u8,
}

// SAFETY: the fields are read and written as the pool's memory is: by whoever holds the pool's lock on its root.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

fn sealed_line() -> [u8; LINE] {
    let mut line = [0; LINE];
    line[..8].copy_from_slice(&MAGIC.to_le_bytes());
    line[8..12].copy_from_slice(&VERSION.to_le_bytes());
    line
}

impl Head {
    /// Gives a new pool its head.
    pub fn create(pool: &DirectPool, layout: &[u8]) -> Result<Head, Error> {
        let mut bytes = [0; BYTES];
        bytes[..layout.len()].copy_from_slice(layout);
        let mut line = sealed_line();
        seal::seal(&bytes[..SEALED], &mut line);
        bytes[SEALED..ROOT].copy_from_slice(&line);
        let mut transaction = pool.begin()?;
        let made = transaction.alloc(pool, BYTES as u64);
        let offset = match made {
            Ok(reservation) => reservation.offset,
            Err(error) => {
                transaction.abort(pool)?;
                return Err(error);
            }
        };
        // SAFETY: the transaction has just allocated so many bytes there.
        let at = unsafe {
            let at = pool.base().add(offset as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, BYTES);
            at
        };
        transaction.set_root(offset);
        transaction.commit(pool)?;
        Ok(Head { offset, at })
    }

    /// Finds the head of an existing pool.
    pub fn open(pool: &DirectPool, location: &str) -> Result<Head, Error> {
        let refused = |problem| Err(Error::Pool { location: location.to_owned(), problem });
        let offset = pool.root();
        if offset == 0 || pool.usable_bytes(offset).is_ok_and(|bytes| bytes < BYTES as u64) {
            let what = "it was made by other programs, not through this interface";
            return refused(Problem::BadOption { what });
        }
        // SAFETY: the root of a pool is an object, and it has as many bytes.
        let (at, bytes) = unsafe {
            let at = pool.base().add(offset as usize);
            (at, std::slice::from_raw_parts(at, ROOT))
        };
        let line: &[u8; LINE] = bytes[SEALED..].try_into().expect("a line");
        if line[..8] != MAGIC.to_le_bytes() {
            let what = "it was made by other programs, not through this interface";
            return refused(Problem::BadOption { what });
        }
        if !seal::is_sealed(&bytes[..SEALED], line) {
            return refused(Problem::Corrupt { what: "the checksum of the layout's name does not hold", offset });
        }
        let version = u32::from_le_bytes(line[8..12].try_into().expect("four bytes"));
        if version > VERSION {
            return refused(Problem::Newer { found: version, supported: VERSION });
        }
        Ok(Head { offset, at })
    }

    /// The layout's name.
    pub fn layout(&self) -> String {
        // SAFETY: the head is an object of the open pool, and the name does not change.
        let name = unsafe { std::slice::from_raw_parts(self.at, MAX_LAYOUT) };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(MAX_LAYOUT);
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    fn root_words(&self) -> *mut [u64; 2] {
        self.at.wrapping_add(ROOT).cast()
    }

    /// Offset and bytes of the root object, 0 if there is none.
    pub fn root(&self) -> (u64, u64) {
        // SAFETY: two words of the head, aligned because objects are.
        let [offset, bytes] = unsafe { self.root_words().read_volatile() };
        (offset, bytes)
    }

    /// What `stats.heap.curr_allocated` was when the pool was closed.
    pub fn allocated(&self) -> i64 {
        // SAFETY: a word of the head, as the root's are.
        unsafe { self.at.wrapping_add(ROOT + 16).cast::<i64>().read_volatile() }
    }

    /// Where that is in the pool.
    pub fn allocated_at(&self) -> u64 {
        self.offset + ROOT as u64 + 16
    }

    /// Where offset and bytes of the root object are in the pool: what a transaction adds.
    pub fn root_range(&self) -> Range<u64> {
        let start = self.offset + ROOT as u64;
        start..start + 16
    }
}
