//! The 64-byte command.

use crate::geometry::{COMMAND_PAGE_BYTES, LINE, SLOTS_PER_PAGE};
use crate::layout::layout;
use crate::seal;

layout! {
    /// A command as it is written into a slot of a command page.
    ///
    /// Addresses are offsets in the pool. What a field means, and which ranges are read and
    /// written, is the operand descriptor's of the opcode (see [`crate::firmware::Descriptor`]).
    /// The requester is known by the page and never by a field.
    Command, 64 {
        /// One of [`Opcode`], or a program of a loaded firmware (below 32).
        0 opcode: u8,
        /// [`FLAG_COMPLETE`] and reserved zeros.
        1 flags: u8,
        /// Thread: with the pool it selects the mapping and so the log ring.
        2 thread: u16,
        /// Pool identifier.
        4 pool: u32,
        /// Transaction or epoch identifier, 48 bits.
        8 txid: u64,
        /// Read operand: offset in the pool.
        16 source: u64,
        /// Write operand: offset in the pool.
        24 destination: u64,
        /// Second write operand (offset in the pool) or an immediate 8-byte value.
        32 auxiliary: u64,
        /// Sequence of the log entry, rising within (pool, thread).
        40 sequence: u64,
        /// Bytes of the operands.
        48 length: u32,
        /// Returned with the completion.
        52 tag: u32,
        /// Mask of the devices that take part in the transaction; 0 stands for this one alone.
        56 participants: u32,
        /// CRC-32C of the bytes before it (see [`crate::seal`]).
        60 crc: u32,
    }
}

/// The card writes a completion record when the command retires. Refusals and failures are
/// always recorded.
pub const FLAG_COMPLETE: u8 = 1 << 0;

macro_rules! opcodes {
    ($( $(#[doc = $doc:literal])* $name:ident = $code:literal ),* $(,)?) => {
        /// Opcodes of the firmware that ships with the card. An image may define others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode { $( $(#[doc = $doc])* $name = $code ),* }
        impl Opcode {
            /// Every opcode with its one-line meaning.
            pub const ALL: &'static [(Opcode, &'static str)] =
                &[ $( (Opcode::$name, concat!($($doc),*)) ),* ];
            /// The opcode of a code.
            pub fn from_code(code: u8) -> Option<Opcode> {
                match code { $( $code => Some(Opcode::$name), )* _ => None }
            }
        }
    };
}

opcodes! {
    /// Nothing but order: retires when every earlier command of (pool, thread) has.
    Fence = 0x00,
    /// Undo log: copies `length` bytes at `source` into the log slot at `destination` and heads it.
    UndoLog = 0x01,
    /// Redo log: copies `length` bytes at `source`, in the log ring, to `destination`.
    Apply = 0x02,
    /// Undo and redo: logs `destination` in the slot at `auxiliary`, then copies `source` to it.
    UndoRedo = 0x03,
    /// Commit: writes the epoch word `auxiliary` at `destination` after every earlier command of
    /// (pool, thread).
    Commit = 0x04,
    /// Checkpoint: copies the page at `source` into the log slot at `destination` and heads it.
    Checkpoint = 0x05,
    /// Shadow copy: copies the page at `source` to the free page at `destination`.
    ShadowCopy = 0x06,
    /// Switch: writes the word `auxiliary` at `destination` after every earlier command of (pool,
    /// thread).
    Switch = 0x07,
    /// Recover: copies `length` bytes of the log entry's data at `source` back to `destination`, in
    /// order.
    Recover = 0x08,
    /// Mirrored undo log: as undo log, with a second copy of the entry in the slot at `auxiliary`.
    MirrorLog = 0x09,
    /// Maps (pool, thread): `source` device address and `destination` bytes of the pool,
    /// `auxiliary` offset and `length` bytes of its log ring, `sequence` last committed
    /// transaction.
    Map = 0x10,
    /// Removes the mapping of (pool, thread) after every earlier command of it.
    Unmap = 0x11,
}

/// Opcodes that a command can carry: five bits.
pub const OPCODES: usize = 32;

impl Command {
    /// The bytes to post, checksum included.
    pub fn encode(&self) -> [u8; LINE] {
        let mut bytes = Command { crc: 0, ..*self }.to_bytes();
        seal::seal(&[], &mut bytes);
        bytes
    }

    /// Reads posted bytes; `None` where the checksum does not hold, as for half a command.
    pub fn decode(bytes: &[u8; LINE]) -> Option<Command> {
        seal::is_sealed(&[], bytes).then(|| Command::from_bytes(bytes))
    }
}

/// Offset in the command BAR of `slot` of `page`.
pub fn slot_offset(page: usize, slot: usize) -> u64 {
    assert!(slot < SLOTS_PER_PAGE, "a page has {SLOTS_PER_PAGE} slots");
    (page * COMMAND_PAGE_BYTES + slot * LINE) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_its_encoding_and_a_damaged_one_does_not() {
        let command = Command { opcode: Opcode::UndoLog as u8, length: 64, tag: 9, ..Command::default() };
        let mut bytes = command.encode();
        assert_eq!(Command { crc: 0, ..Command::decode(&bytes).unwrap() }, command);
        bytes[17] ^= 4;
        assert_eq!(Command::decode(&bytes), None);
    }

    #[test]
    fn opcodes_fit_the_descriptor_table() {
        assert!(Opcode::ALL.iter().all(|&(op, _)| (op as usize) < OPCODES));
    }
}
