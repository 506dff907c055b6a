//! What a collection holds, taken out: everything, or what a function chooses.

#![allow(unsafe_code)]

use std::borrow::Borrow;
use std::ops::{Bound, RangeBounds};

use super::{Key, PBTreeMap, PHashMap, PQueue, PVec, copy};
use crate::error::Error;
use crate::typed::{Description, NoFields, whole};
use crate::{Persistent, Ptr, Store};

/// A value that goes to the caller, so that a collection that is freed leaves alone what it owns.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Taken<V>(V);

// SAFETY: it is transparent over a value that may persist.
unsafe impl<V: Persistent> Persistent for Taken<V> {
    type Fields = NoFields;
    const CHECKED: () = V::CHECKED;
    fn describe(to: &mut Description) {
        V::describe(to);
    }
}

impl<T: Persistent> Ptr<PVec<T>> {
    /// Takes the values of a range of indices out, in order; those behind move up. What they own is
    /// the caller's to release.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for damaged vectors; the transaction may go on.
    ///
    /// # Panics
    /// If the range ends behind the values, or in front of its start, as of a `Vec`.
    pub fn drain(self, tx: &mut impl Store, range: impl RangeBounds<u64>) -> Result<Vec<T>, Error> {
        let length = self.len(tx)?;
        let start = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
        };
        let end = match range.end_bound() {
            Bound::Unbounded => length,
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
        };
        assert!(start <= end && end <= length, "values {start} to {end} of {length}");
        let Some(first) = self.slot(tx, start)?.filter(|_| start < end) else { return Ok(Vec::new()) };
        whole(tx, |tx| {
            let values = tx.get_all(first, end - start)?;
            let behind = Ptr::offset(Ptr::nth(first, end - start));
            copy(tx, behind, Ptr::offset(first), (length - end).saturating_mul(size_of::<T>() as u64))?;
            tx.set(self.length(), length - (end - start))?;
            Ok(values)
        })
    }
}

impl<T: Persistent> Ptr<PQueue<T>> {
    /// Takes all values out, the first one first. What they own is the caller's to release.
    pub fn drain(self, tx: &mut impl Store) -> Result<Vec<T>, Error> {
        let values = self.iter(tx)?.collect::<Result<_, _>>()?;
        Ptr::cast::<PQueue<Taken<T>>>(self).clear(tx)?;
        Ok(values)
    }
}

macro_rules! map {
    ($map:ident, $order:literal) => {
        impl<K: Key, V: Persistent> Ptr<$map<K, V>> {
            #[doc = concat!("Takes all entries out, ", $order, ". What the values own is the caller's to release; keys are freed.")]
            pub fn drain(self, tx: &mut impl Store) -> Result<Vec<(K::Owned, V)>, Error> {
                let entries = self.iter(tx)?.collect::<Result<_, _>>()?;
                Ptr::cast::<$map<K, Taken<V>>>(self).clear(tx)?;
                Ok(entries)
            }

            /// Takes out the entries for which a function says no, and frees them with what their
            /// values own. The function gets what is read from, the key and the value. It takes
            /// memory for the keys that go.
            ///
            /// # Errors
            /// Beside those of the pool what the function gives, before anything changes.
            pub fn retain<S: Store>(
                self,
                tx: &mut S,
                mut keep: impl FnMut(&S, &K::Owned, V) -> Result<bool, Error>,
            ) -> Result<(), Error>
            where
                K::Owned: Borrow<K::Query>,
            {
                let mut gone = Vec::new();
                for entry in self.iter(&*tx)? {
                    let (key, value) = entry?;
                    if !keep(&*tx, &key, value)? {
                        gone.push(key);
                    }
                }
                whole(tx, |tx| {
                    gone.into_iter().try_for_each(|key| {
                        self.remove(tx, key.borrow())?.map_or(Ok(()), |value| value.release(tx))
                    })
                })
            }
        }
    };
}

map!(PHashMap, "in no order");
map!(PBTreeMap, "in the order of their keys");
