//! MultiDevice: what devices tell each other.
//!
//! A device *tells* how far it has come with a (pool, thread) when it comes further, and when it is
//! asked. Who waits asks, again and again, so a lost message costs time and no more. What was heard
//! is kept with the mapping, whether somebody waits already or not.

use std::collections::VecDeque;

use nearpm_interface::firmware::descriptor;
use nearpm_interface::geometry::{MAP_ENTRIES, MAX_DEVICES};
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS, PeerMessage};

use super::{ModelCard, Signal};
use crate::model::fault::Fault;

/// From a report to its message at the peer port.
const SEND_CYCLES: u64 = 4;
/// From a message at the peer port to what it lets go.
const HEAR_CYCLES: u64 = 8;

/// The peer port.
#[derive(Default)]
pub struct Port {
    /// Software has given this device its number since the power came or the function was reset.
    pub speaks: bool,
    /// Cycle of the next question.
    pub ask: Option<u64>,
    inbox: VecDeque<PeerMessage>,
    outbox: VecDeque<(PeerMessage, u64)>,
}

impl Port {
    /// The oldest message that has left by a cycle.
    pub fn take(&mut self, now: u64) -> Option<(PeerMessage, u64)> {
        self.outbox.front().filter(|(_, cycle)| *cycle <= now)?;
        self.outbox.pop_front()
    }

    /// Stops speaking, and forgets what was not heard yet.
    pub fn silence(&mut self) {
        *self = Port::default();
    }
}

impl ModelCard {
    /// Software numbers the device: it speaks from now on, and asks at once for what it waits for.
    pub(in crate::model) fn number_device(&mut self, device: u32) {
        self.device = device & (2 * MAX_DEVICES as u32 - 1);
        self.peers.speaks = true;
        self.announce();
    }

    /// Tells where everything stands that waits, and asks for it, if the card is open and has a
    /// number.
    pub(in crate::model) fn announce(&mut self) {
        let waiting = self.parked.entries();
        if self.peers.speaks && self.window_open() && waiting != 0 {
            (0..MAP_ENTRIES as u8).filter(|entry| waiting >> entry & 1 == 1).for_each(|entry| self.tell(entry));
            self.peers.ask = Some(self.now + 1);
        }
    }

    fn send(&mut self, entry: u8, status: u8, txid: u64) {
        let Some(mapping) = self.map.get(entry) else { return };
        let message =
            PeerMessage { pool: mapping.pool, thread: mapping.thread, device: self.device as u8, status, txid };
        let cycle = self.leaves(self.now + SEND_CYCLES);
        self.peers.outbox.push_back((message, cycle));
    }

    /// Tells the others how far this device has come.
    pub(in crate::model) fn tell(&mut self, entry: u8) {
        let reached = self.map.get(entry).map_or(0, |mapping| mapping.reached);
        if self.peers.speaks && self.window_open() && reached != 0 {
            self.send(entry, PEER_TELLS, reached);
        }
    }

    /// Somebody waits: a question is due if it still does later.
    pub(in crate::model) fn ask_later(&mut self) {
        if self.peers.speaks && self.peers.ask.is_none() {
            self.peers.ask = Some(self.now + PATIENCE_CYCLES);
        }
    }

    /// Asks for everything that is first in its thread and waits.
    pub(in crate::model) fn on_ask(&mut self) {
        self.peers.ask = None;
        if self.fault != Some(Fault::NobodyAsks) {
            let waiting = self.parked.entries();
            for entry in (0..MAP_ENTRIES as u8).filter(|entry| waiting >> entry & 1 == 1) {
                let (_, parked) = self.parked.oldest(entry).expect("the entry has a command");
                if parked.descriptor.flag(descriptor::SYNCHRONISES) {
                    let txid = parked.command.txid;
                    self.send(entry, PEER_ASKS, txid);
                }
            }
        }
        if !self.parked.is_empty() {
            self.ask_later();
        }
    }

    /// A message has come to the port.
    pub(in crate::model) fn hear(&mut self, message: PeerMessage) {
        self.peers.inbox.push_back(message);
        self.wheel.push(self.now + HEAR_CYCLES, Signal::Hear);
    }

    /// Takes the oldest message. What this device does not know is asked for again later.
    pub(in crate::model) fn on_hear(&mut self) {
        let Some(PeerMessage { pool, thread, device, status, txid }) = self.peers.inbox.pop_front() else { return };
        if !self.peers.speaks || !self.window_open() || self.failing {
            return;
        }
        let Some(entry) = self.map.find(pool, thread) else { return };
        let Some(mapping) = self.map.get_mut(entry) else { return };
        if status == PEER_ASKS {
            if mapping.reached >= txid {
                self.tell(entry);
            }
        } else if let Some(heard) = mapping.heard.get_mut(device as usize) {
            *heard = (*heard).max(txid);
            self.release_parked();
        }
    }
}
