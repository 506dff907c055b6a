//! What lies in persistent memory: pools, log rings and log entries, and the card's table of pools.
//!
//! A **pool** is, in this order and each part on a 4 KiB boundary: [`PoolHead`], one log ring per
//! lane, the page table, the pages. The first `pages` pages are the homes of the logical pages,
//! which programs see as the heap; the `spare` pages behind them are for shadow paging. A word of
//! the page table says where its logical page is: 0 for its home, else [`seal::seal_word`] of the
//! number of a page.
//!
//! A **striped pool** is one pool for programs and a pool, a *member*, on each of several cards:
//! stripe k of the heap lies on member k mod n, behind its earlier stripes; so do the words of its
//! page table. Each member has rings and spare pages of its own, and all have the same shape.
//!
//! A **log ring** belongs to one (pool, thread). Its first [`RING_HEAD_BYTES`] hold the words
//! below, each in a line of its own because what a command writes is owned in whole lines; the rest
//! is log slots.
//! A **log entry** is one head line ([`EntryHead`]) and the whole lines that the logged range
//! touches: data keeps its offset in the line, bytes outside the range are zero, and rollback
//! writes exactly `length` bytes. Deleting a transaction's log is one 8-byte store: the epoch word
//! becomes the transaction's identifier, and only entries above it count.

use crate::geometry::{LINE, LINE_U64};
use crate::layout::layout;
use crate::seal;

/// Bytes at the start of a ring that hold its words.
pub const RING_HEAD_BYTES: u64 = 4 * LINE_U64;
/// Offset in the ring of the epoch word ([`seal::seal_word`] of the last committed transaction):
/// undo entries, checkpoints and shadow copies count only above it.
pub const RING_EPOCH: u64 = 0;
/// Offset in the ring of the redo commit word: the last transaction whose redo log is complete.
pub const RING_REDO_COMMITTED: u64 = LINE_U64;
/// Offset in the ring of the redo applied word: the last transaction whose redo log was applied.
/// Redo entries of the committed transaction count only above it.
pub const RING_REDO_APPLIED: u64 = 2 * LINE_U64;
/// Offset in the ring of the extent word ([`seal::seal_word`] of a number of bytes): log entries
/// lie in so many bytes from the ring's start. 0 stands for the whole ring.
pub const RING_EXTENT: u64 = 3 * LINE_U64;

/// Magic of an [`EntryHead`]: "NPLE".
pub const ENTRY_MAGIC: u32 = u32::from_le_bytes(*b"NPLE");
/// Version of the log entry format.
pub const ENTRY_VERSION: u8 = 1;

/// What a log entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// Old value, restored when the transaction did not commit.
    Undo = 1,
    /// New value, applied when the transaction committed.
    Redo = 2,
    /// Old page, restored when its epoch was not cut.
    Checkpoint = 3,
}

impl EntryKind {
    /// The kind of a code.
    pub fn from_code(code: u8) -> Option<EntryKind> {
        match code {
            1 => Some(EntryKind::Undo),
            2 => Some(EntryKind::Redo),
            3 => Some(EntryKind::Checkpoint),
            _ => None,
        }
    }
}

layout! {
    /// Head line of a log entry, sealed over its data lines.
    EntryHead, 64 {
        /// [`ENTRY_MAGIC`].
        0 magic: u32,
        /// Code of [`EntryKind`].
        4 kind: u8,
        /// [`ENTRY_VERSION`].
        5 version: u8,
        /// Thread of the ring.
        6 thread: u16,
        /// Rises with every entry of the ring and names its slot ([`entry_sequence`]); rollback
        /// goes from high to low.
        8 sequence: u64,
        /// Transaction or epoch.
        16 txid: u64,
        /// Offset in the pool of the logged range.
        24 offset: u64,
        /// Bytes of the logged range.
        32 length: u32,
        /// Pool identifier.
        36 pool: u32,
        /// Devices that take part in the transaction.
        40 participants: u32,
        /// Reserved zeros.
        44 reserved: [u8; 16],
        /// Checksum of data lines and head.
        60 crc: u32,
    }
}

/// Whole lines that `length` bytes at `offset` touch.
#[inline]
pub fn lines_of(offset: u64, length: impl Into<u64>) -> u64 {
    match length.into() {
        0 => 0,
        length => (offset % LINE_U64 + length).div_ceil(LINE_U64),
    }
}

/// Bytes of the log slot for `length` bytes at `offset`: the head and the touched lines.
#[inline]
pub fn entry_bytes(offset: u64, length: u32) -> u64 {
    LINE_U64 * (1 + lines_of(offset, length))
}

/// Offset in the slot of the first byte of the logged range.
#[inline]
pub fn entry_data(offset: u64) -> u64 {
    LINE_U64 + offset % LINE_U64
}

impl EntryHead {
    /// The sealed head and the data lines of a log entry for `data` at `self.offset`.
    ///
    /// # Panics
    /// If `data` is not `self.length` bytes.
    pub fn encode(&self, data: &[u8]) -> Vec<u8> {
        let mut entry = Vec::new();
        self.encode_into(&mut entry, |bytes| bytes.copy_from_slice(data));
        entry
    }

    /// Makes `entry` the sealed head and the data lines of a log entry, whose data `fill` puts into
    /// its bytes. What memory `entry` has is used again.
    pub fn encode_into(&self, entry: &mut Vec<u8>, fill: impl FnOnce(&mut [u8])) {
        let start = entry_data(self.offset) as usize;
        let end = start + self.length as usize;
        entry.resize(entry_bytes(self.offset, self.length) as usize, 0);
        entry[LINE..start].fill(0);
        fill(&mut entry[start..end]);
        entry[end..].fill(0);
        self.seal(entry);
    }

    /// Puts the sealed head in front of the data lines that `entry` holds behind its first line.
    fn seal(&self, entry: &mut [u8]) {
        let mut head = EntryHead { crc: 0, ..*self }.to_bytes();
        seal::seal(&entry[LINE..], &mut head);
        entry[..LINE].copy_from_slice(&head);
    }

    /// The head at the start of `slot`, if it is one and its data is whole.
    ///
    /// `slot` reaches to the end of the ring; an entry that would leave it is not valid.
    pub fn decode(slot: &[u8]) -> Option<EntryHead> {
        let bytes: &[u8; LINE] = slot.get(..LINE)?.try_into().ok()?;
        let head = EntryHead::from_bytes(bytes);
        let plausible = head.length > 0 && seal::is_identifier(head.txid);
        if head.magic != ENTRY_MAGIC || head.version != ENTRY_VERSION || !plausible {
            return None;
        }
        let body = slot.get(LINE..entry_bytes(head.offset, head.length) as usize)?;
        seal::is_sealed(body, bytes).then_some(head)
    }
}

/// Magic of a [`PoolHead`]: "NearPool".
pub const POOL_MAGIC: u64 = u64::from_le_bytes(*b"NearPool");
/// Version of the pool format.
pub const POOL_VERSION: u32 = 1;
/// Version of pools whose heap has tables of words that are sealed ([`seal::seal_bits`]): those of
/// direct pools.
pub const SEALED_VERSION: u32 = 3;
/// Version of pools as those whose runs may have several chunks, and objects of more sizes
/// ([`ChunkWord::Run`]).
pub const SPAN_VERSION: u32 = 4;
/// Version in the heads of members of a striped pool, so that a library that knows none of them
/// refuses a member alone.
pub const MEMBER_VERSION: u32 = 2;
/// Smallest stripe of a striped pool, in bytes: a huge page of the host. Stripes are powers of two.
pub const MIN_STRIPE_BYTES: u32 = 2 << 20;
/// Offset in a pool on a card of the word that says whether the processor's caches may hold lines
/// of it that nobody vouches for: 0 when it was closed in order, else [`seal::seal_word`] of a
/// number for the boot of the host on which it was opened last; 0 where that is not known. It
/// matters to that boot alone, so that nobody waits until it is durable.
pub const POOL_OPENED: u64 = LINE_U64;
/// Offset in a pool of the word that says how far it has grown: 0 for not at all, else
/// [`seal::seal_word`] of the page number of its end. That one store makes the pool larger. Only
/// pools of [`SPAN_VERSION`] grow.
pub const POOL_GROWN: u64 = 3 * LINE_U64;
/// Offset in a pool of the head that is about to take the place of the first line, when a pool of
/// an earlier version is to grow; else zeros. While the first line is torn, this one counts.
pub const POOL_NEXT_HEAD: u64 = 4 * LINE_U64;
/// Bytes of a page: the unit of checkpoints and shadow copies, and of the parts of a pool.
pub const PAGE_BYTES: u64 = 4096;
/// Most lanes of a pool.
pub const MAX_LANES: u16 = 64;
/// Smallest log ring: the words and three checkpoints.
pub const MIN_RING_BYTES: u32 = 16 * 1024;
/// Largest log ring, so that a slot's place fits in a sequence ([`entry_sequence`]).
pub const MAX_RING_BYTES: u32 = 64 * 1024 * 1024;

layout! {
    /// Head of a pool, sealed with no body; written last when a pool is created, and never changed
    /// but for a new version.
    PoolHead, 64 {
        /// [`POOL_MAGIC`].
        0 magic: u64,
        /// [`POOL_VERSION`], [`SEALED_VERSION`], [`SPAN_VERSION`], or in a member of a striped pool
        /// [`MEMBER_VERSION`].
        8 version: u32,
        /// Pool identifier, not 0; the same in all members of a striped pool.
        12 pool: u32,
        /// Bytes of the pool when it was made.
        16 bytes: u64,
        /// Bytes of each log ring, a multiple of 4096.
        24 ring_bytes: u32,
        /// Lanes: log rings, numbered by thread.
        28 lanes: u16,
        /// Number of this member of a striped pool, from 0; else 0.
        30 member: u8,
        /// Members of the striped pool, 2 to 8; 0 for a pool that is not striped.
        31 members: u8,
        /// Logical pages: the heap. In a member whole stripes.
        32 pages: u64,
        /// Pages beyond those.
        40 spare: u64,
        /// Bytes of a stripe; 0 for a pool that is not striped.
        48 stripe: u32,
        /// In memory [`PoolHead::grown`]; in the line on the medium zeros: there it is
        /// [`POOL_GROWN`] that says so.
        52 end: [u8; 8],
        /// Checksum.
        60 crc: u32,
    }
}

impl PoolHead {
    /// Offset of the log ring of a lane.
    pub fn ring(&self, lane: u16) -> u64 {
        PAGE_BYTES + lane as u64 * self.ring_bytes as u64
    }
    /// Offset of the page table: one 8-byte word per logical page.
    pub fn table(&self) -> u64 {
        self.ring(self.lanes)
    }
    /// Offset of the first page, which is where the heap starts.
    pub fn heap(&self) -> u64 {
        self.table() + (self.pages * 8).next_multiple_of(PAGE_BYTES)
    }
    /// Offset of the end of the heap.
    pub fn heap_end(&self) -> u64 {
        self.heap() + self.pages * PAGE_BYTES
    }
    /// Offset of the end of the last page: at most [`PoolHead::bytes`].
    pub fn end(&self) -> u64 {
        self.heap_end() + self.spare * PAGE_BYTES
    }
    /// Offset of the end of a pool that has grown, 0 for one that has not.
    pub fn grown(&self) -> u64 {
        u64::from_le_bytes(self.end)
    }
    /// The head of the same pool that ends at an offset; 0 for one that has not grown.
    pub fn with_grown(self, end: u64) -> PoolHead {
        PoolHead { end: end.to_le_bytes(), ..self }
    }
    /// Offset of the end of all that transactions may change, where the pool has grown too.
    pub fn last(&self) -> u64 {
        if self.grown() == 0 { self.end() } else { self.grown() }
    }
}

/// Bytes of a chunk of the heap.
pub const CHUNK_BYTES: u64 = 16 * 1024;
/// Smallest distance of two objects, in bytes.
pub const UNIT_BYTES: u64 = 16;
/// Bytes of the allocation bitmap of a chunk: one bit per object, lowest first.
pub const BITMAP_BYTES: u64 = CHUNK_BYTES / UNIT_BYTES / 8;
/// Objects that a word of a sealed bitmap has bits for.
pub const SEALED_BITS: u64 = 48;
/// Bytes of the allocation bitmap of a chunk whose words are sealed, in whole lines.
pub const SEALED_BITMAP_BYTES: u64 = ((CHUNK_BYTES / UNIT_BYTES).div_ceil(SEALED_BITS) * 8).next_multiple_of(LINE_U64);
/// Chunks of the smallest zone: see [`first_zone`].
pub const LEAST_ZONE: u32 = 256;

/// Chunks of the first zone of a pool that was made with so many chunks.
///
/// What a pool grows by has tables of its own. Zones follow the last chunk that there was when the
/// pool was made, each twice as long as the one in front of it, so that there is room for large
/// objects; the last one may have fewer chunks. A zone begins with its chunk words, and behind them
/// the bitmaps, of as many chunks as it can have, in chunks of their own ([`ChunkWord::Tables`]).
pub const fn first_zone(chunks: u32) -> u32 {
    let share = (chunks / 16).next_power_of_two();
    if share < LEAST_ZONE { LEAST_ZONE } else { share }
}

/// Offset in a zone of so many chunks of its bitmaps.
pub const fn zone_bitmaps(chunks: u64) -> u64 {
    chunks * 8
}

/// Chunks of a zone that are its tables.
pub const fn zone_tables(chunks: u64) -> u64 {
    (zone_bitmaps(chunks) + chunks * SEALED_BITMAP_BYTES).div_ceil(CHUNK_BYTES)
}

/// Offset in the heap of the root: the 8-byte offset in the pool of the object from which programs
/// find all others. One [`ChunkWord`] per chunk follows on the next line, then the bitmaps, then,
/// on a page boundary, the chunks. Where the tables are sealed ([`SEALED_VERSION`],
/// [`SPAN_VERSION`]) each of these words is.
pub const HEAP_ROOT: u64 = 0;
/// Offset in the heap of the chunk words.
pub const HEAP_CHUNK_WORDS: u64 = LINE_U64;

/// The state of a chunk: an 8-byte word, 0 for a free chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkWord {
    /// Nothing in it; its bitmap is zero.
    Free,
    /// The first chunk of objects of one size. Its bitmap is that of all of them. While there are
    /// none, the words of its other chunks are those of chunks by themselves; else they are free
    /// ones or of runs without objects, and not looked at.
    Run {
        /// Bytes of an object, a multiple of [`UNIT_BYTES`]. Before [`SPAN_VERSION`] at most
        /// [`CHUNK_BYTES`] / 2.
        object_bytes: u32,
        /// Chunks of the run. Before [`SPAN_VERSION`] 1.
        chunks: u32,
    },
    /// The first chunk of an object that has whole chunks. The words of its other chunks are 0 and
    /// not looked at.
    Large {
        /// Chunks of the object.
        chunks: u32,
    },
    /// The first chunk of a log segment of a direct pool ([`crate::record`]); otherwise like
    /// `Large`.
    Log {
        /// Chunks of the segment.
        chunks: u32,
    },
    /// The first chunk of the tables of a zone ([`first_zone`]); otherwise like `Large`.
    Tables {
        /// Chunks of the tables: [`zone_tables`].
        chunks: u32,
    },
}

impl ChunkWord {
    const RUN: u64 = 0x52 << 56;
    /// A run that is not of one chunk, or whose objects are larger than half of one: chunks (bits
    /// 31:20), units of an object (bits 19:0).
    const SPAN: u64 = 0x53 << 56;
    const LARGE: u64 = 0x4c << 56;
    const LOG: u64 = 0x47 << 56;
    const TABLES: u64 = 0x54 << 56;

    /// The 8-byte word.
    pub fn encode(self) -> u64 {
        match self {
            ChunkWord::Free => 0,
            ChunkWord::Run { object_bytes, chunks: 1 } if object_bytes as u64 <= CHUNK_BYTES / 2 => {
                Self::RUN | object_bytes as u64
            }
            ChunkWord::Run { object_bytes, chunks } => {
                Self::SPAN | (chunks as u64 & 0xfff) << 20 | (object_bytes as u64 / UNIT_BYTES) & 0xf_ffff
            }
            ChunkWord::Large { chunks } => Self::LARGE | chunks as u64,
            ChunkWord::Log { chunks } => Self::LOG | chunks as u64,
            ChunkWord::Tables { chunks } => Self::TABLES | chunks as u64,
        }
    }

    /// Reads a word that [`ChunkWord::encode`] made; `None` where it cannot have.
    #[inline]
    pub fn of_encoded(word: u64) -> Option<ChunkWord> {
        let value = word as u32;
        match word >> 56 << 56 {
            Self::RUN => Some(ChunkWord::Run { object_bytes: value, chunks: 1 }),
            Self::SPAN => {
                let object_bytes = (value & 0xf_ffff) * UNIT_BYTES as u32;
                Some(ChunkWord::Run { object_bytes, chunks: value >> 20 })
            }
            Self::LARGE => Some(ChunkWord::Large { chunks: value }),
            Self::LOG => Some(ChunkWord::Log { chunks: value }),
            Self::TABLES => Some(ChunkWord::Tables { chunks: value }),
            0 => Some(ChunkWord::Free),
            _ => None,
        }
    }

    /// Reads a word; `None` for one that no library writes.
    pub fn decode(word: u64) -> Option<ChunkWord> {
        let decoded = Self::of_encoded(word)?;
        let sound = match decoded {
            ChunkWord::Free => true,
            ChunkWord::Run { object_bytes: n, chunks } => {
                n > 0 && (n as u64).is_multiple_of(UNIT_BYTES) && n as u64 <= chunks as u64 * CHUNK_BYTES
            }
            ChunkWord::Large { chunks } | ChunkWord::Log { chunks } | ChunkWord::Tables { chunks } => chunks > 0,
        };
        (sound && decoded.encode() == word).then_some(decoded)
    }

    /// The 8-byte word of a sealed table.
    pub fn seal(self) -> u64 {
        let word = self.encode();
        seal::seal_bits(word >> 56 << 32 | word & 0xffff_ffff)
    }

    /// Reads a word of a sealed table; `None` for one that no library writes.
    pub fn open(word: u64) -> Option<ChunkWord> {
        let bits = seal::open_bits(word)?;
        let decoded = ChunkWord::decode(bits >> 32 << 56 | bits & 0xffff_ffff)?;
        (decoded.seal() == word).then_some(decoded)
    }
}

/// Magic of a [`DirectoryHead`]: "NPDR".
pub const DIRECTORY_MAGIC: u32 = u32::from_le_bytes(*b"NPDR");
/// Version of the card's table of pools.
pub const DIRECTORY_VERSION: u16 = 1;
/// Copies of the table, one after the other from [`crate::geometry::DIRECTORY_BASE`]. The valid one
/// with the highest generation counts; a change writes the other one, entries first.
pub const DIRECTORY_COPIES: u64 = 2;
/// Bytes of a copy.
pub const DIRECTORY_COPY_BYTES: u64 = crate::geometry::DIRECTORY_BYTES / DIRECTORY_COPIES;
/// Most pools of a card.
pub const DIRECTORY_ENTRIES: usize = DIRECTORY_COPY_BYTES as usize / LINE - 1;

layout! {
    /// Head of a copy of the card's table of pools, sealed over its entries, which follow it.
    DirectoryHead, 64 {
        /// [`DIRECTORY_MAGIC`].
        0 magic: u32,
        /// [`DIRECTORY_VERSION`].
        4 version: u16,
        /// Entries that follow.
        6 entries: u16,
        /// Rises with every change.
        8 generation: u64,
        /// Reserved zeros.
        16 reserved: [u8; 32],
        /// Reserved zeros.
        48 reserved_tail: [u8; 12],
        /// Checksum of entries and head.
        60 crc: u32,
    }
}

layout! {
    /// One pool in the card's table of pools.
    DirectoryEntry, 64 {
        /// Name, UTF-8, padded with zeros.
        0 name: [u8; 32],
        /// Device address of the pool, a multiple of 4096.
        32 base: u64,
        /// Bytes of the pool.
        40 bytes: u64,
        /// Pool identifier.
        48 pool: u32,
        /// Reserved zeros.
        52 reserved: [u8; 12],
    }
}

/// The sequence of a log entry: the `count`-th of its ring, in the slot that starts `slot` bytes
/// from the start of the ring.
///
/// Sequences rise with the count. Because they name the slot too, bytes that merely look like an
/// entry (a logged copy of one, inside the data of a torn entry) are told from one: they lie
/// elsewhere.
#[inline]
pub fn entry_sequence(count: u64, slot: u64) -> u64 {
    assert!(slot.is_multiple_of(LINE_U64) && slot < MAX_RING_BYTES as u64, "a slot is a line of a ring");
    assert!(count < 1 << 44, "a ring counts 2^44 entries");
    (count << 20) | (slot / LINE_U64)
}

/// Count and slot (in bytes) of a sequence.
pub fn sequence_parts(sequence: u64) -> (u64, u64) {
    (sequence >> 20, (sequence & 0xf_ffff) * LINE_U64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_of_a_pool_follow_each_other_on_page_boundaries() {
        let head = PoolHead { ring_bytes: 16384, lanes: 3, pages: 513, spare: 7, ..PoolHead::default() };
        assert_eq!(head.ring(0), 4096);
        assert_eq!(head.table(), 4096 + 3 * 16384);
        assert_eq!(head.heap(), head.table() + 8192);
        assert_eq!(head.end(), head.heap() + 520 * 4096);
    }

    #[test]
    fn zones_spend_little_on_their_tables() {
        assert_eq!((first_zone(10), first_zone(4000), first_zone(65_000)), (256, 256, 4096));
        assert_eq!((zone_tables(256), zone_tables(4096)), (4, 50));
    }

    #[test]
    fn chunk_words_decode_to_what_was_encoded() {
        for word in [
            ChunkWord::Free,
            ChunkWord::Run { object_bytes: 48, chunks: 1 },
            ChunkWord::Run { object_bytes: 48, chunks: 2 },
            ChunkWord::Run { object_bytes: 16384, chunks: 1 },
            ChunkWord::Run { object_bytes: 65552, chunks: 61 },
            ChunkWord::Large { chunks: 9 },
            ChunkWord::Log { chunks: 3 },
            ChunkWord::Tables { chunks: 4 },
        ] {
            assert_eq!(ChunkWord::decode(word.encode()), Some(word));
            assert_eq!(ChunkWord::open(word.seal()), Some(word));
            assert!((0..64).all(|bit| ChunkWord::open(word.seal() ^ 1 << bit).is_none()));
        }
        for bad in [
            1,
            ChunkWord::Run { object_bytes: 17, chunks: 1 }.encode(),
            0x53 << 56 | 1 << 20 | 3,
            ChunkWord::Large { chunks: 0 }.encode(),
        ] {
            assert_eq!(ChunkWord::decode(bad), None);
        }
    }

    /// A range is moved by lines as a whole, so two lines of offsets are all there are.
    #[test]
    fn the_lines_of_every_short_range_are_those_that_its_bytes_lie_in() {
        for offset in 0..2 * LINE_U64 {
            for length in 0..5 * LINE as u32 {
                let touched = (offset..offset + u64::from(length)).map(|byte| byte / LINE_U64);
                let touched: std::collections::BTreeSet<u64> = touched.collect();
                assert_eq!(lines_of(offset, length), touched.len() as u64, "{length} bytes at {offset}");
                assert_eq!(lines_of(offset + (1 << 39), length), touched.len() as u64);
                let room = entry_bytes(offset, length) - entry_data(offset);
                assert!(room >= u64::from(length) && entry_data(offset) % LINE_U64 == offset % LINE_U64);
            }
        }
    }

    #[test]
    fn a_sequence_names_its_slot() {
        assert_eq!(sequence_parts(entry_sequence(77, 4096)), (77, 4096));
        assert!(entry_sequence(78, 0) > entry_sequence(77, 4096));
    }

    proptest! {
        #[test]
        fn an_entry_survives_and_a_torn_one_is_not_valid(
            offset in 0u64..4096, data in prop::collection::vec(any::<u8>(), 1..300), torn in 0usize..6,
        ) {
            let head = EntryHead {
                magic: ENTRY_MAGIC, kind: EntryKind::Undo as u8, version: ENTRY_VERSION,
                txid: 3, offset, length: data.len() as u32, ..EntryHead::default()
            };
            let mut entry = head.encode(&data);
            prop_assert_eq!(EntryHead::decode(&entry).map(|h| EntryHead { crc: 0, ..h }), Some(head));
            let start = entry_data(offset) as usize;
            prop_assert_eq!(&entry[start..start + data.len()], &data[..]);
            let line = torn % (entry.len() / LINE);
            let old = entry[line * LINE..][..LINE].to_vec();
            entry[line * LINE..][..LINE].fill(0);
            if old.iter().any(|&b| b != 0) { prop_assert_eq!(EntryHead::decode(&entry), None); }
        }
    }
}
