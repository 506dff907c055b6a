//! The peer port: messages to and from other cards.

use std::collections::VecDeque;

use nearpm_interface::peer::PeerMessage;
use nearpm_verilate::Port;

use super::pins::{Bit, Pins, optional, tie};

/// Words of a message.
const WORDS: usize = PeerMessage::SIZE / 4;

/// The ports `peer_out` and `peer_in` of a design that has them.
pub struct PeerPort {
    ports: Option<Ports>,
    /// What has come over the links and was not taken by the card.
    inbox: VecDeque<PeerMessage>,
    outbox: VecDeque<(PeerMessage, u64)>,
}

struct Ports {
    out_valid: Port,
    out_data: Port,
    in_valid: Bit,
    in_ready: Port,
    in_data: Port,
}

impl PeerPort {
    /// Resolves the ports. The links take a message in each cycle.
    pub fn new(pins: &mut Pins) -> Self {
        tie(pins, "peer_out_ready".into(), 1);
        let port = |pins: &Pins, name: &str| optional(pins, format!("peer_{name}"));
        let found = [port(pins, "out_valid"), port(pins, "out_data"), port(pins, "in_ready"), port(pins, "in_data")];
        let in_valid = Bit::new(pins, "peer_in_valid", false).ok();
        let ports = match (found, in_valid) {
            ([Some(out_valid), Some(out_data), Some(in_ready), Some(in_data)], Some(in_valid)) => {
                Some(Ports { out_valid, out_data, in_valid, in_ready, in_data })
            }
            _ => None,
        };
        PeerPort { ports, inbox: VecDeque::new(), outbox: VecDeque::new() }
    }

    /// A message arrives.
    pub fn hear(&mut self, message: PeerMessage) {
        self.inbox.push_back(message);
    }

    /// Takes the oldest message that has left, with its cycle.
    pub fn take(&mut self) -> Option<(PeerMessage, u64)> {
        self.outbox.pop_front()
    }

    /// Whether nothing waits to be taken by the card.
    pub fn is_quiet(&self) -> bool {
        self.inbox.is_empty()
    }

    /// Forgets what was not taken: the links are dead.
    pub fn cut(&mut self) {
        self.inbox.clear();
    }

    /// Before the cycle: offers the oldest message.
    #[inline]
    pub fn drive(&mut self, pins: &mut Pins) {
        let Some(ports) = &mut self.ports else { return };
        if let Some(message) = self.inbox.front() {
            let bytes = message.to_bytes();
            let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"));
            pins.set_words(ports.in_data, &std::array::from_fn::<u32, WORDS, _>(word));
        }
        ports.in_valid.drive(pins, !self.inbox.is_empty());
    }

    /// Before the edge that ends cycle `cycle`: takes what is handed over.
    #[inline]
    pub fn sample(&mut self, pins: &Pins, cycle: u64) {
        let Some(ports) = &self.ports else { return };
        if ports.in_valid.value() && pins.is_high(ports.in_ready) {
            self.inbox.pop_front();
        }
        if pins.is_high(ports.out_valid) {
            let mut words = [0; WORDS];
            pins.model.get_words(ports.out_data, &mut words);
            let mut bytes = [0; PeerMessage::SIZE];
            bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            self.outbox.push_back((PeerMessage::from_bytes(&bytes), cycle));
        }
    }
}
