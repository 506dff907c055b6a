//! Where a device address lies when the card has two ports to its memory.
//!
//! | address bits | say |
//! |---|---|
//! | 9:0 | the place inside a piece of [`INTERLEAVE`] bytes |
//! | 10 | the port |
//! | 39:11 | which of the port's pieces |
//!
//! Each port sees a compact half of the memory: the port's bit is taken out of the address. The
//! hardware (`MemorySplit`), the simulated card and the tests take the mapping from here.

use std::fmt;
use std::str::FromStr;

crate::debug_as_display!(NoSuchPorts);

/// How many ports a card has to its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryPorts {
    /// All addresses behind `m_axi_mem0`.
    #[default]
    One,
    /// By the mapping of this module behind `m_axi_mem0` and `m_axi_mem1`.
    Two,
}

impl MemoryPorts {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// The number.
    pub const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

impl fmt::Display for MemoryPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.count().fmt(f)
    }
}

/// A number of memory ports that no card has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoSuchPorts;

impl fmt::Display for NoSuchPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a card has 1 or 2 memory ports")
    }
}

impl std::error::Error for NoSuchPorts {}

impl FromStr for MemoryPorts {
    type Err = NoSuchPorts;

    fn from_str(text: &str) -> Result<Self, NoSuchPorts> {
        Self::ALL.into_iter().find(|ports| ports.to_string() == text).ok_or(NoSuchPorts)
    }
}

/// Bytes that lie behind one port before the other port follows. It is the longest burst of a unit
/// (16 lines), so that a copy goes to both ports in turn; no burst of the card crosses a multiple
/// of it.
pub const INTERLEAVE: u64 = 1024;

/// The port of a device address, and the address on that port.
pub const fn on_port(address: u64) -> (usize, u64) {
    let port = address / INTERLEAVE % 2;
    (port as usize, address / (2 * INTERLEAVE) * INTERLEAVE + address % INTERLEAVE)
}

/// The device address of an address on a port.
pub const fn on_device(port: usize, address: u64) -> u64 {
    address / INTERLEAVE * (2 * INTERLEAVE) + port as u64 * INTERLEAVE + address % INTERLEAVE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::ADDRESS_BITS;

    #[test]
    fn every_address_lies_behind_one_port() {
        let top = 1 << ADDRESS_BITS;
        for address in (0..8 * INTERLEAVE).chain(top - 8 * INTERLEAVE..top) {
            let (port, there) = on_port(address);
            assert!(port < MemoryPorts::Two.count() && there < top / 2);
            assert_eq!(on_device(port, there), address);
        }
    }

    #[test]
    fn a_card_has_one_port_or_two() {
        assert_eq!(["1", "2"].map(str::parse), MemoryPorts::ALL.map(Ok));
        assert_eq!(["0", "3", ""].map(str::parse::<MemoryPorts>), [Err(NoSuchPorts); 3]);
    }

    #[test]
    fn the_ports_take_turns_and_each_sees_a_compact_half() {
        let places = [0, INTERLEAVE - 1, INTERLEAVE, 2 * INTERLEAVE, 3 * INTERLEAVE + 5].map(on_port);
        assert_eq!(places, [(0, 0), (0, INTERLEAVE - 1), (1, 0), (0, INTERLEAVE), (1, INTERLEAVE + 5)]);
    }
}
