//! The two designs with their parameters, and where their parts lie in an object.

use nearpm_gpu::ObjectKind;
use nearpm_interface::hash_table::{HashTable, SLOT_BYTES, stored_key_bytes};
use nearpm_interface::region::{OBJECT_ALIGNMENT, ObjectHead};

use crate::error::Result;

/// How a table is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// P: buckets in levels, all state in PM, a warp an operation (GPHash, FAST 2025, 3.1 and 3.2),
    /// with its holes closed.
    Levels,
    /// N: tags of the slots in the GPU's memory, a lane an operation; ours.
    Tags,
}

impl Design {
    /// Name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Design::Levels => "in levels",
            Design::Tags => "in windows",
        }
    }

    /// Why some keys are reserved, and which.
    pub(crate) const fn reserved(self) -> &'static str {
        match self {
            Design::Levels => {
                "a table in levels keeps its marks where keys are: 0, and those from 0xfffffffd00000000 on"
            }
            Design::Tags => "0 is that a slot is free",
        }
    }
}

/// What keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Words of 8 bytes, in the slots.
    Words,
    /// So many bytes each, behind the value in its cell; the slot has 64 bits that depend on them.
    Fixed(u32),
    /// The same, of up to so many bytes.
    Variable(u32),
}

impl Keys {
    /// Bytes of a key in its cell: with its length, in whole units.
    pub(crate) const fn stored_bytes(self) -> u32 {
        stored_key_bytes(self.to_code())
    }

    pub(crate) const fn to_code(self) -> u32 {
        match self {
            Keys::Words => 0,
            Keys::Fixed(bytes) => bytes,
            Keys::Variable(most) => most | 1 << 31,
        }
    }

    const fn from_code(code: u32) -> Keys {
        match code {
            0 => Keys::Words,
            bytes if code >> 31 == 0 => Keys::Fixed(bytes),
            _ => Keys::Variable(code & !(1 << 31)),
        }
    }
}

/// A design with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How it is built.
    pub design: Design,
    /// Levels of design P; 1.
    pub levels: u32,
    /// Buckets that a key may be in, in each level.
    pub hashes: u32,
    /// Slots a bucket.
    pub width: u32,
    /// Buckets of the top level.
    pub buckets: u32,
    /// Windows of design N; 1.
    pub windows: u32,
    /// Buckets of the stash of design N; 0.
    pub stash: u32,
    /// Cells for values that are not in use, in each window: what updates of one batch need. Of
    /// design P: cells besides those of the slots.
    pub spares: u32,
    /// Bytes of a value, a multiple of 16.
    pub value_bytes: u32,
    /// What keys are.
    pub keys: Keys,
    /// How often it can double; its object has room for that.
    pub growths: u32,
}

impl Layout {
    /// The paper's table for `slots` slots: 2 levels, 2 hash functions, 8 slots a bucket.
    pub fn levels(slots: u64, value_bytes: u32) -> Layout {
        let buckets = (slots.div_ceil(12) as u32).next_multiple_of(2).max(2);
        let spares = (slots / 16).max(64) as u32;
        Layout {
            design: Design::Levels,
            levels: 2,
            hashes: 2,
            width: 8,
            buckets,
            windows: 1,
            stash: 0,
            spares,
            value_bytes,
            keys: Keys::Words,
            growths: 0,
        }
    }

    /// Our table for `slots` slots: 2 hash functions, 64 slots a bucket, windows of about 2^17
    /// slots.
    pub fn tags(slots: u64, value_bytes: u32) -> Layout {
        let windows = (slots >> 17).clamp(1, 1 << 16) as u32;
        let buckets = (slots.div_ceil(64).div_ceil(windows.into()).max(1) as u32) * windows;
        let stash = buckets.div_ceil(256).min(buckets / windows);
        let spares = (u64::from(buckets) * 64 / u64::from(windows) / 16).max(64) as u32;
        Layout {
            design: Design::Tags,
            levels: 1,
            hashes: 2,
            width: 64,
            buckets,
            windows,
            stash,
            spares,
            value_bytes,
            keys: Keys::Words,
            growths: 0,
        }
    }

    /// The same with other keys.
    #[must_use]
    pub fn with_keys(self, keys: Keys) -> Layout {
        Layout { keys, ..self }
    }

    /// The same with room to double so many times.
    #[must_use]
    pub fn growing(self, growths: u32) -> Layout {
        Layout { growths, ..self }
    }

    /// Slots of all levels, without the stash, before it has grown.
    pub fn slots(&self) -> u64 {
        self.media().slots_grown(0)
    }

    /// The table as it lies in a region: what the parts' places follow from.
    pub(crate) fn media(&self) -> HashTable {
        HashTable {
            in_windows: self.design == Design::Tags,
            levels: self.levels,
            hashes: self.hashes,
            width: self.width,
            buckets: self.buckets,
            windows: self.windows,
            stash: self.stash,
            spares: self.spares,
            value_bytes: self.value_bytes,
            key_code: self.keys.to_code(),
            growths: self.growths,
        }
    }

    /// Slots in use when it has doubled so many times.
    pub(crate) fn slots_grown(&self, times: u32) -> u64 {
        self.media().slots_grown(times)
    }

    /// Slots that it has room for, with those of the stash.
    pub(crate) fn all_slots(&self) -> u64 {
        self.media().all_slots()
    }

    /// Slots of the stash.
    pub(crate) fn stash_slots(&self) -> u64 {
        u64::from(self.stash) * u64::from(self.width)
    }

    /// Windows that it has room for.
    pub(crate) fn room_windows(&self) -> u32 {
        self.media().room_windows()
    }

    /// Design P: first bucket of the level that it grows by the `number`-th time, from 1 on, behind
    /// those that it began with.
    pub(crate) fn first_bucket(&self, number: u32) -> u32 {
        self.media().first_bucket(number)
    }

    /// Design P: first bucket of each level in use when it has grown so many times.
    pub(crate) fn starts(&self, grown: u32) -> [u32; 4] {
        self.media().starts(grown)
    }

    /// Cells for values.
    pub fn cells(&self) -> u64 {
        self.media().cells()
    }

    /// Bytes of a cell.
    pub fn cell_bytes(&self) -> u64 {
        self.media().cell_bytes()
    }

    /// Bytes of an object that holds it.
    pub fn bytes(&self) -> u64 {
        self.media().bytes()
    }

    /// Bytes of the device's memory that the table keeps, besides batches and a cache.
    pub fn device_bytes(&self) -> u64 {
        match self.design {
            Design::Levels => 4 * self.cells(),
            Design::Tags => {
                2 * self.all_slots() + 4 * (u64::from(self.room_windows()) + 1) * (u64::from(self.spares) + 2)
            }
        }
    }

    /// Offset in the object of the values.
    pub(crate) fn cells_at(&self) -> u64 {
        self.media().cells_at()
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        match self.design {
            Design::Levels => ObjectKind::LevelHash,
            Design::Tags => ObjectKind::TagHash,
        }
    }

    pub(crate) fn to_head(self) -> ObjectHead {
        ObjectHead {
            kind: self.kind() as u16,
            blocks: self.buckets,
            threads: u32::from_le_bytes([self.width as u8, self.hashes as u8, self.levels as u8, self.growths as u8]),
            words: self.value_bytes / 4,
            depth: self.windows,
            data: OBJECT_ALIGNMENT,
            data_bytes: self.all_slots() * SLOT_BYTES,
            tails: self.cells_at(),
            stride: u64::from(self.spares) | u64::from(self.keys.to_code()) << 32,
            stash: self.stash,
            ..ObjectHead::default()
        }
    }

    pub(crate) fn of_head(head: &ObjectHead, kind: ObjectKind) -> Result<Layout> {
        let media = HashTable::of_head(head);
        let layout = Layout {
            design: if kind == ObjectKind::LevelHash { Design::Levels } else { Design::Tags },
            levels: media.levels,
            hashes: media.hashes,
            width: media.width,
            buckets: media.buckets,
            windows: media.windows,
            stash: media.stash,
            spares: media.spares,
            value_bytes: media.value_bytes,
            keys: Keys::from_code(media.key_code),
            growths: media.growths,
        };
        // A sealed head is what was written; one of a program with other ideas is refused here.
        layout.check().map(|()| layout)
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a table {}, {}L-{}H-{}S of {} buckets, {:?} keys, values of {} bytes",
            self.design.name(),
            self.levels,
            self.hashes,
            self.width,
            self.buckets,
            self.keys,
            self.value_bytes
        )
    }
}
