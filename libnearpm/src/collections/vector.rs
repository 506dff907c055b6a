//! A row of values.

use super::copy;
use crate::error::Error;
use crate::typed::{later, pointer, whole};
use crate::{Load, Persistent, Ptr, Store};

/// Values that the first allocation has room for.
const FIRST: u64 = 4;

/// A row of values that grows at its end; see [`collections`](crate::collections). Its methods are
/// those of `Ptr<PVec<T>>`.
///
/// ```
/// use nearpm::prelude::*;
///
/// #[derive(Clone, Copy, Persistent)]
/// #[repr(C)]
/// struct Scores {
///     all: PVec<u32>,
/// }
///
/// fn add(tx: &mut impl Store, scores: Ptr<Scores>, score: u32) -> Result<u64, Error> {
///     scores.all().push(tx, score)?;
///     scores.all().len(tx)
/// }
/// ```
///
/// | method | costs |
/// |---|---|
/// | `len`, `is_empty`, `get`, `set`, `slot`, `pop`, `swap_remove` | O(1) |
/// | `push` | O(1), but one that finds no room copies everything into twice as much |
/// | `insert`, `remove` | O(values behind) |
/// | `iter`, `to_vec` | O(1) a value |
/// | `truncate`, `clear` | O(1), or O(values) if they own something |
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
#[persistent(release = release)]
pub struct PVec<T: Persistent> {
    /// The first value, `None` while there is no room.
    data: Option<Ptr<T>>,
    pub(super) length: u64,
    /// Values that there is room for.
    room: u64,
}

/// Frees what a vector holds.
fn release<T: Persistent, S: Store>(vector: PVec<T>, tx: &mut S) -> Result<(), Error> {
    let Some(data) = vector.data else { return Ok(()) };
    // First of all: a vector that holds itself, by a copied handle, cannot be freed again.
    tx.free(data)?;
    if T::OWNS { later(tx, release_next::<T, S>, [Ptr::offset(data), 0, vector.length, 0]) } else { Ok(()) }
}

/// Frees what a value owns, and those behind it.
fn release_next<T: Persistent, S: Store>(tx: &mut S, [data, index, length, _]: [u64; 4]) -> Result<(), Error> {
    let row: Ptr<T> = pointer(data)?;
    if index >= length {
        return Ok(());
    }
    later(tx, release_next::<T, S>, [data, index + 1, length, 0])?;
    tx.get(Ptr::nth(row, index))?.release(tx)
}

impl<T: Persistent> PVec<T> {
    /// A vector of these values, to be put into another collection or object; until it is, only the
    /// transaction knows it.
    pub fn with(tx: &mut impl Store, values: &[T]) -> Result<PVec<T>, Error> {
        whole(tx, |tx| {
            let length = values.len() as u64;
            if length == 0 {
                return Ok(PVec { data: None, length: 0, room: 0 });
            }
            let data = pointer(tx.alloc_bytes(bytes::<T>(length))?)?;
            tx.set_all(data, values)?;
            Ok(PVec { data: Some(data), length, room: length })
        })
    }

    /// A copy of the values.
    pub fn read(self, from: &impl Load) -> Result<Vec<T>, Error> {
        self.data.map_or(Ok(Vec::new()), |data| from.get_all(data, self.length))
    }

    /// The values, in order.
    pub(super) fn iterate<L: Load>(self, from: &L) -> Result<Values<'_, L, T>, Error> {
        Ok(Values { from, vector: self, next: 0 })
    }

    /// Offset of the first value, 0 if there is no room for any.
    pub(super) fn place(&self) -> u64 {
        self.data.map_or(0, Ptr::offset)
    }

    /// The value with an index.
    fn slot(&self, index: u64) -> Option<Ptr<T>> {
        self.data.filter(|_| index < self.length).map(|data| Ptr::nth(data, index))
    }
}

fn bytes<T>(values: u64) -> u64 {
    values.saturating_mul(size_of::<T>() as u64)
}

impl<T: Persistent> Ptr<PVec<T>> {
    /// How many values there are.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        from.get(self.length())
    }

    /// Whether there are none.
    pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
        Ok(self.len(from)? == 0)
    }

    /// Where the value with an index lies, until the vector changes its size.
    pub fn slot(self, from: &impl Load, index: u64) -> Result<Option<Ptr<T>>, Error> {
        Ok(from.get(self)?.slot(index))
    }

    /// The value with an index.
    pub fn get(self, from: &impl Load, index: u64) -> Result<Option<T>, Error> {
        self.slot(from, index)?.map(|slot| from.get(slot)).transpose()
    }

    /// Puts another value in the place of one, and gives that; `None`, and nothing changes, if
    /// there is no such index.
    pub fn set(self, tx: &mut impl Store, index: u64, value: T) -> Result<Option<T>, Error> {
        self.slot(tx, index)?.map(|slot| tx.replace(slot, value)).transpose()
    }

    /// Adds a value at the end.
    pub fn push(self, tx: &mut impl Store, value: T) -> Result<(), Error> {
        whole(tx, |tx| {
            let length = tx.get(self.length())?;
            let data = self.make_room(tx, 1)?;
            tx.set(Ptr::nth(data, length), value)?;
            tx.set(self.length(), length.saturating_add(1))
        })
    }

    /// Adds values at the end.
    pub fn extend(self, tx: &mut impl Store, values: &[T]) -> Result<(), Error> {
        whole(tx, |tx| {
            if values.is_empty() {
                return Ok(());
            }
            let length = tx.get(self.length())?;
            let data = self.make_room(tx, values.len() as u64)?;
            tx.set_all(Ptr::nth(data, length), values)?;
            tx.set(self.length(), length.saturating_add(values.len() as u64))
        })
    }

    /// Takes the last value away.
    pub fn pop(self, tx: &mut impl Store) -> Result<Option<T>, Error> {
        whole(tx, |tx| {
            let length = tx.get(self.length())?;
            let Some(last) = length.checked_sub(1) else { return Ok(None) };
            let value = self.get(tx, last)?;
            tx.set(self.length(), last)?;
            Ok(value)
        })
    }

    /// Puts a value in front of the one with an index, or at the end.
    ///
    /// # Panics
    /// If the index is above the number of values, as a `Vec` does.
    pub fn insert(self, tx: &mut impl Store, index: u64, value: T) -> Result<(), Error> {
        whole(tx, |tx| {
            let length = tx.get(self.length())?;
            assert!(index <= length, "insertion at {index} into {length} values");
            let data = self.make_room(tx, 1)?;
            let tail = Ptr::offset(Ptr::nth(data, index));
            copy(tx, tail, tail.saturating_add(bytes::<T>(1)), bytes::<T>(length - index))?;
            tx.set(Ptr::nth(data, index), value)?;
            tx.set(self.length(), length.saturating_add(1))
        })
    }

    /// Takes the value with an index away; those behind move up.
    pub fn remove(self, tx: &mut impl Store, index: u64) -> Result<Option<T>, Error> {
        whole(tx, |tx| {
            let vector = tx.get(self)?;
            let Some(slot) = vector.slot(index) else { return Ok(None) };
            let value = tx.get(slot)?;
            let behind = Ptr::offset(Ptr::nth(slot, 1));
            copy(tx, behind, Ptr::offset(slot), bytes::<T>(vector.length - index - 1))?;
            tx.set(self.length(), vector.length - 1)?;
            Ok(Some(value))
        })
    }

    /// Takes the value with an index away; the last one takes its place.
    pub fn swap_remove(self, tx: &mut impl Store, index: u64) -> Result<Option<T>, Error> {
        whole(tx, |tx| {
            let vector = tx.get(self)?;
            let Some(slot) = vector.slot(index) else { return Ok(None) };
            let value = tx.get(slot)?;
            let last = self.pop(tx)?;
            if let Some(last) = last.filter(|_| index + 1 < vector.length) {
                tx.set(slot, last)?;
            }
            Ok(Some(value))
        })
    }

    /// Leaves at most `length` values; the others are freed with what they own.
    pub fn truncate(self, tx: &mut impl Store, length: u64) -> Result<(), Error> {
        whole(tx, |tx| {
            let vector = tx.get(self)?;
            if T::OWNS && vector.data.is_some() {
                for slot in (length..vector.length).filter_map(|index| vector.slot(index)) {
                    tx.get(slot)?.release(tx)?;
                }
            }
            if length < vector.length { tx.set(self.length(), length) } else { Ok(()) }
        })
    }

    /// Frees everything that the vector holds.
    pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
        whole(tx, |tx| {
            tx.get(self)?.release(tx)?;
            tx.set(self, PVec { data: None, length: 0, room: 0 })
        })
    }

    /// The values, in order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Values<'_, L, T>, Error> {
        from.get(self)?.iterate(from)
    }

    /// A copy of the values.
    pub fn to_vec(self, from: &impl Load) -> Result<Vec<T>, Error> {
        from.get(self)?.read(from)
    }

    /// Makes room for more values, and gives the place of the first.
    fn make_room(self, tx: &mut impl Store, more: u64) -> Result<Ptr<T>, Error> {
        let vector = tx.get(self)?;
        let needed = vector.length.saturating_add(more);
        if let Some(data) = vector.data.filter(|_| needed <= vector.room) {
            return Ok(data);
        }
        let room = needed.max(vector.room.saturating_mul(2)).max(FIRST);
        let data: Ptr<T> = pointer(tx.alloc_bytes(bytes::<T>(room))?)?;
        if let Some(old) = vector.data {
            copy(tx, Ptr::offset(old), Ptr::offset(data), bytes::<T>(vector.length))?;
            tx.free(old)?;
        }
        tx.set(self, PVec { data: Some(data), length: vector.length, room })?;
        Ok(data)
    }
}

/// The values of a [`PVec`].
pub struct Values<'t, L, T: Persistent> {
    from: &'t L,
    vector: PVec<T>,
    next: u64,
}

impl<L: Load, T: Persistent> Iterator for Values<'_, L, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.from.get(self.vector.slot(self.next)?);
        // Behind an error there is nothing.
        self.next = if value.is_ok() { self.next + 1 } else { u64::MAX };
        Some(value)
    }
}

impl<T: Persistent> PVec<T> {
    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        PVec { data: None, length: 0, room: 0 }
    }
}

impl<T: Persistent> Default for PVec<T> {
    fn default() -> Self {
        Self::new()
    }
}
