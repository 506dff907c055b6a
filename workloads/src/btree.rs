//! B+tree: values hang on the leaves, which are chained for scans.
//!
//! A node is 256 bytes, four lines; a value is an object of its own, one line, or `V` bytes of it.
//! An operation reads whole nodes and writes only the words that change, so that a mechanism that
//! logs ranges logs little and one that logs pages is not favoured.

use std::collections::BTreeMap;

use nearpm::Error;

use crate::map::{Damage, Fault, Map, Value, read_value};
use crate::store::Transaction;

/// Keys of a full node.
const KEYS: usize = 14;
/// Fewest keys of a node that is not the root.
const FEWEST: usize = KEYS / 2;
const NODE_BYTES: usize = 256;
const KEYS_AT: usize = 16;
const LINKS_AT: usize = KEYS_AT + 8 * KEYS;
/// Head object: offset of the root node, and zeros.
const HEAD_BYTES: u64 = 64;

const _: () = assert!(LINKS_AT + 8 * (KEYS + 1) <= NODE_BYTES);

/// A B+tree in a pool, which keeps the first `V` bytes of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BTree<const V: usize = 64> {
    head: u64,
}

/// A node, read out. `links` of a leaf are the values of its keys; `links[i]` of an inner node
/// leads to the keys below `keys[i]`, the last link to the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    leaf: bool,
    /// Offset of the leaf to the right, 0 at the end; 0 in inner nodes.
    next: u64,
    keys: Vec<u64>,
    links: Vec<u64>,
}

impl Node {
    fn new(leaf: bool) -> Node {
        Node { leaf, next: 0, keys: Vec::new(), links: Vec::new() }
    }

    fn encode(&self) -> [u8; NODE_BYTES] {
        let mut bytes = [0; NODE_BYTES];
        bytes[0] = self.leaf as u8;
        bytes[4..8].copy_from_slice(&(self.keys.len() as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.next.to_le_bytes());
        for (i, key) in self.keys.iter().enumerate() {
            bytes[KEYS_AT + 8 * i..][..8].copy_from_slice(&key.to_le_bytes());
        }
        for (i, link) in self.links.iter().enumerate() {
            bytes[LINKS_AT + 8 * i..][..8].copy_from_slice(&link.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; NODE_BYTES]) -> Node {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let leaf = bytes[0] != 0;
        // A damaged count is bounded here and reported by `contents`.
        let count = (u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize).min(KEYS);
        Node {
            leaf,
            next: word(8),
            keys: (0..count).map(|i| word(KEYS_AT + 8 * i)).collect(),
            links: (0..count + !leaf as usize).map(|i| word(LINKS_AT + 8 * i)).collect(),
        }
    }

    fn load(tx: &mut dyn Transaction, at: u64) -> Result<Node, Error> {
        let mut bytes = [0; NODE_BYTES];
        tx.read(at, &mut bytes)?;
        Ok(Node::decode(&bytes))
    }

    /// Writes a node that was just allocated.
    fn store_new(&self, tx: &mut dyn Transaction) -> Result<u64, Error> {
        let at = tx.alloc(NODE_BYTES as u64)?;
        tx.write(at, &self.encode())?;
        Ok(at)
    }

    /// Writes the words in which this node differs from `old`, neighbours in one write. The log may
    /// hold all of them as one range.
    fn store(&self, tx: &mut dyn Transaction, at: u64, old: &Node) -> Result<(), Error> {
        let (new, old) = (self.encode(), old.encode());
        let differs = |i: usize| new[8 * i..8 * i + 8] != old[8 * i..8 * i + 8];
        let changed = |mut words: std::ops::Range<usize>| words.find(|&i| differs(i));
        let (Some(first), Some(last)) = (changed(0..NODE_BYTES / 8), (0..NODE_BYTES / 8).rev().find(|&i| differs(i)))
        else {
            return Ok(());
        };
        tx.declare(at + 8 * first as u64, 8 * (last + 1 - first) as u64)?;
        let mut i = first;
        while i <= last {
            let start = i;
            while i <= last && differs(i) {
                i += 1;
            }
            if i > start {
                tx.write(at + 8 * start as u64, &new[8 * start..8 * i])?;
            }
            i += 1;
        }
        Ok(())
    }

    /// Index of the link that leads to `key`, in an inner node.
    fn branch(&self, key: u64) -> usize {
        self.keys.partition_point(|&k| k <= key)
    }

    /// Splits a full node in two: (separator, right half).
    fn split(&mut self) -> (u64, Node) {
        let middle = self.keys.len() / 2;
        let mut right = Node::new(self.leaf);
        if self.leaf {
            right.keys = self.keys.split_off(middle);
            right.links = self.links.split_off(middle);
            (right.keys[0], right)
        } else {
            right.keys = self.keys.split_off(middle + 1);
            right.links = self.links.split_off(middle + 1);
            (self.keys.pop().expect("a full node has a middle key"), right)
        }
    }
}

/// What an insertion below a node left to do: (separator, offset of the new right neighbour).
type Split = Option<(u64, u64)>;

impl<const V: usize> BTree<V> {
    fn root(&self, tx: &mut dyn Transaction) -> Result<u64, Error> {
        tx.read_u64(self.head)
    }

    fn insert_below(tx: &mut dyn Transaction, at: u64, key: u64, value: &Value) -> Result<(bool, Split), Error> {
        let old = Node::load(tx, at)?;
        let mut node = old.clone();
        let added;
        if node.leaf {
            match node.keys.binary_search(&key) {
                Ok(i) => {
                    tx.write(node.links[i], &value[..V])?;
                    return Ok((false, None));
                }
                Err(i) => {
                    let object = tx.alloc(V as u64)?;
                    tx.write(object, &value[..V])?;
                    node.keys.insert(i, key);
                    node.links.insert(i, object);
                    added = true;
                }
            }
        } else {
            let i = node.branch(key);
            let (new, split) = Self::insert_below(tx, node.links[i], key, value)?;
            let Some((separator, right)) = split else { return Ok((new, None)) };
            node.keys.insert(i, separator);
            node.links.insert(i + 1, right);
            added = new;
        }
        if node.keys.len() <= KEYS {
            node.store(tx, at, &old)?;
            return Ok((added, None));
        }
        let (separator, mut right) = node.split();
        right.next = node.next;
        let right = right.store_new(tx)?;
        if node.leaf {
            node.next = right;
        }
        node.store(tx, at, &old)?;
        Ok((added, Some((separator, right))))
    }

    /// Removes `key` below the node at `at`: (it was there, the node has too few keys now).
    fn remove_below(tx: &mut dyn Transaction, at: u64, key: u64) -> Result<(bool, bool), Error> {
        let old = Node::load(tx, at)?;
        let mut node = old.clone();
        if node.leaf {
            let Ok(i) = node.keys.binary_search(&key) else { return Ok((false, false)) };
            tx.free(node.links[i])?;
            node.keys.remove(i);
            node.links.remove(i);
        } else {
            let i = node.branch(key);
            let (found, short) = Self::remove_below(tx, node.links[i], key)?;
            if !short {
                return Ok((found, false));
            }
            Self::refill(tx, &mut node, i)?;
        }
        node.store(tx, at, &old)?;
        Ok((true, node.keys.len() < FEWEST))
    }

    /// Mends child `i` of `parent`, which has one key too few, from a neighbour: borrows a key or
    /// merges.
    fn refill(tx: &mut dyn Transaction, parent: &mut Node, i: usize) -> Result<(), Error> {
        // The pair of neighbours, the short one among them.
        let l = if i > 0 { i - 1 } else { i };
        let (left_at, right_at) = (parent.links[l], parent.links[l + 1]);
        let (old_left, old_right) = (Node::load(tx, left_at)?, Node::load(tx, right_at)?);
        let (mut left, mut right) = (old_left.clone(), old_right.clone());
        let pull_down = usize::from(!left.leaf);
        if left.keys.len() + right.keys.len() + pull_down <= KEYS {
            if !left.leaf {
                left.keys.push(parent.keys[l]);
            }
            left.keys.append(&mut right.keys);
            left.links.append(&mut right.links);
            left.next = right.next;
            parent.keys.remove(l);
            parent.links.remove(l + 1);
            left.store(tx, left_at, &old_left)?;
            return tx.free(right_at);
        }
        if left.keys.len() < right.keys.len() {
            left.links.push(right.links.remove(0));
            let key = right.keys.remove(0);
            left.keys.push(if left.leaf { key } else { parent.keys[l] });
            parent.keys[l] = if left.leaf { right.keys[0] } else { key };
        } else {
            right.links.insert(0, left.links.pop().expect("the fuller neighbour has links"));
            let key = left.keys.pop().expect("the fuller neighbour has keys");
            right.keys.insert(0, if left.leaf { key } else { parent.keys[l] });
            parent.keys[l] = key;
        }
        left.store(tx, left_at, &old_left)?;
        right.store(tx, right_at, &old_right)
    }

    /// Keys and values from `from` upwards, at most `limit` of them.
    pub fn scan(&self, tx: &mut dyn Transaction, from: u64, limit: usize) -> Result<Vec<(u64, Value)>, Error> {
        let root = self.root(tx)?;
        let mut node = Node::load(tx, root)?;
        while !node.leaf {
            node = Node::load(tx, node.links[node.branch(from)])?;
        }
        let mut found = Vec::new();
        loop {
            for (&key, &link) in node.keys.iter().zip(&node.links).filter(|&(&k, _)| k >= from) {
                if found.len() == limit {
                    return Ok(found);
                }
                let value = read_value(tx, link, V)?;
                found.push((key, value));
            }
            if node.next == 0 {
                return Ok(found);
            }
            node = Node::load(tx, node.next)?;
        }
    }
}

fn damage(offset: u64, what: impl Into<String>) -> Fault {
    Damage { structure: BTree::<64>::NAME, offset, what: what.into() }.into()
}

/// State of a walk over the whole tree.
struct Walk {
    /// Bytes of a value that are kept.
    value_bytes: usize,
    contents: BTreeMap<u64, Value>,
    leaf_depth: Option<usize>,
    /// The leaf to which the chain leads next.
    chain: Option<u64>,
}

impl Walk {
    /// Walks the node at `at`, whose keys must lie in `low..high`.
    fn node(
        &mut self,
        tx: &mut dyn Transaction,
        at: u64,
        depth: usize,
        low: u64,
        high: Option<u64>,
    ) -> Result<(), Fault> {
        if depth > 64 {
            return Err(damage(at, "the tree is deeper than it can be: a link leads back"));
        }
        let node = Node::load(tx, at)?;
        if depth > 0 && node.keys.len() < FEWEST {
            return Err(damage(at, format!("{} keys, at least {FEWEST} expected", node.keys.len())));
        }
        let in_range = |k: &u64| *k >= low && high.is_none_or(|h| *k < h);
        if !node.keys.is_sorted_by(|a, b| a < b) || !node.keys.iter().all(in_range) {
            return Err(damage(at, "keys are not sorted or outside the node's range"));
        }
        if !node.leaf {
            for (i, &link) in node.links.iter().enumerate() {
                let low = if i == 0 { low } else { node.keys[i - 1] };
                self.node(tx, link, depth + 1, low, node.keys.get(i).copied().or(high))?;
            }
            return Ok(());
        }
        if *self.leaf_depth.get_or_insert(depth) != depth {
            return Err(damage(at, "leaves lie at different depths"));
        }
        if self.chain.is_some_and(|expected| expected != at) {
            return Err(damage(at, "the chain of leaves leads elsewhere"));
        }
        self.chain = Some(node.next);
        for (&key, &link) in node.keys.iter().zip(&node.links) {
            let value = read_value(tx, link, self.value_bytes)?;
            self.contents.insert(key, value);
        }
        Ok(())
    }
}

impl<const V: usize> Map for BTree<V> {
    const NAME: &'static str = "B+tree";

    fn create(tx: &mut dyn Transaction) -> Result<Self, Error> {
        let root = Node::new(true).store_new(tx)?;
        let head = tx.alloc_zeroed(HEAD_BYTES)?;
        tx.write_u64(head, root)?;
        Ok(BTree { head })
    }

    fn at(offset: u64) -> Self {
        BTree { head: offset }
    }

    fn offset(&self) -> u64 {
        self.head
    }

    fn get(&self, tx: &mut dyn Transaction, key: u64) -> Result<Option<Value>, Error> {
        let root = self.root(tx)?;
        let mut node = Node::load(tx, root)?;
        while !node.leaf {
            node = Node::load(tx, node.links[node.branch(key)])?;
        }
        let Ok(i) = node.keys.binary_search(&key) else { return Ok(None) };
        let value = read_value(tx, node.links[i], V)?;
        Ok(Some(value))
    }

    fn insert(&self, tx: &mut dyn Transaction, key: u64, value: &Value) -> Result<bool, Error> {
        let root = self.root(tx)?;
        let (added, split) = Self::insert_below(tx, root, key, value)?;
        if let Some((separator, right)) = split {
            let top = Node { leaf: false, next: 0, keys: vec![separator], links: vec![root, right] };
            let top = top.store_new(tx)?;
            tx.write_u64(self.head, top)?;
        }
        Ok(added)
    }

    fn remove(&self, tx: &mut dyn Transaction, key: u64) -> Result<bool, Error> {
        let root = self.root(tx)?;
        let (found, _) = Self::remove_below(tx, root, key)?;
        let node = Node::load(tx, root)?;
        if !node.leaf && node.keys.is_empty() {
            tx.write_u64(self.head, node.links[0])?;
            tx.free(root)?;
        }
        Ok(found)
    }

    fn contents(&self, tx: &mut dyn Transaction) -> Result<BTreeMap<u64, Value>, Fault> {
        let root = self.root(tx)?;
        let mut walk = Walk { value_bytes: V, contents: BTreeMap::new(), leaf_depth: None, chain: None };
        walk.node(tx, root, 0, 0, None)?;
        match walk.chain {
            Some(0) => Ok(walk.contents),
            _ => Err(damage(root, "the chain of leaves does not end")),
        }
    }
}
