//! What a rank's pool holds. This file is the format's only definition.
//!
//! The root says which cut the rank has sealed last, and which it knows to be sealed by all. An
//! array has a list of versions, oldest first, and a *base*: what every block was when the oldest
//! version was begun. A version is one object: a head, an item for each block that changed, rising,
//! then the bytes of the blocks.

use nearpm::prelude::*;

/// Magic of a root: "NearGVR1".
pub const MAGIC: u64 = u64::from_le_bytes(*b"NearGVR1");

/// Longest name of an array, in bytes.
pub const MOST_NAME: usize = 64;

/// Root of a rank's pool.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Root {
    /// [`MAGIC`].
    pub magic: u64,
    /// The same in the pools of all ranks.
    pub job: u64,
    /// Number of the rank.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// The newest cut that this rank has sealed.
    pub sealed: u64,
    /// The newest cut of which this rank knows that all have sealed it.
    pub committed: u64,
    /// Arrays, by the order of their making, backwards.
    pub arrays: Option<Ptr<Head>>,
}

/// An array.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Head {
    /// The one that was made before.
    pub next: Option<Ptr<Head>>,
    /// Its name; zeros behind it.
    pub name: [u8; MOST_NAME],
    /// Kind of its elements.
    pub kind: u32,
    /// Dimensions.
    pub dimensions: u32,
    /// Elements by dimension.
    pub dims: [u64; crate::array::MOST_DIMENSIONS],
    /// Bytes of a block.
    pub block: u64,
    /// Versions that are kept.
    pub keep: u64,
    /// Blocks of a log; 0 for as many as are useful.
    pub log_blocks: u64,
    /// Flags: bit 0 checksums in memory, bit 1 compression.
    pub flags: u64,
    /// Blocks of this rank's part.
    pub blocks: u64,
    /// The oldest version.
    pub oldest: Option<Ptr<Sealed>>,
    /// The newest one.
    pub newest: Option<Ptr<Sealed>>,
    /// An item for each block.
    pub base: Option<Ptr<Item>>,
}

/// Head of a version, or of blocks that were copied together for the base.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Sealed {
    /// The next newer version.
    pub next: Option<Ptr<Sealed>>,
    /// The cut that it belongs to.
    pub cut: u64,
    /// Its number.
    pub version: u64,
    /// What the program called it; zeros behind it.
    pub label: [u8; crate::array::MOST_LABEL],
    /// Items.
    pub count: u64,
    /// Items of the base that point into it, plus 1 while it is a version.
    pub users: u64,
    /// Bytes of the object.
    pub bytes: u64,
    /// CRC-32C of the items, and of cut, version, label and count.
    pub sum: u64,
}

/// How a block's bytes are kept.
pub const RAW: u32 = 0;
/// By LZ4 (block format, without its length).
pub const LZ4: u32 = 1;
/// Runs of words that differ from the version before.
pub const DELTA: u32 = 2;
/// By LZ4, the first bytes of all words first, then the second ones, and so on: bytes of
/// floating-point numbers that are alike follow each other. What is left of the last word is
/// behind.
pub const PLANES: u32 = 3;
/// As [`PLANES`], of the exclusive or with the version before: where numbers change little, most of
/// it is zeros.
pub const CHANGES: u32 = 4;

/// Whether what is kept is understood by the version before.
pub fn builds_on(encoding: u32) -> bool {
    matches!(encoding, DELTA | CHANGES)
}

/// A block of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Persistent)]
#[repr(C)]
pub struct Item {
    /// Its number.
    pub block: u64,
    /// Offset of its bytes in the pool; 0: all zeros (in a base).
    pub at: u64,
    /// The object that they lie in.
    pub object: u64,
    /// How many.
    pub bytes: u32,
    /// How they are kept.
    pub encoding: u32,
    /// CRC-32C of the block.
    pub sum: u32,
    /// CRC-32C of the bytes that are kept.
    pub kept_sum: u32,
}

impl Item {
    /// A block that was never written.
    pub const ZERO: Item = Item { block: 0, at: 0, object: 0, bytes: 0, encoding: RAW, sum: 0, kept_sum: 0 };

    fn words(&self) -> [u64; 6] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let Item { block, at, object, .. } = *self;
        [block, at, object, pair(self.bytes, self.encoding), pair(self.sum, self.kept_sum), 0]
    }
}

/// Checksum of a version's head and items.
pub fn sum(head: &Sealed, items: &[Item]) -> u64 {
    let mut sum = crc32c::crc32c(bytemuck::cast_slice(&[head.cut, head.version, head.count, head.bytes]));
    sum = crc32c::crc32c_append(sum, &head.label);
    for item in items {
        sum = crc32c::crc32c_append(sum, bytemuck::cast_slice(&item.words()));
    }
    u64::from(sum)
}

/// A text in a field of fixed length.
pub fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let length = text.len().min(N);
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    field
}

/// The text of a field.
pub fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
