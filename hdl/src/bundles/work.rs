//! What a unit is told of a command.

use crate::dut::PortValue;
use rust_hdl::prelude::*;

/// A translated command on its way to a unit.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Work {
    /// Request slot, returned with progress and retirement.
    pub slot: Bits<5>,
    /// First instruction to execute: the program's entry, or where a replay resumes.
    pub pc: Bits<8>,
    /// Device address of the source.
    pub source: Bits<40>,
    /// Device address of the destination.
    pub destination: Bits<40>,
    /// Device address of the auxiliary operand.
    pub auxiliary: Bits<40>,
    /// The auxiliary field as it was sent: the value of a store.
    pub value: Bits<64>,
    /// Offset of the source in the pool, for the head of a log entry.
    pub source_offset: Bits<64>,
    /// Offset of the destination in the pool, for the head of a log entry.
    pub destination_offset: Bits<64>,
    /// Bytes of the operands, 1 to 262144.
    pub length: Bits<19>,
    /// Thread, for the head of a log entry.
    pub thread: Bits<16>,
    /// Pool, for the head of a log entry.
    pub pool: Bits<32>,
    /// Transaction, for the head of a log entry and for synchronisation.
    pub txid: Bits<64>,
    /// Sequence, for the head of a log entry.
    pub sequence: Bits<64>,
    /// Devices that take part.
    pub participants: Bits<32>,
}
