//! An SM's L1: fully associative, least recently used out first. Volatile stores pass through it;
//! persists stay in it until the persist buffer writes them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash of line addresses: one multiplication.
#[derive(Default)]
pub(crate) struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

pub(crate) type LineMap<T> = HashMap<u64, T, BuildHasherDefault<LineHasher>>;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub tag: u64,
    /// Sectors that are valid.
    pub valid: u8,
    pub persistent: bool,
    /// When what was fetched last is there.
    pub ready_at: u64,
    /// The persist buffer's entry that has its stores.
    pub entry: Option<u64>,
    /// Bytes that older entries of the line have, each granule one of them (`granule`).
    pub older: u128,
    /// Of L1's when it was filled: what is older was invalidated.
    generation: u32,
    before: u32,
    after: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct L1 {
    lines: Vec<Line>,
    places: LineMap<u32>,
    free: Vec<u32>,
    /// Ends of the list by use.
    newest: u32,
    oldest: u32,
    /// Of persistent lines, and of volatile ones.
    generations: [u32; 2],
}

impl L1 {
    pub fn new(lines: u32) -> Self {
        let line = Line {
            tag: 0,
            valid: 0,
            persistent: false,
            ready_at: 0,
            entry: None,
            older: 0,
            generation: 0,
            before: NONE,
            after: NONE,
        };
        Self {
            lines: vec![line; lines as usize],
            places: LineMap::default(),
            free: (0..lines).rev().collect(),
            newest: NONE,
            oldest: NONE,
            generations: [0; 2],
        }
    }

    fn unlink(&mut self, place: u32) {
        let Line { before, after, .. } = self.lines[place as usize];
        match before {
            NONE => self.newest = after,
            _ => self.lines[before as usize].after = after,
        }
        match after {
            NONE => self.oldest = before,
            _ => self.lines[after as usize].before = before,
        }
    }

    fn link(&mut self, place: u32) {
        let line = &mut self.lines[place as usize];
        (line.before, line.after) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = place,
            newest => self.lines[newest as usize].before = place,
        }
        self.newest = place;
    }

    /// A line that is there, used now.
    pub fn find(&mut self, tag: u64) -> Option<&mut Line> {
        let place = *self.places.get(&tag)?;
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        let generation = self.generations[usize::from(!self.lines[place as usize].persistent)];
        let line = &mut self.lines[place as usize];
        if line.generation != generation {
            line.generation = generation;
            line.valid = 0;
        }
        Some(line)
    }

    /// A line that is there, not used by that.
    pub fn peek(&self, tag: u64) -> Option<&Line> {
        self.places.get(&tag).map(|&place| &self.lines[place as usize])
    }

    /// The line that has to go before another can come; None while there is room.
    pub fn victim(&self) -> Option<&Line> {
        self.free.is_empty().then(|| &self.lines[self.oldest as usize])
    }

    /// Takes out the line that is to go.
    fn evict(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = self.oldest;
        if place == NONE {
            return None;
        }
        self.unlink(place);
        self.places.remove(&self.lines[place as usize].tag);
        Some(place)
    }

    /// Makes room for a line, which has nothing valid yet.
    pub fn insert(&mut self, tag: u64, persistent: bool) {
        let Some(place) = self.evict() else { return };
        let generation = self.generations[usize::from(!persistent)];
        let line = &mut self.lines[place as usize];
        *line = Line {
            tag,
            valid: 0,
            persistent,
            ready_at: 0,
            entry: None,
            older: 0,
            generation,
            before: NONE,
            after: NONE,
        };
        self.places.insert(tag, place);
        self.link(place);
    }

    /// Takes a place away, for the older version of a line.
    pub fn pin(&mut self) -> Option<u32> {
        self.evict()
    }

    /// Gives a place back.
    pub fn unpin(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The stores of a line, to these bytes, are no longer in the buffer's entry of that number.
    pub fn written(&mut self, tag: u64, entry: u64, bytes: u128) {
        let Some(&place) = self.places.get(&tag) else { return };
        let line = &mut self.lines[place as usize];
        if line.entry == Some(entry) {
            line.entry = None;
        } else {
            line.older &= !bytes;
        }
    }

    /// The entry of a line, which has these bytes, is an older one from now on.
    pub fn split(&mut self, tag: u64, bytes: u128) {
        if let Some(&place) = self.places.get(&tag) {
            self.lines[place as usize].entry = None;
            self.lines[place as usize].older |= bytes;
        }
    }

    /// Forgets what was fetched of persistent, or of volatile, memory.
    pub fn invalidate(&mut self, persistent: bool) {
        self.generations[usize::from(!persistent)] += 1;
    }
}
