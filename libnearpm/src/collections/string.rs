//! Text.

use std::cmp::Ordering;

use super::PVec;
use super::key::{Key, hash_of};
use crate::error::Error;
use crate::typed::whole;
use crate::{Load, Persistent, Ptr, Store};

/// Text; see [`collections`](crate::collections). Its methods are those of `Ptr<PString>`; a value
/// of it is made by [`PString::with`] and read by [`PString::read`].
///
/// As a key of a map it is looked up by a `&str`.
///
/// All calls take O(bytes) but `len` and `is_empty`, which take O(1).
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct PString {
    bytes: PVec<u8>,
}

fn text(bytes: Vec<u8>, string: PString) -> Result<String, Error> {
    let offset = string.bytes.place();
    String::from_utf8(bytes).map_err(|_| Error::Corrupt { what: "a text is not UTF-8", offset })
}

impl PString {
    /// A text, to be put into a collection or an object; until it is, only the transaction knows
    /// it.
    pub fn with(tx: &mut impl Store, text: &str) -> Result<PString, Error> {
        Ok(PString { bytes: PVec::with(tx, text.as_bytes())? })
    }

    /// A copy of the text.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not UTF-8.
    pub fn read(self, from: &impl Load) -> Result<String, Error> {
        text(self.bytes.read(from)?, self)
    }
}

impl Ptr<PString> {
    /// Bytes of the text.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        self.bytes().len(from)
    }

    /// Whether there is none.
    pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
        self.bytes().is_empty(from)
    }

    /// A copy of the text.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not UTF-8.
    pub fn read(self, from: &impl Load) -> Result<String, Error> {
        from.get(self)?.read(from)
    }

    /// Whether the text is this one.
    pub fn is(self, from: &impl Load, text: &str) -> Result<bool, Error> {
        Ok(from.get(self)?.compare(from, text)? == Ordering::Equal)
    }

    /// Makes it another text.
    pub fn set(self, tx: &mut impl Store, text: &str) -> Result<(), Error> {
        whole(tx, |tx| {
            self.bytes().truncate(tx, 0)?;
            self.push_str(tx, text)
        })
    }

    /// Adds text at the end.
    pub fn push_str(self, tx: &mut impl Store, text: &str) -> Result<(), Error> {
        self.bytes().extend(tx, text.as_bytes())
    }

    /// Makes it empty and frees its memory.
    pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
        self.bytes().clear(tx)
    }
}

impl Key for PString {
    type Query = str;
    type Owned = String;

    fn hash(query: &str) -> u64 {
        hash_of(query.as_bytes())
    }

    fn compare(self, from: &impl Load, query: &str) -> Result<Ordering, Error> {
        Ok(self.bytes.read(from)?.as_slice().cmp(query.as_bytes()))
    }

    fn make(tx: &mut impl Store, query: &str) -> Result<PString, Error> {
        PString::with(tx, query)
    }

    fn duplicate(self, tx: &mut impl Store) -> Result<PString, Error> {
        let bytes = self.bytes.read(tx)?;
        Ok(PString { bytes: PVec::with(tx, &bytes)? })
    }

    fn owned(self, from: &impl Load) -> Result<String, Error> {
        self.read(from)
    }
}

impl PString {
    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        PString { bytes: PVec::new() }
    }
}

impl Default for PString {
    fn default() -> Self {
        Self::new()
    }
}
