//! Iteration over a range of keys, from its start or from its end.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds, RangeFull};

use super::PBTreeMap;
use super::cursor::Cursor;
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr};

/// Entries of a [`PBTreeMap`], in the order of their keys; `BACKWARDS` from the greatest to the
/// least.
pub struct Range<'t, L, K: Key, V: Persistent, R, const BACKWARDS: bool = false> {
    cursor: Cursor<'t, L, K, V>,
    bounds: R,
}

/// Entries of a [`PBTreeMap`], from the greatest key to the least.
pub type Backwards<'t, L, K, V, R> = Range<'t, L, K, V, R, true>;

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// The entries whose keys lie in a range, in order.
    pub fn range<L: Load, R: RangeBounds<K::Query>>(self, from: &L, bounds: R) -> Result<Range<'_, L, K, V, R>, Error> {
        Range::new(from.get(self)?, from, bounds)
    }

    /// All entries, in order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Range<'_, L, K, V, RangeFull>, Error> {
        from.get(self)?.iterate(from)
    }

    /// The entries whose keys lie in a range, from the greatest to the least.
    pub fn range_rev<L: Load, R: RangeBounds<K::Query>>(
        self,
        from: &L,
        bounds: R,
    ) -> Result<Backwards<'_, L, K, V, R>, Error> {
        Range::new(from.get(self)?, from, bounds)
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

impl<K: Key, V: Persistent> PBTreeMap<K, V> {
    /// All entries, in order.
    pub(in crate::collections) fn iterate<L: Load>(self, from: &L) -> Result<Range<'_, L, K, V, RangeFull>, Error> {
        Range::new(self, from, ..)
    }
}

impl<'t, L: Load, K: Key, V: Persistent, R: RangeBounds<K::Query>, const BACKWARDS: bool>
    Range<'t, L, K, V, R, BACKWARDS>
{
    fn new(map: PBTreeMap<K, V>, from: &'t L, bounds: R) -> Result<Self, Error> {
        let edge = if BACKWARDS { bounds.end_bound() } else { bounds.start_bound() };
        Ok(Range { cursor: Cursor::new(map, from, edge, BACKWARDS)?, bounds })
    }

    /// The entries from a gap on.
    pub(super) fn from(cursor: Cursor<'t, L, K, V>, bounds: R) -> Self {
        Range { cursor, bounds }
    }

    /// Whether a key lies in front of the edge where the iteration ends.
    fn is_inside(&self, key: K) -> Result<bool, Error> {
        let (edge, outside) = match BACKWARDS {
            true => (self.bounds.start_bound(), Ordering::Less),
            false => (self.bounds.end_bound(), Ordering::Greater),
        };
        Ok(match edge {
            Bound::Unbounded => true,
            Bound::Included(edge) => key.compare(self.cursor.from, edge)? != outside,
            Bound::Excluded(edge) => key.compare(self.cursor.from, edge)? == outside.reverse(),
        })
    }

    fn step(&mut self) -> Result<Option<(K::Owned, V)>, Error> {
        let Some(entry) = self.cursor.step(BACKWARDS)? else { return Ok(None) };
        if self.is_inside(self.cursor.key(entry)?)? {
            return self.cursor.load(entry).map(Some);
        }
        self.cursor.end();
        Ok(None)
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
            self.cursor.end();
        }
        item.transpose()
    }
}
