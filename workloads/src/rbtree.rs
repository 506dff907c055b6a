//! Red-black tree with parent pointers and a sentinel, as PMDK's example has it (Cormen, Leiserson,
//! Rivest, Stein: chapter 13).
//!
//! A node is one line, a value an object of its own. A node that changes is declared whole, so that
//! the log holds it as one range.

use std::collections::BTreeMap;

use nearpm::Error;

use crate::map::{Damage, Fault, Map, Value, read_value};
use crate::store::Transaction;

/// Fields of a node.
const KEY: u64 = 0;
const VALUE: u64 = 8;
const PARENT: u64 = 16;
const LEFT: u64 = 24;
const RIGHT: u64 = 32;
/// 1 where the node is red.
const RED: u64 = 40;
const NODE_BYTES: u64 = 64;
/// Head object: root and sentinel.
const ROOT: u64 = 0;
const SENTINEL: u64 = 8;
const HEAD_BYTES: u64 = 64;
/// No red-black tree of 2^48 nodes is deeper.
const MOST_DEPTH: usize = 96;

/// A red-black tree in a pool, which keeps the first `V` bytes of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RbTree<const V: usize = 64> {
    head: u64,
}

fn damage(offset: u64, what: impl Into<String>) -> Fault {
    Damage { structure: RbTree::<64>::NAME, offset, what: what.into() }.into()
}

/// The tree in a transaction.
struct Open<'t> {
    tx: &'t mut dyn Transaction,
    head: u64,
    nil: u64,
}

fn other(side: u64) -> u64 {
    LEFT + RIGHT - side
}

impl<'t> Open<'t> {
    fn new(tx: &'t mut dyn Transaction, head: u64) -> Result<Open<'t>, Error> {
        let nil = tx.read_u64(head + SENTINEL)?;
        Ok(Open { tx, head, nil })
    }

    fn get(&mut self, node: u64, field: u64) -> Result<u64, Error> {
        self.tx.read_u64(node + field)
    }

    fn set(&mut self, node: u64, field: u64, value: u64) -> Result<(), Error> {
        self.tx.declare(node, NODE_BYTES)?;
        self.tx.write_u64(node + field, value)
    }

    fn root(&mut self) -> Result<u64, Error> {
        self.tx.read_u64(self.head + ROOT)
    }

    fn is_red(&mut self, node: u64) -> Result<bool, Error> {
        Ok(self.get(node, RED)? == 1)
    }

    /// The side on which a node hangs at its parent.
    fn side_of(&mut self, node: u64, parent: u64) -> Result<u64, Error> {
        Ok(if self.get(parent, LEFT)? == node { LEFT } else { RIGHT })
    }

    /// The node of a key, or the sentinel; and the last node before it.
    fn find(&mut self, key: u64) -> Result<(u64, u64), Error> {
        let (mut at, mut parent) = (self.root()?, self.nil);
        while at != self.nil {
            let here = self.get(at, KEY)?;
            if here == key {
                break;
            }
            parent = at;
            at = self.get(at, if key < here { LEFT } else { RIGHT })?;
        }
        Ok((at, parent))
    }

    /// Hangs `node` where `old` hung at `parent`.
    fn hang(&mut self, parent: u64, old: u64, node: u64) -> Result<(), Error> {
        if parent == self.nil {
            return self.tx.write_u64(self.head + ROOT, node);
        }
        let side = self.side_of(old, parent)?;
        self.set(parent, side, node)
    }

    /// The child of `node` on the other side takes its place, and `node` goes down to `side`.
    fn rotate(&mut self, node: u64, side: u64) -> Result<(), Error> {
        let child = self.get(node, other(side))?;
        let inner = self.get(child, side)?;
        self.set(node, other(side), inner)?;
        if inner != self.nil {
            self.set(inner, PARENT, node)?;
        }
        let parent = self.get(node, PARENT)?;
        self.set(child, PARENT, parent)?;
        self.hang(parent, node, child)?;
        self.set(child, side, node)?;
        self.set(node, PARENT, child)
    }

    fn mend_insertion(&mut self, mut node: u64) -> Result<(), Error> {
        loop {
            let mut parent = self.get(node, PARENT)?;
            if !self.is_red(parent)? {
                break;
            }
            let mut grand = self.get(parent, PARENT)?;
            let near = self.side_of(parent, grand)?;
            let uncle = self.get(grand, other(near))?;
            if self.is_red(uncle)? {
                self.set(parent, RED, 0)?;
                self.set(uncle, RED, 0)?;
                self.set(grand, RED, 1)?;
                node = grand;
                continue;
            }
            if self.get(parent, other(near))? == node {
                node = parent;
                self.rotate(node, near)?;
                parent = self.get(node, PARENT)?;
                grand = self.get(parent, PARENT)?;
            }
            self.set(parent, RED, 0)?;
            self.set(grand, RED, 1)?;
            self.rotate(grand, other(near))?;
        }
        let root = self.root()?;
        if self.is_red(root)? { self.set(root, RED, 0) } else { Ok(()) }
    }

    /// `new`, which may be the sentinel, takes the place of `old`.
    fn transplant(&mut self, old: u64, new: u64) -> Result<(), Error> {
        let parent = self.get(old, PARENT)?;
        self.hang(parent, old, new)?;
        self.set(new, PARENT, parent)
    }

    fn unlink(&mut self, node: u64) -> Result<(), Error> {
        let (left, right) = (self.get(node, LEFT)?, self.get(node, RIGHT)?);
        let mut was_red = self.is_red(node)?;
        let replacing;
        if left == self.nil || right == self.nil {
            replacing = if left == self.nil { right } else { left };
            self.transplant(node, replacing)?;
        } else {
            let mut next = right;
            loop {
                let smaller = self.get(next, LEFT)?;
                if smaller == self.nil {
                    break;
                }
                next = smaller;
            }
            was_red = self.is_red(next)?;
            replacing = self.get(next, RIGHT)?;
            if next == right {
                self.set(replacing, PARENT, next)?;
            } else {
                self.transplant(next, replacing)?;
                self.set(next, RIGHT, right)?;
                self.set(right, PARENT, next)?;
            }
            self.transplant(node, next)?;
            self.set(next, LEFT, left)?;
            self.set(left, PARENT, next)?;
            let red = self.get(node, RED)?;
            self.set(next, RED, red)?;
        }
        if was_red { Ok(()) } else { self.mend_removal(replacing) }
    }

    fn mend_removal(&mut self, mut node: u64) -> Result<(), Error> {
        while node != self.root()? && !self.is_red(node)? {
            let parent = self.get(node, PARENT)?;
            let near = self.side_of(node, parent)?;
            let far = other(near);
            let mut sibling = self.get(parent, far)?;
            if self.is_red(sibling)? {
                self.set(sibling, RED, 0)?;
                self.set(parent, RED, 1)?;
                self.rotate(parent, near)?;
                sibling = self.get(parent, far)?;
            }
            let (inner, outer) = (self.get(sibling, near)?, self.get(sibling, far)?);
            if !self.is_red(inner)? && !self.is_red(outer)? {
                self.set(sibling, RED, 1)?;
                node = parent;
                continue;
            }
            if !self.is_red(outer)? {
                self.set(inner, RED, 0)?;
                self.set(sibling, RED, 1)?;
                self.rotate(sibling, far)?;
                sibling = inner;
            }
            let red = self.get(parent, RED)?;
            self.set(sibling, RED, red)?;
            self.set(parent, RED, 0)?;
            let outer = self.get(sibling, far)?;
            self.set(outer, RED, 0)?;
            self.rotate(parent, near)?;
            node = self.root()?;
        }
        self.set(node, RED, 0)
    }

    /// Checks what hangs below a node, whose keys must lie in `low..high`; gives the black nodes of
    /// each way down.
    fn walk(
        &mut self,
        at: (u64, u64, usize),
        range: (u64, Option<u64>),
        value_bytes: usize,
        contents: &mut BTreeMap<u64, Value>,
    ) -> Result<usize, Fault> {
        let (node, parent, depth) = at;
        if node == self.nil {
            return Ok(0);
        }
        if depth > MOST_DEPTH {
            return Err(damage(node, "the tree is deeper than it can be: a link leads back"));
        }
        let (key, red) = (self.get(node, KEY)?, self.is_red(node)?);
        if key < range.0 || range.1.is_some_and(|high| key >= high) {
            return Err(damage(node, "the key is outside of the node's range"));
        }
        if self.get(node, PARENT)? != parent {
            return Err(damage(node, "the parent is another one"));
        }
        if red && (parent == self.nil || self.is_red(parent)?) {
            return Err(damage(node, "a red node below a red one, or at the root"));
        }
        let (left, right, value) = (self.get(node, LEFT)?, self.get(node, RIGHT)?, self.get(node, VALUE)?);
        contents.insert(key, read_value(self.tx, value, value_bytes)?);
        let below = self.walk((left, node, depth + 1), (range.0, Some(key)), value_bytes, contents)?;
        let high = self.walk((right, node, depth + 1), (key.saturating_add(1), range.1), value_bytes, contents)?;
        if below != high {
            return Err(damage(node, "one side has more black nodes than the other"));
        }
        Ok(below + usize::from(!red))
    }
}

impl<const V: usize> Map for RbTree<V> {
    const NAME: &'static str = "red-black tree";

    fn create(tx: &mut dyn Transaction) -> Result<Self, Error> {
        let nil = tx.alloc_zeroed(NODE_BYTES)?;
        for link in [PARENT, LEFT, RIGHT] {
            tx.write_u64(nil + link, nil)?;
        }
        let head = tx.alloc_zeroed(HEAD_BYTES)?;
        tx.write_u64(head + ROOT, nil)?;
        tx.write_u64(head + SENTINEL, nil)?;
        Ok(RbTree { head })
    }

    fn at(offset: u64) -> Self {
        RbTree { head: offset }
    }

    fn offset(&self) -> u64 {
        self.head
    }

    fn get(&self, tx: &mut dyn Transaction, key: u64) -> Result<Option<Value>, Error> {
        let mut open = Open::new(tx, self.head)?;
        let (node, _) = open.find(key)?;
        if node == open.nil {
            return Ok(None);
        }
        let value = open.get(node, VALUE)?;
        read_value(tx, value, V).map(Some)
    }

    fn insert(&self, tx: &mut dyn Transaction, key: u64, value: &Value) -> Result<bool, Error> {
        let mut open = Open::new(tx, self.head)?;
        let (found, parent) = open.find(key)?;
        if found != open.nil {
            let at = open.get(found, VALUE)?;
            open.tx.write(at, &value[..V])?;
            return Ok(false);
        }
        let object = open.tx.alloc(V as u64)?;
        open.tx.write(object, &value[..V])?;
        let node = open.tx.alloc(NODE_BYTES)?;
        let mut bytes = [0; NODE_BYTES as usize];
        for (field, word) in
            [(KEY, key), (VALUE, object), (PARENT, parent), (LEFT, open.nil), (RIGHT, open.nil), (RED, 1)]
        {
            bytes[field as usize..][..8].copy_from_slice(&word.to_le_bytes());
        }
        open.tx.write(node, &bytes)?;
        if parent == open.nil {
            open.tx.write_u64(self.head + ROOT, node)?;
        } else {
            let side = if key < open.get(parent, KEY)? { LEFT } else { RIGHT };
            open.set(parent, side, node)?;
        }
        open.mend_insertion(node)?;
        Ok(true)
    }

    fn remove(&self, tx: &mut dyn Transaction, key: u64) -> Result<bool, Error> {
        let mut open = Open::new(tx, self.head)?;
        let (node, _) = open.find(key)?;
        if node == open.nil {
            return Ok(false);
        }
        let value = open.get(node, VALUE)?;
        open.unlink(node)?;
        tx.free(value)?;
        tx.free(node)?;
        Ok(true)
    }

    fn contents(&self, tx: &mut dyn Transaction) -> Result<BTreeMap<u64, Value>, Fault> {
        let mut open = Open::new(tx, self.head)?;
        let (root, nil) = (open.root()?, open.nil);
        let mut contents = BTreeMap::new();
        if open.is_red(nil)? {
            return Err(damage(nil, "the sentinel is red"));
        }
        open.walk((root, nil, 0), (0, None), V, &mut contents)?;
        Ok(contents)
    }
}
