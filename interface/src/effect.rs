//! What the commands of the standard firmware write, for everything that carries commands out
//! without running microprograms: the driver's mock of a card, and what keeps a copy of a card's
//! memory. Each of them writes one range, and reads at most one.

use std::ops::Range;

use crate::command::{Command, Opcode};
use crate::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind};

/// Bytes that a command writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Where they go: offset in the pool.
    pub destination: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Effect {
    /// That of a command that the card has accepted; `None` for one that writes no memory, or that
    /// the library does not use. `load` gives the bytes of a range of the pool, in which the
    /// command's operands lie: the decoder has seen to that.
    pub fn of(command: &Command, load: impl FnOnce(Range<u64>) -> Vec<u8>) -> Option<Effect> {
        let source = || command.source..command.source + u64::from(command.length);
        let bytes = match Opcode::from_code(command.opcode)? {
            Opcode::UndoLog => entry(command, EntryKind::Undo, &load(source())),
            Opcode::Checkpoint => entry(command, EntryKind::Checkpoint, &load(source())),
            Opcode::Apply | Opcode::Recover | Opcode::ShadowCopy => load(source()),
            Opcode::Commit | Opcode::Switch => command.auxiliary.to_le_bytes().to_vec(),
            Opcode::Fence | Opcode::Map | Opcode::Unmap | Opcode::UndoRedo | Opcode::MirrorLog => return None,
        };
        Some(Effect { destination: command.destination, bytes })
    }
}

/// The log entry that holds these old bytes.
fn entry(command: &Command, kind: EntryKind, old: &[u8]) -> Vec<u8> {
    let head = EntryHead {
        magic: ENTRY_MAGIC,
        kind: kind as u8,
        version: ENTRY_VERSION,
        thread: command.thread,
        sequence: command.sequence,
        txid: command.txid,
        offset: command.source,
        length: command.length,
        pool: command.pool,
        ..EntryHead::default()
    };
    head.encode(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(opcode: Opcode) -> Option<Effect> {
        let command = Command {
            opcode: opcode as u8,
            source: 8,
            destination: 128,
            length: 3,
            auxiliary: 0x0102_0304,
            ..Command::default()
        };
        Effect::of(&command, |range| range.map(|at| at as u8).collect())
    }

    #[test]
    fn copies_words_and_entries_go_to_the_destination() {
        let copied = effect(Opcode::Apply).expect("it writes");
        assert_eq!((copied.destination, &copied.bytes[..]), (128, &[8, 9, 10][..]));
        assert_eq!(effect(Opcode::Commit).expect("it writes").bytes, [4, 3, 2, 1, 0, 0, 0, 0]);
        let logged = effect(Opcode::UndoLog).expect("it writes");
        let head = EntryHead::decode(&logged.bytes).expect("it is whole");
        assert_eq!((head.kind, head.offset, head.length), (EntryKind::Undo as u8, 8, 3));
        assert_eq!(effect(Opcode::Unmap), None);
    }
}
