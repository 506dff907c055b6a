//! Hash tables of GPUs as they lie in a region: where their parts are, and which slots a key may be
//! in. The device's side of it is `gpu/kernels/nearpm_gphash.cuh`.
//!
//! A table in windows has a row of slots {key, pointer}; one in levels has buckets of keys, then
//! their pointers. Cells with values lie behind them.

use crate::region::{OBJECT_ALIGNMENT, ObjectHead, ObjectKind};

/// Bytes of a slot: key and pointer.
pub const SLOT_BYTES: u64 = 16;
/// Bytes of a unit of values and wide keys.
pub const UNIT_BYTES: u64 = 16;
/// In a table in levels, keys from this on are marks of operations: in their upper halves.
pub const FIRST_MARK: u64 = 0xffff_fffd;

/// A table's parameters, as its head has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashTable {
    /// Whether it is one in windows; else it is in levels.
    pub in_windows: bool,
    /// Levels; 1 in windows.
    pub levels: u32,
    /// Buckets that a key may be in, in each level.
    pub hashes: u32,
    /// Slots a bucket.
    pub width: u32,
    /// Buckets of the top level when it was created.
    pub buckets: u32,
    /// Windows when it was created; 1 in levels.
    pub windows: u32,
    /// Buckets of the stash; 0 in levels.
    pub stash: u32,
    /// Cells besides those of the slots: in each window, or in all.
    pub spares: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Bytes of wide keys, with the highest bit if that is the most that they may have; 0 where
    /// keys are words.
    pub key_code: u32,
    /// How often it may double.
    pub growths: u32,
}

/// Two words that depend on a key: `gph_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    first: u64,
    second: u64,
}

fn mix(key: u64) -> u64 {
    let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

/// A number below `range` from 32 bits.
fn below(bits: u32, range: u32) -> u32 {
    ((u64::from(bits) * u64::from(range)) >> 32) as u32
}

impl Hash {
    /// The hash of a key's word in a table with this seed.
    pub fn of(seed: u64, key: u64) -> Hash {
        let first = mix(key ^ seed);
        Hash { first, second: mix(first.wrapping_add(0x9e37_79b9_7f4a_7c15)) }
    }

    fn choice(&self, number: u32) -> u32 {
        match number {
            0 => (self.first >> 32) as u32,
            1 => self.first as u32,
            _ => (self.second >> 32) as u32,
        }
    }
}

/// Bytes of a key in its cell, of a table with this code of keys: with its length, in whole units;
/// 0 where keys are words.
pub const fn stored_key_bytes(code: u32) -> u32 {
    match code {
        0 => 0,
        bytes if bytes >> 31 == 0 => bytes.next_multiple_of(UNIT_BYTES as u32),
        most => ((most & !(1 << 31)) + 2).next_multiple_of(UNIT_BYTES as u32),
    }
}

/// The pointer of a slot to a cell: with 24 bits that tell whether it is one of that slot at all.
pub fn pointer(slot: u32, cell: u32) -> u64 {
    let body = u64::from(cell) + 1;
    body | mix(u64::from(slot) << 32 ^ body ^ 0x6e65_6172_2d67_6870) >> 40 << 40
}

/// The cell that a pointer names, if it is one of that slot.
pub fn cell_of(slot: u32, word: u64) -> Option<u32> {
    let cell = (word as u32).wrapping_sub(1);
    (pointer(slot, cell) == word).then_some(cell)
}

impl HashTable {
    /// The table of a head.
    pub fn of_head(head: &ObjectHead) -> HashTable {
        let [width, hashes, levels, growths] = head.threads.to_le_bytes().map(u32::from);
        HashTable {
            in_windows: u32::from(head.kind) == ObjectKind::TagHash as u32,
            levels,
            hashes,
            width,
            buckets: head.blocks,
            windows: head.depth,
            stash: head.stash,
            spares: head.stride as u32,
            value_bytes: head.words.saturating_mul(4),
            key_code: (head.stride >> 32) as u32,
            growths,
        }
    }

    /// Bytes of a cell.
    pub fn cell_bytes(&self) -> u64 {
        u64::from(self.value_bytes) + u64::from(stored_key_bytes(self.key_code))
    }

    /// Slots in use when it has doubled so many times, without the stash.
    pub fn slots_grown(&self, times: u32) -> u64 {
        let top = u64::from(self.buckets) << times;
        (0..self.levels).map(|level| top >> level).sum::<u64>() * u64::from(self.width)
    }

    /// In levels: first bucket of the level that it grows by the `number`-th time, from 1 on,
    /// behind those that it began with.
    pub fn first_bucket(&self, number: u32) -> u32 {
        let first = (0..self.levels).map(|level| u64::from(self.buckets >> level)).sum::<u64>();
        (first + (u64::from(self.buckets) << number) - 2 * u64::from(self.buckets)).min(u32::MAX.into()) as u32
    }

    /// In levels: first bucket of each level in use when it has grown so many times.
    pub fn starts(&self, grown: u32) -> [u32; 4] {
        let start = |level: u32| match grown.checked_sub(level) {
            Some(number) if number > 0 => self.first_bucket(number),
            _ => (0..level - grown).map(|above| self.buckets >> above).sum(),
        };
        std::array::from_fn(|level| if (level as u32) < self.levels { start(level as u32) } else { 0 })
    }

    /// Slots that it has room for, with those of the stash.
    pub fn all_slots(&self) -> u64 {
        let room = match self.in_windows {
            true => self.slots_grown(self.growths),
            // What it has grown out of is not used again.
            false => u64::from(self.first_bucket(self.growths + 1)) * u64::from(self.width),
        };
        room + u64::from(self.stash) * u64::from(self.width)
    }

    /// Windows that it has room for.
    pub const fn room_windows(&self) -> u32 {
        self.windows << self.growths
    }

    /// Slots of a window.
    pub const fn window_slots(&self) -> u64 {
        (self.buckets / self.windows) as u64 * self.width as u64
    }

    /// Cells for values.
    pub fn cells(&self) -> u64 {
        match self.in_windows {
            true => self.all_slots() + (u64::from(self.room_windows()) + 1) * u64::from(self.spares),
            false => self.slots_grown(self.growths) + u64::from(self.spares),
        }
    }

    /// Offset in the object of the cells.
    pub fn cells_at(&self) -> u64 {
        (OBJECT_ALIGNMENT + self.all_slots() * SLOT_BYTES).next_multiple_of(OBJECT_ALIGNMENT)
    }

    /// Bytes of an object that holds it.
    pub fn bytes(&self) -> u64 {
        self.cells_at() + self.cells() * self.cell_bytes()
    }

    /// Offsets in the object of a slot's key and pointer.
    pub fn slot_at(&self, slot: u64) -> (u64, u64) {
        if self.in_windows {
            let at = OBJECT_ALIGNMENT + slot * SLOT_BYTES;
            return (at, at + 8);
        }
        let width = u64::from(self.width);
        let at = OBJECT_ALIGNMENT + slot / width * width * SLOT_BYTES + slot % width * 8;
        (at, at + width * 8)
    }

    /// The cell that a slot of a table in windows has without a pointer.
    pub fn own_cell(&self, slot: u64) -> u64 {
        slot + slot / self.window_slots() * u64::from(self.spares)
    }

    /// Whether a bucket is in use when it has grown so far: so many windows, or so many times.
    pub fn is_in_use(&self, bucket: u64, grown: u32) -> bool {
        if self.in_windows {
            let in_window = u64::from(self.buckets / self.windows);
            return bucket / in_window < u64::from(grown) || bucket >= u64::from(self.buckets) << self.growths;
        }
        let top = u64::from(self.buckets) << grown;
        let starts = self.starts(grown);
        (0..self.levels).any(|level| bucket.wrapping_sub(starts[level as usize].into()) < top >> level)
    }

    /// Whether a key may be in a bucket of a table that has grown so far.
    pub fn is_home(&self, hash: Hash, bucket: u64, grown: u32) -> bool {
        if self.in_windows {
            let room = u64::from(self.buckets) << self.growths;
            if bucket >= room {
                return self.stash > 0 && bucket - room == u64::from(below((hash.second >> 12) as u32, self.stash));
            }
            let in_window = self.buckets / self.windows;
            let start = u64::from(self.window_of(hash, grown)) * u64::from(in_window);
            return (0..self.hashes).any(|i| bucket == start + u64::from(below(hash.choice(i), in_window)));
        }
        let (top, starts) = (self.buckets << grown, self.starts(grown));
        let at = |level: u32, i: u32| u64::from(starts[level as usize] + (below(hash.choice(i), top) >> level));
        (0..self.levels).any(|level| (0..self.hashes).any(|i| bucket == at(level, i)))
    }

    /// The window of a key when so many are in use.
    fn window_of(&self, hash: Hash, used: u32) -> u32 {
        let (mut window, mut more) = (below(hash.second as u32, self.windows), (hash.first >> 32) as u32);
        let mut size = self.windows;
        while size < used {
            if more & 1 == 1 && window + size < used {
                window += size;
            }
            size *= 2;
            more >>= 1;
        }
        window
    }

    /// Whether a key's word stands for something else.
    pub const fn is_reserved(&self, key: u64) -> bool {
        key == 0 || !self.in_windows && key >> 32 >= FIRST_MARK
    }
}

/// The word in the slot of a wide key, as it is stored in its cell.
pub fn word_of(seed: u64, stored: &[u8]) -> u64 {
    let words = stored.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word));
    let word = words.fold(seed, |word, part| mix(word ^ part));
    if word == 0 || word >> 32 >= FIRST_MARK { word >> 1 | 1 } else { word }
}
