//! Bursts and beats at the AXI port.

use nearpm_interface::geometry::LINE;

use crate::core::Medium;

/// Beats of the longest burst: 4 KiB, which AXI4 bursts must not cross.
pub const MAX_BEATS: usize = 64;

/// One beat of write data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBeat {
    /// The line.
    pub data: [u8; LINE],
    /// One bit per byte to write.
    pub strobes: u64,
}

/// One beat of read data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBeat {
    /// Identifier of its burst.
    pub id: u8,
    /// The line.
    pub data: [u8; LINE],
    /// Last beat of its burst.
    pub last: bool,
    /// The address is beyond the memory; the data are zeros.
    pub error: bool,
}

/// The answer to a write burst: it is durable, or was refused whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAnswer {
    /// Identifier of the burst.
    pub id: u8,
    /// The burst goes beyond the memory; nothing of it was written.
    pub error: bool,
}

/// A read burst that waits in front of the queue.
#[derive(Clone, Copy)]
pub struct ReadBurst {
    pub id: u8,
    pub address: u64,
    pub beats: usize,
    /// Controller cycle from which its lines may enter the queue.
    pub ready: u64,
}

/// A line that has been asked for.
#[derive(Clone, Copy)]
pub struct ReadSlot {
    pub id: u8,
    pub address: u64,
    pub last: bool,
    /// Controller cycle at which the data is on the port; `u64::MAX` while unknown.
    pub done: u64,
}

/// A write burst that has not been answered.
pub struct WriteBurst {
    pub id: u8,
    pub address: u64,
    pub beats: usize,
    /// Beats whose data has been handed over.
    pub given: usize,
    /// Beats that have gone through the port, one a cycle.
    pub entered: usize,
    /// Controller cycle of the answer, once the last beat has entered.
    pub answer: u64,
}

/// Refuses what AXI4 forbids.
pub fn check_burst(address: u64, beats: usize) {
    assert!(address.is_multiple_of(LINE as u64), "a burst at {address:#x} is not aligned to its beats");
    let end = (address % 4096) as usize + beats * LINE;
    assert!((1..=MAX_BEATS).contains(&beats) && end <= 4096, "{beats} beats at {address:#x} leave their 4 KiB");
}

/// Whether all beats have memory.
pub fn in_memory(medium: &Medium, address: u64, beats: usize) -> bool {
    address + (beats * LINE) as u64 <= medium.bytes.len() as u64
}

/// Eight bits to eight groups of eight strobes.
pub fn spread(words: u8) -> u64 {
    (0..8).filter(|i| words >> i & 1 == 1).fold(0, |mask, i| mask | 0xff << (8 * i))
}
