//! One powered card.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use nearpm_interface::geometry::LINE;
use nearpm_interface::peer::PeerMessage;
use nearpm_verilate::{Error, Instance, Port};

use super::channels::Channels;
use super::completions::Completions;
use super::peers::PeerPort;
use super::pins::{Bit, Pins, tie};
use super::slaves::Slaves;
use crate::core::{Access, Activity, Answer, CardCore, DmaWrite, Medium, Ticket};
use crate::ddr4::Config;

/// Cycles for which `rst_n` is low at power-up.
const RESET_CYCLES: u64 = 16;
/// Cycles after it until the ports are used: the reset passes synchronisers inside the card.
const RELEASE_CYCLES: u64 = 16;
/// Cycles without any traffic at the ports after which the card counts as idle. Longer than any
/// pause inside a command, all of whose steps but a few go to memory.
pub const QUIET_CYCLES: u64 = 256;

/// A Verilated card with its memory. One call of the model per cycle, which does not simulate a
/// cycle that changes nothing but counters.
pub struct RtlCard {
    pins: Pins,
    clock: Port,
    power_fail: Bit,
    save_done: Port,
    slaves: Slaves,
    memory: Channels,
    completions: Completions,
    peers: PeerPort,
    cycle: u64,
    period_ps: u64,
    /// Last cycle with traffic at a port.
    busy: u64,
    /// What a host that watches has not taken.
    activities: Option<VecDeque<(Activity, u64)>>,
    /// Half periods in the waveform, if one is written.
    waveform: Option<u64>,
}

impl RtlCard {
    /// Resets the card. With `traced`, every edge goes to the waveform that is open on the
    /// instance.
    pub fn new(model: Instance, memory: Config, medium: Medium, card_mhz: u64, traced: bool) -> Result<Self, Error> {
        let mut pins = Pins::new(model);
        let clock = pins.model.port("clk")?;
        let mut reset = Bit::new(&mut pins, "rst_n", false)?;
        tie(&mut pins, "pm_bytes".into(), medium.bytes.len() as u64);
        let mut card = RtlCard {
            clock,
            power_fail: Bit::new(&mut pins, "power_fail", false)?,
            save_done: pins.model.port("save_done")?,
            slaves: Slaves::new(&mut pins)?,
            memory: Channels::new(&mut pins, memory, card_mhz, medium)?,
            completions: Completions::new(&mut pins)?,
            peers: PeerPort::new(&mut pins),
            pins,
            cycle: 0,
            period_ps: 1_000_000 / card_mhz,
            busy: 0,
            activities: None,
            waveform: traced.then_some(0),
        };
        card.pins.settle();
        (0..RESET_CYCLES).for_each(|_| card.edge());
        reset.drive(&mut card.pins, true);
        card.pins.settle();
        (0..RELEASE_CYCLES).for_each(|_| card.edge());
        Ok(card)
    }

    /// Makes a line of memory answer with an error from now on.
    pub fn plant_memory_error(&mut self, address: u64) {
        self.memory.plant_error(address);
    }

    /// Takes the power away. In the cycles that follow the card lives on its energy and saves; the
    /// medium that it leaves when that ends is what [`CardCore::power_fail`] without further energy
    /// gives.
    pub fn lose_power(&mut self) {
        self.slaves.cut();
        self.peers.cut();
        self.power_fail.drive(&mut self.pins, true);
    }

    /// Whether the save that [`RtlCard::lose_power`] began is done.
    pub fn has_saved(&self) -> bool {
        self.pins.is_high(self.save_done)
    }

    /// Whether the memory owes a write its answer, so that a cut may drop or tear something.
    pub fn owes_writes(&self) -> bool {
        self.memory.owes_writes()
    }

    /// What is durable now.
    pub fn contents(&self) -> Cow<'_, Medium> {
        self.memory.contents()
    }

    /// Clock edges that were not simulated, because they would have changed nothing but counters.
    pub fn skipped_edges(&self) -> u64 {
        self.pins.model.skipped_edges()
    }

    /// Writes that have become durable since power-up: [`RtlCard::contents`] changes with no other
    /// event.
    pub fn durable_bursts(&self) -> u64 {
        self.memory.durable_bursts()
    }

    /// The lines that [`CardCore::power_fail`] without energy would change now, and what they would
    /// hold.
    pub fn lines_after_power_fail(&self, seed: u64) -> BTreeMap<u64, [u8; LINE]> {
        self.memory.lines_after_power_fail(seed)
    }

    /// One cycle.
    #[inline]
    fn step(&mut self) {
        self.slaves.drive(&mut self.pins);
        self.memory.drive(&mut self.pins);
        self.completions.drive(&mut self.pins, self.cycle);
        self.peers.drive(&mut self.pins);
        self.pins.settle();
        let next = self.cycle + 1;
        let seen = self.slaves.sample(&self.pins, next);
        self.memory.sample(&self.pins);
        self.completions.sample(&self.pins, next);
        self.peers.sample(&self.pins, next);
        if let Some(activities) = &mut self.activities {
            activities.extend(self.memory.activities().map(|activity| (activity, next)));
        }
        self.edge();
        self.slaves.step(&mut self.pins, seen);
        self.memory.step();
        self.cycle = next;
        if !self.is_quiet() {
            self.busy = next;
        }
    }

    /// The clock's edges, after the model has settled.
    #[inline]
    fn edge(&mut self) {
        let Some(time) = &mut self.waveform else { return self.pins.model.edge(self.clock) };
        // Two instants a cycle, so that the waveform shows the clock.
        for level in [1, 0] {
            self.pins.model.set_u64(self.clock, level);
            self.pins.model.eval();
            self.pins.model.dump(*time);
            *time += 1;
        }
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        self.slaves.is_quiet() && self.memory.is_quiet() && self.completions.is_quiet() && self.peers.is_quiet()
    }
}

impl CardCore for RtlCard {
    fn cycle(&self) -> u64 {
        self.cycle
    }

    fn period_ps(&self) -> u64 {
        self.period_ps
    }

    fn advance_to(&mut self, cycle: u64) {
        while self.cycle < cycle {
            self.step();
        }
    }

    fn submit(&mut self, access: Access) -> Ticket {
        self.busy = self.cycle;
        self.slaves.submit(access)
    }

    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.slaves.take(ticket)
    }

    fn take_dma(&mut self) -> Option<DmaWrite> {
        self.completions.take()
    }

    fn take_peer(&mut self) -> Option<(PeerMessage, u64)> {
        self.peers.take()
    }

    fn hear_peer(&mut self, message: PeerMessage) {
        self.busy = self.cycle;
        self.peers.hear(message);
    }

    fn watch(&mut self, on: bool) {
        self.activities = on.then(VecDeque::new);
    }

    fn take_activity(&mut self) -> Option<(Activity, u64)> {
        self.activities.as_mut()?.pop_front()
    }

    fn durable(&self) -> Option<&Medium> {
        self.memory.medium()
    }

    /// True when no port has had traffic for a while. The caller may not skip time on it, only stop
    /// waiting.
    fn is_idle(&self) -> bool {
        self.cycle - self.busy >= QUIET_CYCLES
    }

    fn power_fail(mut self: Box<Self>, save_cycles: u64, seed: u64) -> Medium {
        self.lose_power();
        let end = self.cycle + save_cycles;
        while self.cycle < end && !self.has_saved() {
            self.step();
        }
        self.memory.power_fail(seed)
    }
}
