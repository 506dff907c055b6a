//! Bytes that a collection owns, behind a handle of one word.

use nearpm::prelude::*;

use super::item::alloc;

/// Bytes in a pool; empty ones take no memory. Whatever holds the handle owns the bytes.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
#[persistent(release = release)]
pub struct Blob {
    /// Their number, as a word; the bytes lie behind it.
    at: Option<Ptr<u64>>,
}

/// Bytes of the number in front.
const HEAD: u64 = 8;

fn release<S: Store>(blob: Blob, tx: &mut S) -> Result<(), Error> {
    blob.at.map_or(Ok(()), |at| tx.free(at))
}

impl Blob {
    /// Puts bytes into the pool.
    pub fn make(tx: &mut impl Store, bytes: &[u8]) -> Result<Blob, Error> {
        Blob::make_in(tx, bytes, 0)
    }

    /// As [`Blob::make`], or in a place of so many bytes where there is none of the right size.
    pub fn make_in(tx: &mut impl Store, bytes: &[u8], place: u64) -> Result<Blob, Error> {
        if bytes.is_empty() {
            return Ok(Blob { at: None });
        }
        let (object, _) = alloc(tx, HEAD + bytes.len() as u64, place)?;
        let at = Ptr::<u64>::from_offset(object).ok_or(Error::NotAllocated { offset: object })?;
        tx.set(at, bytes.len() as u64)?;
        tx.write(object + HEAD, bytes)?;
        Ok(Blob { at: Some(at) })
    }

    /// How many bytes there are.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        self.at.map_or(Ok(0), |at| from.get(at))
    }

    /// A copy of the bytes.
    pub fn read(self, from: &impl Load) -> Result<Vec<u8>, Error> {
        let Some(at) = self.at else { return Ok(Vec::new()) };
        from.get_all(Ptr::cast::<u8>(Ptr::nth(at, 1)), from.get(at)?)
    }
}
