//! Regions: persistent memory that GPUs store to, as it lies in a file or device.
//!
//! A **region** is [`RegionHead`], a directory of named objects in two copies, and the objects. The
//! directory is kept as the card's table of pools is ([`crate::media::DirectoryHead`],
//! [`crate::media::DirectoryEntry`], whose `pool` is the object's kind), with a magic number of its
//! own. Everything refers by offset.
//!
//! An **object** begins with [`ObjectHead`], which never changes, and a line with the words that
//! do; data of kind [`ObjectKind::Data`] has none of these and belongs to programs alone.

use crate::geometry::LINE_U64;
use crate::layout::layout;

/// Magic of a [`RegionHead`]: "NearPGPU".
pub const REGION_MAGIC: u64 = u64::from_le_bytes(*b"NearPGPU");
/// Version of the region format.
pub const REGION_VERSION: u32 = 1;
/// Magic of a copy of a region's directory: "NPRD".
pub const REGION_DIRECTORY_MAGIC: u32 = u32::from_le_bytes(*b"NPRD");
/// Version of a region's directory.
pub const REGION_DIRECTORY_VERSION: u16 = 1;
/// Offset of the first copy of the directory; the second follows.
pub const REGION_DIRECTORY: u64 = 4096;
/// Copies of the directory.
pub const REGION_DIRECTORY_COPIES: u64 = 2;
/// Bytes of a copy.
pub const REGION_DIRECTORY_COPY_BYTES: u64 = 8192;
/// Most objects of a region.
pub const REGION_OBJECTS: usize = (REGION_DIRECTORY_COPY_BYTES / LINE_U64 - 1) as usize;
/// Offset from which on objects lie.
pub const REGION_DATA: u64 = 0x8000;
/// Objects begin at multiples of this.
pub const OBJECT_ALIGNMENT: u64 = 4096;

/// Magic of an [`ObjectHead`]: "NPGO".
pub const OBJECT_MAGIC: u32 = u32::from_le_bytes(*b"NPGO");
/// Version of the object formats.
pub const OBJECT_VERSION: u16 = 1;
/// Offset in an object of its word: [`crate::seal::seal_word`] of a log's generation, of a batch's
/// state ([`batch_word`]), or of a hash table's seed.
pub const OBJECT_WORD: u64 = LINE_U64;
/// Offset in an object of a hash table's growth: [`crate::seal::seal_word`] of [`growth_word`], or
/// 0 where it has never grown.
pub const OBJECT_GROWTH: u64 = OBJECT_WORD + 8;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ObjectKind {
    /// Bytes of a program.
    Data = 1,
    /// Hierarchical log whose entries carry seals: one fence an insert.
    SealedLog = 2,
    /// Hierarchical log with a tail word a thread: two fences an insert.
    TailLog = 3,
    /// Log of partitions, each with a tail.
    ConventionalLog = 4,
    /// The state of a transaction over a kernel's threads.
    Batch = 5,
    /// Checkpoints, two slots a group.
    Checkpoint = 6,
    /// Hash table, buckets of keys and pointers in levels (GPHash, FAST 2025).
    LevelHash = 7,
    /// Hash table, slots of key and pointer in windows; its tags are in the GPU's memory.
    TagHash = 8,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [ObjectKind; 8] = [
        ObjectKind::Data,
        ObjectKind::SealedLog,
        ObjectKind::TailLog,
        ObjectKind::ConventionalLog,
        ObjectKind::Batch,
        ObjectKind::Checkpoint,
        ObjectKind::LevelHash,
        ObjectKind::TagHash,
    ];

    /// The kind of a code.
    pub fn from_code(code: u32) -> Option<ObjectKind> {
        ObjectKind::ALL.into_iter().find(|&kind| kind as u32 == code)
    }

    /// Name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Data => "data",
            ObjectKind::SealedLog => "sealed log",
            ObjectKind::TailLog => "tail log",
            ObjectKind::ConventionalLog => "conventional log",
            ObjectKind::Batch => "batch",
            ObjectKind::Checkpoint => "checkpoint",
            ObjectKind::LevelHash => "hash table in levels",
            ObjectKind::TagHash => "hash table in windows",
        }
    }

    /// Whether an [`ObjectHead`] stands before it, and a word behind that.
    pub const fn has_head(self) -> bool {
        !matches!(self, ObjectKind::Data)
    }

    /// Whether it is a hash table: [`OBJECT_GROWTH`] holds a sealed word, or 0.
    pub const fn is_table(self) -> bool {
        matches!(self, ObjectKind::LevelHash | ObjectKind::TagHash)
    }

    /// Whether [`OBJECT_WORD`] holds a sealed word.
    pub const fn has_word(self) -> bool {
        self.has_head() && !matches!(self, ObjectKind::Checkpoint)
    }
}

layout! {
    /// Head of a region, sealed with no body; written last when a region is created, and never
    /// changed.
    RegionHead, 64 {
        /// [`REGION_MAGIC`].
        0 magic: u64,
        /// [`REGION_VERSION`].
        8 version: u32,
        /// Identifier, not 0.
        12 id: u32,
        /// Bytes of the region.
        16 bytes: u64,
        /// Reserved zeros.
        24 reserved: [u8; 32],
        /// Reserved zeros.
        56 reserved_tail: u32,
        /// Checksum of the head.
        60 crc: u32,
    }
}

layout! {
    /// Head of an object, sealed with no body; written when the object is created, and never
    /// changed.
    ObjectHead, 64 {
        /// [`OBJECT_MAGIC`].
        0 magic: u32,
        /// [`OBJECT_VERSION`].
        4 version: u16,
        /// [`ObjectKind`].
        6 kind: u16,
        /// Blocks of the launches of a hierarchical log, partitions of a conventional one, groups
        /// of checkpoints, buckets of a hash table's top level (its stash aside).
        8 blocks: u32,
        /// Threads a block; elements a group of checkpoints; of a hash table slots a bucket, hash
        /// functions, levels, and how often it can double, a byte each.
        12 threads: u32,
        /// 4-byte words of a log's entry, or of a hash table's value.
        16 words: u32,
        /// Entries a thread; words a partition; windows of a hash table.
        20 depth: u32,
        /// Offset in the object of the data: stripes, partitions, slots of checkpoints or of a hash
        /// table.
        24 data: u64,
        /// Bytes of the data.
        32 data_bytes: u64,
        /// Offset in the object of the tails of a tail log, or of the values' cells of a hash
        /// table.
        40 tails: u64,
        /// Bytes from partition to partition, or from slot to slot; of a hash table spare cells, in
        /// each window, and from bit 32 on bytes of a key (0: 8 bytes, in the slot; else behind the
        /// value in its cell), bit 63: with its length in the first two.
        48 stride: u64,
        /// Buckets of a hash table's stash.
        56 stash: u32,
        /// Checksum of the head.
        60 crc: u32,
    }
}

/// Magic of a [`CheckpointHead`]: "NPGC".
pub const CHECKPOINT_MAGIC: u32 = u32::from_le_bytes(*b"NPGC");
/// Slots of a group of checkpoints. The valid one with the higher sequence counts; the next
/// checkpoint writes the other.
pub const CHECKPOINT_SLOTS: u64 = 2;

layout! {
    /// Head of a slot of checkpoints, sealed over the table of elements, which follows it; written
    /// behind the data.
    CheckpointHead, 64 {
        /// [`CHECKPOINT_MAGIC`].
        0 magic: u32,
        /// Group.
        4 group: u32,
        /// Rises with every checkpoint of the group.
        8 sequence: u64,
        /// Digest of the data.
        16 digest: u64,
        /// Elements in the table.
        24 elements: u32,
        /// Reserved zeros.
        28 reserved: [u8; 32],
        /// Checksum of table and head.
        60 crc: u32,
    }
}

layout! {
    /// An element of a checkpoint.
    CheckpointElement, 64 {
        /// Name, filled with zeros.
        0 name: [u8; 32],
        /// Bytes.
        32 bytes: u64,
        /// Offset of its copy in the slot.
        40 offset: u64,
        /// Reserved zeros.
        48 reserved: [u8; 16],
    }
}

/// What a batch is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchState {
    /// Nothing: its logs do not count.
    Idle,
    /// Kernels store; a crash now is undone by its logs.
    Active,
}

/// The identifier of a batch's word: a generation and whether it is active.
pub const fn batch_word(generation: u32, state: BatchState) -> u64 {
    generation as u64 | (matches!(state, BatchState::Active) as u64) << 32
}

/// What an identifier of a batch's word says; `None` for one that no batch has.
pub const fn open_batch_word(id: u64) -> Option<(u32, BatchState)> {
    match id >> 32 {
        0 => Some((id as u32, BatchState::Idle)),
        1 => Some((id as u32, BatchState::Active)),
        _ => None,
    }
}

/// What a hash table is doing to grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum GrowthPhase {
    /// Nothing.
    #[default]
    Idle = 0,
    /// Pairs are copied to what is not in use yet: recovery clears that.
    Copying = 1,
    /// What it has grown by is in use, and copies are left where they were: recovery clears them.
    Clearing = 2,
}

/// The identifier of a hash table's growth: windows in use, or how often its levels have grown, and
/// what it is doing.
pub const fn growth_word(grown: u32, phase: GrowthPhase) -> u64 {
    grown as u64 | (phase as u64) << 32
}

/// What an identifier of a hash table's growth says; `None` for one that no table has.
pub const fn open_growth_word(id: u64) -> Option<(u32, GrowthPhase)> {
    let phase = match id >> 32 {
        0 => GrowthPhase::Idle,
        1 => GrowthPhase::Copying,
        2 => GrowthPhase::Clearing,
        _ => return None,
    };
    Some((id as u32, phase))
}
