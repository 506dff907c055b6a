//! Skip list (Pugh, CACM 1990): each node has links of its own number of levels, which its key
//! decides, so that a list is the same however it came to be.
//!
//! Half of the nodes have one level, a quarter two, and so on up to twelve, enough for ten thousand
//! keys. (PMDK's example stops at four, with which a search walks hundreds of nodes.)

use std::collections::BTreeMap;

use nearpm::Error;

use crate::hashmap::hash;
use crate::map::{Damage, Fault, Map, Value, read_value};
use crate::store::Transaction;

/// Most levels of a node; the head has all.
const LEVELS: usize = 12;
/// Node: key, value, then a link a level.
const VALUE: u64 = 8;
const LINKS: u64 = 16;

/// A skip list in a pool, which keeps the first `V` bytes of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkipList<const V: usize = 64> {
    head: u64,
}

fn levels_of(key: u64) -> usize {
    1 + (hash(key).trailing_ones() as usize).min(LEVELS - 1)
}

fn link(node: u64, level: usize) -> u64 {
    node + LINKS + 8 * level as u64
}

fn damage(offset: u64, what: impl Into<String>) -> Fault {
    Damage { structure: SkipList::<64>::NAME, offset, what: what.into() }.into()
}

impl<const V: usize> SkipList<V> {
    /// The last node before a key at each level, and the node of the key or 0.
    fn find(&self, tx: &mut dyn Transaction, key: u64) -> Result<([u64; LEVELS], u64), Error> {
        let mut before = [self.head; LEVELS];
        let (mut at, mut next) = (self.head, 0);
        for level in (0..LEVELS).rev() {
            loop {
                next = tx.read_u64(link(at, level))?;
                if next == 0 || tx.read_u64(next)? >= key {
                    break;
                }
                at = next;
            }
            before[level] = at;
        }
        let found = next != 0 && tx.read_u64(next)? == key;
        Ok((before, if found { next } else { 0 }))
    }
}

impl<const V: usize> Map for SkipList<V> {
    const NAME: &'static str = "skip list";

    fn create(tx: &mut dyn Transaction) -> Result<Self, Error> {
        Ok(SkipList { head: tx.alloc_zeroed(LINKS + 8 * LEVELS as u64)? })
    }

    fn at(offset: u64) -> Self {
        SkipList { head: offset }
    }

    fn offset(&self) -> u64 {
        self.head
    }

    fn get(&self, tx: &mut dyn Transaction, key: u64) -> Result<Option<Value>, Error> {
        let (_, node) = self.find(tx, key)?;
        if node == 0 {
            return Ok(None);
        }
        let value = tx.read_u64(node + VALUE)?;
        read_value(tx, value, V).map(Some)
    }

    fn insert(&self, tx: &mut dyn Transaction, key: u64, value: &Value) -> Result<bool, Error> {
        let (before, found) = self.find(tx, key)?;
        if found != 0 {
            let at = tx.read_u64(found + VALUE)?;
            tx.write(at, &value[..V])?;
            return Ok(false);
        }
        let object = tx.alloc(V as u64)?;
        tx.write(object, &value[..V])?;
        let levels = levels_of(key);
        let mut words = vec![key, object];
        for (level, &node) in before.iter().enumerate().take(levels) {
            words.push(tx.read_u64(link(node, level))?);
        }
        let node = tx.alloc(8 * words.len() as u64)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        tx.write(node, &bytes)?;
        for (level, &previous) in before.iter().enumerate().take(levels) {
            tx.write_u64(link(previous, level), node)?;
        }
        Ok(true)
    }

    fn remove(&self, tx: &mut dyn Transaction, key: u64) -> Result<bool, Error> {
        let (before, node) = self.find(tx, key)?;
        if node == 0 {
            return Ok(false);
        }
        for (level, &previous) in before.iter().enumerate().take(levels_of(key)) {
            let next = tx.read_u64(link(node, level))?;
            tx.write_u64(link(previous, level), next)?;
        }
        let value = tx.read_u64(node + VALUE)?;
        tx.free(value)?;
        tx.free(node)?;
        Ok(true)
    }

    fn contents(&self, tx: &mut dyn Transaction) -> Result<BTreeMap<u64, Value>, Fault> {
        let mut contents = BTreeMap::new();
        let mut last = self.head;
        // The last node of each level so far: the next one of that level must be its successor.
        let mut ends = [self.head; LEVELS];
        loop {
            let at = tx.read_u64(link(last, 0))?;
            if at == 0 {
                break;
            }
            let key = tx.read_u64(at)?;
            if contents.last_key_value().is_some_and(|(&largest, _)| key <= largest) {
                return Err(damage(at, "keys do not rise"));
            }
            for (level, end) in ends.iter_mut().enumerate().take(levels_of(key)) {
                if tx.read_u64(link(*end, level))? != at {
                    return Err(damage(at, format!("level {level} passes the node by")));
                }
                *end = at;
            }
            let value = tx.read_u64(at + VALUE)?;
            contents.insert(key, read_value(tx, value, V)?);
            last = at;
        }
        for (level, end) in ends.into_iter().enumerate() {
            if tx.read_u64(link(end, level))? != 0 {
                return Err(damage(end, format!("level {level} does not end")));
            }
        }
        Ok(contents)
    }
}
