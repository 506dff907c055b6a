//! A sorted sequence that takes insertions anywhere.
//!
//! Sorted blocks, of which all but a lonely one hold something. Most transactions touch few ranges,
//! neighbours of the last ones: these lie in one vector, which keeps its memory when it is cleared.
//! One that moves a whole hash table has tens of thousands in any order.

use std::collections::TryReserveError;

/// Most items of a block. An insertion moves at most so many.
const BLOCK: usize = 128;

/// A position in the blocks: block, index.
pub(crate) type Position = (usize, usize);

/// The items, rising from block to block.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<T> {
    blocks: Vec<Vec<T>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks { blocks: vec![Vec::new()] }
    }
}

impl<T: Copy> Blocks<T> {
    pub fn clear(&mut self) {
        self.blocks.truncate(1);
        self.blocks[0].clear();
    }

    /// Items.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks[0].is_empty()
    }

    /// The first and the last item.
    pub fn ends(&self) -> Option<(T, T)> {
        let last = self.blocks.last().and_then(|block| block.last());
        self.blocks[0].first().copied().zip(last.copied())
    }

    /// The last item, to be changed in place.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.blocks.last_mut()?.last_mut()
    }

    /// Adds an item behind all others.
    #[inline]
    pub fn push(&mut self, item: T) {
        let last = self.blocks.len() - 1;
        let items = &mut self.blocks[last];
        items.push(item);
        if items.len() > BLOCK {
            self.split(last);
        }
    }

    /// The first position whose item is not `before` what is looked for.
    #[inline]
    pub fn seek(&self, before: impl Fn(&T) -> bool) -> Position {
        let all_before = |block: &Vec<T>| block.last().is_some_and(&before);
        let block = if self.blocks.len() == 1 { 0 } else { self.blocks.partition_point(all_before) };
        let index = self.blocks.get(block).map_or(0, |items| {
            // What comes next is mostly behind everything.
            if all_before(items) { items.len() } else { items.partition_point(&before) }
        });
        (block, index)
    }

    /// The item at a position; `None` behind the last one.
    #[inline]
    pub fn get(&self, (block, index): Position) -> Option<&T> {
        self.blocks.get(block)?.get(index)
    }

    /// The item in front of a position; `None` at the first one.
    #[inline]
    pub fn before(&self, (block, index): Position) -> Option<&T> {
        match index.checked_sub(1) {
            Some(before) => self.blocks.get(block)?.get(before),
            None => self.blocks.get(block.checked_sub(1)?)?.last(),
        }
    }

    /// The items from a position on.
    #[inline]
    pub fn from(&self, (block, index): Position) -> Items<'_, T> {
        match self.blocks.split_at_checked(block + 1) {
            Some((until, more)) => Items { items: until[block][index..].iter(), more: more.iter() },
            None => Items { items: [].iter(), more: [].iter() },
        }
    }

    /// Puts an item at a position that [`Blocks::seek`] gave.
    #[inline]
    pub fn put(&mut self, (block, index): Position, item: T) {
        // Behind everything: into the last block.
        let last = self.blocks.len() - 1;
        let (block, index) = if block > last { (last, self.blocks[last].len()) } else { (block, index) };
        let items = &mut self.blocks[block];
        items.insert(index, item);
        if items.len() > BLOCK {
            self.split(block);
        }
    }

    #[cold]
    fn split(&mut self, block: usize) {
        let upper = self.blocks[block].split_off(BLOCK / 2);
        self.blocks.insert(block + 1, upper);
    }

    /// Makes room for one more block, so that [`Blocks::put`] needs no more memory than one of
    /// that.
    #[inline]
    pub fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        self.blocks.try_reserve(1)
    }

    /// Changes the item at a position.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&mut self, (block, index): Position, item: T) {
        self.blocks[block][index] = item;
    }

    /// Takes the item at a position away.
    ///
    /// # Panics
    /// If there is none.
    pub fn take(&mut self, (block, index): Position) -> T {
        let item = self.blocks[block].remove(index);
        if self.blocks[block].is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(block);
        }
        item
    }

    /// The position behind one that holds an item.
    pub fn next(&self, (block, index): Position) -> Position {
        if index + 1 < self.blocks[block].len() { (block, index + 1) } else { (block + 1, 0) }
    }
}

/// Items from a position on.
pub(crate) struct Items<'a, T> {
    items: std::slice::Iter<'a, T>,
    more: std::slice::Iter<'a, Vec<T>>,
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        Items { items: self.items.clone(), more: self.more.clone() }
    }
}

impl<T: Copy> Iterator for Items<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(*item);
            }
            self.items = self.more.next()?.iter();
        }
    }
}
