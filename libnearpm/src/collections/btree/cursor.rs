//! Gaps between the entries of a map, which move in both directions.

use std::ops::Bound;

use super::node::{self, Node, child_row, key_row, value_row};
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr};

/// An entry: its leaf, and its index there.
pub(super) type Entry = (Ptr<Node>, u64);

/// Nodes from the top on, each with the index of the child that the path goes through; then the
/// leaf with how many of its entries lie in front of the gap. Empty in an empty map.
pub(super) type Steps = Vec<(Ptr<Node>, u64)>;

/// A gap between two entries of a [`PBTreeMap`], or at one of its ends; from `lower_bound` and
/// `upper_bound` of a map.
///
/// ```
/// use nearpm::prelude::*;
/// use std::ops::Bound;
///
/// /// The keys around one.
/// fn around(from: &impl Load, map: Ptr<PBTreeMap<u64, u64>>, key: u64) -> Result<[Option<u64>; 2], Error> {
///     let cursor = map.lower_bound(from, Bound::Included(&key))?;
///     Ok([cursor.peek_prev()?, cursor.peek_next()?].map(|entry| entry.map(|(key, _)| key)))
/// }
/// ```
pub struct Cursor<'t, L, K: Key, V: Persistent> {
    pub(super) from: &'t L,
    map: PBTreeMap<K, V>,
    path: Steps,
}

impl<L, K: Key, V: Persistent> Clone for Cursor<'_, L, K, V> {
    fn clone(&self) -> Self {
        Cursor { from: self.from, map: self.map, path: self.path.clone() }
    }
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// The gap in front of the first entry whose key is at least one (`Included`), or above one
    /// (`Excluded`).
    pub fn lower_bound<'t, L: Load>(self, from: &'t L, bound: Bound<&K::Query>) -> Result<Cursor<'t, L, K, V>, Error> {
        Cursor::new(from.get(self)?, from, bound, false)
    }

    /// The gap behind the last entry whose key is at most one (`Included`), or below one
    /// (`Excluded`).
    pub fn upper_bound<'t, L: Load>(self, from: &'t L, bound: Bound<&K::Query>) -> Result<Cursor<'t, L, K, V>, Error> {
        Cursor::new(from.get(self)?, from, bound, true)
    }
}

impl<'t, L: Load, K: Key, V: Persistent> Cursor<'t, L, K, V> {
    /// The gap at a bound of a range of keys: its start, or its end (`behind`).
    pub(super) fn new(map: PBTreeMap<K, V>, from: &'t L, bound: Bound<&K::Query>, behind: bool) -> Result<Self, Error> {
        let mut cursor = Cursor { from, map, path: Vec::new() };
        let Some(mut node) = cursor.map.checked_top()? else { return Ok(cursor) };
        for _ in 1..cursor.map.height {
            let (at, child) = match bound {
                Bound::Unbounded => cursor.outermost_child(node, behind)?,
                Bound::Included(key) | Bound::Excluded(key) => PBTreeMap::<K, V>::child(from, node, key)?,
            };
            cursor.path.push((node, at));
            node = child;
        }
        let at = match bound {
            Bound::Unbounded => cursor.outermost(node, behind)?,
            Bound::Included(key) | Bound::Excluded(key) => {
                let (at, found) = PBTreeMap::<K, V>::position(from, node, node::count(from, node)?, key)?;
                // The entry with that key lies in front of a start that excludes it, and of an end
                // that includes it.
                at + u64::from(found && matches!(bound, Bound::Included(_)) == behind)
            }
        };
        cursor.path.push((node, at));
        Ok(cursor)
    }

    /// Where a node begins, or ends.
    fn outermost(&self, node: Ptr<Node>, end: bool) -> Result<u64, Error> {
        if end { node::count(self.from, node) } else { Ok(0) }
    }

    fn outermost_child(&self, node: Ptr<Node>, end: bool) -> Result<(u64, Ptr<Node>), Error> {
        let at = self.outermost(node, end)?;
        Ok((at, self.child_at(node, at)?))
    }

    fn child_at(&self, node: Ptr<Node>, at: u64) -> Result<Ptr<Node>, Error> {
        child_row::<K>(node).get(self.from, at)?.ok_or_else(|| corrupt(node))
    }

    /// What lies beside an index of a node with so many places behind it.
    fn beside(at: u64, count: u64, backwards: bool) -> Option<u64> {
        if backwards { at.checked_sub(1) } else { (at < count).then_some(at + 1) }
    }

    /// A gap that a path leads to.
    pub(super) fn at(from: &'t L, map: PBTreeMap<K, V>, path: Steps) -> Self {
        Cursor { from, map, path }
    }

    /// The path that leads to it.
    pub(super) fn into_steps(self) -> Steps {
        self.path
    }

    /// Goes to the edge of the leaf beside; false, and it stays, if there is none.
    fn next_leaf(&mut self, backwards: bool) -> Result<bool, Error> {
        for level in (0..self.path.len().saturating_sub(1)).rev() {
            let (node, at) = self.path[level];
            let count = if backwards { 0 } else { node::count(self.from, node)? };
            let Some(beside) = Self::beside(at, count, backwards) else { continue };
            let leaf = self.path.len() - 1;
            self.path.truncate(level);
            self.path.push((node, beside));
            let mut down = self.child_at(node, beside)?;
            while self.path.len() < leaf {
                let (at, child) = self.outermost_child(down, backwards)?;
                self.path.push((down, at));
                down = child;
            }
            self.path.push((down, self.outermost(down, backwards)?));
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes over an entry, and says where it lies; `None` at the end.
    pub(super) fn step(&mut self, backwards: bool) -> Result<Option<Entry>, Error> {
        let entry = self.try_step(backwards);
        if entry.is_err() {
            self.end();
        }
        entry
    }

    fn try_step(&mut self, backwards: bool) -> Result<Option<Entry>, Error> {
        loop {
            let Some((leaf, at)) = self.path.last_mut() else { return Ok(None) };
            let count = if backwards { 0 } else { node::count(self.from, *leaf)? };
            if let Some(beside) = Self::beside(*at, count, backwards) {
                let entry = (*leaf, beside.min(*at));
                *at = beside;
                return Ok(Some(entry));
            }
            if !self.next_leaf(backwards)? {
                return Ok(None);
            }
        }
    }

    /// Behind an error, and a range's end, there is nothing.
    pub(super) fn end(&mut self) {
        self.path.clear();
    }

    /// The key of an entry.
    pub(super) fn key(&self, (leaf, at): Entry) -> Result<K, Error> {
        key_row::<K>(leaf).get(self.from, at)
    }

    /// What an entry is.
    pub(super) fn load(&self, entry: Entry) -> Result<(K::Owned, V), Error> {
        Ok((self.key(entry)?.owned(self.from)?, value_row::<K, V>(entry.0).get(self.from, entry.1)?))
    }

    /// Goes over the entry behind the gap, and gives it; `None` at the end of the map.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator goes in one direction; the name is that of the standard library's cursors"
    )]
    pub fn next(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.step(false)?.map(|entry| self.load(entry)).transpose()
    }

    /// Goes back over the entry in front of the gap, and gives it; `None` at the start of the map.
    pub fn prev(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        self.step(true)?.map(|entry| self.load(entry)).transpose()
    }

    /// The entry behind the gap.
    pub fn peek_next(&self) -> Result<Option<(K::Owned, V)>, Error> {
        self.clone().next()
    }

    /// The entry in front of the gap.
    pub fn peek_prev(&self) -> Result<Option<(K::Owned, V)>, Error> {
        self.clone().prev()
    }
}
