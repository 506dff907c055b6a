//! The card: its parts, its clock, and what wakes what.

use std::collections::VecDeque;
use std::sync::Arc;

use nearpm_interface::geometry::{COMMAND_PAGES, UNITS};
use nearpm_interface::peer::PeerMessage;

use super::answers::Answers;
use super::busy::Busy;
use super::fault::Fault;
use super::firmware::Firmware;
use super::item::Item;
use super::mapping::AddressMap;
use super::memory::{Harvest, Kind, Memory};
use super::order::Order;
use super::pages::Pages;
use super::timing::Timing;
use super::trace::{Event, What};
use super::wheel::Wheel;
use crate::core::{Access, Activity, Answer, CardCore, DmaWrite, Medium, Ticket};
use crate::ddr4;

mod dispatch;
mod entry;
mod front;
mod lost;
mod parked;
mod peers;
mod persistence;
mod phase;
mod port;
mod registers;
mod unit;

use dispatch::Dispatcher;
use front::{Arrival, Front};
use lost::Lost;
use parked::Table;
use persistence::{Loader, Persistence, System};
use phase::Phase;
use port::{HOST, Port, SYSTEM};
use registers::Counters;
pub use registers::Ring;
use unit::Unit;

/// What wakes a part at a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    /// The oldest arrival is delivered.
    Front,
    /// An item waits for nothing more.
    Ready(Item),
    /// The dispatcher may issue.
    Dispatch,
    /// The memory port may grant.
    Port,
    /// A unit's engines may have something to ask for.
    Unit(u8),
    /// A unit's sequencer starts the next context.
    Sequence(u8),
    /// A context offers progress at a wait.
    Progress { unit: u8, context: u8 },
    /// A unit is done with a command.
    Done { slot: u8, status: u8 },
    /// A command retires.
    Retire { slot: u8, status: u8 },
    /// The next lines of the save.
    Save,
    /// Something may be held by a failed log.
    Hold,
    /// A message of another device is taken.
    Hear,
}

/// Most units of a transaction-level card: twice those of the RTL, for what more of them would
/// bring.
pub const MOST_UNITS: usize = 2 * UNITS;

/// How a card is made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Clock of the card, in MHz.
    pub card_mhz: u64,
    /// Stage latencies.
    pub timing: Timing,
    /// NearPM units, 1 to [`MOST_UNITS`]. The RTL has [`UNITS`]: another number is a card that was
    /// not built, with the same stages.
    pub units: usize,
    /// Hundredths of a cycle for which a line that is written keeps the memory port busy: 100 on
    /// the card's own data path of a line a cycle, more for a narrower bus between units and
    /// memory.
    pub line_percent: u64,
    /// Form of the memory.
    pub memory: Kind,
    /// The memory channel.
    pub ddr4: ddr4::Config,
    /// Whether the capability bit says that acknowledged work survives a power cut.
    pub power_fail_safe: bool,
    /// Whether events are recorded.
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            card_mhz: 300,
            timing: Timing::CARD,
            units: UNITS,
            line_percent: 100,
            memory: Kind::Transaction,
            ddr4: ddr4::Config::DDR4_2400,
            power_fail_safe: true,
            trace: false,
        }
    }
}

/// The transaction-level card.
pub struct ModelCard {
    pub(super) now: u64,
    pub(super) timing: Timing,
    pub(super) line_percent: u64,
    card_mhz: u64,
    pub(super) power_fail_safe: bool,
    pub(super) fault: Option<Fault>,
    pub(super) wheel: Wheel<Signal>,
    pub(super) memory: Memory,
    pub(super) port: Port,
    pub(super) arrivals: VecDeque<Arrival>,
    pub(super) front: Front,
    pub(super) answers: Answers,
    pub(super) pages: Pages,
    pub(super) map: AddressMap,
    pub(super) order: Order,
    pub(super) parked: Table,
    pub(super) peers: peers::Port,
    pub(super) dispatcher: Dispatcher,
    /// A look at what is held is due.
    pub(super) hold_due: bool,
    /// Cycle of the next retirement that is free: one a cycle.
    pub(super) retire_free: u64,
    pub(super) units: Vec<Unit>,
    /// Host lines that may go to memory.
    pub(super) host_reads: VecDeque<u8>,
    pub(super) host_writes: VecDeque<u8>,
    pub(super) system: System,
    pub(super) firmware: Firmware,
    pub(super) loader: Option<Loader>,
    pub(super) firmware_status: u32,
    pub(super) persistence: Persistence,
    /// The ports take no new work.
    pub(super) stop: bool,
    /// Nothing new is started.
    pub(super) quiesce: bool,
    /// The power is failing.
    pub(super) failing: bool,
    pub(super) device: u32,
    pub(super) counters: Counters,
    pub(super) lost: Lost,
    pub(super) rings: [Ring; COMMAND_PAGES],
    pub(super) completion_free: u64,
    pub(super) dma: VecDeque<DmaWrite>,
    /// Cycle at which the last answer or record leaves.
    last_output: u64,
    trace: Option<Vec<Event>>,
    busy: Option<Arc<Busy>>,
    /// What a host that watches has not taken.
    activities: Option<VecDeque<(Activity, u64)>>,
    harvest: Harvest,
}

impl ModelCard {
    /// Powers a card up; it begins to boot.
    ///
    /// # Panics
    /// If it would have no unit or more than there are, or a line would take less than a cycle.
    pub fn new(config: Config, medium: Medium) -> Self {
        Self::build(config, medium, None)
    }

    /// The same with one protection disabled, for tests of the tests.
    #[doc(hidden)]
    pub fn with_fault(config: Config, medium: Medium, fault: Fault) -> Self {
        Self::build(config, medium, Some(fault))
    }

    fn build(config: Config, medium: Medium, fault: Option<Fault>) -> Self {
        assert!((1..=MOST_UNITS).contains(&config.units), "a card with {} units, not 1 to {MOST_UNITS}", config.units);
        assert!(config.line_percent >= 100, "a line takes a cycle of the port at least");
        let mut card = ModelCard {
            now: 0,
            timing: config.timing,
            line_percent: config.line_percent,
            card_mhz: config.card_mhz,
            power_fail_safe: config.power_fail_safe,
            fault,
            wheel: Wheel::new(),
            memory: Memory::new(config.memory, config.ddr4, config.card_mhz, medium),
            port: Port::new(),
            arrivals: VecDeque::new(),
            front: Front::default(),
            answers: Answers::new(),
            pages: Pages::new(),
            map: AddressMap::default(),
            order: Order::new(),
            parked: Table::default(),
            peers: peers::Port::default(),
            dispatcher: Dispatcher::default(),
            hold_due: false,
            retire_free: 0,
            units: (0..config.units).map(|_| Unit::new()).collect(),
            host_reads: VecDeque::new(),
            host_writes: VecDeque::new(),
            system: System::default(),
            firmware: Firmware::none(),
            loader: None,
            firmware_status: 0,
            persistence: Persistence::new(),
            stop: false,
            quiesce: false,
            failing: false,
            device: 0,
            counters: Counters::default(),
            lost: Lost::default(),
            rings: [Ring::default(); COMMAND_PAGES],
            completion_free: 0,
            dma: VecDeque::new(),
            last_output: 0,
            trace: config.trace.then(Vec::new),
            busy: None,
            activities: None,
            harvest: Harvest::default(),
        };
        card.boot();
        card
    }

    /// The same card, which tells a meter when it works on commands.
    pub fn metered(self, meter: Arc<Busy>) -> Self {
        ModelCard { busy: Some(meter), ..self }
    }

    /// Makes a line of memory answer with an error from now on.
    pub fn plant_memory_error(&mut self, address: u64) {
        self.memory.plant_error(address);
    }

    /// What is durable in memory at this moment; what the persistence domain holds is not in it.
    pub fn medium(&self) -> &Medium {
        self.memory.medium()
    }

    /// Events since the last call; none where the card was made without a trace.
    pub fn take_trace(&mut self) -> Vec<Event> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Cycle of the next thing that will happen by itself.
    pub fn next_event(&self) -> Option<u64> {
        self.next_work().into_iter().chain(self.peers.ask).min()
    }

    /// The same without the questions to other devices, which nobody has to wait for.
    fn next_work(&self) -> Option<u64> {
        self.wheel.next().into_iter().chain(self.memory.next()).min()
    }

    pub(super) fn trace(&mut self, what: What) {
        if let Some(activities) = &mut self.activities {
            let activity = match what {
                What::Issued { .. } => Some(Activity::Issued),
                What::Durable { .. } => Some(Activity::Durable),
                What::Retired { .. } => Some(Activity::Retired),
                What::Accepted { .. }
                | What::Held { .. }
                | What::Latched { .. }
                | What::Parked { .. }
                | What::State(_) => None,
            };
            activities.extend(activity.map(|activity| (activity, self.now)));
        }
        if let Some(busy) = &self.busy {
            match what {
                What::Issued { item: Item::Slot(_) } => busy.issued(self.now),
                What::Retired { item: Item::Slot(_), .. } => busy.retired(self.now),
                _ => {}
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.push(Event { cycle: self.now, what });
        }
    }

    /// Notes that an answer or record leaves at a cycle, and gives the cycle.
    pub(super) fn leaves(&mut self, cycle: u64) -> u64 {
        self.last_output = self.last_output.max(cycle);
        cycle
    }

    /// Runs everything that happens at one cycle.
    fn step(&mut self, cycle: u64) {
        self.now = cycle;
        self.wheel.move_to(cycle);
        if self.memory.must_run(cycle) {
            let mut harvest = std::mem::take(&mut self.harvest);
            self.memory.run(cycle, &mut harvest);
            self.take_harvest(&harvest);
            self.harvest = harvest;
        }
        while let Some(signal) = self.wheel.pop() {
            self.handle(signal);
        }
        if self.peers.ask.is_some_and(|due| due <= cycle) {
            self.on_ask();
        }
    }

    fn take_harvest(&mut self, harvest: &Harvest) {
        for done in &harvest.bursts {
            let tag = done.burst.token.tag;
            let lines = match done.read {
                true => &harvest.lines[done.first..done.first + done.burst.beats as usize],
                false => &[],
            };
            if !done.read {
                self.trace(What::Durable { address: done.burst.address, beats: done.burst.beats });
            }
            match done.burst.token.requester as usize {
                HOST => self.host_done(tag, lines.first(), done.error),
                SYSTEM if done.read => self.system_read_done(tag, lines, done.error),
                SYSTEM => self.system_write_done(tag, done.error),
                unit if done.read => self.unit_read(unit, lines, done.error),
                unit => self.unit_written(unit, tag, done.error),
            }
        }
    }

    fn handle(&mut self, signal: Signal) {
        match signal {
            Signal::Front => self.on_front(),
            Signal::Ready(item) => self.on_ready(item),
            Signal::Dispatch => self.on_dispatch(),
            Signal::Port => self.on_port(),
            Signal::Unit(unit) => self.unit_work(unit as usize),
            Signal::Sequence(unit) => self.on_sequence(unit as usize),
            Signal::Progress { unit, context } => self.on_progress(unit as usize, context),
            Signal::Done { slot, status } => self.on_done(slot, status),
            Signal::Retire { slot, status } => self.on_retire(slot, status),
            Signal::Save => self.on_save(),
            Signal::Hold => self.on_hold(),
            Signal::Hear => self.on_hear(),
        }
    }

    /// Runs to a cycle, or until nothing happens by itself any more; whether the latter.
    fn run_dry(&mut self, cycle: u64) -> bool {
        while let Some(next) = self.next_event() {
            if next > cycle {
                self.advance_to(cycle);
                return false;
            }
            self.step(next);
        }
        true
    }

    /// The power-fail save, as far as `save_cycles` last.
    fn save_on_power_fail(&mut self, save_cycles: u64) {
        let deadline = self.now.saturating_add(save_cycles);
        self.failing = true;
        self.stop = true;
        self.peers.silence();
        if !self.saves() {
            return;
        }
        if self.persistence.phase != Phase::Saving {
            self.quiesce = true;
            if !self.run_dry(deadline) || self.persistence.phase == Phase::Saved {
                return;
            }
            let quiet = self.now + self.timing.quiet;
            if quiet > deadline {
                return;
            }
            self.advance_to(quiet);
            self.start_save();
        }
        self.run_dry(deadline);
    }

    /// Drops all work, as no card may.
    pub(super) fn forget_work(&mut self) {
        for item in self.order.live() {
            if let Item::Line(line) = item
                && let Some(ticket) = self.order.lines[line as usize].ticket.take()
            {
                let cycle = self.leaves(self.now + 1);
                self.answers.plain(ticket, cycle, true);
            }
        }
        let last = self.order.last;
        self.order = Order::new();
        self.order.last = last;
    }
}

impl CardCore for ModelCard {
    fn cycle(&self) -> u64 {
        self.now
    }

    fn period_ps(&self) -> u64 {
        1_000_000 / self.card_mhz
    }

    fn advance_to(&mut self, cycle: u64) {
        while let Some(next) = self.next_event().filter(|&next| next <= cycle) {
            self.step(next);
        }
        if cycle > self.now {
            self.now = cycle;
            self.wheel.move_to(cycle);
        }
    }

    fn submit(&mut self, access: Access) -> Ticket {
        let ticket = self.answers.issue();
        if self.fault == Some(Fault::AcceptedTooEarly)
            && let Access::CommandRead { page } = access
        {
            let status = self.page_status(page, self.on_their_way(page));
            self.answer_status(ticket, status);
            return ticket;
        }
        self.arrivals.push_back(Arrival { ticket, access, at: self.now });
        self.schedule_front();
        ticket
    }

    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.take(ticket, self.now)
    }

    fn take_dma(&mut self) -> Option<DmaWrite> {
        let left = self.dma.front()?.cycle <= self.now;
        left.then(|| self.dma.pop_front()).flatten()
    }

    fn take_peer(&mut self) -> Option<(PeerMessage, u64)> {
        self.peers.take(self.now)
    }

    fn hear_peer(&mut self, message: PeerMessage) {
        self.hear(message);
    }

    fn watch(&mut self, on: bool) {
        self.activities = on.then(VecDeque::new);
    }

    fn take_activity(&mut self) -> Option<(Activity, u64)> {
        self.activities.as_mut()?.pop_front()
    }

    fn durable(&self) -> Option<&Medium> {
        Some(self.medium())
    }

    fn next_output(&self) -> Option<u64> {
        // What leaves is made by an event, and on its way for a few cycles.
        if self.last_output > self.now { Some(self.now + 1) } else { self.next_event() }
    }

    fn is_idle(&self) -> bool {
        self.next_work().is_none() && self.now >= self.last_output
    }

    fn power_fail(mut self: Box<Self>, save_cycles: u64, seed: u64) -> Medium {
        self.save_on_power_fail(save_cycles);
        self.memory.power_fail(seed)
    }

    fn wait(&mut self, ticket: Ticket, limit: u64) -> Answer {
        let end = self.now + limit;
        loop {
            if let Some(cycle) = self.answers.cycle(ticket) {
                self.advance_to(cycle);
                return self.take(ticket).expect("it has left the card");
            }
            let next = self.next_event().filter(|&next| next <= end);
            assert!(next.is_some(), "no answer to {ticket:?} within {limit} cycles");
            self.step(next.expect("just looked"));
        }
    }
}
