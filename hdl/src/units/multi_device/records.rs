//! What devices tell each other, and what the table and the registers keep of a command.

use crate::dut::PortValue;
use rust_hdl::prelude::*;

/// A message of the peer port, as `nearpm_interface::peer::PeerMessage`: 128 bits, first field
/// lowest.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Message {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Number of the device that speaks.
    pub device: Bits<8>,
    /// `PEER_TELLS` or `PEER_ASKS`.
    pub status: Bits<8>,
    /// Transaction.
    pub txid: Bits<64>,
}

/// What the table notes of a command beside its bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Note {
    /// Order number under which it was accepted.
    pub order: Bits<64>,
    /// Page that it came from.
    pub page: Bits<2>,
    /// It waits for every participant.
    pub synchronises: Bit,
    /// It reports, if it synchronises.
    pub ordered: Bit,
    /// It unmaps.
    pub unmaps: Bit,
}

/// What the registers show of a command that waits.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Brief {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Opcode.
    pub opcode: Bits<8>,
    /// Participants.
    pub participants: Bits<8>,
    /// Transaction.
    pub txid: Bits<64>,
    /// Mapping entry.
    pub map: Bits<4>,
}
