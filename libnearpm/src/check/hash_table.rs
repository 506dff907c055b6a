//! Hash tables of GPUs: every slot in use is looked at as the table's own recovery and check do, on
//! the processor.
//!
//! What is put right: a single wrong bit, where nothing else explains what is there. A slot that is
//! beyond that is freed: what it had cannot be found any more, its bytes are in the repair's
//! backup, and all other pairs stay. Two slots that contradict each other and may both be right are
//! told and left.

use std::collections::HashMap;

use nearpm_interface::hash_table::{Hash, HashTable, SLOT_BYTES, cell_of, pointer, word_of};
use nearpm_interface::media::DirectoryEntry;
use nearpm_interface::region::{GrowthPhase, OBJECT_GROWTH, OBJECT_WORD, ObjectHead, open_growth_word};
use nearpm_interface::seal;

use super::{Class, Found, one_bit};
use crate::memory::Medium;

/// A slot in use.
#[derive(Clone, Copy)]
struct Slot {
    number: u64,
    key: u64,
    word: u64,
}

struct Table<'m> {
    medium: &'m Medium,
    start: u64,
    shape: HashTable,
    seed: u64,
    grown: u32,
    /// Copies may lie where they do not belong: opening the table clears them.
    grows: bool,
    /// A bit for each cell that a slot has.
    owned: Vec<u64>,
}

/// Everything that is wrong with the slots of a table whose head and words hold.
pub(super) fn examine(medium: &Medium, object: &DirectoryEntry, head: &ObjectHead, found: &mut Vec<Found>) {
    let shape = HashTable::of_head(head);
    if !is_possible(&shape) || shape.bytes() > object.bytes {
        found.push(Found::new(Class::ObjectHead, object.base));
        return;
    }
    let growth = medium.load_word(object.base + OBJECT_GROWTH);
    let least = if shape.in_windows { shape.windows } else { 0 };
    let most = if shape.in_windows { shape.room_windows() } else { shape.growths };
    let (grown, phase) = match growth {
        0 => (least, GrowthPhase::Idle),
        word => seal::open_word(word).and_then(open_growth_word).unwrap_or_default(),
    };
    let Some(seed) = seal::open_word(medium.load_word(object.base + OBJECT_WORD)) else { return };
    if !(least..=most).contains(&grown) {
        found.push(Found::new(Class::ObjectWord, object.base + OBJECT_GROWTH));
        return;
    }
    let owned = vec![0; shape.cells().div_ceil(64) as usize];
    let grows = phase != GrowthPhase::Idle;
    Table { medium, start: object.base, shape, seed, grown, grows, owned }.examine(found);
}

/// Whether it is the head of a table that there can be: it is sealed, so that another one is of a
/// program with other ideas.
fn is_possible(shape: &HashTable) -> bool {
    let HashTable { levels, hashes, width, buckets, windows, growths, stash, .. } = *shape;
    (1..=4).contains(&levels)
        && (1..=3).contains(&hashes)
        && (1..=64).contains(&width)
        && windows > 0
        && buckets > 0
        && buckets.is_multiple_of(windows)
        && growths <= 16
        && u64::from(buckets) << growths <= 1 << 31
        && stash <= buckets / windows
        && shape.all_slots().max(shape.cells()) < u64::from(u32::MAX)
}

impl Table<'_> {
    fn examine(mut self, found: &mut Vec<Found>) {
        let (mut keys, mut broken, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.shape.all_slots() {
            if !self.shape.is_in_use(number / u64::from(self.shape.width), self.grown) {
                continue;
            }
            let slot = self.slot(number);
            // In levels a slot without a key, or with one and no pointer yet, has no cell: recovery
            // frees it.
            let is_free = self.shape.is_reserved(slot.key);
            if !self.shape.in_windows && (is_free || slot.word == 0) {
                continue;
            }
            match self.cell(slot) {
                None => broken.push(slot),
                Some(cell) if self.owns(cell) => shared.push(cell),
                Some(cell) => {
                    self.own(cell);
                    if !is_free {
                        found.extend(self.key(slot, cell));
                        keys.push((slot.key, number));
                    }
                }
            }
        }
        broken.into_iter().for_each(|slot| found.push(self.broken(slot)));
        if !shared.is_empty() {
            self.shared(&shared, found);
        }
        if !self.grows {
            keys.sort_unstable();
            let twice = keys.windows(2).filter(|pair| pair[0].0 == pair[1].0);
            twice.for_each(|pair| found.extend(self.twice(pair[0].1, pair[1].1)));
        }
    }

    fn slot(&self, number: u64) -> Slot {
        let (key, word) = self.shape.slot_at(number);
        let load = |offset| self.medium.load_word(self.start + offset);
        Slot { number, key: load(key), word: load(word) }
    }

    /// Where its key lies.
    fn place(&self, slot: u64) -> u64 {
        self.start + self.shape.slot_at(slot).0
    }

    /// The cell that a slot has, if its pointer holds.
    fn cell(&self, slot: Slot) -> Option<u64> {
        if slot.word == 0 {
            return self.shape.in_windows.then(|| self.shape.own_cell(slot.number));
        }
        cell_of(slot.number as u32, slot.word).map(u64::from).filter(|&cell| cell < self.shape.cells())
    }

    fn owns(&self, cell: u64) -> bool {
        self.owned[(cell / 64) as usize] >> (cell % 64) & 1 == 1
    }

    fn own(&mut self, cell: u64) {
        self.owned[(cell / 64) as usize] |= 1 << (cell % 64);
    }

    fn contents(&self, cell: u64) -> Vec<u8> {
        let bytes = self.shape.cell_bytes();
        self.medium.load_vec(self.start + self.shape.cells_at() + cell * bytes, bytes)
    }

    /// What is wrong with a slot's key: it belongs elsewhere, or its cell has another.
    fn key(&self, slot: Slot, cell: u64) -> Option<Found> {
        let bucket = slot.number / u64::from(self.shape.width);
        let is_home =
            |key: u64| !self.shape.is_reserved(key) && self.shape.is_home(Hash::of(self.seed, key), bucket, self.grown);
        let place = self.place(slot.number);
        let freed = |found: Found| found.mend(vec![0; 8]);
        if !self.grows && !is_home(slot.key) {
            let found = Found::new(Class::HashKey, place);
            return Some(match one_bit::word(slot.key, is_home) {
                Some(key) => found.mend_word(Some(key)),
                None => freed(found),
            });
        }
        if self.shape.key_code == 0 {
            return None;
        }
        let mut contents = self.contents(cell);
        let stored = contents.split_off(self.shape.value_bytes as usize);
        if word_of(self.seed, &stored) == slot.key {
            return None;
        }
        let bytes = self.shape.cell_bytes();
        let at = self.start + self.shape.cells_at() + cell * bytes + u64::from(self.shape.value_bytes);
        let mut mended = stored;
        for bit in 0..mended.len() * 8 {
            mended[bit / 8] ^= 1 << (bit % 8);
            if word_of(self.seed, &mended) == slot.key {
                return Some(Found::new(Class::HashUnlike, at).mend(mended));
            }
            mended[bit / 8] ^= 1 << (bit % 8);
        }
        Some(freed(Found::new(Class::HashUnlike, place)))
    }

    /// A slot whose pointer does not hold gets back the one bit that is wrong, or is freed with a
    /// cell that nobody has.
    fn broken(&mut self, slot: Slot) -> Found {
        let (key, word) = self.shape.slot_at(slot.number);
        let holds = |candidate: u64| {
            self.cell(Slot { word: candidate, ..slot }).is_some_and(|cell| candidate != 0 && !self.owns(cell))
        };
        if let Some(mended) = one_bit::word(slot.word, holds) {
            let cell = self.cell(Slot { word: mended, ..slot });
            cell.into_iter().for_each(|cell| self.own(cell));
            return Found::new(Class::HashPointer, self.start + word).mend_word(Some(mended));
        }
        let found = Found::new(Class::HashPointer, self.start + key);
        if !self.shape.in_windows {
            return found.mend(vec![0; 8]);
        }
        match self.unowned(slot.number) {
            Some(cell) => {
                self.own(cell);
                found.mend([0, pointer(slot.number as u32, cell as u32)].map(u64::to_le_bytes).concat())
            }
            None => found,
        }
    }

    /// A cell of a slot's window that no slot has.
    fn unowned(&self, slot: u64) -> Option<u64> {
        let (slots, spares) = (self.shape.window_slots(), u64::from(self.shape.spares));
        let first = slot / slots * (slots + spares);
        (first..(first + slots + spares).min(self.shape.cells())).find(|&cell| !self.owns(cell))
    }

    /// Slots that have one cell. One without a pointer has lost it, where another's pointer says
    /// that the cell is its own.
    fn shared(&mut self, cells: &[u64], found: &mut Vec<Found>) {
        let mut owners: HashMap<u64, Vec<Slot>> = cells.iter().map(|&cell| (cell, Vec::new())).collect();
        for number in 0..self.shape.all_slots() {
            let in_use = self.shape.is_in_use(number / u64::from(self.shape.width), self.grown);
            let slot = self.slot(number);
            let has_one = in_use && (self.shape.in_windows || !self.shape.is_reserved(slot.key) && slot.word != 0);
            if let Some(cell) = self.cell(slot).filter(|_| has_one)
                && let Some(slots) = owners.get_mut(&cell)
            {
                slots.push(slot);
            }
        }
        let mut owners: Vec<Vec<Slot>> = owners.into_values().collect();
        owners.sort_unstable_by_key(|slots| slots.first().map(|slot| slot.number));
        for slots in owners {
            let certain = slots.iter().filter(|slot| slot.word != 0).count();
            for slot in slots.into_iter().filter(|slot| certain != 1 || slot.word == 0) {
                let one = Found::new(Class::HashCell, self.place(slot.number));
                let cell = if certain == 1 { self.unowned(slot.number) } else { None };
                found.push(match cell {
                    Some(cell) => {
                        self.own(cell);
                        one.mend([0, pointer(slot.number as u32, cell as u32)].map(u64::to_le_bytes).concat())
                    }
                    None => one,
                });
            }
        }
    }

    /// A key in two slots. Of equal pairs the one behind is freed; a pair in the stash and at home
    /// is what a crash may leave, and opening settles it.
    fn twice(&self, first: u64, second: u64) -> Option<Found> {
        let contents = |slot| self.cell(self.slot(slot)).map(|cell| self.contents(cell));
        let same = contents(first) == contents(second);
        let room = u64::from(self.shape.buckets) << self.shape.growths;
        let stashed = |slot: u64| self.shape.in_windows && slot / u64::from(self.shape.width) >= room;
        if same && stashed(second) && !stashed(first) {
            return None;
        }
        let found = Found::new(Class::HashTwice, self.place(second));
        Some(if same { found.mend(vec![0; 8]) } else { found })
    }
}

// A slot of a table in windows is freed, and given its cell, by one piece.
const _: () = assert!(SLOT_BYTES == 16);
