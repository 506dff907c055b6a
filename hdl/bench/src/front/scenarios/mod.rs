//! The scenarios of the contract that a front must not fall for, and random items against the
//! oracle.

mod order;
mod progress;
mod refusal;

pub use order::*;
pub use progress::*;
pub use refusal::*;

use super::{RING, base};
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode};
use nearpm_interface::geometry::{LINE, LINE_U64};

/// Bytes at the start of the pool that the random items use: 16 lines, so that most of them are in
/// conflict.
pub(super) const SPAN: u64 = 16 * LINE_U64;
pub(super) const POOL: u64 = 1;

pub(super) fn line_of(offset: u64) -> u64 {
    (base(POOL) + offset) / LINE_U64
}

pub(super) fn log(thread: u64, sequence: u64, source: u64, slot: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        flags: FLAG_COMPLETE,
        thread: thread as u16,
        pool: POOL as u32,
        txid: 1,
        source,
        destination: RING + slot,
        length: LINE as u32,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    }
}

pub(super) fn simple(opcode: Opcode, thread: u64, sequence: u64) -> Command {
    Command {
        opcode: opcode as u8,
        flags: FLAG_COMPLETE,
        thread: thread as u16,
        pool: POOL as u32,
        txid: 1,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    }
}
