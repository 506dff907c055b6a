//! The B-tree of `evaluation/pmdk/programs/btree.c`, over typed objects: order 8, full nodes are
//! split on the way down.

use nearpm::prelude::*;

use crate::Map;

const ORDER: usize = 8;
const MEDIAN: usize = ORDER / 2 - 1;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Item {
    key: u64,
    value: Option<Ptr<u64>>,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Node {
    count: u64,
    items: [Item; ORDER - 1],
    children: [Option<Ptr<Node>>; ORDER],
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct BTree {
    top: Option<Ptr<Node>>,
}

const NO_ITEM: Item = Item { key: 0, value: None };
const EMPTY: Node = Node { count: 0, items: [NO_ITEM; ORDER - 1], children: [None; ORDER] };

/// Where the key is or belongs among a node's items.
fn position(from: &impl Load, node: Ptr<Node>, key: u64) -> Result<usize, Error> {
    let count = from.get(node.count())? as usize;
    let mut at = 0;
    while at < count && from.get(node.items().at(at).key())? < key {
        at += 1;
    }
    Ok(at)
}

fn child(from: &impl Load, node: Ptr<Node>, at: usize) -> Result<Option<Ptr<Node>>, Error> {
    from.get(node.children().at(at))
}

fn is_full(from: &impl Load, node: Ptr<Node>) -> Result<bool, Error> {
    Ok(from.get(node.count())? as usize == ORDER - 1)
}

impl Node {
    /// Opens a gap among the items and puts one there.
    fn put(&mut self, at: usize, item: Item) {
        let count = self.count as usize;
        self.items.copy_within(at..count, at + 1);
        self.items[at] = item;
        self.count += 1;
    }
}

/// Moves the upper half of a full node into a new one; the median belongs to neither.
fn split(tx: &mut impl Store, full: Ptr<Node>) -> Result<(Item, Ptr<Node>), Error> {
    let mut from = tx.get(full)?;
    let mut upper = EMPTY;
    let count = ORDER - 2 - MEDIAN;
    upper.count = count as u64;
    upper.items[..count].copy_from_slice(&from.items[MEDIAN + 1..]);
    upper.children[..=count].copy_from_slice(&from.children[MEDIAN + 1..]);
    let median = from.items[MEDIAN];
    from.items[MEDIAN..].fill(NO_ITEM);
    from.children[MEDIAN + 1..].fill(None);
    from.count = MEDIAN as u64;
    tx.set(full, from)?;
    Ok((median, tx.alloc(upper)?))
}

/// Splits the full child at a place of a node that is not full.
fn split_child(tx: &mut impl Store, parent: Ptr<Node>, at: usize, full: Ptr<Node>) -> Result<(), Error> {
    let (median, upper) = split(tx, full)?;
    let mut node = tx.get(parent)?;
    let count = node.count as usize;
    node.children.copy_within(at + 1..=count, at + 2);
    node.children[at + 1] = Some(upper);
    node.put(at, median);
    tx.set(parent, node)
}

/// A top that is not full: the tree grows by a level if need be.
fn top(tx: &mut impl Store, map: Ptr<BTree>) -> Result<Ptr<Node>, Error> {
    let top = match tx.get(map.top())? {
        Some(top) if !is_full(tx, top)? => return Ok(top),
        Some(old) => {
            let (median, upper) = split(tx, old)?;
            let mut top = Node { count: 1, ..EMPTY };
            top.items[0] = median;
            top.children[..2].copy_from_slice(&[Some(old), Some(upper)]);
            tx.alloc(top)?
        }
        None => tx.alloc(EMPTY)?,
    };
    tx.set(map.top(), Some(top))?;
    Ok(top)
}

impl Map for BTree {
    fn insert(tx: &mut impl Store, map: Ptr<BTree>, key: u64, value: Ptr<u64>) -> Result<(), Error> {
        let mut at = top(tx, map)?;
        while child(tx, at, 0)?.is_some() {
            let mut index = position(tx, at, key)?;
            if let Some(full) = child(tx, at, index)?
                && is_full(tx, full)?
            {
                split_child(tx, at, index, full)?;
                index += usize::from(tx.get(at.items().at(index).key())? < key);
            }
            let Some(next) = child(tx, at, index)? else { break };
            at = next;
        }
        let index = position(tx, at, key)?;
        let mut node = tx.get(at)?;
        node.put(index, Item { key, value: Some(value) });
        tx.set(at, node)
    }

    fn find(from: &impl Load, map: Ptr<BTree>, key: u64) -> Result<Option<u64>, Error> {
        let mut at = from.get(map.top())?;
        while let Some(node) = at {
            let index = position(from, node, key)?;
            if index < from.get(node.count())? as usize && from.get(node.items().at(index).key())? == key {
                return from.get(node.items().at(index).value())?.map(|value| from.get(value)).transpose();
            }
            at = child(from, node, index)?;
        }
        Ok(None)
    }
}
