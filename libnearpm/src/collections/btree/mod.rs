//! Values by keys, in order: a B+tree (Comer, Computing Surveys 1979) whose nodes are joined with
//! one beside them when both fit well into one.
//!
//! | file | holds |
//! |---|---|
//! | `node.rs` | nodes, and rows of values in them |
//! | `cursor.rs` | gaps between entries, which move in both directions |
//! | `change.rs` | such gaps beside which entries come and go |
//! | `iterate.rs` | iteration, in both directions |
//! | `join.rs` | removing nodes: of empty ones, and of one of two that are joined |
//! | `ranked.rs` | trees that know how many entries lie below each child |

mod change;
mod cursor;
mod iterate;
mod join;
mod node;
mod ranked;

use std::marker::PhantomData;

pub use change::CursorMut;
pub use cursor::Cursor;
pub use iterate::{Backwards, Range};
use node::{Node, ROOM, Row, below_row, child_row, key_row, node_bytes, value_row};
pub use ranked::Ranked;

use super::Key;
use super::entry::Places;
use crate::error::Error;
use crate::typed::{later, pointer, whole};
use crate::{Load, Persistent, Ptr, Store};

/// Levels that a tree can have at most: a node above the leaves has two children at least when it
/// is made, and half its children but at the ends.
const LEVELS: usize = 24;

/// An ordered map; see [`collections`](crate::collections). Its methods are those of
/// `Ptr<PBTreeMap<K, V>>`; keys are looked up by a reference, text by a `&str`.
///
/// ```
/// use nearpm::prelude::*;
///
/// fn sum_of(from: &impl Load, sales: Ptr<PBTreeMap<u32, u64>>, year: u32) -> Result<u64, Error> {
///     let mut sum = 0;
///     for sale in sales.range(from, year * 100..(year + 1) * 100)? {
///         sum += sale?.1;
///     }
///     Ok(sum)
/// }
/// ```
///
/// `get`, `slot`, `contains_key`, `insert`, `remove`, `first`, `last` and the begin of `range` take
/// O(log n), `len` and `is_empty` O(1), iteration O(1) an entry on average. An insertion changes
/// one node, and at each level that splits one more; a node has 14 keys. A removal changes one
/// node, and at each level where two are joined two more: where it leaves a node with less than
/// half of its keys, that is joined with one beside it under the same parent, if both together have
/// 10 keys at most.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
#[persistent(release = release)]
pub struct PBTreeMap<K: Key, V: Persistent> {
    pub(super) length: u64,
    /// Levels of nodes; the last one is that of the leaves.
    height: u64,
    top: Option<Ptr<Node>>,
    keys: PhantomData<K>,
    values: PhantomData<V>,
}

/// The way to a leaf: nodes, each with the index at which it goes on.
struct Path {
    steps: [(Ptr<Node>, u64); LEVELS],
    length: usize,
}

impl Path {
    fn pop(&mut self) -> Option<(Ptr<Node>, u64)> {
        self.length = self.length.checked_sub(1)?;
        Some(self.steps[self.length])
    }

    /// Whether it leads to the first node of its level.
    fn is_first(&self) -> bool {
        self.steps[..self.length].iter().all(|&(_, at)| at == 0)
    }

    fn last_mut(&mut self) -> Option<&mut (Ptr<Node>, u64)> {
        self.steps[..self.length].last_mut()
    }
}

fn corrupt(node: Ptr<Node>) -> Error {
    Error::Corrupt { what: "a node of a tree contradicts itself", offset: Ptr::offset(node) }
}

impl<K: Key, V: Persistent> PBTreeMap<K, V> {
    const EMPTY: PBTreeMap<K, V> =
        PBTreeMap { length: 0, height: 0, top: None, keys: PhantomData, values: PhantomData };

    /// Looks a key up in a node: whether it is there, and how many keys of the node lie in front of
    /// it.
    #[inline]
    fn position(from: &impl Load, node: Ptr<Node>, count: u64, query: &K::Query) -> Result<(u64, bool), Error> {
        let keys = key_row::<K>(node);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            match keys.get(from, middle)?.compare(from, query)? {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok((middle, true)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// The child of an inner node under which a key belongs: a separator is the least key behind
    /// it.
    #[inline]
    fn child(from: &impl Load, node: Ptr<Node>, query: &K::Query) -> Result<(u64, Ptr<Node>), Error> {
        let (at, found) = Self::position(from, node, node::count(from, node)?, query)?;
        let at = at + u64::from(found);
        Ok((at, child_row::<K>(node).get(from, at)?.ok_or_else(|| corrupt(node))?))
    }

    /// The node at the top, of a tree that has no more levels than one can have.
    #[inline]
    fn checked_top(&self) -> Result<Option<Ptr<Node>>, Error> {
        match self.top {
            Some(top) if self.height > LEVELS as u64 => Err(corrupt(top)),
            top => Ok(top),
        }
    }

    /// The leaf where a key belongs.
    #[inline]
    fn leaf(&self, from: &impl Load, query: &K::Query) -> Result<Option<Ptr<Node>>, Error> {
        let Some(mut node) = self.checked_top()? else { return Ok(None) };
        for _ in 1..self.height {
            node = Self::child(from, node, query)?.1;
        }
        Ok(Some(node))
    }

    /// The way to the leaf where a key belongs, from the top on.
    fn path(&self, from: &impl Load, top: Ptr<Node>, query: &K::Query) -> Result<(Path, Ptr<Node>), Error> {
        let mut path = Path { steps: [(top, 0); LEVELS], length: 0 };
        let mut node = top;
        for _ in 1..self.height {
            let (at, child) = Self::child(from, node, query)?;
            path.steps[path.length] = (node, at);
            path.length += 1;
            node = child;
        }
        Ok((path, node))
    }

    /// Frees what is left of a subtree of so many levels: of the node at its top the keys, and
    /// values or children, from `at` on.
    fn free_subtree<S: Store>(tx: &mut S, [top, levels, at, _]: [u64; 4]) -> Result<(), Error> {
        let node: Ptr<Node> = pointer(top)?;
        let count = node::count(tx, node)?;
        if at == 0 {
            tx.free(node)?;
        }
        let owns = K::OWNS || V::OWNS || levels > 1;
        if at > count || !owns {
            return Ok(());
        }
        later(tx, Self::free_subtree::<S>, [top, levels, at + 1, 0])?;
        if levels > 1 {
            let child = child_row::<K>(node).get(tx, at)?.ok_or_else(|| corrupt(node))?;
            later(tx, Self::free_subtree::<S>, [Ptr::offset(child), levels - 1, 0, 0])?;
        } else if at < count && V::OWNS {
            value_row::<K, V>(node).get(tx, at)?.release(tx)?;
        }
        if at < count && K::OWNS { key_row::<K>(node).get(tx, at)?.release(tx) } else { Ok(()) }
    }

    fn new_node(tx: &mut impl Store, inner: bool) -> Result<Ptr<Node>, Error> {
        pointer(tx.alloc_bytes(node_bytes::<K, V>(inner))?)
    }

    /// Opens a gap in front of an index in rows of a node, puts key and value there, and counts
    /// them.
    fn put<T: Persistent>(
        tx: &mut impl Store,
        node: Ptr<Node>,
        at: u64,
        entry: (K, T),
        row: (Row<T>, u64),
    ) -> Result<(), Error> {
        let count = node::count(tx, node)?;
        let (row, shift) = row;
        tx.declare(node::range::<K, V>(node, shift > 0))?;
        key_row::<K>(node).insert(tx, at, count, entry.0)?;
        row.insert(tx, at + shift, count + shift, entry.1)?;
        node::set_count(tx, node, count + 1)
    }

    /// How many keys stay in a full node, at the end of a path, when one more comes at an index:
    /// half of them, but for one behind all others of the node or in front of all others of the
    /// tree. Keys that rise are never followed by one in front, and keys that fall by none behind,
    /// so that the room in the other half would stay free. (In front of a node in the middle no key
    /// comes: it would go to the end of the one before.) An inner node gives one key up besides.
    fn kept(at: u64, path: &Path, inner: bool) -> u64 {
        match at {
            0 if path.is_first() => 1 - u64::from(inner),
            ROOM => ROOM - 1,
            _ => ROOM / 2,
        }
    }

    /// Moves the entries of a full leaf behind the first `kept` to a new one. Gives the new one and
    /// its least key.
    fn split_leaf(tx: &mut impl Store, full: Ptr<Node>, kept: u64) -> Result<(K, Ptr<Node>), Error> {
        let upper = Self::new_node(tx, false)?;
        key_row::<K>(full).move_tail(tx, kept, ROOM, key_row(upper))?;
        value_row::<K, V>(full).move_tail(tx, kept, ROOM, value_row::<K, V>(upper))?;
        node::set_count(tx, upper, ROOM - kept)?;
        node::set_count(tx, full, kept)?;
        let separator = key_row::<K>(upper).get(tx, 0)?.duplicate(tx)?;
        Ok((separator, upper))
    }

    /// Moves what is behind the separator at an index of a full inner node to a new one. Gives the
    /// new one and that separator, which is in none of the two.
    fn split_inner(tx: &mut impl Store, full: Ptr<Node>, kept: u64) -> Result<(K, Ptr<Node>), Error> {
        let upper = Self::new_node(tx, true)?;
        key_row::<K>(full).move_tail(tx, kept + 1, ROOM, key_row(upper))?;
        child_row::<K>(full).move_tail(tx, kept + 1, ROOM + 1, child_row::<K>(upper))?;
        if K::COUNTED {
            below_row::<K>(full).move_tail(tx, kept + 1, ROOM + 1, below_row::<K>(upper))?;
        }
        node::set_count(tx, upper, ROOM - kept - 1)?;
        node::set_count(tx, full, kept)?;
        Ok((key_row::<K>(full).get(tx, kept)?, upper))
    }
}

/// Frees what a map holds.
fn release<K: Key, V: Persistent, S: Store>(map: PBTreeMap<K, V>, tx: &mut S) -> Result<(), Error> {
    let Some(top) = map.checked_top()? else { return Ok(()) };
    later(tx, PBTreeMap::<K, V>::free_subtree::<S>, [Ptr::offset(top), map.height, 0, 0])
}

impl<K: Key, V: Persistent> Ptr<PBTreeMap<K, V>> {
    /// How many entries there are.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        from.get(self.length())
    }

    /// Whether there are none.
    pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
        Ok(self.len(from)? == 0)
    }

    /// Where the value of a key lies, until the map changes its keys.
    pub fn slot(self, from: &impl Load, key: &K::Query) -> Result<Option<Ptr<V>>, Error> {
        let Some(leaf) = from.get(self)?.leaf(from, key)? else { return Ok(None) };
        let (at, found) = PBTreeMap::<K, V>::position(from, leaf, node::count(from, leaf)?, key)?;
        Ok(found.then(|| value_row::<K, V>(leaf).at(at)))
    }

    /// The value of a key.
    pub fn get(self, from: &impl Load, key: &K::Query) -> Result<Option<V>, Error> {
        self.slot(from, key)?.map(|slot| from.get(slot)).transpose()
    }

    /// Whether the key is there.
    pub fn contains_key(self, from: &impl Load, key: &K::Query) -> Result<bool, Error> {
        Ok(self.slot(from, key)?.is_some())
    }

    /// Makes the first leaf, and gives the place of the first entry.
    fn begin(self, tx: &mut impl Store) -> Result<Place<K, V>, Error> {
        let leaf = PBTreeMap::<K, V>::new_node(tx, false)?;
        node::set_count(tx, leaf, 0)?;
        let map = PBTreeMap { top: Some(leaf), height: 1, ..PBTreeMap::EMPTY };
        tx.set(self, map)?;
        Ok(Place { map, path: Path { steps: [(leaf, 0); LEVELS], length: 0 }, leaf, count: 0, at: 0 })
    }

    /// Hangs a node that a split has made beside the one that was split, at the end of a path.
    fn insert_above(
        self,
        tx: &mut impl Store,
        map: PBTreeMap<K, V>,
        mut path: Path,
        mut separator: K,
        mut upper: Ptr<Node>,
    ) -> Result<(), Error> {
        let mut levels = 1;
        while let Some((node, mut at)) = path.pop() {
            let (mut to, full) = (node, node::count(tx, node)? >= ROOM);
            let kept = PBTreeMap::<K, V>::kept(at, &path, true);
            let above = full.then(|| PBTreeMap::<K, V>::split_inner(tx, node, kept)).transpose()?;
            if let Some((_, beside)) = above
                && at > kept
            {
                (to, at) = (beside, at - kept - 1);
            }
            let child = (separator, Some(upper));
            PBTreeMap::<K, V>::put(tx, to, at, child, (child_row::<K>(to), 1))?;
            if K::COUNTED {
                PBTreeMap::<K, V>::count_split(tx, to, at, upper, levels)?;
            }
            levels += 1;
            match above {
                None => return Ok(()),
                Some(above) => (separator, upper) = above,
            }
        }
        let top = PBTreeMap::<K, V>::new_node(tx, true)?;
        node::set_count(tx, top, 1)?;
        key_row::<K>(top).set(tx, 0, separator)?;
        child_row::<K>(top).set(tx, 0, map.top)?;
        child_row::<K>(top).set(tx, 1, Some(upper))?;
        if K::COUNTED {
            PBTreeMap::<K, V>::count_split(tx, top, 0, upper, levels)?;
        }
        tx.set(self.top(), Some(top))?;
        tx.set(self.height(), map.height + 1)
    }

    /// Frees everything that the map holds.
    pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
        whole(tx, |tx| {
            tx.get(self)?.release(tx)?;
            tx.set(self, PBTreeMap::EMPTY)
        })
    }
}

/// An index of a leaf, where an entry is or belongs, and the way there.
pub struct Place<K: Key, V: Persistent> {
    map: PBTreeMap<K, V>,
    path: Path,
    leaf: Ptr<Node>,
    /// Keys in the leaf.
    count: u64,
    at: u64,
}

impl<K: Key, V: Persistent> Places for PBTreeMap<K, V> {
    type Key = K;
    type Value = V;
    type Found = Place<K, V>;
    /// None in a map that has no nodes yet.
    type Missing = Option<Place<K, V>>;

    #[inline]
    fn look_up(map: Ptr<Self>, from: &impl Load, key: &K::Query) -> Result<Result<Self::Found, Self::Missing>, Error> {
        let map = from.get(map)?;
        let Some(top) = map.checked_top()? else { return Ok(Err(None)) };
        let (path, leaf) = map.path(from, top, key)?;
        let count = node::count(from, leaf)?;
        let (at, found) = Self::position(from, leaf, count, key)?;
        let place = Place { map, path, leaf, count, at };
        Ok(if found { Ok(place) } else { Err(Some(place)) })
    }

    #[inline]
    fn slot(found: &Place<K, V>) -> Ptr<V> {
        value_row::<K, V>(found.leaf).at(found.at)
    }

    #[inline]
    fn fill(
        tree: Ptr<Self>,
        tx: &mut impl Store,
        key: &K::Query,
        missing: Option<Place<K, V>>,
        value: V,
    ) -> Result<Ptr<V>, Error> {
        let Place { map, path, leaf, count, mut at } = missing.map_or_else(|| tree.begin(tx), Ok)?;
        let (mut to, made) = (leaf, K::make(tx, key)?);
        if count >= ROOM {
            let kept = Self::kept(at, &path, false);
            let (separator, upper) = Self::split_leaf(tx, leaf, kept)?;
            if at > kept {
                (to, at) = (upper, at - kept);
            }
            tree.insert_above(tx, map, path, separator, upper)?;
        }
        let values = value_row::<K, V>(to);
        Self::put(tx, to, at, (made, value), (values, 0))?;
        tx.set(tree.length(), map.length.saturating_add(1))?;
        if K::COUNTED {
            tree.count_along(tx, key, 1)?;
        }
        Ok(values.at(at))
    }

    #[inline]
    fn take(tree: Ptr<Self>, tx: &mut impl Store, key: &K::Query, found: Place<K, V>) -> Result<V, Error> {
        let Place { map, path, leaf, count, at } = found;
        if K::COUNTED {
            tree.count_along(tx, key, -1)?;
        }
        let value = value_row::<K, V>(leaf).get(tx, at)?;
        if K::OWNS {
            key_row::<K>(leaf).get(tx, at)?.release(tx)?;
        }
        tx.set(tree.length(), map.length.saturating_sub(1))?;
        if count > 1 {
            tx.declare(node::range::<K, V>(leaf, false))?;
            key_row::<K>(leaf).remove(tx, at, count)?;
            value_row::<K, V>(leaf).remove(tx, at, count)?;
            node::set_count(tx, leaf, count - 1)?;
            if node::is_small(count - 1) {
                tree.join_leaf(tx, map, path, (leaf, count - 1))?;
            }
        } else {
            tx.free(leaf)?;
            tree.remove_above(tx, map, path, true)?;
        }
        Ok(value)
    }
}

impl<K: Key, V: Persistent> PBTreeMap<K, V> {
    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        Self::EMPTY
    }
}

impl<K: Key, V: Persistent> Default for PBTreeMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
