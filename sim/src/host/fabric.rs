//! The link and the card behind it, in one time.
//!
//! Packets towards the card lie in flight until their time; the card is advanced only as far as somebody needs it: to deliver
//! what has arrived, to wait for an answer, or to see what it has sent. So the card's time is never ahead of
//! the latest moment that a core has reached or waits for, and a cut finds each packet where it is.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;

use super::cut::{Cut, CutRecord, Event, Trigger};
use super::dma::HostMemory;
use super::link::Lane;
use super::packet::{Fetch, FetchId, Outgoing, Packet, Posted, payload};
use super::parameters::Parameters;
use super::statistics::Statistics;
use crate::core::{Access, CardCore, DmaWrite, Medium};

/// Cycles without an answer after which a card counts as hung: 10 ms at 300 MHz, the shortest completion timeout of PCI Express.
const HANG_CYCLES: u64 = 3_000_000;

/// Link, card, host memory, power.
pub struct Fabric {
    pub parameters: Parameters,
    pub statistics: Statistics,
    pub memory: HostMemory,
    /// Whether the card's writes reach host memory (the bus master bit).
    pub bus_master: bool,
    /// Whether an interrupt has come since the last wait.
    pub interrupt: bool,
    card: Option<Box<dyn CardCore>>,
    medium: Option<Medium>,
    period_ps: u64,
    /// Time of the card's power-up.
    start_ps: u64,
    down: Lane,
    up: Lane,
    flight: VecDeque<(u64, Packet)>,
    flying_writes: usize,
    posted: VecDeque<Posted>,
    fetches: Vec<Fetch>,
    free_fetches: Vec<u32>,
    /// Fetches that the card has not answered.
    submitted: Vec<FetchId>,
    /// Writes of the card on their way to host memory, with their arrival.
    arriving: VecDeque<(u64, DmaWrite)>,
    /// The cut that is armed, and the events that it may wait for.
    pub trigger: Trigger,
    /// The last cut.
    pub last_cut: Option<CutRecord>,
    /// The card notes what happens inside it.
    watched: bool,
}

impl Fabric {
    /// A host without a card.
    pub fn new(parameters: Parameters) -> Self {
        Fabric {
            parameters,
            statistics: Statistics::default(),
            memory: HostMemory::new(),
            bus_master: false,
            interrupt: false,
            card: None,
            medium: None,
            period_ps: 1,
            start_ps: 0,
            down: Lane::default(),
            up: Lane::default(),
            flight: VecDeque::new(),
            flying_writes: 0,
            posted: VecDeque::new(),
            fetches: Vec::new(),
            free_fetches: Vec::new(),
            submitted: Vec::new(),
            arriving: VecDeque::new(),
            trigger: Trigger::default(),
            last_cut: None,
            watched: false,
        }
    }

    /// Plugs a card in, powered up at `now_ps`.
    pub fn power_up(&mut self, mut card: Box<dyn CardCore>, now_ps: u64) {
        card.watch(self.watched);
        self.trigger.power_up();
        self.period_ps = card.period_ps();
        self.start_ps = now_ps - card.cycle() * self.period_ps;
        self.card = Some(card);
        self.medium = None;
    }

    /// Whether there is a card with power.
    #[inline]
    pub fn is_powered(&self) -> bool {
        self.card.is_some()
    }

    /// The medium of a card without power.
    pub fn medium(&self) -> Option<&Medium> {
        self.medium.as_ref()
    }

    /// Takes the medium of a card without power.
    pub fn take_medium(&mut self) -> Option<Medium> {
        self.medium.take()
    }

    /// Gives a card without power a medium.
    pub fn put_medium(&mut self, medium: Medium) {
        self.medium = Some(medium);
    }

    /// Cycle of the card; 0 without power.
    pub fn cycle(&self) -> u64 {
        self.card.as_ref().map_or(0, |card| card.cycle())
    }

    /// Arms a power cut, in the place of one that is armed.
    pub fn arm(&mut self, cut: Option<Cut>, seed: u64) {
        self.trigger.arm(cut, seed);
    }

    /// Starts or ends the noting of what happens inside the card, now and after each power-up.
    pub fn watch(&mut self, on: bool) {
        self.watched = on;
        if let Some(card) = &mut self.card {
            card.watch(on);
        }
    }

    /// Whether a cut may come before `now_ps`, so that the card must be brought there to know. What arrives by then may bring the
    /// card to the clock edge behind it.
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

    /// Cuts the power now.
    pub fn cut(&mut self) {
        let Some(card) = self.card.take() else { return };
        self.last_cut = Some(self.trigger.record(card.cycle()));
        self.medium = Some(card.power_fail(self.parameters.save_cycles, self.trigger.seed));
        self.statistics.cuts += 1;
        self.flight.clear();
        self.flying_writes = 0;
        self.posted.clear();
        self.fetches.clear();
        self.free_fetches.clear();
        self.submitted.clear();
        self.arriving.clear();
        self.memory.clear();
        self.bus_master = false;
        self.interrupt = false;
        self.arm(None, 0);
    }

    /// Sends a posted write at `ready_ps`; gives when it left the core.
    pub fn post(&mut self, ready_ps: u64, access: Access) -> u64 {
        let payload = payload(&access);
        let now_ps = ready_ps - self.parameters.leave_ps;
        if self.must_look(now_ps) {
            self.run_to(now_ps);
        }
        let ready_ps = self.wait_for_credit(ready_ps);
        let passage = self.down.send(&self.parameters, ready_ps, payload);
        if self.is_powered() {
            self.statistics.writes_sent += 1;
            self.statistics.bytes_down += payload;
            self.statistics.command_writes += matches!(access, Access::CommandWrite { .. }) as u64;
            self.flight.push_back((passage.arrival_ps, Packet::Write(access)));
            self.flying_writes += 1;
        }
        passage.departure_ps
    }

    /// Sends a read at `ready_ps`; `bytes` of payload come back.
    pub fn fetch(&mut self, ready_ps: u64, access: Access, bytes: u64) -> FetchId {
        let id = match self.free_fetches.pop() {
            Some(id) => id,
            None => {
                self.fetches.push(Fetch::Free);
                self.fetches.len() as u32 - 1
            }
        };
        self.fetches[id as usize] = Fetch::Flying { bytes };
        self.statistics.reads_sent += 1;
        let passage = self.down.send(&self.parameters, ready_ps, 0);
        if self.is_powered() {
            self.flight.push_back((passage.arrival_ps, Packet::Read(FetchId(id), access)));
        }
        FetchId(id)
    }

    /// Waits for a read: when its data is at the core, and the line. `None` when the power failed first.
    pub fn wait(&mut self, id: FetchId) -> Option<(u64, [u8; LINE])> {
        while matches!(self.fetches.get(id.0 as usize), Some(Fetch::Flying { .. })) {
            let (arrival_ps, _) = *self.flight.front()?;
            self.deliver(arrival_ps);
        }
        let limit = self.cycle() + HANG_CYCLES;
        loop {
            match *self.fetches.get(id.0 as usize)? {
                Fetch::Answered { arrival_ps, data } => {
                    self.fetches[id.0 as usize] = Fetch::Free;
                    self.free_fetches.push(id.0);
                    return Some((arrival_ps, data));
                }
                Fetch::Submitted { .. } => {}
                Fetch::Free | Fetch::Flying { .. } => return None,
            }
            let next = self.card.as_ref()?.cycle() + 1;
            assert!(next < limit, "the card did not answer a read within {HANG_CYCLES} cycles: it hangs");
            // What arrives meanwhile must not be late.
            self.deliver(self.time_of(next));
            self.advance(next);
        }
    }

    /// Brings everything to a time: delivers what has arrived, at the card and in host memory.
    pub fn run_to(&mut self, now_ps: u64) {
        self.deliver(now_ps);
        self.advance(now_ps.saturating_sub(self.start_ps) / self.period_ps);
        while let Some(&(arrival_ps, _)) = self.arriving.front()
            && arrival_ps <= now_ps
        {
            let (_, write) = self.arriving.pop_front().expect("looked at above");
            self.statistics.dma_writes += 1;
            self.statistics.dma_faults += !(self.bus_master && self.memory.write(&write)) as u64;
            self.interrupt |= self.bus_master;
        }
    }

    /// When the next write of the card that is known of reaches host memory.
    pub fn next_arrival(&self) -> Option<u64> {
        self.arriving.front().map(|(arrival_ps, _)| *arrival_ps)
    }

    /// Whether nothing is under way anywhere.
    pub fn is_idle(&self) -> bool {
        let card_idle = self.card.as_ref().is_none_or(|card| card.is_idle());
        card_idle && self.flight.is_empty() && self.posted.is_empty() && self.arriving.is_empty()
    }

    /// Hands the card every packet that has arrived by `now_ps`.
    fn deliver(&mut self, now_ps: u64) {
        while let Some((arrival_ps, _)) = self.flight.front()
            && *arrival_ps <= now_ps
        {
            let cycle = self.cycle_at(*arrival_ps);
            self.advance(cycle);
            let Some(card) = self.card.as_mut() else { return };
            let (_, packet) = self.flight.pop_front().expect("only a cut empties the flight");
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
                Packet::Read(id, access) => {
                    let memory = matches!(access, Access::PmRead { .. });
                    let ticket = card.submit(access);
                    let fetch = &mut self.fetches[id.0 as usize];
                    let Fetch::Flying { bytes } = *fetch else { unreachable!("a read is delivered once") };
                    *fetch = Fetch::Submitted { ticket, bytes, memory };
                    self.submitted.push(id);
                }
            }
        }
    }

    /// Runs the card up to a cycle, or to the cut.
    fn advance(&mut self, cycle: u64) {
        while let Some(card) = self.card.as_mut() {
            let now = card.cycle();
            if self.trigger.cycle.is_some_and(|cut| cut <= now) {
                self.cut();
                return;
            }
            if now >= cycle {
                return;
            }
            let stop = self.trigger.cycle.map_or(cycle, |cut| cut.min(cycle));
            // An armed event is looked for in every cycle, so that the cut is exact.
            card.advance_to(if self.trigger.awaits_event() { now + 1 } else { stop });
            self.collect();
        }
    }

    /// Takes what the card has answered and sent.
    fn collect(&mut self) {
        let Some(mut card) = self.card.take() else { return };
        while let Some((activity, cycle)) = card.take_activity() {
            self.trigger.note(Event::Inside(activity), cycle);
        }
        let mut outgoing = Vec::new();
        while let Some(write) = card.take_dma() {
            self.trigger.note(Event::Completion, write.cycle);
            outgoing.push(Outgoing::Record(write));
        }
        self.submitted.retain(|&id| {
            let Fetch::Submitted { ticket, bytes, memory } = self.fetches[id.0 as usize] else { return false };
            let Some(answer) = card.take(ticket) else { return true };
            if memory {
                self.trigger.note(Event::ReadAnswered, answer.cycle);
            }
            outgoing.push(Outgoing::Answer { id, bytes, answer });
            false
        });
        self.send_up(outgoing);
        while let Some(posted) = self.posted.front()
            && let Some(answer) = card.take(posted.ticket)
        {
            let event = posted.event;
            self.posted.pop_front();
            if let Some(event) = event {
                self.trigger.note(event, answer.cycle);
            }
        }
        self.card = Some(card);
    }

    /// Sends what has left the card, in the order in which it did, whenever the host looks for it.
    fn send_up(&mut self, mut outgoing: Vec<Outgoing>) {
        outgoing.sort_by_key(Outgoing::cycle);
        for packet in outgoing {
            let ready_ps = self.time_of(packet.cycle());
            match packet {
                Outgoing::Record(write) => {
                    let passage = self.up.send(&self.parameters, ready_ps, write.strobes.count_ones() as u64);
                    self.arriving.push_back((passage.arrival_ps, write));
                }
                Outgoing::Answer { id, bytes, answer } => {
                    self.statistics.bytes_up += bytes;
                    let arrival_ps = self.up.send(&self.parameters, ready_ps, bytes).arrival_ps;
                    let data = if answer.error { [0xff; LINE] } else { answer.data };
                    self.fetches[id.0 as usize] = Fetch::Answered { arrival_ps, data };
                }
            }
        }
    }

    /// Waits until the card has room for another posted write; gives when it may be sent.
    fn wait_for_credit(&mut self, mut ready_ps: u64) -> u64 {
        let credits = self.parameters.posted_credits;
        if self.posted.len() + self.flying_writes < credits {
            return ready_ps;
        }
        // What the core's time has seen comes first: it must not matter whether somebody has looked before.
        self.run_to(ready_ps - self.parameters.leave_ps);
        self.collect();
        if self.posted.len() + self.flying_writes < credits {
            return ready_ps;
        }
        self.deliver(ready_ps);
        self.collect();
        let limit = self.cycle() + HANG_CYCLES;
        while self.is_powered() && self.posted.len() + self.flying_writes >= credits {
            if let Some(&(arrival_ps, _)) = self.flight.front()
                && self.posted.is_empty()
            {
                self.deliver(arrival_ps);
                continue;
            }
            let next = self.cycle() + 1;
            assert!(next < limit, "the card took no write within {HANG_CYCLES} cycles: it hangs");
            self.deliver(self.time_of(next));
            self.advance(next);
            let back_ps = self.time_of(self.cycle()) + self.parameters.one_way_ps();
            if back_ps > ready_ps {
                self.statistics.credit_stall_ps += back_ps - ready_ps;
                ready_ps = back_ps;
            }
        }
        ready_ps
    }
}
