//! Cuts the power of the RTL at every cycle of a scenario, and in what follows.
//!
//! ```text
//! the work      a cut at every cycle; the card saves, is powered up, replays, opens; the memory is compared
//!   the save    of some of these: the energy ends at every cycle, and the memory drops or tears what it owes, several times
//!   the replay  of some of these: a cut at every cycle from power-up on, without energy (several times) and with it
//!     the next replay, of some of those: the same
//! ```
//!
//! Memory that a card was powered up with before is not powered up again: what a card makes of it is a function of it alone.

use std::collections::{BTreeSet, HashMap};

use nearpm_interface::geometry::{LINE, SAVE_BASE};
use nearpm_interface::registers;
use nearpm_interface::save::ARM_LINE;
use nearpm_sim::bench::CardBench;
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};
use nearpm_sim::rtl::{RtlCard, RtlCards};
use nearpm_sim::saved::Saved;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::copies::{Copies, caught};
use super::power::{HANG_CYCLES, Opened, power_up, powered, save};
use super::run::{Run, length};
use super::scenario::{Scenario, State, contents, whole_contents};
use super::tally::{Cut, Failure, Findings, Found, Moment};

/// How far an exploration goes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Chooses what is not done at every cycle, and what the memory drops and tears.
    pub seed: u64,
    /// Copies of the process at a time.
    pub jobs: usize,
    /// Ways in which the memory drops and tears what it owes at one cycle.
    pub draws: u64,
    /// Cuts of the work whose save is cut at every cycle.
    pub saves: usize,
    /// Cuts of the work whose replay is cut at every cycle.
    pub replays: usize,
    /// Cuts of each such replay whose own replay is cut at every cycle.
    pub second_replays: usize,
    /// Cycles between two cuts of the work: 1 is every cycle.
    pub stride: u64,
}

impl Settings {
    /// What a scenario gets in the thorough tests.
    pub const THOROUGH: Settings =
        Settings { seed: 1, jobs: 4, draws: 3, saves: 2, replays: 1, second_replays: 1, stride: 1 };
    /// What a scenario gets in the ordinary tests.
    pub const FAST: Settings = Settings { saves: 1, second_replays: 0, ..Settings::THOROUGH };
}

/// Of the accesses of a scenario: how many were surely accepted, and how many may have been.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At least.
    pub least: usize,
    /// At most.
    pub most: usize,
}

/// The exploration of one scenario.
pub struct Explorer<'a> {
    cards: &'a RtlCards,
    scenario: &'a Scenario,
    expected: Vec<Vec<State>>,
    settings: Settings,
    known: HashMap<u64, Found>,
    findings: Findings,
    /// The cuts that led here.
    cuts: Vec<Cut>,
}

/// Explores a scenario.
pub fn explore(cards: &RtlCards, scenario: &Scenario, settings: Settings) -> Findings {
    let expected = scenario.expected();
    let (known, findings, cuts) = (HashMap::new(), Findings::default(), Vec::new());
    let mut explorer = Explorer { cards, scenario, expected, settings, known, findings, cuts };
    explorer.findings.tally.scenarios = 1;
    if let Err(words) = caught(|| explorer.work()) {
        explorer.findings.failure.get_or_insert(Failure { cuts: Vec::new(), words });
    }
    explorer.findings
}

impl Explorer<'_> {
    /// Runs the scenario and cuts it at every cycle.
    fn work(&mut self) {
        let length = length(self.cards, self.scenario);
        let mut chosen = ChaCha8Rng::seed_from_u64(self.settings.seed);
        let mut some = |count| (0..length).sample(&mut chosen, count);
        let (saves, replays) = (some(self.settings.saves), some(self.settings.replays));
        let mut copies = Copies::new(self.settings.jobs);
        let mut run = Run::open(self.cards, self.scenario);
        self.findings.tally.cycles += length;
        for cycle in 0..length {
            let sweeps = (saves.contains(&cycle), replays.contains(&cycle));
            if cycle % self.settings.stride == 0 || sweeps != (false, false) {
                self.cut_work(&mut copies, &mut run, cycle, sweeps);
            }
            if self.findings.failure.is_some() {
                return;
            }
            run.step();
        }
        self.finish(&mut copies);
    }

    fn cut_work(&mut self, copies: &mut Copies<Findings>, run: &mut Run, cycle: u64, (save, replay): (bool, bool)) {
        let bounds = run.bounds();
        if save {
            let cut = Cut { moment: Moment::Work, cycle, draw: 0 };
            self.branch(copies, cut, |me| me.sweep_save(run.card(), bounds));
        }
        let cut = Cut { moment: Moment::Work, cycle, draw: 0 };
        self.branch(copies, cut, |me| {
            let medium = me.saved(run.card(), cycle);
            let kept = replay.then(|| medium.clone());
            me.judge(medium, bounds, Moment::Work, false);
            if let Some(medium) = kept {
                me.sweep_boot(medium, bounds, me.settings.second_replays);
            }
        });
    }

    /// Does `work` in a copy of the process, behind a further cut.
    fn branch(&mut self, copies: &mut Copies<Findings>, cut: Cut, work: impl FnOnce(&mut Self)) {
        let ended = copies.start(|| {
            self.cuts.push(cut);
            self.findings = Findings::default();
            if let Err(words) = caught(|| work(self)) {
                let cuts = self.cuts.clone();
                self.findings.failure.get_or_insert(Failure { cuts, words });
            }
            std::mem::take(&mut self.findings)
        });
        ended.into_iter().for_each(|found| self.take(found));
    }

    fn finish(&mut self, copies: &mut Copies<Findings>) {
        while let Some(found) = copies.oldest() {
            self.take(found);
        }
    }

    /// Takes what a copy found.
    fn take(&mut self, found: Result<Findings, String>) {
        match found {
            Ok(found) => {
                self.findings.tally.add(&found.tally);
                self.known.extend(found.known.iter().copied());
                self.findings.known.extend(found.known);
                if self.findings.failure.is_none() {
                    self.findings.failure = found.failure;
                }
            }
            Err(words) => {
                self.findings.failure.get_or_insert(Failure { cuts: self.cuts.clone(), words });
            }
        }
    }

    fn saved(&mut self, card: Box<RtlCard>, cycle: u64) -> Medium {
        let (medium, cycles) = save(card, self.draw(cycle, 0));
        self.findings.tally.cycles += cycles;
        medium
    }

    /// What the memory drops and tears in a draw.
    fn draw(&self, cycle: u64, draw: u64) -> u64 {
        ChaCha8Rng::seed_from_u64(self.settings.seed ^ cycle << 8 ^ draw).random()
    }

    /// Draws worth making: one where nothing is owed.
    fn draws(&self, card: &RtlCard) -> u64 {
        if card.has_open_bursts() { self.settings.draws } else { 1 }
    }

    /// Lets the energy of the save end at every cycle.
    fn sweep_save(&mut self, mut card: Box<RtlCard>, bounds: Bounds) {
        let mut copies = Copies::new(self.settings.jobs);
        let start = card.cycle();
        card.lose_power();
        let mut card = Some(card);
        loop {
            let now = card.as_ref().expect("it is taken in copies");
            let (cycle, draws, owes, done) =
                (now.cycle() - start, self.draws(now), now.has_open_bursts(), cycle_done(now, start));
            for draw in 0..draws {
                self.branch(&mut copies, Cut { moment: Moment::Save, cycle, draw }, |me| {
                    let medium = card.take().expect("taken once").power_fail(0, me.draw(cycle, draw));
                    me.findings.tally.torn += u64::from(owes);
                    me.judge(medium, bounds, Moment::Save, !done);
                });
            }
            if done || self.findings.failure.is_some() {
                break;
            }
            assert!(cycle < HANG_CYCLES, "the save does not end");
            let card = card.as_mut().expect("it is taken in copies");
            card.advance_to(start + cycle + 1);
            self.findings.tally.cycles += 1;
        }
        self.finish(&mut copies);
    }

    /// Powers a card up and cuts it at every cycle until it is open, and a few beyond.
    fn sweep_boot(&mut self, medium: Medium, bounds: Bounds, deeper: usize) {
        let (_, length) = boot(self.cards, medium.clone());
        let length = length + 40;
        let mut chosen = ChaCha8Rng::seed_from_u64(self.settings.seed ^ length);
        let deep: BTreeSet<u64> = (0..length).sample(&mut chosen, deeper).into_iter().collect();
        let armed = arm_word(&medium);
        let mut card = Some(powered(self.cards, medium));
        let mut copies = Copies::new(self.settings.jobs);
        let mut owed = true;
        let mut ticket = ask_state(card.as_mut().expect("just made"));
        self.findings.tally.cycles += 2 * length;
        for cycle in 0..length {
            let now = card.as_ref().expect("it is taken in copies");
            let (draws, owes) = (self.draws(now), now.has_open_bursts());
            // Memory that owed nothing in the cycle before and owes nothing now is the same.
            let same = !owed && !owes;
            owed = owes;
            for draw in u64::from(same)..=draws {
                let moment = if draw < draws { Moment::Boot } else { Moment::BootWithEnergy };
                self.branch(&mut copies, Cut { moment, cycle, draw: draw % draws }, |me| {
                    let card = card.take().expect("taken once");
                    let medium = match moment {
                        Moment::Boot => card.power_fail(0, me.draw(cycle, draw)),
                        _ => me.saved(card, cycle),
                    };
                    me.findings.tally.torn += u64::from(owes && moment == Moment::Boot);
                    // A card that has armed the next generation has to save.
                    let may_lose = moment == Moment::Boot && arm_word(&medium) != armed;
                    let deeper = deep.contains(&cycle) && !Saved::read(&medium).is_loss();
                    let kept = deeper.then(|| medium.clone());
                    me.judge(medium, bounds, moment, may_lose);
                    if let Some(medium) = kept {
                        me.sweep_boot(medium, bounds, 0);
                    }
                });
            }
            if self.findings.failure.is_some() {
                return;
            }
            let card = card.as_mut().expect("it is taken in copies");
            let next = card.cycle() + 1;
            card.advance_to(next);
            // Somebody who asks all the time, as a driver does.
            if card.take(ticket).is_some() {
                ticket = ask_state(card);
            }
        }
        self.finish(&mut copies);
    }

    /// Powers a card up on what a cut left and compares what stands then.
    fn judge(&mut self, medium: Medium, bounds: Bounds, moment: Moment, may_lose: bool) {
        let saved = Saved::read(&medium);
        self.findings.tally.count(moment, &saved);
        assert!(may_lose || !saved.is_loss(), "the save is torn, or not made, although there was energy for it");
        let key = whole_contents(&medium);
        let found = match self.known.get(&key) {
            Some(found) => *found,
            None => {
                let (found, cycles) = boot(self.cards, medium);
                self.findings.tally.cycles += cycles;
                self.findings.tally.distinct += 1;
                self.findings.known.push((key, found));
                self.known.insert(key, found);
                found
            }
        };
        self.findings.tally.losses += u64::from(found == Found::Loss);
        match found {
            Found::Loss => assert!(saved.is_loss(), "a loss is reported although the save is whole"),
            Found::Open { state, firmware, .. } => {
                assert!(!saved.is_loss(), "a torn save is not reported");
                assert!(self.scenario.firmware.contains(&firmware), "firmware {firmware:#x} is in force");
                self.compare(state, bounds);
            }
        }
    }

    fn compare(&self, state: State, Bounds { least, most }: Bounds) {
        let is_found = |s: &State| s.contents == state.contents && (self.scenario.resets || s.mapped == state.mapped);
        if self.expected[least..=most].iter().flatten().any(is_found) {
            return;
        }
        let elsewhere: Vec<usize> =
            (0..self.expected.len()).filter(|n| self.expected[*n].iter().any(is_found)).collect();
        let all = self.scenario.events.len();
        panic!(
            "the memory is not that of the first {least} to {most} of {all} accesses, nor is it with {} mappings; \
             it is that of the first {elsewhere:?}",
            state.mapped
        );
    }
}

/// Whether the save is done; the card sees only at its first edge that the power fails.
fn cycle_done(card: &RtlCard, start: u64) -> bool {
    card.cycle() > start && card.has_saved()
}

fn ask_state(card: &mut RtlCard) -> Ticket {
    card.submit(Access::RegisterRead { offset: registers::STATE })
}

fn arm_word(medium: &Medium) -> u64 {
    let at = SAVE_BASE as usize + ARM_LINE * LINE;
    u64::from_le_bytes(medium.bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The same, with a number for the memory.
fn boot(cards: &RtlCards, medium: Medium) -> (Found, u64) {
    let (opened, cycles) = power_up(cards, medium);
    let found = opened.map_or(Found::Loss, |Opened { medium, mapped, firmware, replayed }| {
        let state = State { contents: contents(&medium), mapped };
        Found::Open { state, firmware, replayed }
    });
    (found, cycles)
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
