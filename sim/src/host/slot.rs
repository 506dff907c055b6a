//! One card with its link: packets in flight, reads that are open, and what the card sends.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;

use super::cut::{Event, Trigger};
use super::link::Link;
use super::packet::{Fetch, Outgoing, Packet, Posted, payload};
use super::parameters::Parameters;
use super::statistics::Statistics;
use crate::core::{Access, CardCore, DmaWrite, Medium};

/// What is found in a slot at power-up.
pub(crate) enum Plug {
    /// A card that comes back.
    Card(Box<dyn CardCore>),
    /// A function whose configuration space is there, and whose BARs read as all ones; the medium
    /// is not touched.
    Silent(Medium),
    /// Nothing: configuration space reads as all ones, too; the medium is not touched.
    Absent(Medium),
}

/// A slot of the computer.
#[derive(Default)]
pub struct Slot {
    pub statistics: Statistics,
    /// Whether the card's writes reach host memory (the bus master bit).
    pub bus_master: bool,
    /// Whether an interrupt has come since the last wait.
    pub interrupt: bool,
    /// Configuration space answers.
    pub is_there: bool,
    /// Energy for a save, where it is not [`Parameters::save_cycles`].
    pub save_cycles: Option<u64>,
    pub card: Option<Box<dyn CardCore>>,
    pub medium: Option<Medium>,
    flight: VecDeque<(u64, Packet)>,
    flying_writes: usize,
    posted: VecDeque<Posted>,
    fetches: Vec<Fetch>,
    free_fetches: Vec<u32>,
    /// Fetches that the card has not answered.
    submitted: Vec<u32>,
    /// Writes of the card on their way to host memory, with their arrival.
    pub arriving: VecDeque<(u64, DmaWrite)>,
}

impl Slot {
    pub fn plug(&mut self, plug: Plug) {
        self.is_there = !matches!(plug, Plug::Absent(_));
        (self.card, self.medium) = match plug {
            Plug::Card(card) => (Some(card), None),
            Plug::Silent(medium) | Plug::Absent(medium) => (None, Some(medium)),
        };
    }

    /// Cuts the power of the card and of its link.
    pub fn cut(&mut self, save_cycles: u64, seed: u64) {
        if let Some(card) = self.card.take() {
            self.medium = Some(card.power_fail(self.save_cycles.unwrap_or(save_cycles), seed));
        }
        self.flight.clear();
        self.flying_writes = 0;
        self.posted.clear();
        self.fetches.clear();
        self.free_fetches.clear();
        self.submitted.clear();
        self.arriving.clear();
        self.bus_master = false;
        self.interrupt = false;
        self.is_there = false;
    }

    /// Arrival of the next packet at the card.
    pub fn next_packet(&self) -> Option<u64> {
        self.flight.front().map(|(arrival_ps, _)| *arrival_ps)
    }

    /// Whether nothing is under way on the link or in the card.
    pub fn is_idle(&self) -> bool {
        let card_idle = self.card.as_ref().is_none_or(|card| card.is_idle());
        card_idle && self.flight.is_empty() && self.posted.is_empty() && self.arriving.is_empty()
    }

    /// Posted writes that occupy credits.
    pub fn occupied_credits(&self) -> usize {
        self.posted.len() + self.flying_writes
    }

    /// Whether the card has posted writes that it has not taken.
    pub fn has_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// Sends a posted write that is ready; gives when it left the core.
    pub fn post(&mut self, link: &mut Link, parameters: &Parameters, ready_ps: u64, access: Access) -> u64 {
        let payload = payload(&access);
        let passage = link.down.send(parameters, ready_ps, payload);
        if self.card.is_some() {
            self.statistics.writes_sent += 1;
            self.statistics.bytes_down += payload;
            self.statistics.command_writes += matches!(access, Access::CommandWrite { .. }) as u64;
            self.flight.push_back((passage.arrival_ps, Packet::Write(access)));
            self.flying_writes += 1;
        }
        passage.departure_ps
    }

    /// Sends a read; `bytes` of payload come back. Gives the index of the fetch.
    pub fn fetch(
        &mut self,
        link: &mut Link,
        parameters: &Parameters,
        ready_ps: u64,
        access: Access,
        bytes: u64,
    ) -> u32 {
        let index = match self.free_fetches.pop() {
            Some(index) => index,
            None => {
                self.fetches.push(Fetch::Free);
                self.fetches.len() as u32 - 1
            }
        };
        self.fetches[index as usize] = Fetch::Flying { bytes };
        self.statistics.reads_sent += 1;
        let passage = link.down.send(parameters, ready_ps, 0);
        if self.card.is_some() {
            self.flight.push_back((passage.arrival_ps, Packet::Read(index, access)));
        }
        index
    }

    /// Whether a fetch is on its way to the card.
    pub fn is_flying(&self, fetch: u32) -> bool {
        matches!(self.fetches.get(fetch as usize), Some(Fetch::Flying { .. }))
    }

    /// Whether a fetch is at the card.
    pub fn is_submitted(&self, fetch: u32) -> bool {
        matches!(self.fetches.get(fetch as usize), Some(Fetch::Submitted { .. }))
    }

    /// When the answer of a fetch is at the core, once the card has given it.
    pub fn answer_ps(&self, fetch: u32) -> Option<u64> {
        match self.fetches.get(fetch as usize) {
            Some(Fetch::Answered { arrival_ps, .. }) => Some(*arrival_ps),
            _ => None,
        }
    }

    /// Takes the answer of a fetch: when it is at the core, and the line.
    pub fn take(&mut self, fetch: u32) -> Option<(u64, [u8; LINE])> {
        let Fetch::Answered { arrival_ps, data } = *self.fetches.get(fetch as usize)? else { return None };
        self.fetches[fetch as usize] = Fetch::Free;
        self.free_fetches.push(fetch);
        Some((arrival_ps, data))
    }

    /// Hands the next packet to the card, which has come to its time.
    pub fn deliver(&mut self) {
        let (Some(card), Some((_, packet))) = (&mut self.card, self.flight.pop_front()) else { return };
        match packet {
            Packet::Write(access) => {
                self.flying_writes -= 1;
                let event = match access {
                    Access::CommandWrite { .. } => Some(Event::CommandAccepted),
                    Access::PmWrite { .. } => Some(Event::WriteAccepted),
                    _ => None,
                };
                let ticket = card.submit(access);
                self.posted.push_back(Posted { ticket, event });
            }
            Packet::Read(index, access) => {
                let memory = matches!(access, Access::PmRead { .. });
                let ticket = card.submit(access);
                let fetch = &mut self.fetches[index as usize];
                let Fetch::Flying { bytes } = *fetch else { unreachable!("a read is delivered once") };
                *fetch = Fetch::Submitted { ticket, bytes, memory };
                self.submitted.push(index);
            }
        }
    }

    /// Takes what the card, which is the `number`-th, has answered, and gives what leaves it
    /// towards the host.
    pub fn collect(&mut self, number: usize, trigger: &mut Trigger) -> Vec<Outgoing> {
        let Some(mut card) = self.card.take() else { return Vec::new() };
        while let Some((activity, cycle)) = card.take_activity() {
            trigger.note(Event::Inside(activity), number, cycle);
        }
        let mut outgoing = Vec::new();
        while let Some(write) = card.take_dma() {
            trigger.note(Event::Completion, number, write.cycle);
            outgoing.push(Outgoing::Record(write));
        }
        self.submitted.retain(|&fetch| {
            let Fetch::Submitted { ticket, bytes, memory } = self.fetches[fetch as usize] else { return false };
            let Some(answer) = card.take(ticket) else { return true };
            if memory {
                trigger.note(Event::ReadAnswered, number, answer.cycle);
            }
            outgoing.push(Outgoing::Answer { fetch, bytes, answer });
            false
        });
        while let Some(posted) = self.posted.front()
            && let Some(answer) = card.take(posted.ticket)
        {
            let event = posted.event;
            self.posted.pop_front();
            if let Some(event) = event {
                trigger.note(event, number, answer.cycle);
            }
        }
        self.card = Some(card);
        outgoing
    }

    /// Sends what is ready to leave the card.
    pub fn send_up(&mut self, packet: Outgoing, link: &mut Link, parameters: &Parameters, ready_ps: u64) {
        match packet {
            Outgoing::Record(write) => {
                let passage = link.up.send(parameters, ready_ps, write.strobes.count_ones() as u64);
                self.arriving.push_back((passage.arrival_ps, write));
            }
            Outgoing::Answer { fetch, bytes, answer } => {
                self.statistics.bytes_up += bytes;
                let arrival_ps = link.up.send(parameters, ready_ps, bytes).arrival_ps;
                let data = if answer.error { [0xff; LINE] } else { answer.data };
                self.fetches[fetch as usize] = Fetch::Answered { arrival_ps, data };
            }
        }
    }
}
