//! The two designs with their parameters, and where their parts lie in an object.

use nearpm_gpu::ObjectKind;
use nearpm_interface::region::{OBJECT_ALIGNMENT, ObjectHead};

use crate::error::{Error, Result};

/// Bytes of a slot: key and pointer.
pub const SLOT: u64 = 16;
/// Bytes of a unit of values.
pub const UNIT: u64 = 16;
/// Lanes of a warp: slots that design P looks at at once.
const WARP: u32 = 32;

/// How a table is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// P: buckets in levels, all state in PM, a warp an operation (GPHash, FAST 2025, 3.1 and 3.2), with its holes closed.
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
    /// Cells for values that are not in use, in each window: what updates of one batch need. Of design P: cells besides those of the slots.
    pub spares: u32,
    /// Bytes of a value, a multiple of 16.
    pub value_bytes: u32,
}

impl Layout {
    /// The paper's table for `slots` slots: 2 levels, 2 hash functions, 8 slots a bucket.
    pub fn levels(slots: u64, value_bytes: u32) -> Layout {
        let buckets = (slots.div_ceil(12) as u32).next_multiple_of(2).max(2);
        let spares = (slots / 16).max(64) as u32;
        let design = Design::Levels;
        Layout { design, levels: 2, hashes: 2, width: 8, buckets, windows: 1, stash: 0, spares, value_bytes }
    }

    /// Our table for `slots` slots: 2 hash functions, 64 slots a bucket, windows of about 2^17 slots.
    pub fn tags(slots: u64, value_bytes: u32) -> Layout {
        let windows = (slots >> 17).clamp(1, 1 << 16) as u32;
        let buckets = (slots.div_ceil(64).div_ceil(windows.into()).max(1) as u32) * windows;
        let stash = buckets.div_ceil(256).min(buckets / windows);
        let spares = (u64::from(buckets) * 64 / u64::from(windows) / 16).max(64) as u32;
        let design = Design::Tags;
        Layout { design, levels: 1, hashes: 2, width: 64, buckets, windows, stash, spares, value_bytes }
    }

    /// Slots of all levels, without the stash.
    pub fn slots(&self) -> u64 {
        (0..self.levels).map(|level| u64::from(self.buckets >> level)).sum::<u64>() * u64::from(self.width)
    }

    /// Slots with those of the stash.
    pub(crate) fn all_slots(&self) -> u64 {
        self.slots() + u64::from(self.stash) * u64::from(self.width)
    }

    /// Cells for values.
    pub fn cells(&self) -> u64 {
        let windows = match self.design {
            Design::Levels => 1,
            Design::Tags => u64::from(self.windows) + 1,
        };
        self.all_slots() + windows * u64::from(self.spares)
    }

    /// Bytes of an object that holds it.
    pub fn bytes(&self) -> u64 {
        self.cells_at() + self.cells() * u64::from(self.value_bytes)
    }

    /// Bytes of the device's memory that the table keeps, besides batches.
    pub fn device_bytes(&self) -> u64 {
        match self.design {
            Design::Levels => 4 * self.cells(),
            Design::Tags => 2 * self.all_slots() + 4 * (u64::from(self.windows) + 1) * (u64::from(self.spares) + 1),
        }
    }

    /// Offset in the object of the values.
    pub(crate) fn cells_at(&self) -> u64 {
        (OBJECT_ALIGNMENT + self.all_slots() * SLOT).next_multiple_of(OBJECT_ALIGNMENT)
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        match self.design {
            Design::Levels => ObjectKind::LevelHash,
            Design::Tags => ObjectKind::TagHash,
        }
    }

    /// Refuses what kernels could not work with.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String, why: &str| Err(Error::Layout { what, why: why.to_owned() });
        let looked_at = self.levels * self.hashes * self.width;
        if self.value_bytes == 0 || !self.value_bytes.is_multiple_of(UNIT as u32) || self.value_bytes > 1 << 16 {
            return refuse(format!("values of {} bytes", self.value_bytes), "they have 16 to 65536, in steps of 16");
        }
        if self.buckets == 0 || !(1..=3).contains(&self.hashes) || self.cells() > u64::from(u32::MAX) - 1 {
            return refuse(
                format!("{} buckets and {} hash functions", self.buckets, self.hashes),
                "1 to 3 functions, fewer than 2^32 cells",
            );
        }
        match self.design {
            Design::Levels if !(1..=4).contains(&self.levels) || looked_at > WARP || !self.width.is_power_of_two() => {
                refuse(
                    format!("{}L-{}H-{}S", self.levels, self.hashes, self.width),
                    "a warp looks at 32 slots, at most",
                )
            }
            Design::Levels
                if !self.buckets.is_multiple_of(1 << (self.levels - 1)) || self.stash != 0 || self.windows != 1 =>
            {
                refuse(
                    format!("{} buckets", self.buckets),
                    "each level has half as many as the one above; no stash, one window",
                )
            }
            Design::Tags
                if self.levels != 1 || !self.width.is_multiple_of(8) || self.width > 128 || self.spares == 0 =>
            {
                refuse(
                    format!("{} slots a bucket, {} spare cells", self.width, self.spares),
                    "8 to 128 slots, in steps of 8, and spare cells",
                )
            }
            Design::Tags
                if self.windows == 0
                    || !self.buckets.is_multiple_of(self.windows)
                    || self.stash > self.buckets / self.windows =>
            {
                refuse(
                    format!("{} buckets in {} windows, {} in the stash", self.buckets, self.windows, self.stash),
                    "windows have the same number of buckets each, and a stash no more than one of them",
                )
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn to_head(self) -> ObjectHead {
        ObjectHead {
            kind: self.kind() as u16,
            blocks: self.buckets,
            threads: u32::from_le_bytes([self.width as u8, self.hashes as u8, self.levels as u8, 0]),
            words: self.value_bytes / 4,
            depth: self.windows,
            data: OBJECT_ALIGNMENT,
            data_bytes: self.all_slots() * SLOT,
            tails: self.cells_at(),
            stride: self.spares.into(),
            stash: self.stash,
            ..ObjectHead::default()
        }
    }

    pub(crate) fn of_head(head: &ObjectHead, kind: ObjectKind) -> Result<Layout> {
        let [width, hashes, levels, _] = head.threads.to_le_bytes().map(u32::from);
        let design = if kind == ObjectKind::LevelHash { Design::Levels } else { Design::Tags };
        let layout = Layout {
            design,
            levels,
            hashes,
            width,
            buckets: head.blocks,
            windows: head.depth,
            stash: head.stash,
            spares: head.stride as u32,
            value_bytes: head.words.saturating_mul(4),
        };
        // A sealed head is what was written; one of a program with other ideas is refused here.
        layout.check().map(|()| layout)
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a table {}, {}L-{}H-{}S of {} buckets, values of {} bytes",
            self.design.name(),
            self.levels,
            self.hashes,
            self.width,
            self.buckets,
            self.value_bytes
        )
    }
}
