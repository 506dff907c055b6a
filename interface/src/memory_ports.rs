//! Where a device address lies when the card has two ports to its memory.
//!
//! | address bits | say |
//! |---|---|
//! | 9:0 | the place inside a piece of [`INTERLEAVE`] bytes |
//! | 10 | the port |
//! | 39:11 | which of the port's pieces |
//!
//! Each port sees a compact half of the memory: the port's bit is taken out of the address. The hardware (`MemorySplit`), the
//! simulated card and the tests take the mapping from here.

/// Ports that a card can have to its memory.
pub const MAX_MEMORY_PORTS: usize = 2;
/// Bytes that lie behind one port before the other port follows. It is the longest burst of a unit (16 lines), so that
/// a copy goes to both ports in turn; no burst of the card crosses a multiple of it.
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
            assert!(port < MAX_MEMORY_PORTS && there < top / 2);
            assert_eq!(on_device(port, there), address);
        }
    }

    #[test]
    fn the_ports_take_turns_and_each_sees_a_compact_half() {
        let places = [0, INTERLEAVE - 1, INTERLEAVE, 2 * INTERLEAVE, 3 * INTERLEAVE + 5].map(on_port);
        assert_eq!(places, [(0, 0), (0, INTERLEAVE - 1), (1, 0), (0, INTERLEAVE), (1, INTERLEAVE + 5)]);
    }
}
