//! The persistence domain: what the power-fail save keeps, and where it lies in the save area.
//!
//! The save area starts at [`crate::geometry::SAVE_BASE`]:
//!
//! | line | holds | written |
//! |---|---|---|
//! | 0 | the arm word and the firmware word | one 8-byte atomic store each |
//! | 1 | the progress word | one 8-byte atomic store |
//! | 2 | [`SaveHead`] | last, when all other lines are durable |
//! | 3 .. 19 | one [`SavedMapping`] per entry of the mapping table | at power-fail |
//! | 19 .. | two lines per item: 64 bytes of command or data, then [`SavedItem`] | at power-fail |
//!
//! **States.** The arm word says which generation runs. At power-up:
//! - arm word `Running(g)` and a valid head of generation `g`: the save of `g` is complete; replay
//!   it;
//! - arm word `Running(g)` and anything else: the save of `g` was torn or never made; that is a
//!   loss, reported as such, and no older image is used;
//! - arm word `Clean(g)` or a blank area: nothing to replay.
//!
//! When everything is replayed, one store of `Running(g + 1)` both consumes the image and arms the
//! next generation. Until then the image stays as it is, and the progress word counts the items
//! that are durable, so that a further power cut resumes the replay instead of repeating it: an
//! undo log that was replayed must not be replayed again over the stores that followed it.

use crate::geometry::{ADDRESS_BITS, HOST_QUEUE_LINES, LINE, MAP_ENTRIES, PARKED_COMMANDS, REQUEST_SLOTS, SAVE_BYTES};
use crate::layout::layout;

/// Magic of a [`SaveHead`]: "NPSV".
pub const SAVE_MAGIC: u32 = u32::from_le_bytes(*b"NPSV");
/// Version of the save area.
pub const SAVE_VERSION: u16 = 2;

/// Line of the arm and firmware words.
pub const ARM_LINE: usize = 0;
/// Byte offset of the firmware word in the save area.
pub const FIRMWARE_WORD_OFFSET: u64 = 8;
/// Line of the progress word.
pub const PROGRESS_LINE: usize = 1;
/// Line of the head.
pub const HEAD_LINE: usize = 2;
/// First line of the mappings, and of the sealed body.
pub const MAPPING_LINE: usize = 3;
/// First line of the items.
pub const ITEM_LINE: usize = MAPPING_LINE + MAP_ENTRIES;
/// Lines of one item.
pub const LINES_PER_ITEM: usize = 2;
/// Most items that a save holds.
pub const MAX_ITEMS: usize = REQUEST_SLOTS + HOST_QUEUE_LINES + PARKED_COMMANDS;
/// Lines of a full save area.
pub const SAVE_LINES: usize = ITEM_LINE + LINES_PER_ITEM * MAX_ITEMS;

const _: () = assert!(SAVE_LINES * LINE <= SAVE_BYTES as usize);

/// Tag in bits 63:48 of an arm word of a running generation: "RU".
pub const ARM_RUNNING: u16 = u16::from_le_bytes(*b"RU");
/// Tag in bits 63:48 of an arm word after a clean shutdown: "CL".
pub const ARM_CLEAN: u16 = u16::from_le_bytes(*b"CL");

/// The arm word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmWord {
    /// The area was never used.
    Blank,
    /// The generation was armed and has not been shut down.
    Running(u64),
    /// The generation ended by a clean shutdown.
    Clean(u64),
}

impl ArmWord {
    /// Reads a word; `None` for one that no card writes.
    pub fn decode(word: u64) -> Option<ArmWord> {
        let generation = word & ((1 << 48) - 1);
        match (word >> 48) as u16 {
            _ if word == 0 => Some(ArmWord::Blank),
            ARM_RUNNING => Some(ArmWord::Running(generation)),
            ARM_CLEAN => Some(ArmWord::Clean(generation)),
            _ => None,
        }
    }
    /// The 8-byte word.
    pub fn encode(self) -> u64 {
        match self {
            ArmWord::Blank => 0,
            ArmWord::Running(g) => g | (ARM_RUNNING as u64) << 48,
            ArmWord::Clean(g) => g | (ARM_CLEAN as u64) << 48,
        }
    }
}

/// The progress word of a replay: generation (31:0, low half), items that are durable (47:32) and,
/// of the next item, the instruction at which to resume (55:48); 63:56 are 0xa5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressWord {
    /// Low half of the generation being replayed.
    pub generation: u32,
    /// Items, in order, whose effects are durable.
    pub items: u16,
    /// Instruction at which the next item resumes; 0 starts it from its entry.
    pub resume: u8,
}

impl ProgressWord {
    /// Tag in bits 63:56.
    pub const TAG: u8 = 0xa5;

    /// The 8-byte word.
    pub fn encode(self) -> u64 {
        self.generation as u64 | (self.items as u64) << 32 | (self.resume as u64) << 48 | (Self::TAG as u64) << 56
    }
    /// Reads a word; `None` where the tag is not there (no replay has begun).
    pub fn decode(word: u64) -> Option<Self> {
        ((word >> 56) as u8 == Self::TAG).then_some(Self {
            generation: word as u32,
            items: (word >> 32) as u16,
            resume: (word >> 48) as u8,
        })
    }
}

/// The firmware word: checksum of the image in force (31:0), its slot (39:32), and 0xfe in 63:56.
pub fn firmware_word(slot: u8, crc: u32) -> u64 {
    crc as u64 | (slot as u64) << 32 | (FIRMWARE_WORD_TAG as u64) << 56
}
/// Tag in bits 63:56 of a firmware word.
pub const FIRMWARE_WORD_TAG: u8 = 0xfe;

layout! {
    /// Head of a save: sealed over the mapping and item lines, and written last.
    SaveHead, 64 {
        /// [`SAVE_MAGIC`].
        0 magic: u32,
        /// [`SAVE_VERSION`].
        4 version: u16,
        /// Items that follow the mappings.
        6 items: u16,
        /// Generation that was saved.
        8 generation: u64,
        /// Order number of the last accepted item.
        16 order: u64,
        /// Checksum of the firmware that accepted the items.
        24 firmware_crc: u32,
        /// Number of the device, for the participants of what is replayed.
        28 device: u8,
        /// Reserved zeros.
        29 reserved: [u8; 3],
        /// [`crate::registers::STORES_LOST`]: where it is not 0, the boot ends in
        /// [`crate::registers::state::LOSS`].
        32 stores_lost: u32,
        /// Reserved zeros.
        36 reserved_middle: [u8; 4],
        /// Lowest device address of a lost store.
        40 lost_first: u64,
        /// Highest device address of a lost store.
        48 lost_last: u64,
        /// Reserved zeros.
        56 reserved_tail: [u8; 4],
        /// Checksum of body and head.
        60 crc: u32,
    }
}

layout! {
    /// One entry of the address mapping table, as saved.
    SavedMapping, 64 {
        /// Bit 0 in use, bit 1 latched after a failed log, bit 2 an unmap was accepted, bit 3 a
        /// function-level reset came: the entry goes with its last parked command.
        0 flags: u8,
        /// Reserved zero.
        1 reserved: u8,
        /// Thread.
        2 thread: u16,
        /// Pool identifier.
        4 pool: u32,
        /// Device address of the pool.
        8 base: u64,
        /// Bytes of the pool.
        16 bytes: u64,
        /// Offset of the log ring in the pool.
        24 ring: u64,
        /// Bytes of the log ring.
        32 ring_bytes: u64,
        /// Last committed transaction.
        40 committed: u64,
        /// Last transaction of which other devices were told that it is reached.
        48 reached: u64,
        /// Reserved zeros.
        56 reserved_tail: [u8; 8],
    }
}

layout! {
    /// Second line of a saved item; the first holds the command, or the data of a host store.
    SavedItem, 64 {
        /// Place in the one order, from 1. Of a command that has waited for other devices the one
        /// under which it was accepted.
        0 order: u64,
        /// Host store: device address of the line.
        8 address: u64,
        /// Host store: one bit per byte to write.
        16 strobes: u64,
        /// [`ITEM_COMMAND`], [`ITEM_STORE`] or [`ITEM_PARKED`].
        24 kind: u8,
        /// Command: page that it came from.
        25 page: u8,
        /// Command: instruction at which a replay resumes; 0 starts it from its entry.
        26 resume: u8,
        /// Command: 1 where every participant has reported, so that it waits for nobody any more.
        27 released: u8,
        /// Reserved zeros.
        28 reserved: [u8; 32],
        /// Reserved zeros.
        60 reserved_tail: [u8; 4],
    }
}

/// [`SavedItem::kind`] of a command.
pub const ITEM_COMMAND: u8 = 1;
/// [`SavedItem::kind`] of a host store.
pub const ITEM_STORE: u8 = 2;
/// [`SavedItem::kind`] of a command that waits for other devices, or behind such a command: a
/// replay puts it back.
pub const ITEM_PARKED: u8 = 3;

/// Bits that the hardware must hold from power-fail until the save is durable, by structure.
///
/// This list is what sizes the persistence domain; the paper's figure of 7 kB (section 5.3.3) lacks
/// addresses, strobes and order numbers.
pub const PERSISTENCE_DOMAIN: &[(&str, usize, usize)] = &[
    ("request slot: command, order, page, resume, released, valid", REQUEST_SLOTS, 512 + 64 + 2 + 8 + 1 + 1),
    ("parked command: command, order, page, valid", PARKED_COMMANDS, 512 + 64 + 2 + 1),
    (
        "host queue line: data, address, strobes, order, valid",
        HOST_QUEUE_LINES,
        512 + (ADDRESS_BITS as usize - 6) + 64 + 64 + 1,
    ),
    (
        "mapping: pool, thread, base, bytes, ring, ring bytes, committed, reached, flags",
        MAP_ENTRIES,
        32 + 16 + 4 * ADDRESS_BITS as usize + 48 + 48 + 4,
    ),
    ("generation, order counter, firmware checksum, device number", 1, 48 + 64 + 32 + 5),
    ("stores that were lost: how many, first and last line", 1, 32 + 2 * (ADDRESS_BITS as usize - 6)),
];

/// Bytes of the persistence domain, rounded up.
pub fn persistence_domain_bytes() -> usize {
    PERSISTENCE_DOMAIN.iter().map(|&(_, entries, bits)| entries * bits).sum::<usize>().div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_decode_to_what_was_encoded() {
        for word in [ArmWord::Blank, ArmWord::Running(7), ArmWord::Clean((1 << 48) - 1)] {
            assert_eq!(ArmWord::decode(word.encode()), Some(word));
        }
        assert_eq!(ArmWord::decode(1), None);
        let progress = ProgressWord { generation: 9, items: 90, resume: 3 };
        assert_eq!(ProgressWord::decode(progress.encode()), Some(progress));
        assert_eq!(ProgressWord::decode(0), None);
    }

    #[test]
    fn the_domain_is_what_the_field_list_says() {
        let bits = 32 * 588 + 32 * 579 + 64 * 675 + 16 * 308 + 149 + 100usize;
        assert_eq!(persistence_domain_bytes(), bits.div_ceil(8));
    }
}
