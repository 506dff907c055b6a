//! Removing nodes: of empty ones, and of one of two that are joined.

use super::node::{self, JOINED, Node, below_row, child_row, key_row, value_row};
use super::{PBTreeMap, Path, corrupt};
use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// Two nodes under one parent, side by side, each with its count.
struct Pair {
    left: (Ptr<Node>, u64),
    right: (Ptr<Node>, u64),
}

impl<K: Key, V: Persistent> PBTreeMap<K, V> {
    /// The child at the end of a path, which has so many keys, with one beside it, if the two and
    /// `more` keys fit well into one. The path ends at the right one then.
    fn pair(from: &impl Load, path: &mut Path, child: (Ptr<Node>, u64), more: u64) -> Result<Option<Pair>, Error> {
        let Some((parent, at)) = path.last_mut() else { return Ok(None) };
        let beside = |at: u64| -> Result<_, Error> {
            let node = child_row::<K>(*parent).get(from, at)?.ok_or_else(|| corrupt(*parent))?;
            let count = node::count(from, node)?;
            Ok((child.1 + count + more <= JOINED).then_some((node, count)))
        };
        if *at > 0
            && let Some(left) = beside(*at - 1)?
        {
            return Ok(Some(Pair { left, right: child }));
        }
        if *at < node::count(from, *parent)?
            && let Some(right) = beside(*at + 1)?
        {
            *at += 1;
            return Ok(Some(Pair { left: child, right }));
        }
        Ok(None)
    }

    /// What lies below the child at the end of a path is counted at the one in front of it, which
    /// takes it over.
    fn count_join(tx: &mut impl Store, path: &mut Path) -> Result<(), Error> {
        let Some(&mut (parent, at)) = path.last_mut().filter(|_| K::COUNTED) else { return Ok(()) };
        let row = below_row::<K>(parent);
        let moved = row.get(tx, at)?;
        tx.update(row.at(at - 1), |below| below.saturating_add(moved)).map(drop)
    }

    /// Joins an inner node, at the end of a path, which has so many keys, with one beside it: the
    /// separator between them comes down. False if they stay two.
    fn join_inner(tx: &mut impl Store, path: &mut Path, small: (Ptr<Node>, u64)) -> Result<bool, Error> {
        let Some(Pair { left: (left, kept), right: (right, moved) }) = Self::pair(tx, path, small, 1)? else {
            return Ok(false);
        };
        let Some(&mut (parent, at)) = path.last_mut() else { return Ok(false) };
        let separator = key_row::<K>(parent).get(tx, at - 1)?;
        tx.declare(node::range::<K, V>(left, true))?;
        key_row::<K>(left).set(tx, kept, separator)?;
        key_row::<K>(right).move_tail(tx, 0, moved, key_row::<K>(left).tail(kept + 1))?;
        child_row::<K>(right).move_tail(tx, 0, moved + 1, child_row::<K>(left).tail(kept + 1))?;
        if K::COUNTED {
            below_row::<K>(right).move_tail(tx, 0, moved + 1, below_row::<K>(left).tail(kept + 1))?;
        }
        node::set_count(tx, left, kept + 1 + moved)?;
        tx.free(right)?;
        Self::count_join(tx, path)?;
        Ok(true)
    }
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// Joins a leaf, at the end of a path, which has so many keys, with one beside it, if both fit
    /// well into one.
    pub(super) fn join_leaf(
        self,
        tx: &mut impl Store,
        map: PBTreeMap<K, V>,
        mut path: Path,
        small: (Ptr<Node>, u64),
    ) -> Result<(), Error> {
        let pair = PBTreeMap::<K, V>::pair(tx, &mut path, small, 0)?;
        let Some(Pair { left: (left, kept), right: (right, moved) }) = pair else { return Ok(()) };
        tx.declare(node::range::<K, V>(left, false))?;
        key_row::<K>(right).move_tail(tx, 0, moved, key_row::<K>(left).tail(kept))?;
        value_row::<K, V>(right).move_tail(tx, 0, moved, value_row::<K, V>(left).tail(kept))?;
        node::set_count(tx, left, kept + moved)?;
        tx.free(right)?;
        PBTreeMap::<K, V>::count_join(tx, &mut path)?;
        self.remove_above(tx, map, path, true)
    }

    /// Takes out the child at the end of a path, which was freed, and the separator in front of it,
    /// which is `spare` or has come down.
    pub(super) fn remove_above(
        self,
        tx: &mut impl Store,
        map: PBTreeMap<K, V>,
        mut path: Path,
        mut spare: bool,
    ) -> Result<(), Error> {
        while let Some((node, at)) = path.pop() {
            let count = node::count(tx, node)?;
            if count == 0 {
                tx.free(node)?;
                continue;
            }
            let keys = key_row::<K>(node);
            let separator = at.saturating_sub(1);
            if K::OWNS && spare {
                keys.get(tx, separator)?.release(tx)?;
            }
            tx.declare(node::range::<K, V>(node, true))?;
            keys.remove(tx, separator, count)?;
            child_row::<K>(node).remove(tx, at, count + 1)?;
            if K::COUNTED {
                below_row::<K>(node).remove(tx, at, count + 1)?;
            }
            node::set_count(tx, node, count - 1)?;
            if !node::is_small(count - 1) || !PBTreeMap::<K, V>::join_inner(tx, &mut path, (node, count - 1))? {
                return self.lower(tx, map);
            }
            spare = false;
        }
        tx.set(self, PBTreeMap::EMPTY)
    }

    /// Takes nodes with a single child off the top.
    fn lower(self, tx: &mut impl Store, map: PBTreeMap<K, V>) -> Result<(), Error> {
        let (mut top, mut height) = (map.top, map.height);
        while let Some(node) = top.filter(|_| height > 1) {
            if node::count(tx, node)? > 0 {
                break;
            }
            top = child_row::<K>(node).get(tx, 0)?;
            height -= 1;
            tx.free(node)?;
        }
        if height != map.height {
            tx.set(self.top(), top)?;
            tx.set(self.height(), height)?;
        }
        Ok(())
    }
}
