//! The write-back cache over the PM windows, shared by all cores, which keep it coherent among
//! themselves.
//!
//! A line may be in the cache before its fill has arrived: then only the bytes that were stored are
//! known.

use nearpm_interface::geometry::LINE;

use super::packet::FetchId;

/// No slot.
const NONE: u32 = u32::MAX;

/// A cached line.
pub struct Line {
    /// Number of the line, counted over all PM windows.
    pub number: u64,
    pub data: [u8; LINE],
    /// Bytes of `data` that hold something, one bit each; all of them once the fill has arrived.
    pub known: u64,
    pub dirty: bool,
    /// The fetch that will bring the other bytes.
    pub fill: Option<FetchId>,
    /// When that came, once somebody has waited for it.
    pub filled_ps: u64,
    newer: u32,
    older: u32,
}

/// Lines by number, in order of use.
pub struct Cache {
    /// Slot of each line of the window, or `NONE`.
    slot_of: Vec<u32>,
    slots: Vec<Line>,
    capacity: usize,
    newest: u32,
    oldest: u32,
}

impl Cache {
    /// An empty cache of `capacity` lines over a window of `window_lines`.
    pub fn new(capacity: usize, window_lines: usize) -> Self {
        assert!(capacity >= 32, "a cache holds at least 32 lines");
        Cache {
            slot_of: vec![NONE; window_lines],
            slots: Vec::with_capacity(capacity),
            capacity,
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Lines in the cache.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Lines that were stored to and not written back.
    pub fn dirty(&self) -> usize {
        self.slots.iter().filter(|line| line.dirty).count()
    }

    /// Whether a line must go before another one comes.
    pub fn is_full(&self) -> bool {
        self.slots.len() == self.capacity
    }

    /// Whether the line is here.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.slot_of[number as usize] != NONE
    }

    /// The line, without using it.
    #[inline]
    pub fn peek(&mut self, number: u64) -> Option<&mut Line> {
        let slot = self.slot_of[number as usize];
        (slot != NONE).then(|| &mut self.slots[slot as usize])
    }

    /// The line, which becomes the newest.
    #[inline]
    pub fn touch(&mut self, number: u64) -> Option<&mut Line> {
        let slot = self.slot_of[number as usize];
        if slot == NONE {
            return None;
        }
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
        Some(&mut self.slots[slot as usize])
    }

    /// Adds a line as the newest.
    ///
    /// # Panics
    /// If it is here already, or the cache is full.
    pub fn insert(&mut self, number: u64, fill: Option<FetchId>) -> &mut Line {
        assert!(!self.is_full() && !self.contains(number), "line {number} cannot be added");
        let slot = self.slots.len() as u32;
        self.slot_of[number as usize] = slot;
        self.slots.push(Line {
            number,
            data: [0; LINE],
            known: 0,
            dirty: false,
            fill,
            filled_ps: 0,
            newer: NONE,
            older: NONE,
        });
        self.link(slot);
        &mut self.slots[slot as usize]
    }

    /// Number of the least recently used line.
    pub fn oldest(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.slots[self.oldest as usize].number)
    }

    /// Number of the line in the `n`-th slot.
    pub fn nth(&self, n: usize) -> u64 {
        self.slots[n].number
    }

    /// Removes a line.
    pub fn remove(&mut self, number: u64) {
        let slot = std::mem::replace(&mut self.slot_of[number as usize], NONE);
        assert_ne!(slot, NONE, "line {number} is not cached");
        self.unlink(slot);
        self.slots.swap_remove(slot as usize);
        // The last slot moved here: tell its neighbours.
        if let Some(moved) = self.slots.get(slot as usize) {
            let (moved_number, newer, older) = (moved.number, moved.newer, moved.older);
            self.slot_of[moved_number as usize] = slot;
            *self.newer_link(older) = slot;
            *self.older_link(newer) = slot;
        }
    }

    /// Where the slot newer than `of` is kept: in `of`, or, for none, as the oldest of all.
    fn newer_link(&mut self, of: u32) -> &mut u32 {
        match of {
            NONE => &mut self.oldest,
            slot => &mut self.slots[slot as usize].newer,
        }
    }

    fn older_link(&mut self, of: u32) -> &mut u32 {
        match of {
            NONE => &mut self.newest,
            slot => &mut self.slots[slot as usize].older,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Line { newer, older, .. } = self.slots[slot as usize];
        *self.newer_link(older) = newer;
        *self.older_link(newer) = older;
    }

    fn link(&mut self, slot: u32) {
        let older = self.newest;
        self.slots[slot as usize].newer = NONE;
        self.slots[slot as usize].older = older;
        *self.newer_link(older) = slot;
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_is_the_naive_list() {
        let mut cache = Cache::new(32, 100);
        let mut list: Vec<u64> = Vec::new();
        let mut rng = Rng::new(3);
        for _ in 0..20_000 {
            let number = rng.below(100);
            let here = list.iter().position(|n| *n == number);
            assert_eq!(cache.contains(number), here.is_some());
            match (rng.below(4), here) {
                (0, Some(at)) => {
                    cache.remove(number);
                    list.remove(at);
                }
                (_, Some(at)) => {
                    assert_eq!(cache.touch(number).unwrap().number, number);
                    list.remove(at);
                    list.push(number);
                }
                (_, None) => {
                    if cache.is_full() {
                        let oldest = cache.oldest().unwrap();
                        assert_eq!(oldest, list.remove(0));
                        cache.remove(oldest);
                    }
                    cache.insert(number, None);
                    list.push(number);
                }
            }
            assert_eq!((cache.len(), cache.oldest()), (list.len(), list.first().copied()));
        }
    }
}
