//! Microinstructions, operand descriptors and the firmware image.
//!
//! An image has one 32-bit [`Descriptor`] per opcode, from which the dispatcher knows what to
//! translate, check and compare before a unit sees the command, and up to [`PROGRAM_WORDS`]
//! microinstructions, which the units run. A new mechanism is a new image, not a new card.

use crate::command::{Command, OPCODES};
use crate::layout::layout;

/// Version of the image format.
pub const IMAGE_FORMAT: u16 = 1;
/// Version of the microinstructions and descriptors.
pub const ISA_VERSION: u16 = 2;
/// Magic of an image: "NPFW".
pub const IMAGE_MAGIC: u32 = u32::from_le_bytes(*b"NPFW");
/// Words of the control store of a unit.
pub const PROGRAM_WORDS: usize = 128;
/// Bytes of an image: head line, descriptors, program.
pub const IMAGE_BYTES: usize = ImageHead::SIZE + OPCODES * 4 + PROGRAM_WORDS * 4;
/// Lines of an image. The body ([`crate::seal`]) is every line after the head.
pub const IMAGE_LINES: usize = IMAGE_BYTES / crate::geometry::LINE;

layout! {
    /// Head line of a firmware image; descriptors (opcode 0 first) and program words follow.
    ImageHead, 64 {
        /// [`IMAGE_MAGIC`].
        0 magic: u32,
        /// [`IMAGE_FORMAT`].
        4 format: u16,
        /// [`ISA_VERSION`].
        6 isa: u16,
        /// Words of the program that are used; the rest are zero.
        8 words: u32,
        /// Version of the programs, for people.
        12 revision: u32,
        /// Name, UTF-8, padded with zeros.
        16 name: [u8; 32],
        /// Reserved zeros.
        48 reserved: [u8; 12],
        /// Checksum of body and head.
        60 crc: u32,
    }
}

/// An address operand of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operand {
    /// The `source` field.
    Source = 0,
    /// The `destination` field.
    Destination = 1,
    /// The `auxiliary` field.
    Auxiliary = 2,
}

impl Operand {
    /// The operand of a two-bit code; 3 names none.
    pub fn from_code(code: u8) -> Option<Operand> {
        [Operand::Source, Operand::Destination, Operand::Auxiliary].get(code as usize).copied()
    }
}

impl Command {
    /// The field that holds an operand.
    pub fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Source => self.source,
            Operand::Destination => self.destination,
            Operand::Auxiliary => self.auxiliary,
        }
    }
}

/// How a command uses an operand's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Use {
    /// Not an address. (`auxiliary` may still be an immediate value.)
    None = 0,
    /// `length` bytes. `source` is read, the others are written.
    Bytes = 1,
    /// A log entry: one head line and the lines that `length` bytes at the logged operand touch.
    /// The address is 64-byte aligned.
    Entry = 2,
    /// One 8-byte word, 8-byte aligned.
    Word = 3,
}

/// Operand descriptor of an opcode: 32 bits.
///
/// | bits | meaning |
/// |---|---|
/// | 7:0 | first instruction of the program |
/// | 8 | valid |
/// | 10:9, 12:11, 14:13 | [`Use`] of source, destination, auxiliary |
/// | 17:15 | source, destination, auxiliary must lie in the log ring |
/// | 18 | ordered: waits for every earlier command of (pool, thread) |
/// | 19 | privileged: only from page 0 |
/// | 20 | congruent: source and destination have the same offset in the line |
/// | 21, 22 | maps, unmaps |
/// | 23 | commits: on success `txid` is the mapping's committed transaction |
/// | 24 | logs: refused unless `txid` is above the committed one |
/// | 25 | the logged operand is `destination` instead of `source` |
/// | 26 | synchronises: goes to a unit when every participant has reported; an ordered one reports itself |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Descriptor(pub u32);

/// Bit positions of a [`Descriptor`].
pub mod descriptor {
    /// See [`super::Descriptor`].
    pub const VALID: u32 = 8;
    /// Lowest of the six use bits.
    pub const USE: u32 = 9;
    /// Lowest of the three in-ring bits.
    pub const IN_RING: u32 = 15;
    /// See [`super::Descriptor`].
    pub const ORDERED: u32 = 18;
    /// See [`super::Descriptor`].
    pub const PRIVILEGED: u32 = 19;
    /// See [`super::Descriptor`].
    pub const CONGRUENT: u32 = 20;
    /// See [`super::Descriptor`].
    pub const MAPS: u32 = 21;
    /// See [`super::Descriptor`].
    pub const UNMAPS: u32 = 22;
    /// See [`super::Descriptor`].
    pub const COMMITS: u32 = 23;
    /// See [`super::Descriptor`].
    pub const LOGS: u32 = 24;
    /// See [`super::Descriptor`].
    pub const LOGS_DESTINATION: u32 = 25;
    /// See [`super::Descriptor`].
    pub const SYNCHRONISES: u32 = 26;
}

impl Descriptor {
    /// First instruction of the program.
    pub fn entry(self) -> u8 {
        self.0 as u8
    }
    /// Value of one of the flags in [`descriptor`].
    pub fn flag(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }
    /// The same with one flag set.
    pub fn with(self, bit: u32) -> Self {
        Descriptor(self.0 | 1 << bit)
    }
    /// The same with an entry point.
    pub fn with_entry(self, entry: u8) -> Self {
        Descriptor(self.0 & !0xff | entry as u32)
    }
    /// How an operand is used.
    pub fn operand_use(self, operand: Operand) -> Use {
        match self.0 >> (descriptor::USE + 2 * operand as u32) & 3 {
            0 => Use::None,
            1 => Use::Bytes,
            2 => Use::Entry,
            _ => Use::Word,
        }
    }
    /// The same with the use of one operand.
    pub fn with_use(self, operand: Operand, how: Use) -> Self {
        let shift = descriptor::USE + 2 * operand as u32;
        Descriptor(self.0 & !(3 << shift) | (how as u32) << shift)
    }
    /// Whether an operand must lie in the log ring.
    pub fn in_ring(self, operand: Operand) -> bool {
        self.flag(descriptor::IN_RING + operand as u32)
    }
    /// The operand whose old value a log entry holds, and whose offset in the line data keeps.
    pub fn logged(self) -> Operand {
        if self.flag(descriptor::LOGS_DESTINATION) { Operand::Destination } else { Operand::Source }
    }
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Descriptor({:#010x})", self.0)
    }
}

/// A microinstruction.
///
/// | bits | field |
/// |---|---|
/// | 31:28 | operation |
/// | 27:26 | first operand |
/// | 25:24 | second operand |
/// | 23 | copy: whole lines, bytes outside the range zeroed (log data), instead of exact bytes |
/// | 15:8 | copy: lines added to the first operand |
/// | 7:0 | copy: lines added to the second operand; generate: kind; end: status |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// The command is done: it retires when all that it wrote is durable.
    End {
        /// Code of [`crate::status::Status`].
        status: u8,
    },
    /// Copies `length` bytes; returns before they are durable.
    Copy {
        /// Read from here.
        from: Operand,
        /// Lines added to `from`.
        from_lines: u8,
        /// Written here.
        to: Operand,
        /// Lines added to `to`.
        to_lines: u8,
        /// Whole lines with zeros outside the range (log data) instead of exact bytes.
        lines: bool,
    },
    /// Generates the head line of a log entry, sealed over the data of the last copy.
    Generate {
        /// Where the head goes.
        at: Operand,
        /// The operand whose pool offset the head records.
        object: Operand,
        /// Code of [`crate::media::EntryKind`].
        kind: u8,
    },
    /// Stores the 8-byte value of `auxiliary`: deletes a log by raising its epoch, or switches a
    /// page.
    Store {
        /// Where the word goes.
        at: Operand,
    },
    /// Waits until all that the program wrote is durable, and notes in the saved state that a
    /// replay resumes behind this instruction.
    Wait,
}

impl Instruction {
    /// The 32-bit word.
    pub fn encode(self) -> u32 {
        let operands = |a: Operand, b: Operand| (a as u32) << 26 | (b as u32) << 24;
        match self {
            Instruction::End { status } => status as u32,
            Instruction::Copy { from, from_lines, to, to_lines, lines } => {
                1 << 28 | operands(from, to) | (lines as u32) << 23 | (from_lines as u32) << 8 | to_lines as u32
            }
            Instruction::Generate { at, object, kind } => 2 << 28 | operands(at, object) | kind as u32,
            Instruction::Store { at } => 3 << 28 | operands(at, Operand::Source),
            Instruction::Wait => 4 << 28,
        }
    }

    /// The instruction of a word; `None` for words that no assembler makes.
    pub fn decode(word: u32) -> Option<Instruction> {
        let first = Operand::from_code((word >> 26 & 3) as u8);
        let second = Operand::from_code((word >> 24 & 3) as u8);
        let low = word as u8;
        let instruction = match word >> 28 {
            0 => Instruction::End { status: low },
            1 => Instruction::Copy {
                from: first?,
                from_lines: (word >> 8) as u8,
                to: second?,
                to_lines: low,
                lines: word >> 23 & 1 == 1,
            },
            2 => Instruction::Generate { at: first?, object: second?, kind: low },
            3 => Instruction::Store { at: first? },
            4 => Instruction::Wait,
            _ => return None,
        };
        (instruction.encode() == word).then_some(instruction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_image_is_whole_lines_and_fits_its_slot() {
        assert_eq!(IMAGE_BYTES % crate::geometry::LINE, 0);
        const { assert!(IMAGE_BYTES as u64 <= crate::geometry::FIRMWARE_SLOT_BYTES) };
    }

    #[test]
    fn descriptor_fields_do_not_touch_each_other() {
        let d = Descriptor::default()
            .with_entry(0x5a)
            .with_use(Operand::Source, Use::Bytes)
            .with_use(Operand::Auxiliary, Use::Word)
            .with(descriptor::IN_RING + Operand::Auxiliary as u32)
            .with(descriptor::LOGS_DESTINATION);
        assert_eq!(d.entry(), 0x5a);
        assert_eq!(d.operand_use(Operand::Source), Use::Bytes);
        assert_eq!(d.operand_use(Operand::Destination), Use::None);
        assert_eq!(d.operand_use(Operand::Auxiliary), Use::Word);
        assert!(d.in_ring(Operand::Auxiliary) && !d.in_ring(Operand::Source));
        assert_eq!(d.logged(), Operand::Destination);
        assert!(!d.flag(descriptor::VALID) && !d.flag(descriptor::LOGS));
    }

    proptest! {
        #[test]
        fn a_word_that_decodes_encodes_to_itself(word: u32) {
            if let Some(instruction) = Instruction::decode(word) {
                prop_assert_eq!(instruction.encode(), word);
            }
        }
    }
}
