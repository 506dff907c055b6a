//! What else the card speaks to: host memory, in which it leaves completion records, and other
//! cards.

use nearpm_interface::peer::PeerMessage;
use nearpm_verilate::{Instance, Port};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::port;

/// The port `m_axi_cpl`.
pub struct Records {
    valid: [Port; 2],
    ready: [Port; 2],
    takes: [bool; 2],
    awid: Port,
    bid: Port,
    bvalid: Port,
    bready: Port,
    /// Identifiers of the addresses, and beats, that were taken and not answered.
    addresses: Vec<u64>,
    beats: usize,
    answering: bool,
}

impl Records {
    /// Resolves the ports.
    pub fn new(model: &mut Instance) -> Self {
        let of = |signal: &str| port(model, "m_axi_cpl", signal);
        Records {
            valid: ["awvalid", "wvalid"].map(of),
            ready: ["awready", "wready"].map(of),
            takes: [false; 2],
            awid: of("awid"),
            bid: of("bid"),
            bvalid: of("bvalid"),
            bready: of("bready"),
            addresses: Vec::new(),
            beats: 0,
            answering: false,
        }
    }

    /// Before the cycle.
    pub fn drive(&mut self, model: &mut Instance, rng: &mut ChaCha8Rng, patience: u32) {
        for (ready, takes) in self.ready.iter().zip(&mut self.takes) {
            *takes = rng.random_range(0..patience) != 0;
            model.set_u64(*ready, (*takes).into());
        }
        self.answering |= !self.addresses.is_empty() && self.beats > 0 && rng.random_range(0..patience) != 0;
        if self.answering {
            model.set_u64(self.bid, self.addresses[0]);
        }
        model.set_u64(self.bvalid, self.answering.into());
    }

    /// Before the edge.
    pub fn sample(&mut self, model: &Instance) {
        let seen = |channel: usize| self.takes[channel] && model.get_u64(self.valid[channel]) == 1;
        let (address, beat) = (seen(0), seen(1));
        self.addresses.extend(address.then(|| model.get_u64(self.awid)));
        self.beats += usize::from(beat);
        if self.answering && model.get_u64(self.bready) == 1 {
            self.answering = false;
            self.addresses.remove(0);
            self.beats -= 1;
        }
    }
}

/// The ports `peer_out` and `peer_in`.
pub struct Others {
    out_ready: Port,
    in_valid: Port,
    in_ready: Port,
    in_data: Port,
    offered: bool,
    taken: bool,
}

impl Others {
    /// Resolves the ports.
    pub fn new(model: &Instance) -> Self {
        let of = |signal: &str| port(model, "peer", signal);
        let [out_ready, in_valid, in_ready, in_data] = ["out_ready", "in_valid", "in_ready", "in_data"].map(of);
        Others { out_ready, in_valid, in_ready, in_data, offered: false, taken: false }
    }

    /// Before the cycle: takes a message, and offers `next` where none is offered.
    pub fn drive(
        &mut self,
        model: &mut Instance,
        rng: &mut ChaCha8Rng,
        patience: u32,
        next: impl FnOnce(&mut ChaCha8Rng) -> Option<PeerMessage>,
    ) {
        model.set_u64(self.out_ready, u64::from(rng.random_range(0..patience) != 0));
        if std::mem::take(&mut self.taken) {
            self.offered = false;
        }
        if !self.offered
            && let Some(message) = next(rng)
        {
            let bytes = message.to_bytes();
            let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"));
            model.set_words(self.in_data, &std::array::from_fn::<u32, 4, _>(word));
            self.offered = true;
        }
        model.set_u64(self.in_valid, self.offered.into());
    }

    /// Before the edge.
    pub fn sample(&mut self, model: &Instance) {
        self.taken = self.offered && model.get_u64(self.in_ready) == 1;
    }
}
