//! The seam between the host and link model and a card, whichever way the card is simulated.
//!
//! Time is counted in card clock cycles since power-up. The link is modelled above this seam: what
//! is submitted here has arrived at the card's ports. Accesses are *delivered* strictly in the
//! order of their submission, as PCI Express delivers posted writes, and a read is delivered only
//! after every write submitted before it; *answers* to reads may overtake each other.

use nearpm_interface::geometry::LINE;
use nearpm_interface::peer::PeerMessage;

/// The contents of a card's persistent memory, which outlives the card's power.
#[derive(Clone, PartialEq, Eq)]
pub struct Medium {
    /// Device address 0 upwards.
    pub bytes: Vec<u8>,
}

impl Medium {
    /// A blank medium.
    ///
    /// # Panics
    /// If `bytes` is not a whole number of 4 KiB pages.
    pub fn blank(bytes: usize) -> Self {
        assert_eq!(bytes % 4096, 0, "a medium is whole pages");
        Medium { bytes: vec![0; bytes] }
    }

    /// Writes the bytes of a line that `strobes` selects.
    pub fn write_line(&mut self, address: u64, data: &[u8; LINE], strobes: u64) {
        merge((&mut self.bytes[address as usize..][..LINE]).try_into().expect("a line"), data, strobes);
    }
}

/// Writes the bytes of `data` that `strobes` selects over those of a line.
pub(crate) fn merge(line: &mut [u8; LINE], data: &[u8; LINE], strobes: u64) {
    for (i, (old, new)) in line.iter_mut().zip(data).enumerate() {
        if strobes >> i & 1 == 1 {
            *old = *new;
        }
    }
}

/// An access that has arrived at the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads a register; answered in the first four bytes.
    RegisterRead {
        /// Offset in the register block.
        offset: u32,
    },
    /// Writes a register.
    RegisterWrite {
        /// Offset in the register block.
        offset: u32,
        /// The value.
        value: u32,
    },
    /// Writes part of a line of the command BAR.
    CommandWrite {
        /// Offset in the command BAR, 64-byte aligned.
        offset: u64,
        /// The line.
        data: [u8; LINE],
        /// One bit per byte to write.
        strobes: u64,
    },
    /// Reads the status line of a command page.
    CommandRead {
        /// Number of the page.
        page: usize,
    },
    /// Loads a line of persistent memory.
    PmRead {
        /// Device address, 64-byte aligned.
        address: u64,
    },
    /// Stores part of a line of persistent memory.
    PmWrite {
        /// Device address, 64-byte aligned.
        address: u64,
        /// The line.
        data: [u8; LINE],
        /// One bit per byte to write.
        strobes: u64,
    },
}

/// Names a submitted access until its answer is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The card's answer: a read's data, or that a write was taken into the persistence domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Cycle at which the answer left the card's port.
    pub cycle: u64,
    /// Data of a read; zeros for a write.
    pub data: [u8; LINE],
    /// The card answered with an error (closed window, beyond memory, refused write).
    pub error: bool,
}

/// A write of the card to host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaWrite {
    /// Bus address, 64-byte aligned.
    pub bus_address: u64,
    /// The line.
    pub data: [u8; LINE],
    /// One bit per byte to write.
    pub strobes: u64,
    /// Cycle at which it left the card's port.
    pub cycle: u64,
}

/// Something that happened inside a card, as far as the card shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// An item was issued: a command went to a unit or a host access to memory. The RTL shows it as
    /// a burst's address handshake at the memory port.
    Issued,
    /// The memory answered a write.
    Durable,
    /// An item retired and its ranges were released. The RTL's ports do not show it; it follows an
    /// answer of the memory by a few cycles.
    Retired,
}

/// A powered card.
pub trait CardCore: Send {
    /// Cycles since power-up.
    fn cycle(&self) -> u64;
    /// Length of a cycle in picoseconds.
    fn period_ps(&self) -> u64;
    /// Runs the card up to a cycle; does nothing where that is past.
    fn advance_to(&mut self, cycle: u64);
    /// Hands over an access that arrives now, or as soon as the earlier ones have been delivered.
    fn submit(&mut self, access: Access) -> Ticket;
    /// Takes the answer if it is there.
    fn take(&mut self, ticket: Ticket) -> Option<Answer>;
    /// Takes the oldest write to host memory that has left the card.
    fn take_dma(&mut self) -> Option<DmaWrite>;
    /// Takes the oldest message to the other cards that has left the card, with its cycle. A card
    /// without a peer port sends none.
    fn take_peer(&mut self) -> Option<(PeerMessage, u64)> {
        None
    }
    /// A message of another card arrives now.
    fn hear_peer(&mut self, message: PeerMessage) {
        let _ = message;
    }
    /// Starts or ends the noting of activities. A card that shows none ignores it.
    fn watch(&mut self, on: bool) {
        let _ = on;
    }
    /// Takes the oldest activity that was noted, with its cycle.
    fn take_activity(&mut self) -> Option<(Activity, u64)> {
        None
    }
    /// What is durable in memory at this moment, where the card can show it; what the persistence
    /// domain holds is not in it.
    fn durable(&self) -> Option<&Medium> {
        None
    }
    /// The first cycle after the present at which something may leave the card, or be noted, if
    /// nothing arrives before; `None` if nothing ever does. Until then nobody has to look at it. A
    /// card that cannot tell names the next cycle.
    fn next_output(&self) -> Option<u64> {
        Some(self.cycle() + 1)
    }
    /// Whether nothing is in flight: time may then be skipped without simulating it. A command that
    /// waits for other cards, and asks them from time to time, is not in flight.
    fn is_idle(&self) -> bool;
    /// Cuts the power now. The card has `save_cycles` of energy for its power-fail save; then
    /// memory drops or tears every write that it has not answered (which, by `seed`), and the
    /// medium remains.
    fn power_fail(self: Box<Self>, save_cycles: u64, seed: u64) -> Medium;

    /// Runs until the answer is there.
    ///
    /// # Panics
    /// After `limit` cycles without an answer: the card hangs.
    fn wait(&mut self, ticket: Ticket, limit: u64) -> Answer {
        let end = self.cycle() + limit;
        loop {
            if let Some(answer) = self.take(ticket) {
                return answer;
            }
            assert!(self.cycle() < end, "no answer to {ticket:?} within {limit} cycles");
            self.advance_to(self.cycle() + 1);
        }
    }
}
