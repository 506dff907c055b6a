//! What programs of PMDK's libpmemobj have in a pool: the one definition of it for
//! `libpmemobj.so.1` (`pmemobj/`), which runs them, and for the tools.
//!
//! The root of such a pool is an object of [`HEAD_BYTES`] bytes, which programs do not see:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 1024 | the layout's name, filled up with zeros |
//! | 1024 | 64 | the sealed line: magic, version (`nearpm_interface::seal`, over the name and itself) |
//! | 1088 | 8 | offset of the root object's data, 0 if there is none |
//! | 1096 | 8 | bytes of it that the program asked for |
//! | 1104 | 8 | `stats.heap.curr_allocated`, as of the last time that the pool was closed |
//!
//! The last three change in transactions. In front of the bytes of every other object that the
//! program sees lies a [`Header`].

mod import;
mod original;

pub use self::import::{Holds, ImportError, Imported, Refusal, examine, import};
use crate::direct::DirectPool;
use crate::error::{Error, Problem};
use crate::pmdk_format::new_head;
pub use crate::pmdk_format::{HEAD_BYTES, Head, Header, MAX_LAYOUT, ROOT_WORDS, layout_of};
use crate::typed::Store;

/// `pool_uuid_lo` of the objects of a pool with an identifier: one for each, never 0.
pub fn uuid_lo(id: u32) -> u64 {
    u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Gives a new pool the head with a layout's name, so that `pmemobj_open` finds it; gives the
/// head's offset.
///
/// # Errors
/// [`Problem::BadOption`] for a name that is too long or has a zero in it, and for a pool that has
/// a root; those of a transaction.
pub fn create(pool: &DirectPool, layout: &[u8]) -> Result<u64, Error> {
    create_with(pool, layout, [0; 3])
}

/// As [`create`], with what the last three words of the head say.
fn create_with(pool: &DirectPool, layout: &[u8], words: [u64; 3]) -> Result<u64, Error> {
    let refuse = |what| Problem::BadOption { what }.at("with a layout");
    if layout.len() >= MAX_LAYOUT || layout.contains(&0) {
        return Err(refuse("the name of a layout has at most 1023 bytes, and no zero among them"));
    }
    if pool.root() != 0 {
        return Err(refuse("it has a root of another program already"));
    }
    let mut bytes = new_head(layout);
    for (word, to) in words.iter().zip(bytes[ROOT_WORDS..].chunks_exact_mut(size_of::<u64>())) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    pool.tx(|tx| {
        let object = tx.alloc_bytes(HEAD_BYTES as u64)?;
        tx.write(object, &bytes)?;
        tx.set_root_object(object)?;
        Ok(object)
    })
}
