//! Cuts the power of the RTL at every cycle of a scenario, and in what follows.
//!
//! ```text
//! the work      a cut at every cycle; the card saves, is powered up, replays, opens; the memory is compared
//!   the save    of some of these: the energy ends at every cycle, and the memory drops or tears what it owes, several times
//!   the replay  of some of these: a cut at every cycle from power-up on, without energy (several times) and with it
//!     the next replay, of some of those: the same
//! ```
//!
//! Memory that a card was powered up with before is not powered up again: what a card makes of it
//! is a function of it alone. Where a cut without energy leaves such memory, it is compared without
//! a copy of the process. Where the memory owes no write, nothing is drawn.

use std::collections::{BTreeSet, HashMap, HashSet};

use nearpm_interface::geometry::{LINE, SAVE_BASE};
use nearpm_interface::registers;
use nearpm_interface::save::ARM_LINE;
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};
use nearpm_sim::rtl::{RtlCard, RtlCards};
use nearpm_sim::saved::Saved;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::copies::{Copies, caught};
use super::fingerprint::{Fingerprint, Watched};
use super::power::{HANG_CYCLES, Opened, power_up, powered, save};
use super::run::{Bounds, Run, length};
use super::scenario::{Scenario, State, contents};
use super::subject::{Deeper, Settings, Subject};
use super::tally::{Cut, Failure, Findings, Found, Moment, Remains};

/// A cut whose outcome is looked at.
#[derive(Clone, Copy, Debug)]
struct Trial {
    bounds: Bounds,
    moment: Moment,
    may_lose: MayLose,
}

/// When a loss is no violation.
#[derive(Clone, Copy, Debug)]
enum MayLose {
    Never,
    Always,
    /// Where another generation is armed by now than by this word.
    UnlessArmed(u64),
}

/// The exploration of one scenario.
struct Explorer<'a> {
    cards: &'a RtlCards,
    scenario: &'a Scenario,
    expected: Vec<Vec<State>>,
    settings: Settings,
    /// What a card makes of a memory, by its [`Fingerprint`].
    known: HashMap<u64, Remains>,
    /// Memories that copies are powering up.
    asked: HashSet<u64>,
    /// Cuts that left such memory.
    waiting: Vec<(u64, Cut, Trial)>,
    findings: Findings,
    /// The cuts that led here.
    cuts: Vec<Cut>,
}

impl Subject for Scenario {
    fn family(&self) -> &str {
        self.family
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn cut_work(&self, cards: &RtlCards, settings: Settings) -> Findings {
        Explorer::new(cards, self, settings).run(Explorer::work)
    }

    fn cut_deeper(&self, cards: &RtlCards, settings: Settings, deeper: Deeper) -> Findings {
        Explorer::new(cards, self, settings).run(|me| me.behind_the_work(deeper))
    }
}

impl<'a> Explorer<'a> {
    fn new(cards: &'a RtlCards, scenario: &'a Scenario, settings: Settings) -> Self {
        Explorer {
            cards,
            scenario,
            expected: scenario.expected(),
            settings,
            known: HashMap::new(),
            asked: HashSet::new(),
            waiting: Vec::new(),
            findings: Findings::default(),
            cuts: Vec::new(),
        }
    }

    fn run(mut self, work: impl FnOnce(&mut Self)) -> Findings {
        if let Err(words) = caught(|| work(&mut self)) {
            self.fail(None, words);
        }
        self.findings
    }

    /// Runs the scenario and cuts it at every cycle.
    fn work(&mut self) {
        let length = length(self.cards, self.scenario);
        let mut copies = Copies::new(self.settings.jobs);
        let mut run = Run::open(self.cards, self.scenario);
        for cycle in 0..length {
            if self.is_over() {
                break;
            }
            if cycle % self.settings.stride == 0 {
                let trial = Trial { bounds: run.bounds(), moment: Moment::Work, may_lose: MayLose::Never };
                self.branch(&mut copies, Cut { moment: Moment::Work, cycle, draw: 0 }, |me| {
                    let medium = me.saved(run.card(), cycle);
                    me.judge(medium, trial);
                });
            }
            run.step();
            self.findings.tally.cycles += 1;
        }
        self.finish(&mut copies);
    }

    /// Runs the scenario to a cut that is chosen, and cuts what follows it at every cycle.
    fn behind_the_work(&mut self, deeper: Deeper) {
        let length = length(self.cards, self.scenario);
        let mut chosen = ChaCha8Rng::seed_from_u64(self.settings.seed);
        let mut some = |count| (0..length).sample(&mut chosen, count);
        let (saves, replays) = (some(self.settings.saves), some(self.settings.replays));
        let cycle = match deeper {
            Deeper::Save(number) => saves.get(number),
            Deeper::Replay(number) => replays.get(number),
        };
        // A short scenario has fewer cycles than are asked for.
        let Some(&cycle) = cycle else { return };
        let mut run = Run::open(self.cards, self.scenario);
        (0..cycle).for_each(|_| run.step());
        self.findings.tally.cycles += cycle;
        self.cuts.push(Cut { moment: Moment::Work, cycle, draw: 0 });
        let bounds = run.bounds();
        match deeper {
            Deeper::Save(_) => self.sweep_save(run.card(), bounds),
            Deeper::Replay(_) => {
                let medium = self.saved(run.card(), cycle);
                self.sweep_boot(medium, bounds, self.settings.second_replays);
            }
        }
    }

    /// Whether nothing further is to be cut. Says so in the findings where the time is over.
    fn is_over(&mut self) -> bool {
        self.findings.cut_short |= self.settings.is_late();
        self.findings.cut_short || self.findings.failure.is_some()
    }

    /// Does `work` in a copy of the process, behind a further cut.
    fn branch(&mut self, copies: &mut Copies<Findings>, cut: Cut, work: impl FnOnce(&mut Self)) {
        let ended = copies.start(|| {
            self.cuts.push(cut);
            self.findings = Findings::default();
            // What the original asked for is its own.
            self.asked.clear();
            self.waiting.clear();
            if let Err(words) = caught(|| work(self)) {
                self.fail(None, words);
            }
            std::mem::take(&mut self.findings)
        });
        ended.into_iter().for_each(|found| self.take(found));
    }

    fn finish(&mut self, copies: &mut Copies<Findings>) {
        while let Some(found) = copies.oldest() {
            self.take(found);
        }
        let failed = self.findings.failure.is_some();
        assert!(failed || self.waiting.is_empty(), "{} memories were not powered up", self.waiting.len());
    }

    /// Takes what a copy found.
    fn take(&mut self, found: Result<Findings, String>) {
        match found {
            Ok(found) => {
                self.known.extend(found.known.iter().copied());
                self.findings.add(found);
            }
            Err(words) => self.fail(None, words),
        }
        for (key, cut, trial) in std::mem::take(&mut self.waiting) {
            match self.known.get(&key) {
                Some(&remains) => self.conclude_here(cut, remains, trial),
                None => self.waiting.push((key, cut, trial)),
            }
        }
    }

    fn fail(&mut self, cut: Option<Cut>, words: String) {
        let cuts = self.cuts.iter().cloned().chain(cut).collect();
        self.findings.failure.get_or_insert(Failure { cuts, words });
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

    /// Draws worth making: one where no write is owed.
    fn draws(&self, card: &RtlCard) -> u64 {
        if card.owes_writes() { self.settings.draws } else { 1 }
    }

    /// Cuts the power of a card that has no energy for a save. Only memory that is new needs a copy
    /// of the process.
    fn cut_without_energy(
        &mut self,
        copies: &mut Copies<Findings>,
        card: &mut Option<Box<RtlCard>>,
        watched: &mut Watched,
        cut: Cut,
        trial: Trial,
    ) {
        let now = card.as_ref().expect("it is taken in copies");
        let seed = self.draw(cut.cycle, cut.draw);
        let key = watched.left(now, seed);
        self.findings.tally.torn += u64::from(now.owes_writes());
        if let Some(&remains) = self.known.get(&key) {
            self.conclude_here(cut, remains, trial);
        } else if self.asked.insert(key) {
            self.branch(copies, cut, |me| {
                let medium = card.take().expect("taken once").power_fail(0, seed);
                assert_eq!(Fingerprint::of(&medium).value(), key, "the memory is another than was foreseen");
                me.judge(medium, trial);
            });
        } else {
            self.waiting.push((key, cut, trial));
        }
    }

    /// Lets the energy of the save end at every cycle.
    fn sweep_save(&mut self, mut card: Box<RtlCard>, bounds: Bounds) {
        let mut copies = Copies::new(self.settings.jobs);
        let start = card.cycle();
        card.lose_power();
        let mut watched = Watched::new(&card);
        let mut card = Some(card);
        let mut done = false;
        while !done && !self.is_over() {
            let now = card.as_ref().expect("it is taken in copies");
            let cycle = now.cycle() - start;
            done = cycle_done(now, start);
            let may_lose = if done { MayLose::Never } else { MayLose::Always };
            for draw in 0..self.draws(now) {
                let trial = Trial { bounds, moment: Moment::Save, may_lose };
                let cut = Cut { moment: Moment::Save, cycle, draw };
                self.cut_without_energy(&mut copies, &mut card, &mut watched, cut, trial);
            }
            assert!(cycle < HANG_CYCLES, "the save does not end");
            card.as_mut().expect("it is taken in copies").advance_to(start + cycle + 1);
            self.findings.tally.cycles += 1;
        }
        self.finish(&mut copies);
        self.findings.tally.saves += u64::from(done);
    }

    /// Powers a card up and cuts it at every cycle until it is open, and a few beyond.
    fn sweep_boot(&mut self, medium: Medium, bounds: Bounds, deeper: usize) {
        let (_, length) = boot(self.cards, medium.clone());
        self.findings.tally.cycles += length;
        let length = length + 40;
        let mut chosen = ChaCha8Rng::seed_from_u64(self.settings.seed ^ length);
        let deep: BTreeSet<u64> = (0..length).sample(&mut chosen, deeper).into_iter().collect();
        let armed = arm_word(&medium);
        let card = powered(self.cards, medium);
        let mut watched = Watched::new(&card);
        let mut card = Some(card);
        let mut copies = Copies::new(self.settings.jobs);
        let mut ticket = ask_state(card.as_mut().expect("just made"));
        // Memory whose own replay is cut too, or is being cut here.
        let mut swept = HashSet::from([watched.left(card.as_ref().expect("just made"), 0)]);
        let mut cycle = 0;
        while cycle < length && !self.is_over() {
            for draw in 0..self.draws(card.as_ref().expect("it is taken in copies")) {
                // A card that has armed the next generation has to save.
                let trial = Trial { bounds, moment: Moment::Boot, may_lose: MayLose::UnlessArmed(armed) };
                let cut = Cut { moment: Moment::Boot, cycle, draw };
                self.cut_without_energy(&mut copies, &mut card, &mut watched, cut.clone(), trial);
                let seed = self.draw(cycle, draw);
                let now = card.as_ref().expect("it is taken in copies");
                if deep.contains(&cycle) && swept.insert(watched.left(now, seed)) {
                    self.branch(&mut copies, cut, |me| {
                        let medium = card.take().expect("taken once").power_fail(0, seed);
                        if !Saved::read(&medium).is_loss() {
                            me.sweep_boot(medium, bounds, 0);
                        }
                    });
                }
            }
            self.branch(&mut copies, Cut { moment: Moment::BootWithEnergy, cycle, draw: 0 }, |me| {
                let medium = me.saved(card.take().expect("taken once"), cycle);
                let kept = deep.contains(&cycle).then(|| medium.clone());
                me.judge(medium, Trial { bounds, moment: Moment::BootWithEnergy, may_lose: MayLose::Never });
                if let Some(medium) = kept {
                    me.sweep_boot(medium, bounds, 0);
                }
            });
            let card = card.as_mut().expect("it is taken in copies");
            let next = card.cycle() + 1;
            card.advance_to(next);
            // Somebody who asks all the time, as a driver does.
            if card.take(ticket).is_some() {
                ticket = ask_state(card);
            }
            cycle += 1;
            self.findings.tally.cycles += 1;
        }
        self.finish(&mut copies);
        let whole = u64::from(cycle == length);
        // Behind the cut of the work, or behind one of the replay, too.
        if self.cuts.len() > 1 {
            self.findings.tally.second_replays += whole;
        } else {
            self.findings.tally.replays += whole;
        }
    }

    /// Powers a card up on what a cut left and compares what stands then.
    fn judge(&mut self, medium: Medium, trial: Trial) {
        let key = Fingerprint::of(&medium).value();
        if let Some(&remains) = self.known.get(&key) {
            return self.conclude(remains, trial);
        }
        let (saved, armed) = (Saved::read(&medium), arm_word(&medium));
        assert!(!saved.is_loss() || trial.may_lose.holds(armed), "{NO_SAVE}");
        let (found, cycles) = boot(self.cards, medium);
        let image = saved.image.unwrap_or_default();
        let remains =
            Remains { found, armed, is_loss: saved.is_loss(), commands: image.commands > 0, stores: image.stores > 0 };
        self.findings.tally.cycles += cycles;
        self.findings.tally.distinct += 1;
        self.findings.known.push((key, remains));
        self.known.insert(key, remains);
        self.conclude(remains, trial);
    }

    /// Compares what stands behind a cut, here and not in a copy behind that cut.
    fn conclude_here(&mut self, cut: Cut, remains: Remains, trial: Trial) {
        if let Err(words) = caught(|| self.conclude(remains, trial)) {
            self.fail(Some(cut), words);
        }
    }

    fn conclude(&mut self, remains: Remains, Trial { bounds, moment, may_lose }: Trial) {
        self.findings.tally.count(moment, &remains);
        assert!(!remains.is_loss || may_lose.holds(remains.armed), "{NO_SAVE}");
        self.findings.tally.losses += u64::from(remains.found == Found::Loss);
        match remains.found {
            Found::Loss => assert!(remains.is_loss, "a loss is reported although the save is whole"),
            Found::Open { state, firmware, .. } => {
                assert!(!remains.is_loss, "a torn save is not reported");
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

/// What is said of a card that had the energy for a save and did not make it.
const NO_SAVE: &str = "the save is torn, or not made, although there was energy for it";

impl MayLose {
    fn holds(self, armed: u64) -> bool {
        match self {
            MayLose::Never => false,
            MayLose::Always => true,
            MayLose::UnlessArmed(before) => armed != before,
        }
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

/// As [`power_up`], with what the scenario compares, and the cycles that the card took.
fn boot(cards: &RtlCards, medium: Medium) -> (Found, u64) {
    let (opened, cycles) = power_up(cards, medium);
    let found = opened.map_or(Found::Loss, |Opened { medium, mapped, firmware, replayed }| {
        let state = State { contents: contents(&medium), mapped };
        Found::Open { state, firmware, replayed }
    });
    (found, cycles)
}
