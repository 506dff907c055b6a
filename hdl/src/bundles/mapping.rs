//! What the address mapping table knows of a (pool, thread).

use crate::dut::PortValue;
use rust_hdl::prelude::*;

/// One entry of the address mapping table, as it is read out for a save and restored before a
/// replay.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct MapEntry {
    /// In use (bit 0), latched after a failed log (bit 1), an unmap was accepted (bit 2).
    pub flags: Bits<3>,
    /// Thread.
    pub thread: Bits<16>,
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Device address of the pool.
    pub base: Bits<40>,
    /// Bytes of the pool.
    pub bytes: Bits<40>,
    /// Offset of the log ring in the pool.
    pub ring: Bits<40>,
    /// Bytes of the log ring.
    pub ring_bytes: Bits<40>,
    /// Last committed transaction.
    pub committed: Bits<64>,
    /// Last transaction of which other devices were told that it is reached.
    pub reached: Bits<64>,
    /// A function-level reset left it to the commands that wait for other devices.
    pub orphan: Bit,
}
