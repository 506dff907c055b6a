//! What both maps offer.

use std::collections::BTreeMap;

use nearpm::Error;

use crate::store::Transaction;

/// Bytes of a value (paper, Table 4).
pub const VALUE_BYTES: usize = 64;
/// A value.
pub type Value = [u8; VALUE_BYTES];

/// A broken invariant of a structure in a pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{structure} at offset {offset:#x}: {what}")]
pub struct Damage {
    /// Which structure.
    pub structure: &'static str,
    /// Where it is broken, as an offset in the pool.
    pub offset: u64,
    /// Which invariant does not hold.
    pub what: String,
}

/// Why a map could not be read whole.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The library refused an access: an offset in the structure is wrong.
    #[error(transparent)]
    Library(#[from] Error),
    /// An invariant does not hold.
    #[error(transparent)]
    Damage(#[from] Damage),
}

/// A map from 8-byte keys to 64-byte values in a pool. The handle holds an offset and nothing else.
pub trait Map: Sized + Copy {
    /// Name of the structure.
    const NAME: &'static str;
    /// Makes an empty map.
    fn create(tx: &mut dyn Transaction) -> Result<Self, Error>;
    /// The map whose head object is at `offset`, as [`Map::offset`] gave it.
    fn at(offset: u64) -> Self;
    /// Offset of the head object.
    fn offset(&self) -> u64;
    /// Value of a key.
    fn get(&self, tx: &mut dyn Transaction, key: u64) -> Result<Option<Value>, Error>;
    /// Sets the value of a key; true where the key is new.
    fn insert(&self, tx: &mut dyn Transaction, key: u64, value: &Value) -> Result<bool, Error>;
    /// Removes a key; true where it was there.
    fn remove(&self, tx: &mut dyn Transaction, key: u64) -> Result<bool, Error>;
    /// Reads everything and checks every invariant on the way.
    fn contents(&self, tx: &mut dyn Transaction) -> Result<BTreeMap<u64, Value>, Fault>;
}

/// Reads a value of which `bytes` bytes are kept; the rest is zeros.
pub(crate) fn read_value(tx: &mut dyn Transaction, at: u64, bytes: usize) -> Result<Value, Error> {
    let mut value = [0; VALUE_BYTES];
    tx.read(at, &mut value[..bytes])?;
    Ok(value)
}
