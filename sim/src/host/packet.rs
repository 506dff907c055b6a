//! What travels on the link, and where it is.

use nearpm_interface::geometry::LINE;

use super::cut::Event;
use crate::core::{Access, Answer, DmaWrite, Ticket};

/// A read in flight: its card, and the index into the fetches of that card's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchId {
    pub card: u16,
    pub index: u32,
}

/// A read.
pub enum Fetch {
    /// None.
    Free,
    /// On its way to the card.
    Flying { bytes: u64 },
    /// At the card.
    Submitted { ticket: Ticket, bytes: u64, memory: bool },
    /// On its way up, or at the core.
    Answered { arrival_ps: u64, data: [u8; LINE] },
}

/// What leaves the card towards the host.
pub enum Outgoing {
    Record(DmaWrite),
    Answer { fetch: u32, bytes: u64, answer: Answer },
}

impl Outgoing {
    /// When it left.
    pub fn cycle(&self) -> u64 {
        match self {
            Outgoing::Record(write) => write.cycle,
            Outgoing::Answer { answer, .. } => answer.cycle,
        }
    }
}

/// What is on its way to the card.
pub enum Packet {
    Write(Access),
    Read(u32, Access),
}

/// A posted write that the card has and has not answered.
pub struct Posted {
    pub ticket: Ticket,
    pub event: Option<Event>,
}

/// Payload of a packet: aligned four-byte words that hold selected bytes.
pub fn payload(access: &Access) -> u64 {
    match access {
        Access::CommandWrite { strobes, .. } | Access::PmWrite { strobes, .. } => {
            (0..16).filter(|word| strobes >> (4 * word) & 0xf != 0).count() as u64 * 4
        }
        Access::RegisterWrite { .. } => 4,
        Access::RegisterRead { .. } | Access::CommandRead { .. } | Access::PmRead { .. } => 0,
    }
}
