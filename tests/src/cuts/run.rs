//! A scenario that runs, one cycle after the other.

use nearpm_interface::registers;
use nearpm_sim::bench::CardBench;
use nearpm_sim::core::{Access, CardCore, Ticket};
use nearpm_sim::rtl::{RtlCard, RtlCards};

use super::power::powered;
use super::scenario::Scenario;

/// Cycles without traffic that end a scenario; a cut falls in the first few of them too.
const TAIL_CYCLES: u64 = 40;
/// More cycles than any scenario has.
const LONGEST: u64 = 200_000;

/// Of the accesses of a scenario: how many were surely accepted, and how many may have been.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At least.
    pub least: usize,
    /// At most.
    pub most: usize,
}

/// A scenario on its way.
pub struct Run<'a> {
    scenario: &'a Scenario,
    /// Taken in a copy of the process, where the power fails.
    card: Option<Box<RtlCard>>,
    /// Cycle at which the next access is submitted.
    due: u64,
    /// What was submitted, with whether it was answered.
    submitted: Vec<(Ticket, bool)>,
}

impl<'a> Run<'a> {
    /// Powers a card up and opens it.
    pub fn open(cards: &RtlCards, scenario: &'a Scenario) -> Self {
        let card = bench(cards, scenario).card;
        let due = card.cycle() + scenario.events.first().map_or(0, |event| event.gap);
        let mut run = Run { scenario, card: Some(card), due, submitted: Vec::new() };
        run.submit();
        run
    }

    fn submit(&mut self) {
        let card = self.card.as_mut().expect("the card is taken in copies only");
        while let Some(event) = self.scenario.events.get(self.submitted.len())
            && self.due <= card.cycle()
        {
            self.submitted.push((card.submit(event.access.clone()), false));
            let next = self.scenario.events.get(self.submitted.len());
            self.due += next.map_or(0, |event| event.gap);
        }
    }

    /// One cycle.
    pub fn step(&mut self) {
        let card = self.card.as_mut().expect("the card is taken in copies only");
        let next = card.cycle() + 1;
        card.advance_to(next);
        for (ticket, answered) in &mut self.submitted {
            *answered = *answered || card.take(*ticket).is_some();
        }
        while card.take_dma().is_some() {}
        self.submit();
    }

    /// How many accesses were accepted: those before an answered one were.
    pub fn bounds(&self) -> Bounds {
        let certain = |i: &usize| self.submitted[*i].1 && self.scenario.events[*i].certifies();
        let least = (0..self.submitted.len()).rfind(certain).map_or(0, |i| i + 1);
        Bounds { least, most: self.submitted.len() }
    }

    /// Takes the card, in a copy of the process.
    pub fn card(&mut self) -> Box<RtlCard> {
        self.card.take().expect("a copy cuts the power once")
    }

    fn is_over(&self) -> bool {
        let card = self.card.as_ref().expect("the card is taken in copies only");
        self.submitted.len() == self.scenario.events.len() && card.is_idle()
    }
}

/// Cycles of a scenario, from its first access until a few behind its last traffic.
///
/// # Panics
/// If it does not come to rest, or not to the last of its firmware images.
pub fn length(cards: &RtlCards, scenario: &Scenario) -> u64 {
    let mut run = Run::open(cards, scenario);
    let mut cycles = 0;
    let mut busy = 0;
    while !run.is_over() {
        run.step();
        cycles += 1;
        if !run.card.as_ref().expect("no copy").is_idle() {
            busy = cycles;
        }
        assert!(cycles < LONGEST, "{} does not come to rest", scenario.name);
    }
    let card = run.card.as_mut().expect("no copy");
    let ticket = card.submit(Access::RegisterRead { offset: registers::FIRMWARE_CRC });
    let firmware = card.wait(ticket, LONGEST).data;
    let last = scenario.firmware.last().expect("a card has firmware");
    assert_eq!(firmware[..4], last.to_le_bytes(), "{} ends with other firmware", scenario.name);
    // The card calls itself idle a while after its last traffic.
    busy.saturating_sub(nearpm_sim::rtl::QUIET_CYCLES) + TAIL_CYCLES
}

/// The bench of a scenario: an open card with its mappings.
pub fn bench(cards: &RtlCards, scenario: &Scenario) -> CardBench<RtlCard> {
    let mut bench = CardBench::open(powered(cards, crate::rig::medium()), crate::trace::POOL);
    for command in &scenario.setup {
        let posted = bench.post(*command);
        assert_eq!(bench.finish(posted).status, nearpm_interface::status::Status::Ok, "{command:?}");
    }
    if let Some(address) = scenario.bad_line {
        bench.card.plant_memory_error(address);
    }
    bench
}
