//! Hash chains: an array of words, each the offset of its first entry; an entry begins with the
//! offset of the next one.

use nearpm::Error;

use crate::hashmap::hash;
use crate::map::{Damage, Fault};
use crate::store::{Store, Transaction};

/// Bytes of the array that are zeroed in one write.
const PIECE: u64 = 32 << 10;

/// Where the chains are.
#[derive(Clone, Copy)]
pub struct Chains {
    /// Offset of the array.
    pub array: u64,
    /// Words of it, a power of two.
    pub buckets: u64,
    /// Where an entry has its key.
    pub key_at: u64,
}

/// Makes an array with empty chains and sets it as the root, for the program's own head to follow.
pub fn create(store: &dyn Store, buckets: u64) -> Result<u64, Error> {
    let mut array = 0;
    store.transaction(&mut |tx| {
        array = tx.alloc(8 * buckets)?;
        Ok(())
    })?;
    for from in (0..8 * buckets).step_by(PIECE as usize) {
        let bytes = PIECE.min(8 * buckets - from) as usize;
        store.transaction(&mut |tx| tx.write(array + from, &vec![0; bytes]))?;
    }
    Ok(array)
}

impl Chains {
    /// The first link of a key's chain.
    pub fn first(&self, key: u64) -> u64 {
        self.array + 8 * (hash(key) & (self.buckets - 1))
    }

    /// The link that leads to the entry of a key, and the entry, 0 where there is none.
    pub fn find(&self, tx: &mut dyn Transaction, key: u64) -> Result<(u64, u64), Error> {
        let mut link = self.first(key);
        loop {
            let entry = tx.read_u64(link)?;
            if entry == 0 || tx.read_u64(entry + self.key_at)? == key {
                return Ok((link, entry));
            }
            link = entry;
        }
    }

    /// Every entry with its key, at most `most` of them.
    pub fn entries(&self, tx: &mut dyn Transaction, most: usize) -> Result<Vec<(u64, u64)>, Fault> {
        let mut entries = Vec::new();
        for bucket in 0..self.buckets {
            let mut entry = tx.read_u64(self.array + 8 * bucket)?;
            while entry != 0 {
                let key = tx.read_u64(entry + self.key_at)?;
                if hash(key) & (self.buckets - 1) != bucket {
                    return Err(damage(entry, format!("key {key:#x} hangs in bucket {bucket}")));
                }
                entries.push((key, entry));
                if entries.len() > most {
                    return Err(damage(entry, "more entries than there can be: a chain is a ring"));
                }
                entry = tx.read_u64(entry)?;
            }
        }
        Ok(entries)
    }
}

/// A broken invariant of chains and of what hangs on them.
pub fn damage(offset: u64, what: impl Into<String>) -> Fault {
    Damage { structure: "hash chains", offset, what: what.into() }.into()
}
