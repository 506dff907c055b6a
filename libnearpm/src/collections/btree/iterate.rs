//! Iteration over a range of keys, from its start or from its end.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds, RangeFull};

use super::node::{self, Node, child_row, key_row, value_row};
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr};

/// Entries of a [`PBTreeMap`], in the order of their keys; `BACKWARDS` from the greatest to the least.
pub struct Range<'t, L, K: Key, V: Persistent, R, const BACKWARDS: bool = false> {
    pub(super) from: &'t L,
    pub(super) map: PBTreeMap<K, V>,
    pub(super) bounds: R,
    /// Nodes from the top on, each with the index of the child that the path goes through; then the leaf with how many of its entries lie in
    /// front of where the iteration is. Empty at the end.
    pub(super) path: Vec<(Ptr<Node>, u64)>,
}

/// Entries of a [`PBTreeMap`], from the greatest key to the least.
pub type Backwards<'t, L, K, V, R> = Range<'t, L, K, V, R, true>;

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// The entries whose keys lie in a range, in order.
    pub fn range<L: Load, R: RangeBounds<K::Query>>(self, from: &L, bounds: R) -> Result<Range<'_, L, K, V, R>, Error> {
        Range::new(self, from, bounds)
    }

    /// All entries, in order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Range<'_, L, K, V, RangeFull>, Error> {
        self.range(from, ..)
    }

    /// The entries whose keys lie in a range, from the greatest to the least.
    pub fn range_rev<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<Backwards<'_, L, K, V, R>, Error> {
        Range::new(self, from, bounds)
    }

    /// All entries, from the greatest key to the least.
    pub fn iter_rev<L: Load>(self, from: &L) -> Result<Backwards<'_, L, K, V, RangeFull>, Error> {
        self.range_rev(from, ..)
    }

    /// The entry with the least key.
    pub fn first(self, from: &impl Load) -> Result<Option<(K::Owned, V)>, Error> {
        self.iter(from)?.next().transpose()
    }

    /// The entry with the greatest key.
    pub fn last(self, from: &impl Load) -> Result<Option<(K::Owned, V)>, Error> {
        self.iter_rev(from)?.next().transpose()
    }
}

impl<'t, L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>, const BACKWARDS: bool>
    Range<'t, L, K, V, R, BACKWARDS>
{
    fn new(map: Ptr<PBTreeMap<K, V>>, from: &'t L, bounds: R) -> Result<Self, Error> {
        let mut range = Range { from, map: from.get(map)?, bounds, path: Vec::new() };
        range.begin()?;
        Ok(range)
    }

    /// Goes to the edge of the range where it begins.
    fn begin(&mut self) -> Result<(), Error> {
        let Some(mut node) = self.map.checked_top()? else { return Ok(()) };
        let edge = if BACKWARDS { self.bounds.end_bound() } else { self.bounds.start_bound() };
        for _ in 1..self.map.height {
            let (at, child) = match edge {
                Bound::Unbounded => self.outermost_child(node)?,
                Bound::Included(key) | Bound::Excluded(key) => PBTreeMap::<K, V>::child(self.from, node, key)?,
            };
            self.path.push((node, at));
            node = child;
        }
        let at = match edge {
            Bound::Unbounded => self.outermost(node)?,
            Bound::Included(key) | Bound::Excluded(key) => {
                let count = node::count(self.from, node)?;
                let (at, found) = PBTreeMap::<K, V>::position(self.from, node, count, key)?;
                // The entry with that key lies in front of an edge that excludes it at the start, or includes it at the end.
                at + u64::from(found && matches!(edge, Bound::Included(_)) == BACKWARDS)
            }
        };
        self.path.push((node, at));
        Ok(())
    }

    /// Where the iteration begins in a node: in front of its first key, or behind its last one.
    fn outermost(&self, node: Ptr<Node>) -> Result<u64, Error> {
        if BACKWARDS { node::count(self.from, node) } else { Ok(0) }
    }

    fn outermost_child(&self, node: Ptr<Node>) -> Result<(u64, Ptr<Node>), Error> {
        let at = self.outermost(node)?;
        Ok((at, self.child_at(node, at)?))
    }

    fn child_at(&self, node: Ptr<Node>, at: u64) -> Result<Ptr<Node>, Error> {
        child_row::<K>(node).get(self.from, at)?.ok_or_else(|| corrupt(node))
    }

    /// Goes to the leaf that comes next; false if there is none.
    fn next_leaf(&mut self) -> Result<bool, Error> {
        self.path.pop();
        while let Some((node, at)) = self.path.pop() {
            let beside =
                if BACKWARDS { at.checked_sub(1) } else { (at < node::count(self.from, node)?).then_some(at + 1) };
            let Some(beside) = beside else { continue };
            self.path.push((node, beside));
            let mut down = self.child_at(node, beside)?;
            while (self.path.len() as u64) + 1 < self.map.height {
                let (at, child) = self.outermost_child(down)?;
                self.path.push((down, at));
                down = child;
            }
            self.path.push((down, self.outermost(down)?));
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether a key lies in front of the edge where the iteration ends.
    fn is_inside(&self, key: K) -> Result<bool, Error> {
        let (edge, outside) = match BACKWARDS {
            true => (self.bounds.start_bound(), Ordering::Less),
            false => (self.bounds.end_bound(), Ordering::Greater),
        };
        Ok(match edge {
            Bound::Unbounded => true,
            Bound::Included(edge) => key.compare(self.from, edge)? != outside,
            Bound::Excluded(edge) => key.compare(self.from, edge)? == outside.reverse(),
        })
    }

    fn step(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        loop {
            let Some(&(leaf, at)) = self.path.last() else { return Ok(None) };
            let entry = if BACKWARDS { at.checked_sub(1) } else { (at < node::count(self.from, leaf)?).then_some(at) };
            let Some(entry) = entry else {
                if self.next_leaf()? {
                    continue;
                }
                return Ok(None);
            };
            let key = key_row::<K>(leaf).get(self.from, entry)?;
            if !self.is_inside(key)? {
                self.path.clear();
                return Ok(None);
            }
            if let Some((_, at)) = self.path.last_mut() {
                *at = if BACKWARDS { entry } else { entry + 1 };
            }
            return Ok(Some((key.owned(self.from)?, value_row::<K, V>(leaf).get(self.from, entry)?)));
        }
    }
}

impl<L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>, const BACKWARDS: bool> Iterator
    for Range<'_, L, K, V, R, BACKWARDS>
{
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
