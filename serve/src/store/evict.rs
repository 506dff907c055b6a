//! Which keys go when there is no room.
//!
//! A pool has places of certain sizes, and a place that is freed serves what has its size. So a key
//! that was not used for long goes whose place is large enough for what is to be stored, and that
//! is given the place. It is one of those whose hashes are next to that of the new key: they lie in
//! the same node of the tree, in which there is room then. When this does not help, all keys go
//! that have their places in one chunk of the heap, which serves any size then.

use std::collections::HashMap;
use std::ops::Range;

use nearpm::prelude::*;

use super::item::HEAD;
use super::{Content, Keys, Name, expired};

/// Keys that are looked at to find one that was not used for long, as Redis does it.
const SAMPLES: usize = 5;
/// Keys that are looked at to find one whose place is large enough.
const MOST_SAMPLES: usize = 64;
/// Keys that may go one by one; then chunks are made free.
const ALONE: u32 = 6;
/// The search for room for one request.
#[derive(Debug, Default)]
pub struct Search {
    /// Bytes of the place that was not found; 0 if it is not a place that is missed.
    pub bytes: u64,
    /// The hash of the key that is to be stored.
    pub near: u64,
    /// Some chunk of the heap, in front of all items.
    pub chunk: Range<u64>,
    /// Keys that have gone.
    pub evicted: u32,
    /// The request removes all keys, and there is not even room for the record of that: some go
    /// before the others.
    pub empties: bool,
    /// Bytes of the places of the key that went last: of its item, and of its name.
    pub places: [u64; 2],
    /// Keys that are to go together.
    together: Vec<Name>,
    /// Chunks that were made free, or were to be.
    chunks: Vec<u64>,
}

impl Search {
    /// For a key that is like any other, in a pool where this is a chunk in front of all items.
    pub fn new(near: u64, chunk: Range<u64>) -> Search {
        Search { near, chunk, ..Search::default() }
    }
}

impl Keys<'_> {
    /// Milliseconds since a key was used; one that has expired was used before all others.
    fn idle(&self, name: &Name, expires: u64) -> u64 {
        match expired(expires, self.now_ms) {
            true => u64::MAX,
            false => u64::from(self.recency.age_ms(name.hash, self.now_ms)),
        }
    }

    /// Removes keys, and says how many.
    pub fn evict<C: Content>(&self, tx: &mut impl Store, search: &mut Search) -> Result<u32, Error> {
        if search.empties {
            let (_, some) = self.scan(tx, 0, MOST_SAMPLES)?;
            return self.evict_all::<C>(tx, some.into_iter().map(|(name, _)| name));
        }
        if (search.evicted < ALONE || search.bytes == 0)
            && let Some((name, places)) = self.longest_idle(tx, search)?
        {
            self.evict_all::<C>(tx, [name])?;
            search.places = places;
            search.evicted += 1;
            return Ok(1);
        }
        search.places = [0; 2];
        if search.together.is_empty() {
            search.together = self.of_a_chunk(tx, search)?;
        }
        let some = search.together.split_off(search.together.len().saturating_sub(MOST_SAMPLES));
        let gone = self.evict_all::<C>(tx, some)?;
        search.evicted += gone;
        Ok(gone)
    }

    fn evict_all<C: Content>(&self, tx: &mut impl Store, names: impl IntoIterator<Item = Name>) -> Result<u32, Error> {
        let mut gone = 0;
        for name in names {
            gone += u32::from(self.remove::<C>(tx, &name)?);
            self.notes.evicted.borrow_mut().push(name);
        }
        Ok(gone)
    }

    /// Of the keys behind a hash the one that was not used for longest, among those whose place is
    /// large enough, if there are some.
    fn longest_idle(&self, from: &impl Load, search: &Search) -> Result<Option<(Name, [u64; 2])>, Error> {
        let (_, mut found) = self.scan(from, search.near, MOST_SAMPLES)?;
        if found.len() < SAMPLES {
            found.extend(self.scan(from, 0, SAMPLES)?.1);
        }
        let place = |room: u32| HEAD + u64::from(room);
        // What is smaller than any item is of the tree or a name, and it is the place in the tree
        // that helps.
        let large = found.iter().filter(|(_, item)| place(item.room) >= search.bytes).take(SAMPLES);
        let chosen = large.max_by_key(|(name, item)| self.idle(name, item.expires));
        Ok(chosen.map(|(name, item)| (name.clone(), [place(item.room), 8 + name.bytes.len() as u64])))
    }

    /// The keys whose items lie in the chunks that can be made free with the fewest of them.
    fn of_a_chunk(&self, from: &impl Load, search: &mut Search) -> Result<Vec<Name>, Error> {
        let (start, chunk_bytes) = (search.chunk.start, (search.chunk.end - search.chunk.start).max(1));
        let chunk_of = |offset: u64| offset.saturating_sub(start) / chunk_bytes;
        let mut items: HashMap<u64, u64> = HashMap::new();
        self.each_item(from, |_, offset, bytes| {
            for chunk in chunk_of(offset)..=chunk_of(offset + bytes - 1) {
                *items.entry(chunk).or_default() += 1;
            }
        })?;
        let wanted = search.bytes.div_ceil(chunk_bytes).max(1);
        let cost = |first: u64| {
            let chunks = first..first + wanted;
            let counts = chunks.clone().map(|chunk| items.get(&chunk).copied());
            let total = counts.sum::<Option<u64>>()?;
            (!chunks.clone().all(|chunk| search.chunks.contains(&chunk))).then_some(total)
        };
        let best = items.keys().filter_map(|&first| Some((cost(first)?, first))).min();
        let Some((_, first)) = best else { return Ok(Vec::new()) };
        let chosen = first..first + wanted;
        search.chunks.extend(chosen.clone());
        let mut names = Vec::new();
        self.each_item(from, |name, offset, bytes| {
            if (chunk_of(offset)..=chunk_of(offset + bytes - 1)).any(|chunk| chosen.contains(&chunk)) {
                names.push(name);
            }
        })?;
        Ok(names)
    }
}
