//! The links between cards: every message of a card goes to every other one.
//!
//! **Fault model.** A link delivers a message after its latency, once, in order; at a power cut
//! what is under way is lost. With `adversary`, by seed, it drops, doubles and delays each copy of
//! a message, so that copies also overtake each other.

use std::collections::BTreeMap;

use nearpm_interface::peer::PeerMessage;

use crate::rng::Rng;

/// What connects the cards of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    /// From a card's port to the port of another one, in picoseconds. Two serial transceivers and a
    /// cable between neighbouring cards: 400 ns, estimate. A message occupies a link for 2 ns at
    /// most, which is left out.
    pub latency_ps: u64,
    /// What a test lets the links do.
    pub adversary: Option<Mischief>,
}

/// Links that drop, double and delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mischief {
    /// One in this many copies is dropped.
    pub drop_one_in: u64,
    /// One in this many copies comes twice.
    pub double_one_in: u64,
    /// A copy is late by up to this much, in picoseconds.
    pub delay_ps: u64,
    /// Seed of the choices.
    pub seed: u64,
}

impl Default for Peers {
    fn default() -> Self {
        Peers { latency_ps: 400_000, adversary: None }
    }
}

impl Peers {
    /// The same links with messages dropped, doubled and delayed by up to 20 us.
    pub fn adversarial(self, seed: u64) -> Self {
        let mischief = Mischief { drop_one_in: 4, double_one_in: 4, delay_ps: 20_000_000, seed };
        Peers { adversary: Some(mischief), ..self }
    }
}

/// Messages under way.
pub(super) struct PeerLinks {
    parameters: Peers,
    rng: Option<Rng>,
    /// By arrival (in cycles) and number, so that a run is the same again.
    flight: BTreeMap<(u64, u64), (usize, PeerMessage)>,
    sent: u64,
}

impl PeerLinks {
    pub fn new(parameters: Peers) -> Self {
        let rng = parameters.adversary.map(|mischief| Rng::new(mischief.seed));
        PeerLinks { parameters, rng, flight: BTreeMap::new(), sent: 0 }
    }

    /// Forgets what is under way.
    pub fn cut(&mut self) {
        self.flight.clear();
    }

    pub fn is_idle(&self) -> bool {
        self.flight.is_empty()
    }

    /// How far cards may run by themselves from a cycle on: nothing arrives before, whatever they
    /// send meanwhile.
    pub fn horizon(&self, now: u64, period_ps: u64) -> u64 {
        let next = self.flight.first_key_value().map_or(u64::MAX, |((arrival, _), _)| *arrival);
        next.min(now + self.latency(period_ps)).max(now + 1)
    }

    /// Latency in cycles.
    fn latency(&self, period_ps: u64) -> u64 {
        self.parameters.latency_ps.div_ceil(period_ps).max(1)
    }

    /// A card has sent a message; gives how many copies were dropped.
    pub fn send(&mut self, from: usize, cards: usize, message: PeerMessage, cycle: u64, period_ps: u64) -> u64 {
        let arrival = cycle + self.latency(period_ps);
        let mut dropped = 0;
        for to in (0..cards).filter(|&to| to != from) {
            let Some((mischief, rng)) = self.parameters.adversary.zip(self.rng.as_mut()) else {
                self.put(to, message, arrival);
                continue;
            };
            if rng.one_in(mischief.drop_one_in) {
                dropped += 1;
                continue;
            }
            let copies = 1 + rng.one_in(mischief.double_one_in) as u64;
            let late: Vec<u64> = (0..copies).map(|_| rng.below(mischief.delay_ps.max(1)) / period_ps).collect();
            late.into_iter().for_each(|late| self.put(to, message, arrival + late));
        }
        dropped
    }

    fn put(&mut self, to: usize, message: PeerMessage, arrival: u64) {
        self.sent += 1;
        self.flight.insert((arrival, self.sent), (to, message));
    }

    /// Takes the next message that has arrived by a cycle, and for whom it is.
    pub fn arrived(&mut self, cycle: u64) -> Option<(usize, PeerMessage)> {
        let first = self.flight.first_entry().filter(|entry| entry.key().0 <= cycle)?;
        Some(first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_to_every_other_card_after_its_latency() {
        let mut links = PeerLinks::new(Peers { latency_ps: 10_000, adversary: None });
        let message = PeerMessage { txid: 7, ..PeerMessage::default() };
        assert_eq!(links.horizon(100, 1000), 110);
        links.send(1, 3, message, 105, 1000);
        assert_eq!((links.horizon(106, 1000), links.arrived(114)), (115, None));
        assert_eq!(links.arrived(115), Some((0, message)));
        assert_eq!(links.arrived(115), Some((2, message)));
        assert!(links.is_idle());
    }

    #[test]
    fn an_adversary_drops_doubles_and_delays() {
        let mut links = PeerLinks::new(Peers::default().adversarial(3));
        let dropped: u64 = (0..1000).map(|_| links.send(0, 2, PeerMessage::default(), 0, 3333)).sum();
        let mut arrivals: Vec<u64> = links.flight.keys().map(|(arrival, _)| *arrival).collect();
        assert!((150..350).contains(&dropped), "{dropped}");
        assert!(arrivals.len() as u64 > 1000 - dropped + 100, "{}", arrivals.len());
        arrivals.dedup();
        assert!(arrivals.len() > 500, "arrivals differ");
    }
}
