//! When a packet leaves and when it arrives: a PCI Express link.

use super::parameters::Parameters;

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    free_ps: u64,
}

/// Both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Towards the card.
    pub down: Lane,
    /// Towards the host.
    pub up: Lane,
}

/// Times of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its first byte enters the link.
    pub departure_ps: u64,
    /// It is complete on the other side.
    pub arrival_ps: u64,
}

impl Lane {
    /// Sends a packet that is ready at `ready_ps`, behind all others.
    pub fn send(&mut self, parameters: &Parameters, ready_ps: u64, payload: u64) -> Passage {
        let departure_ps = ready_ps.max(self.free_ps);
        self.free_ps = departure_ps + parameters.packet_ps(payload);
        Passage { departure_ps, arrival_ps: self.free_ps + parameters.one_way_ps() }
    }
}
