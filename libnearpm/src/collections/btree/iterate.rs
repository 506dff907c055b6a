//! Iteration over a range of keys.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds, RangeFull};

use super::node::{self, Node, child_row, key_row, value_row};
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr};

/// Entries of a [`PBTreeMap`], in the order of their keys.
pub struct Range<'t, L, K: Key, V: Persistent, R> {
    pub(super) from: &'t L,
    pub(super) map: PBTreeMap<K, V>,
    pub(super) bounds: R,
    /// Nodes from the top on, each with the index of the child that is next on the path; then the leaf with the index of the next entry.
    /// Empty at the end.
    pub(super) path: Vec<(Ptr<Node>, u64)>,
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// The entries whose keys lie in a range, in order.
    pub fn range<L: Load, R: RangeBounds<K::Query>>(self, from: &L, bounds: R) -> Result<Range<'_, L, K, V, R>, Error> {
        let mut range = Range { from, map: from.get(self)?, bounds, path: Vec::new() };
        range.begin()?;
        Ok(range)
    }

    /// All entries, in order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Range<'_, L, K, V, RangeFull>, Error> {
        self.range(from, ..)
    }

    /// The entry with the least key.
    pub fn first(self, from: &impl Load) -> Result<Option<(K::Owned, V)>, Error> {
        self.iter(from)?.next().transpose()
    }

    /// The entry with the greatest key.
    pub fn last(self, from: &impl Load) -> Result<Option<(K::Owned, V)>, Error> {
        let map = from.get(self)?;
        let Some(mut node) = map.checked_top()? else { return Ok(None) };
        for _ in 1..map.height {
            let last = node::count(from, node)?;
            node = child_row::<K>(node).get(from, last)?.ok_or_else(|| corrupt(node))?;
        }
        let last = node::count(from, node)?.checked_sub(1).ok_or_else(|| corrupt(node))?;
        entry::<_, K, V>(from, node, last).map(Some)
    }
}

pub(super) fn entry<L: Load, K: Key, V: Persistent>(
    from: &L,
    leaf: Ptr<Node>,
    at: u64,
) -> Result<(K::Owned, V), Error> {
    let key = key_row::<K>(leaf).get(from, at)?.owned(from)?;
    Ok((key, value_row::<K, V>(leaf).get(from, at)?))
}

impl<L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>> Range<'_, L, K, V, R> {
    /// Finds the first entry of the range, or of the leaf behind.
    fn begin(&mut self) -> Result<(), Error> {
        let Some(mut node) = self.map.checked_top()? else { return Ok(()) };
        for _ in 1..self.map.height {
            let (at, child) = match self.bounds.start_bound() {
                Bound::Unbounded => (0, child_row::<K>(node).get(self.from, 0)?.ok_or_else(|| corrupt(node))?),
                Bound::Included(key) | Bound::Excluded(key) => PBTreeMap::<K, V>::child(self.from, node, key)?,
            };
            self.path.push((node, at));
            node = child;
        }
        let count = node::count(self.from, node)?;
        let at = match self.bounds.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(key) => PBTreeMap::<K, V>::position(self.from, node, count, key)?.0,
            Bound::Excluded(key) => {
                let (at, found) = PBTreeMap::<K, V>::position(self.from, node, count, key)?;
                at + u64::from(found)
            }
        };
        self.path.push((node, at));
        Ok(())
    }

    /// Goes to the next leaf; false if there is none.
    fn next_leaf(&mut self) -> Result<bool, Error> {
        self.path.pop();
        while let Some((node, at)) = self.path.pop() {
            if at >= node::count(self.from, node)? {
                continue;
            }
            self.path.push((node, at + 1));
            let mut down = child_row::<K>(node).get(self.from, at + 1)?.ok_or_else(|| corrupt(node))?;
            while (self.path.len() as u64) + 1 < self.map.height {
                self.path.push((down, 0));
                down = child_row::<K>(down).get(self.from, 0)?.ok_or_else(|| corrupt(down))?;
            }
            self.path.push((down, 0));
            return Ok(true);
        }
        Ok(false)
    }

    fn step(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        loop {
            let Some(&(leaf, at)) = self.path.last() else { return Ok(None) };
            if at >= node::count(self.from, leaf)? {
                if self.next_leaf()? {
                    continue;
                }
                return Ok(None);
            }
            let key = key_row::<K>(leaf).get(self.from, at)?;
            let inside = match self.bounds.end_bound() {
                Bound::Unbounded => true,
                Bound::Included(end) => key.compare(self.from, end)? != Ordering::Greater,
                Bound::Excluded(end) => key.compare(self.from, end)? == Ordering::Less,
            };
            if !inside {
                self.path.clear();
                return Ok(None);
            }
            if let Some((_, next)) = self.path.last_mut() {
                *next += 1;
            }
            return entry::<_, K, V>(self.from, leaf, at).map(Some);
        }
    }
}

impl<L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>> Iterator for Range<'_, L, K, V, R> {
    type Item = Result<(K::Owned, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step();
        if item.is_err() {
            // Behind an error there is nothing.
            self.path.clear();
        }
        item.transpose()
    }
}
