//! Nodes. A node is one object: its head, a row of keys, and a row of values (in a leaf) or of
//! children (in an inner node).

use std::ops::Range;

use crate::collections::Key;
use crate::error::Error;
use crate::{Load, Persistent, Ptr, Store};

/// Keys that a node has room for. With keys and values of 8 bytes a node has 256 bytes.
pub const ROOM: u64 = 14;

/// Keys that two nodes may have together to be joined. It lies between those of two halves of a
/// split and those of a full node, far from both, so that a key which comes and goes does not split
/// and join each time.
pub const JOINED: u64 = ROOM * 3 / 4;

/// Whether a node from which a key went has so few that one beside it is looked at.
#[inline]
pub const fn is_small(count: u64) -> bool {
    count < ROOM / 2
}

/// In front of the rows.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Node {
    /// Keys in the node. An inner node has one child more.
    count: u64,
    /// So that the rows behind lie as objects do. Pools keep a number of the names of fields.
    reserved: u64,
}

/// Keys in a node.
#[inline]
pub fn count(from: &impl Load, node: Ptr<Node>) -> Result<u64, Error> {
    let count = from.get(node.count())?;
    if count <= ROOM {
        return Ok(count);
    }
    Err(super::corrupt(node))
}

/// Says how many keys a node has.
#[inline]
pub fn set_count(tx: &mut impl Store, node: Ptr<Node>, count: u64) -> Result<(), Error> {
    tx.set(node, Node { count, reserved: 0 })
}

const fn second_row<K>() -> u64 {
    (size_of::<Node>() as u64 + ROOM * size_of::<K>() as u64).next_multiple_of(16)
}

/// Bytes of a row of children.
const CHILDREN: u64 = (ROOM + 1) * 8;

/// Bytes of a node, be it a leaf or not. An inner node of a counted tree has a row of counts behind
/// its children.
pub const fn node_bytes<K: Key, V>(inner: bool) -> u64 {
    let values = ROOM * size_of::<V>() as u64;
    if K::COUNTED && inner {
        return second_row::<K>() + 2 * CHILDREN;
    }
    second_row::<K>() + if values > CHILDREN { values } else { CHILDREN }
}

/// The bytes of a node.
pub fn range<K: Key, V>(node: Ptr<Node>, inner: bool) -> Range<u64> {
    let start = Ptr::offset(node);
    start..start.saturating_add(node_bytes::<K, V>(inner))
}

/// The keys of a node.
#[inline]
pub fn key_row<K: Persistent>(node: Ptr<Node>) -> Row<K> {
    Row(Ptr::behind(node, size_of::<Node>() as u64))
}

/// The values of a leaf.
#[inline]
pub fn value_row<K: Persistent, V: Persistent>(node: Ptr<Node>) -> Row<V> {
    Row(Ptr::behind(node, second_row::<K>()))
}

/// The children of an inner node.
#[inline]
pub fn child_row<K: Persistent>(node: Ptr<Node>) -> Row<Option<Ptr<Node>>> {
    value_row::<K, _>(node)
}

/// In an inner node of a counted tree: how many entries there are below each child.
#[inline]
pub fn below_row<K: Persistent>(node: Ptr<Node>) -> Row<u64> {
    Row(Ptr::behind(node, second_row::<K>() + CHILDREN))
}

/// Values that lie one after the other.
#[derive(Clone, Copy)]
pub struct Row<T>(Ptr<T>);

impl<T: Persistent> Row<T> {
    /// The value with an index.
    #[inline]
    pub fn at(self, index: u64) -> Ptr<T> {
        Ptr::nth(self.0, index)
    }

    /// Loads the value with an index.
    #[inline]
    pub fn get(self, from: &impl Load, index: u64) -> Result<T, Error> {
        from.get(self.at(index))
    }

    /// Stores the value with an index.
    #[inline]
    pub fn set(self, tx: &mut impl Store, index: u64, value: T) -> Result<(), Error> {
        tx.set(self.at(index), value)
    }

    /// Puts a value in front of the one with an index, in a row of `count`.
    #[inline]
    pub fn insert(self, tx: &mut impl Store, index: u64, count: u64, value: T) -> Result<(), Error> {
        for at in (index..count).rev() {
            let moved = self.get(tx, at)?;
            self.set(tx, at + 1, moved)?;
        }
        self.set(tx, index, value)
    }

    /// Takes out the value with an index, in a row of `count`.
    #[inline]
    pub fn remove(self, tx: &mut impl Store, index: u64, count: u64) -> Result<(), Error> {
        for at in index + 1..count {
            let moved = self.get(tx, at)?;
            self.set(tx, at - 1, moved)?;
        }
        Ok(())
    }

    /// Copies the values from an index on, in a row of `count`, to the begin of another row.
    #[inline]
    pub fn move_tail(self, tx: &mut impl Store, index: u64, count: u64, to: Row<T>) -> Result<(), Error> {
        for at in index..count {
            let moved = self.get(tx, at)?;
            to.set(tx, at - index, moved)?;
        }
        Ok(())
    }

    /// The row that begins at an index of this one.
    #[inline]
    pub fn tail(self, index: u64) -> Row<T> {
        Row(self.at(index))
    }
}
