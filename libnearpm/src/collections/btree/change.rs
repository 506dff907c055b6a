//! A gap between the entries of a map that is changed there.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;

use super::cursor::{Cursor, Steps};
use super::node::value_row;
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Persistent, Ptr, Store};

/// A gap between two entries of a [`PBTreeMap`], or at one of its ends, beside which entries come
/// and go; from `lower_bound_mut` and `upper_bound_mut` of a map. A step takes O(1) on average, a
/// change O(log n).
///
/// ```
/// use nearpm::prelude::*;
/// use std::ops::Bound;
///
/// /// Takes out what was due at a time or before.
/// fn take_due(tx: &mut impl Store, due: Ptr<PBTreeMap<u64, u64>>, now: u64) -> Result<Vec<u64>, Error> {
///     let mut taken = Vec::new();
///     let mut cursor = due.lower_bound_mut(tx, Bound::Unbounded)?;
///     while cursor.peek_next()?.is_some_and(|(time, _)| time <= now) {
///         taken.extend(cursor.remove_next()?.map(|(_, what)| what));
///     }
///     Ok(taken)
/// }
/// ```
pub struct CursorMut<'t, S, K: Key, V: Persistent> {
    tx: &'t mut S,
    map: Ptr<PBTreeMap<K, V>>,
    /// As that of a cursor that reads.
    steps: Steps,
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// As `lower_bound`, for changes.
    pub fn lower_bound_mut<'t, S: Store>(
        self,
        tx: &'t mut S,
        bound: Bound<&K::Query>,
    ) -> Result<CursorMut<'t, S, K, V>, Error> {
        CursorMut::new(self, tx, bound, false)
    }

    /// As `upper_bound`, for changes.
    pub fn upper_bound_mut<'t, S: Store>(
        self,
        tx: &'t mut S,
        bound: Bound<&K::Query>,
    ) -> Result<CursorMut<'t, S, K, V>, Error> {
        CursorMut::new(self, tx, bound, true)
    }
}

impl<'t, S: Store, K: Key, V: Persistent> CursorMut<'t, S, K, V> {
    fn new(map: Ptr<PBTreeMap<K, V>>, tx: &'t mut S, bound: Bound<&K::Query>, behind: bool) -> Result<Self, Error> {
        let steps = Cursor::new(tx.get(map)?, &*tx, bound, behind)?.into_steps();
        Ok(CursorMut { tx, map, steps })
    }

    /// The gap, for reading.
    pub fn as_cursor(&self) -> Result<Cursor<'_, S, K, V>, Error> {
        Ok(Cursor::at(self.tx, self.tx.get(self.map)?, self.steps.clone()))
    }

    /// Goes over the entry behind the gap, and gives it; `None` at the end of the map.
    #[expect(clippy::should_implement_trait, reason = "as that of a cursor that reads")]
    pub fn next(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.walk(false)
    }

    /// Goes back over the entry in front of the gap, and gives it; `None` at the start of the map.
    pub fn prev(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.walk(true)
    }

    fn walk(&mut self, backwards: bool) -> Result<Option<(K::Owned, V)>, Error> {
        let mut cursor = Cursor::at(&*self.tx, self.tx.get(self.map)?, std::mem::take(&mut self.steps));
        let done = if backwards { cursor.prev() } else { cursor.next() };
        self.steps = cursor.into_steps();
        done
    }

    /// The entry behind the gap.
    pub fn peek_next(&self) -> Result<Option<(K::Owned, V)>, Error> {
        self.as_cursor()?.next()
    }

    /// The entry in front of the gap.
    pub fn peek_prev(&self) -> Result<Option<(K::Owned, V)>, Error> {
        self.as_cursor()?.prev()
    }

    /// Goes to the edge of the map where a key lies, or would lie.
    fn seek(&mut self, key: &K::Query, behind: bool) -> Result<(), Error> {
        // Behind an error there is nothing.
        self.steps.clear();
        self.steps = Cursor::new(self.tx.get(self.map)?, &*self.tx, Bound::Included(key), behind)?.into_steps();
        Ok(())
    }

    /// How the key beside the gap stands to another one.
    fn beside(&self, key: &K::Query, backwards: bool) -> Result<Option<Ordering>, Error> {
        let mut cursor = self.as_cursor()?;
        let Some(entry) = cursor.step(backwards)? else { return Ok(None) };
        cursor.key(entry)?.compare(&*self.tx, key).map(Some)
    }

    fn insert(&mut self, key: &K::Query, value: V, behind: bool) -> Result<(), Error> {
        let (before, after) = (self.beside(key, true)?, self.beside(key, false)?);
        if before.is_some_and(Ordering::is_ge) || after.is_some_and(Ordering::is_le) {
            return Err(Error::abort(
                "a key was to be inserted at a cursor, and does not lie between the keys on both sides of it: use the map's own `insert`",
            ));
        }
        if before.is_none() && after.is_none() && !self.map.is_empty(self.tx)? {
            // A step has failed, and nobody knows where this is.
            return Err(corrupt(Ptr::cast(self.map)));
        }
        self.map.insert(self.tx, key, value)?;
        self.seek(key, behind)
    }

    /// Inserts an entry in front of the gap: it is what `prev` gives next.
    ///
    /// # Errors
    /// [`Error::Aborted`] if the key does not lie between those on both sides of the gap; nothing
    /// has changed then. As `insert` of the map.
    pub fn insert_before(&mut self, key: &K::Query, value: V) -> Result<(), Error> {
        self.insert(key, value, true)
    }

    /// Inserts an entry behind the gap: it is what `next` gives next.
    ///
    /// # Errors
    /// As [`CursorMut::insert_before`].
    pub fn insert_after(&mut self, key: &K::Query, value: V) -> Result<(), Error> {
        self.insert(key, value, false)
    }

    fn replace(&mut self, value: V, backwards: bool) -> Result<Option<V>, Error> {
        let entry = self.as_cursor()?.step(backwards)?;
        entry.map(|(leaf, at)| self.tx.replace(value_row::<K, V>(leaf).at(at), value)).transpose()
    }

    /// Sets the value of the entry behind the gap, and gives the one that it had, whose contents
    /// are the caller's to release; `None`, and nothing changes, at the end of the map.
    pub fn replace_next(&mut self, value: V) -> Result<Option<V>, Error> {
        self.replace(value, false)
    }

    /// As [`CursorMut::replace_next`], of the entry in front of the gap.
    pub fn replace_prev(&mut self, value: V) -> Result<Option<V>, Error> {
        self.replace(value, true)
    }
}

impl<S: Store, K: Key<Owned: Borrow<<K as Key>::Query>>, V: Persistent> CursorMut<'_, S, K, V> {
    fn remove(&mut self, backwards: bool) -> Result<Option<(K::Owned, V)>, Error> {
        let mut cursor = self.as_cursor()?;
        let Some(entry) = cursor.step(backwards)? else { return Ok(None) };
        let key = cursor.key(entry)?.owned(&*self.tx)?;
        let value = self.map.remove(self.tx, key.borrow())?;
        // Nodes may have moved entries among themselves.
        self.seek(key.borrow(), false)?;
        value.map(|value| Some((key, value))).ok_or_else(|| corrupt(entry.0))
    }

    /// Takes the entry behind the gap out, and gives it; `None` at the end of the map. What the
    /// value owns is the caller's to release; the key is freed.
    pub fn remove_next(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.remove(false)
    }

    /// As [`CursorMut::remove_next`], of the entry in front of the gap.
    pub fn remove_prev(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.remove(true)
    }
}
