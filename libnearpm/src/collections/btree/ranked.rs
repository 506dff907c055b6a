//! Trees that know how many entries lie below each child, so that an entry is found by its place in
//! the order, and the place by the key.

use std::cmp::Ordering;
use std::ops::RangeFull;

use super::cursor::Cursor;
use super::iterate::Range;
use super::node::{self, Node, below_row, child_row};
use super::{PBTreeMap, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// A key whose [`PBTreeMap`] counts: `rank`, `iter_from` and `entry_at` take O(log n), and an
/// insertion or removal stores one number more at each level.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::collections::Ranked;
///
/// fn median(from: &impl Load, times: Ptr<PBTreeMap<Ranked<u64>, u64>>) -> Result<Option<u64>, Error> {
///     let middle = times.len(from)? / 2;
///     Ok(times.iter_from(from, middle)?.next().transpose()?.map(|(time, _)| time))
/// }
/// ```
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Ranked<K: Key> {
    key: K,
}

impl<K: Key> Key for Ranked<K> {
    type Query = K::Query;
    type Owned = K::Owned;
    const COUNTED: bool = true;

    fn hash(query: &K::Query) -> u64 {
        K::hash(query)
    }

    fn compare(self, from: &impl Load, query: &K::Query) -> Result<Ordering, Error> {
        self.key.compare(from, query)
    }

    fn make(tx: &mut impl Store, query: &K::Query) -> Result<Ranked<K>, Error> {
        Ok(Ranked { key: K::make(tx, query)? })
    }

    fn duplicate(self, tx: &mut impl Store) -> Result<Ranked<K>, Error> {
        Ok(Ranked { key: self.key.duplicate(tx)? })
    }

    fn owned(self, from: &impl Load) -> Result<K::Owned, Error> {
        self.key.owned(from)
    }
}

impl<K: Key, V: Persistent> PBTreeMap<K, V> {
    /// Entries of a subtree of so many levels.
    fn entries(from: &impl Load, top: Ptr<Node>, levels: u64) -> Result<u64, Error> {
        let count = node::count(from, top)?;
        if levels == 1 {
            return Ok(count);
        }
        (0..=count).try_fold(0u64, |sum, at| Ok(sum.saturating_add(below_row::<K>(top).get(from, at)?)))
    }

    /// A child of a node was split, and its upper half, of so many levels, hangs behind it now:
    /// both are counted.
    pub(super) fn count_split(
        tx: &mut impl Store,
        node: Ptr<Node>,
        at: u64,
        upper: Ptr<Node>,
        levels: u64,
    ) -> Result<(), Error> {
        let lower = child_row::<K>(node).get(tx, at)?.ok_or_else(|| corrupt(node))?;
        let (below, above) = (Self::entries(tx, lower, levels)?, Self::entries(tx, upper, levels)?);
        let row = below_row::<K>(node);
        // Its keys are one more already; the row still has as many counts as there were children.
        let children = node::count(tx, node)?;
        row.insert(tx, at + 1, children, above)?;
        row.set(tx, at, below)
    }
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// An entry came or goes below the nodes on the way to a key.
    pub(super) fn count_along(self, tx: &mut impl Store, key: &K::Query, change: i64) -> Result<(), Error> {
        let map = tx.get(self)?;
        let Some(mut node) = map.checked_top()? else { return Ok(()) };
        for _ in 1..map.height {
            let (at, child) = PBTreeMap::<K, V>::child(tx, node, key)?;
            tx.update(below_row::<K>(node).at(at), |below| below.saturating_add_signed(change))?;
            node = child;
        }
        Ok(())
    }
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<Ranked<K>, V>> {
    /// How many entries lie in front of a key, and whether it is there.
    pub fn rank(self, from: &impl Load, key: &K::Query) -> Result<(u64, bool), Error> {
        let map = from.get(self)?;
        let Some(mut node) = map.checked_top()? else { return Ok((0, false)) };
        let mut rank = 0u64;
        for _ in 1..map.height {
            let (at, child) = PBTreeMap::<Ranked<K>, V>::child(from, node, key)?;
            for before in 0..at {
                rank = rank.saturating_add(below_row::<Ranked<K>>(node).get(from, before)?);
            }
            node = child;
        }
        let (at, found) = PBTreeMap::<Ranked<K>, V>::position(from, node, node::count(from, node)?, key)?;
        Ok((rank.saturating_add(at), found))
    }

    /// The entries from a place in the order on, counted from 0; none if there are not so many.
    pub fn iter_from<L: Load>(self, from: &L, place: u64) -> Result<Range<'_, L, Ranked<K>, V, RangeFull>, Error> {
        let map = from.get(self)?;
        let mut path = Vec::new();
        let Some(mut node) = map.checked_top()?.filter(|_| place < map.length) else {
            return Ok(Range::from(Cursor::at(from, map, path), ..));
        };
        let mut left = place;
        for _ in 1..map.height {
            let (count, row) = (node::count(from, node)?, below_row::<Ranked<K>>(node));
            let mut at = 0;
            loop {
                let below = row.get(from, at)?;
                if left < below {
                    break;
                }
                (left, at) = (left - below, at + 1);
                if at > count {
                    return Err(corrupt(node));
                }
            }
            path.push((node, at));
            node = child_row::<Ranked<K>>(node).get(from, at)?.ok_or_else(|| corrupt(node))?;
        }
        path.push((node, left));
        Ok(Range::from(Cursor::at(from, map, path), ..))
    }

    /// The entry at a place in the order.
    pub fn entry_at(self, from: &impl Load, place: u64) -> Result<Option<(K::Owned, V)>, Error> {
        self.iter_from(from, place)?.next().transpose()
    }
}
