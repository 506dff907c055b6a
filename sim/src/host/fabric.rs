//! The links and the cards behind them, in one time.
//!
//! Packets towards a card lie in flight until their time; the cards are advanced only as far as
//! somebody needs it: to deliver what has arrived, to wait for an answer, or to see what they have
//! sent. So their time is never ahead of the latest moment that a core has reached or waits for,
//! and a cut finds each packet where it is. All cards have one clock and stand at the same cycle;
//! between them messages travel, so they run no further at once than a message takes.

use nearpm_interface::geometry::LINE;

use super::cut::{Cut, CutRecord, Trigger};
use super::dma::HostMemory;
use super::link::Link;
use super::packet::FetchId;
use super::parameters::Parameters;
use super::peers::{PeerLinks, Peers};
use super::slot::{Plug, Slot};
use crate::core::Access;

/// Cycles without an answer after which a card counts as hung: 10 ms at 300 MHz, the shortest
/// completion timeout of PCI Express.
pub const HANG_CYCLES: u64 = 3_000_000;

/// Links, cards, host memory, power.
pub struct Fabric {
    pub parameters: Parameters,
    /// Power cuts and fences, which belong to no card.
    pub cuts: u64,
    pub fences: u64,
    pub memory: HostMemory,
    pub slots: Vec<Slot>,
    /// One a slot, or one for all.
    links: Vec<Link>,
    peers: PeerLinks,
    powered: bool,
    /// Cycle of every card.
    cycle: u64,
    period_ps: u64,
    /// Time of the cards' power-up.
    start_ps: u64,
    /// The cut that is armed, and the events that it may wait for.
    pub trigger: Trigger,
    /// The last cut.
    pub last_cut: Option<CutRecord>,
    /// The cards note what happens inside them.
    watched: bool,
}

impl Fabric {
    /// A host with so many slots, without power.
    pub fn new(parameters: Parameters, peers: Peers, slots: usize) -> Self {
        Fabric {
            parameters,
            cuts: 0,
            fences: 0,
            memory: HostMemory::new(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            links: vec![Link::default(); if parameters.shared_link { 1 } else { slots }],
            peers: PeerLinks::new(peers),
            powered: false,
            cycle: 0,
            period_ps: 1,
            start_ps: 0,
            trigger: Trigger::default(),
            last_cut: None,
            watched: false,
        }
    }

    /// Switches the power on at `now_ps`, with what is then found in each slot.
    ///
    /// # Panics
    /// If the cards differ in their clock.
    pub fn power_up(&mut self, plugs: Vec<Plug>, now_ps: u64) {
        self.trigger.power_up();
        let mut clock = None;
        for (slot, mut plug) in self.slots.iter_mut().zip(plugs) {
            if let Plug::Card(card) = &mut plug {
                card.watch(self.watched);
                let this = (card.cycle(), card.period_ps());
                assert_eq!(*clock.get_or_insert(this), this, "cards of one machine have one clock");
            }
            slot.plug(plug);
        }
        // Without any card time goes on all the same.
        (self.cycle, self.period_ps) = clock.unwrap_or((0, 1_000_000 / 300));
        self.start_ps = now_ps - self.cycle * self.period_ps;
        self.powered = true;
    }

    /// Whether the power is on.
    #[inline]
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Whether a card answers.
    #[inline]
    pub fn answers(&self, card: usize) -> bool {
        self.slots[card].card.is_some()
    }

    /// Cycle of the cards; 0 without power.
    pub fn cycle(&self) -> u64 {
        if self.powered { self.cycle } else { 0 }
    }

    /// Arms a power cut, in the place of one that is armed.
    pub fn arm(&mut self, cut: Option<Cut>, seed: u64) {
        self.trigger.arm(cut, seed);
    }

    /// Starts or ends the noting of what happens inside the cards, now and after each power-up.
    pub fn watch(&mut self, on: bool) {
        self.watched = on;
        self.slots.iter_mut().filter_map(|slot| slot.card.as_mut()).for_each(|card| card.watch(on));
    }

    /// Whether a cut may come before `now_ps`, so that the cards must be brought there to know.
    /// What arrives by then may bring them to the clock edge behind it.
    #[inline]
    pub fn must_look(&self, now_ps: u64) -> bool {
        self.trigger.awaits_event() || self.trigger.cycle.is_some_and(|cycle| cycle <= self.cycle_at(now_ps))
    }

    #[inline]
    fn time_of(&self, cycle: u64) -> u64 {
        self.start_ps + cycle * self.period_ps
    }

    /// The first clock edge at or after a time.
    fn cycle_at(&self, ps: u64) -> u64 {
        ps.saturating_sub(self.start_ps).div_ceil(self.period_ps)
    }

    /// Cuts the power now, of everything.
    pub fn cut(&mut self) {
        if !std::mem::replace(&mut self.powered, false) {
            return;
        }
        self.last_cut = Some(self.trigger.record(self.cycle));
        for (number, slot) in self.slots.iter_mut().enumerate() {
            // What one memory drops says nothing about the next.
            let seed = self.trigger.seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            slot.cut(self.parameters.save_cycles, seed);
        }
        self.links.iter_mut().for_each(|link| link.down.release());
        self.peers.cut();
        self.cuts += 1;
        self.memory.clear();
        self.arm(None, 0);
    }

    /// Holds what is sent to a card from now on until a time.
    pub fn hold_link(&mut self, card: usize, until_ps: u64) {
        link_of(&mut self.links, card).down.hold(until_ps);
    }

    /// Sends a posted write to a card at `ready_ps`; gives when it left the core.
    pub fn post(&mut self, card: usize, ready_ps: u64, access: Access) -> u64 {
        let now_ps = ready_ps - self.parameters.leave_ps;
        if self.must_look(now_ps) {
            self.run_to(now_ps);
        }
        let ready_ps = self.wait_for_credit(card, ready_ps);
        let link = link_of(&mut self.links, card);
        self.slots[card].post(link, &self.parameters, ready_ps, access)
    }

    /// Sends a read to a card at `ready_ps`; `bytes` of payload come back.
    pub fn fetch(&mut self, card: usize, ready_ps: u64, access: Access, bytes: u64) -> FetchId {
        let link = link_of(&mut self.links, card);
        let index = self.slots[card].fetch(link, &self.parameters, ready_ps, access, bytes);
        FetchId { card: card as u16, index }
    }

    /// Waits for a read: when its data is at the core, and the line. `None` when the power failed
    /// first, or nobody answers.
    pub fn wait(&mut self, id: FetchId) -> Option<(u64, [u8; LINE])> {
        let slot = id.card as usize;
        while self.slots[slot].is_flying(id.index) {
            let arrival_ps = self.slots[slot].next_packet()?;
            self.deliver(arrival_ps);
        }
        let limit = self.cycle + HANG_CYCLES;
        loop {
            if let Some(answer) = self.slots[slot].take(id.index) {
                return Some(answer);
            }
            if !self.slots[slot].is_submitted(id.index) {
                return None;
            }
            let next = self.next_look(limit);
            assert!(next < limit, "the card did not answer a read within {HANG_CYCLES} cycles: it hangs");
            // What arrives meanwhile must not be late.
            self.deliver(self.time_of(next));
            self.advance(next);
        }
    }

    /// When the answer to a read is at the core: `None` while the card has not given it, the
    /// present where nobody will.
    pub fn answer_ps(&self, id: FetchId) -> Option<u64> {
        let slot = &self.slots[id.card as usize];
        if slot.card.is_none() {
            return Some(self.now_ps());
        }
        slot.answer_ps(id.index)
    }

    /// Time that the cards have come to.
    pub fn now_ps(&self) -> u64 {
        self.time_of(self.cycle)
    }

    /// The earliest time at which an answer that a card has not given can be at a core.
    pub fn first_answer_ps(&self) -> u64 {
        self.now_ps() + self.parameters.one_way_ps()
    }

    /// Runs the cards to the next cycle at which one of them may answer, and no further than to one
    /// whose answer would be at a core at `limit_ps`.
    pub fn next_cycle(&mut self, limit_ps: u64) {
        let limit = self.cycle_at(limit_ps.saturating_sub(self.parameters.one_way_ps()));
        let next = self.next_look(limit.min(self.cycle + HANG_CYCLES));
        self.deliver(self.time_of(next));
        self.advance(next);
    }

    /// The next cycle at which the host has to look at the cards, at most `most`, but never the
    /// present: until then nothing arrives at one or leaves it.
    fn next_look(&self, most: u64) -> u64 {
        let outputs = self.slots.iter().filter_map(|slot| slot.card.as_ref()?.next_output());
        let arrivals = self.slots.iter().filter_map(|slot| Some(self.cycle_at(slot.next_packet()?)));
        outputs.chain(arrivals).fold(self.horizon(most), u64::min).max(self.cycle + 1)
    }

    /// How far the cards may run, towards a cycle, without knowing of each other.
    fn horizon(&self, cycle: u64) -> u64 {
        if self.slots.len() == 1 { cycle } else { cycle.min(self.peers.horizon(self.cycle, self.period_ps)) }
    }

    /// Brings everything to a time: delivers what has arrived, at the cards and in host memory.
    pub fn run_to(&mut self, now_ps: u64) {
        self.deliver(now_ps);
        self.advance(now_ps.saturating_sub(self.start_ps) / self.period_ps);
        for slot in &mut self.slots {
            while let Some(&(arrival_ps, _)) = slot.arriving.front()
                && arrival_ps <= now_ps
            {
                let (_, write) = slot.arriving.pop_front().expect("looked at above");
                slot.statistics.dma_writes += 1;
                slot.statistics.dma_faults += !(slot.bus_master && self.memory.write(&write)) as u64;
                slot.interrupt |= slot.bus_master;
            }
        }
    }

    /// When the next write of a card that is known of reaches host memory.
    pub fn next_arrival(&self, card: usize) -> Option<u64> {
        self.slots[card].arriving.front().map(|(arrival_ps, _)| *arrival_ps)
    }

    /// Whether nothing is under way anywhere.
    pub fn is_idle(&self) -> bool {
        self.peers.is_idle() && self.slots.iter().all(Slot::is_idle)
    }

    /// Hands the cards every packet that has arrived by `now_ps`, in the order of arrival.
    fn deliver(&mut self, now_ps: u64) {
        loop {
            let packets =
                self.slots.iter().enumerate().filter_map(|(number, slot)| Some((slot.next_packet()?, number)));
            let Some((arrival_ps, number)) = packets.min().filter(|(arrival_ps, _)| *arrival_ps <= now_ps) else {
                return;
            };
            self.advance(self.cycle_at(arrival_ps));
            if !self.powered {
                return;
            }
            self.slots[number].deliver();
        }
    }

    /// Runs the cards up to a cycle, or to the cut.
    fn advance(&mut self, cycle: u64) {
        while self.powered {
            let now = self.cycle;
            if self.trigger.cycle.is_some_and(|cut| cut <= now) {
                self.cut();
                return;
            }
            if now >= cycle {
                return;
            }
            let stop = self.trigger.cycle.map_or(cycle, |cut| cut.min(cycle));
            // An armed event is looked for whenever there may be one, so that the cut is exact.
            let stop = if self.trigger.awaits_event() { self.next_look(stop) } else { stop };
            self.step(stop);
            self.collect();
        }
    }

    /// Runs the cards towards a cycle, as far as they need not know of each other, and lets them
    /// talk.
    fn step(&mut self, stop: u64) {
        let stop = self.horizon(stop);
        self.cycle = stop;
        let cards = self.slots.len();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(card) = &mut slot.card else { continue };
            card.advance_to(stop);
            while let Some((message, cycle)) = card.take_peer() {
                slot.statistics.peer_messages += 1;
                slot.statistics.peer_drops += self.peers.send(number, cards, message, cycle, self.period_ps);
            }
        }
        while let Some((to, message)) = self.peers.arrived(stop) {
            if let Some(card) = &mut self.slots[to].card {
                card.hear_peer(message);
            }
        }
    }

    /// Takes what the cards have answered and sent, in the order in which it left them, whenever
    /// the host looks for it.
    fn collect(&mut self) {
        let mut outgoing = Vec::new();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            outgoing.extend(slot.collect(number, &mut self.trigger).into_iter().map(|packet| (number, packet)));
        }
        outgoing.sort_by_key(|(_, packet)| packet.cycle());
        for (number, packet) in outgoing {
            let ready_ps = self.time_of(packet.cycle());
            self.slots[number].send_up(packet, link_of(&mut self.links, number), &self.parameters, ready_ps);
        }
    }

    /// Waits until a card has room for another posted write; gives when it may be sent.
    fn wait_for_credit(&mut self, card: usize, mut ready_ps: u64) -> u64 {
        let credits = self.parameters.posted_credits;
        if self.slots[card].occupied_credits() < credits {
            return ready_ps;
        }
        // What the core's time has seen comes first: it must not matter whether somebody has looked
        // before.
        self.run_to(ready_ps - self.parameters.leave_ps);
        self.collect();
        if self.slots[card].occupied_credits() < credits {
            return ready_ps;
        }
        self.deliver(ready_ps);
        self.collect();
        let limit = self.cycle + HANG_CYCLES;
        while self.powered && self.slots[card].occupied_credits() >= credits {
            if let Some(arrival_ps) = self.slots[card].next_packet()
                && !self.slots[card].has_posted()
            {
                self.deliver(arrival_ps);
                continue;
            }
            let next = self.next_look(limit);
            assert!(next < limit, "the card took no write within {HANG_CYCLES} cycles: it hangs");
            self.deliver(self.time_of(next));
            self.advance(next);
            let back_ps = self.time_of(self.cycle) + self.parameters.one_way_ps();
            if back_ps > ready_ps {
                self.slots[card].statistics.credit_stall_ps += back_ps - ready_ps;
                ready_ps = back_ps;
            }
        }
        ready_ps
    }
}

/// The link of a card.
fn link_of(links: &mut [Link], card: usize) -> &mut Link {
    let last = links.len() - 1;
    &mut links[card.min(last)]
}
