//! When a packet leaves and when it arrives: a PCI Express link.
//!
//! What has left may be held on its way, as a switch does whose buffers are full: the packets
//! behind it wait, and who sent them knows nothing of it.

use super::parameters::Parameters;

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    free_ps: u64,
    /// Nothing arrives before.
    held_ps: u64,
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
        Passage { departure_ps, arrival_ps: self.held_ps.max(self.free_ps + parameters.one_way_ps()) }
    }

    /// Holds what is sent from now on until a time.
    pub fn hold(&mut self, until_ps: u64) {
        self.held_ps = self.held_ps.max(until_ps);
    }

    /// Holds nothing any more.
    pub fn release(&mut self) {
        self.held_ps = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_has_left_at_its_time_and_arrives_behind_the_hold_in_order() {
        let parameters = Parameters::default();
        let mut lane = Lane::default();
        let free = lane.send(&parameters, 0, 64);
        lane.hold(10_000_000);
        let [first, second] = [(); 2].map(|()| lane.send(&parameters, 1_000_000, 64));
        assert_eq!((first.departure_ps, first.arrival_ps), (1_000_000, 10_000_000));
        assert!(free.arrival_ps < first.arrival_ps && second.departure_ps > first.departure_ps);
        assert_eq!(second.arrival_ps, first.arrival_ps, "what was held comes in one go");
        lane.release();
        assert!(lane.send(&parameters, 2_000_000, 64).arrival_ps < 10_000_000);
    }
}
