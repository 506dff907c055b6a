//! Iteration over a range of keys from its end.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds, RangeFull};

use super::iterate::entry;
use super::node::{self, Node, child_row, key_row};
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr};

/// Entries of a [`PBTreeMap`], from the greatest key to the least.
pub struct Backwards<'t, L, K: Key, V: Persistent, R> {
    from: &'t L,
    map: PBTreeMap<K, V>,
    bounds: R,
    /// Nodes from the top on, each with the index of the child that the path goes through; then the leaf with how many of its entries are
    /// left. Empty at the end.
    path: Vec<(Ptr<Node>, u64)>,
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// The entries whose keys lie in a range, from the greatest to the least.
    pub fn range_rev<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<Backwards<'_, L, K, V, R>, Error> {
        let mut range = Backwards { from, map: from.get(self)?, bounds, path: Vec::new() };
        range.begin()?;
        Ok(range)
    }

    /// All entries, from the greatest key to the least.
    pub fn iter_rev<L: Load>(self, from: &L) -> Result<Backwards<'_, L, K, V, RangeFull>, Error> {
        self.range_rev(from, ..)
    }
}

impl<L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>> Backwards<'_, L, K, V, R> {
    /// Finds the last entry of the range, or of the leaf in front.
    fn begin(&mut self) -> Result<(), Error> {
        let Some(mut node) = self.map.checked_top()? else { return Ok(()) };
        for _ in 1..self.map.height {
            let (at, child) = match self.bounds.end_bound() {
                Bound::Unbounded => self.last_child(node)?,
                Bound::Included(key) | Bound::Excluded(key) => PBTreeMap::<K, V>::child(self.from, node, key)?,
            };
            self.path.push((node, at));
            node = child;
        }
        let count = node::count(self.from, node)?;
        let left = match self.bounds.end_bound() {
            Bound::Unbounded => count,
            Bound::Excluded(key) => PBTreeMap::<K, V>::position(self.from, node, count, key)?.0,
            Bound::Included(key) => {
                let (at, found) = PBTreeMap::<K, V>::position(self.from, node, count, key)?;
                at + u64::from(found)
            }
        };
        self.path.push((node, left));
        Ok(())
    }

    fn last_child(&self, node: Ptr<Node>) -> Result<(u64, Ptr<Node>), Error> {
        let last = node::count(self.from, node)?;
        Ok((last, child_row::<K>(node).get(self.from, last)?.ok_or_else(|| corrupt(node))?))
    }

    /// Goes to the leaf in front; false if there is none.
    fn former_leaf(&mut self) -> Result<bool, Error> {
        self.path.pop();
        while let Some((node, at)) = self.path.pop() {
            let Some(before) = at.checked_sub(1) else { continue };
            self.path.push((node, before));
            let mut down = child_row::<K>(node).get(self.from, before)?.ok_or_else(|| corrupt(node))?;
            while (self.path.len() as u64) + 1 < self.map.height {
                let (last, child) = self.last_child(down)?;
                self.path.push((down, last));
                down = child;
            }
            self.path.push((down, node::count(self.from, down)?));
            return Ok(true);
        }
        Ok(false)
    }

    fn step(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        loop {
            let Some((leaf, left)) = self.path.last().copied() else { return Ok(None) };
            let Some(at) = left.checked_sub(1) else {
                if self.former_leaf()? {
                    continue;
                }
                return Ok(None);
            };
            let key = key_row::<K>(leaf).get(self.from, at)?;
            let inside = match self.bounds.start_bound() {
                Bound::Unbounded => true,
                Bound::Included(start) => key.compare(self.from, start)? != Ordering::Less,
                Bound::Excluded(start) => key.compare(self.from, start)? == Ordering::Greater,
            };
            if !inside {
                self.path.clear();
                return Ok(None);
            }
            if let Some((_, left)) = self.path.last_mut() {
                *left = at;
            }
            return entry::<_, K, V>(self.from, leaf, at).map(Some);
        }
    }
}

impl<L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>> Iterator for Backwards<'_, L, K, V, R> {
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
