//! What lies in persistent memory: log rings and log entries.
//!
//! A **log ring** belongs to one (pool, thread). Its first [`RING_HEAD_BYTES`] hold the words below, each in a
//! line of its own because what a command writes is owned in whole lines; the rest is log slots.
//! A **log entry** is one head line ([`EntryHead`]) and the whole lines that the logged range touches: data keeps
//! its offset in the line, bytes outside the range are zero, and rollback writes exactly `length` bytes.
//! Deleting a transaction's log is one 8-byte store: the epoch word becomes the transaction's
//! identifier, and only entries above it count.

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
        /// Rises with every entry of the ring; rollback goes from high to low.
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
pub fn lines_of(offset: u64, length: u32) -> u64 {
    (offset % LINE_U64 + length as u64).div_ceil(LINE_U64)
}

/// Bytes of the log slot for `length` bytes at `offset`: the head and the touched lines.
pub fn entry_bytes(offset: u64, length: u32) -> u64 {
    LINE_U64 * (1 + lines_of(offset, length))
}

/// Offset in the slot of the first byte of the logged range.
pub fn entry_data(offset: u64) -> u64 {
    LINE_U64 + offset % LINE_U64
}

impl EntryHead {
    /// The sealed head and the data lines of a log entry for `data` at `self.offset`.
    ///
    /// # Panics
    /// If `data` is not `self.length` bytes.
    pub fn encode(&self, data: &[u8]) -> Vec<u8> {
        assert_eq!(data.len(), self.length as usize);
        let mut entry = vec![0; entry_bytes(self.offset, self.length) as usize];
        let start = entry_data(self.offset) as usize;
        entry[start..start + data.len()].copy_from_slice(data);
        let mut head = EntryHead { crc: 0, ..*self }.to_bytes();
        seal::seal(&entry[LINE..], &mut head);
        entry[..LINE].copy_from_slice(&head);
        entry
    }

    /// The head at the start of `slot`, if it is one and its data is whole.
    ///
    /// `slot` reaches to the end of the ring; an entry that would leave it is not valid.
    pub fn decode(slot: &[u8]) -> Option<EntryHead> {
        let bytes: &[u8; LINE] = slot.get(..LINE)?.try_into().ok()?;
        let head = EntryHead::from_bytes(bytes);
        if head.magic != ENTRY_MAGIC || head.version != ENTRY_VERSION || head.length == 0 {
            return None;
        }
        let body = slot.get(LINE..entry_bytes(head.offset, head.length) as usize)?;
        seal::is_sealed(body, bytes).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
