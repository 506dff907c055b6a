//! A litmus test on the RTL, whose power is cut at every cycle of its program.
//!
//! The whole computer is in a copy of the process at each cycle: program, caches, write-combining
//! buffers, link and card. So one run of a program gives every state that a cut of that run may
//! leave.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use foldhash::quality::FixedState;
use nearpm_ppo::litmus::{Moment, Test};
use nearpm_sim::core::{Access, Activity, Answer, CardCore, DmaWrite, Medium, Ticket};
use nearpm_sim::host::{Parameters, Peers};
use nearpm_sim::machine::{Machine, run_on_core};
use nearpm_sim::rng::Rng;
use nearpm_sim::rtl::{RtlCard, RtlCards};
use serde::{Deserialize, Serialize};

use super::recovery::recover;
use super::{Begun, Seen, look, observation, program};
use crate::cuts::copies::{Copies, caught};
use crate::cuts::fingerprint::Fingerprint;
use crate::cuts::power::{power_up, powered, save};

/// Ways in which memory drops and tears what it owes at a cycle.
const DRAWS: u64 = 3;

/// What the cuts of a run showed.
#[derive(Default)]
pub struct Shown {
    /// The states.
    pub states: BTreeSet<Vec<String>>,
    /// Cuts.
    pub cuts: u64,
    /// Cycles simulated behind the cuts.
    pub cycles: u64,
}

/// What one copy of the process gives.
#[derive(Serialize, Deserialize)]
struct Cutting {
    /// Names the memory that the cut left, and what the program had told and seen.
    key: u64,
    /// The state.
    state: Vec<String>,
    /// Cycles that it took.
    cycles: u64,
}

/// What cuts a card at its cycles.
struct Cutter {
    test: Test,
    cards: Arc<RtlCards>,
    seen: Arc<Mutex<Seen>>,
    /// Off while the card is opened.
    armed: bool,
    copies: Copies<Result<Cutting, String>>,
    shown: Shown,
    /// What the program had told and seen at the last cut, if the card had nothing to do then: cuts
    /// are the same until that changes.
    rested: Option<Seen>,
    /// States by [`Cutting::key`]: what a card makes of memory depends on it alone.
    known: HashMap<u64, Vec<String>>,
}

impl Cutter {
    /// Cuts the power now, in copies: without the energy for a save, where memory is looked at in
    /// that instant, and with it.
    fn cut(&mut self, card: &mut Option<Box<RtlCard>>) {
        let now = card.as_ref().expect("a card whose power is on");
        if !self.armed {
            return;
        }
        let rests = now.is_idle().then(|| look(&self.seen).clone());
        if rests.is_some() && rests == self.rested {
            return;
        }
        self.rested = rests;
        let instants = match (self.test.moment, now.owes_writes()) {
            (Moment::Failure, true) => DRAWS,
            (Moment::Failure, false) => 1,
            _ => 0,
        };
        for draw in 0..=instants {
            let with_energy = draw == instants;
            let mut copies = std::mem::replace(&mut self.copies, Copies::new(1));
            let ended = copies.start(|| caught(|| self.left(card.take().expect("taken once"), with_energy, draw)));
            self.copies = copies;
            self.shown.cuts += 1;
            self.take(ended);
        }
    }

    /// What the cut of a card leaves.
    fn left(&self, card: Box<RtlCard>, with_energy: bool, draw: u64) -> Cutting {
        let seed = card.cycle() << 8 | draw;
        let (mut medium, mut cycles) = if with_energy { save(card, seed) } else { (card.power_fail(0, seed), 0) };
        let seen = look(&self.seen).clone();
        let key = Fingerprint::of(&medium).value() ^ FixedState::with_seed(3).hash_one(&seen);
        if let Some(state) = self.known.get(&key) {
            return Cutting { key, state: state.clone(), cycles };
        }
        match self.test.moment {
            Moment::Failure => {}
            Moment::Replay => {
                let (opened, booted) = power_up(&self.cards, medium);
                medium = opened.expect("a save with energy is no loss").medium;
                cycles += booted;
            }
            Moment::Recovery => {
                let machine = Machine::new(Parameters::default(), &*self.cards, medium);
                recover(&self.test, &machine);
                cycles += machine.cycle();
                machine.cut_now(seed);
                medium = machine.look_at_medium_of(0, Medium::clone).expect("the power is off");
            }
        }
        let memory = |_: usize, range: Range<usize>| medium.bytes[range].to_vec();
        Cutting { key, state: observation(&self.test, &memory, &seen), cycles }
    }

    /// # Panics
    /// With the words of a copy that failed.
    fn take(&mut self, ended: Option<Result<Result<Cutting, String>, String>>) {
        let Some(ended) = ended else { return };
        match ended.and_then(|found| found) {
            Ok(Cutting { key, state, cycles }) => {
                self.shown.states.insert(state.clone());
                self.shown.cycles += cycles;
                self.known.insert(key, state);
            }
            Err(words) => panic!("behind a power cut: {words}"),
        }
    }
}

/// A card that is cut at every cycle.
struct Watched {
    /// Taken in a copy of the process.
    card: Option<Box<RtlCard>>,
    cutter: Arc<Mutex<Cutter>>,
}

impl Watched {
    fn card(&self) -> &RtlCard {
        self.card.as_ref().expect("a card whose power is on")
    }

    fn card_mut(&mut self) -> &mut RtlCard {
        self.card.as_mut().expect("a card whose power is on")
    }
}

impl CardCore for Watched {
    fn cycle(&self) -> u64 {
        self.card().cycle()
    }

    fn period_ps(&self) -> u64 {
        self.card().period_ps()
    }

    fn advance_to(&mut self, cycle: u64) {
        while self.cycle() < cycle {
            let next = self.cycle() + 1;
            self.card_mut().advance_to(next);
            self.cutter.lock().expect("one thread has it").cut(&mut self.card);
        }
    }

    fn submit(&mut self, access: Access) -> Ticket {
        self.card_mut().submit(access)
    }

    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.card_mut().take(ticket)
    }

    fn take_dma(&mut self) -> Option<DmaWrite> {
        self.card_mut().take_dma()
    }

    fn watch(&mut self, on: bool) {
        self.card_mut().watch(on);
    }

    fn take_activity(&mut self) -> Option<(Activity, u64)> {
        self.card_mut().take_activity()
    }

    fn is_idle(&self) -> bool {
        self.card().is_idle()
    }

    fn power_fail(mut self: Box<Self>, save_cycles: u64, seed: u64) -> Medium {
        self.card.take().expect("a card whose power is on").power_fail(save_cycles, seed)
    }
}

/// Runs the program of a test once, with `jobs` copies at a time, and cuts it at every cycle in
/// which the card has something to do, and where it rests once for all that the program has told
/// and seen.
///
/// # Panics
/// If a card behind a cut does not open, or anything else goes wrong that no litmus test speaks of.
pub fn observe(test: &Test, cards: &Arc<RtlCards>, seed: u64, jobs: usize) -> Shown {
    let seen = Arc::new(Mutex::new(Seen::nothing(test)));
    let cutter = Cutter {
        test: test.clone(),
        cards: cards.clone(),
        seen: seen.clone(),
        armed: false,
        copies: Copies::new(jobs),
        shown: Shown::default(),
        rested: None,
        known: HashMap::new(),
    };
    let cutter = Arc::new(Mutex::new(cutter));
    let power = |medium: Medium| -> Box<dyn CardCore> {
        Box::new(Watched { card: Some(powered(cards, medium)), cutter: cutter.clone() })
    };
    let Begun { machine, views, .. } =
        Begun::new(test, &power, Parameters::default().adversarial(seed), Peers::default());
    cutter.lock().expect("one thread has it").armed = true;
    program(test, &machine, &views, &mut Rng::new(seed), &seen, true);
    machine.settle();
    run_on_core(0);
    let mut cutter = cutter.lock().expect("one thread has it");
    while let Some(found) = cutter.copies.oldest() {
        cutter.take(Some(found));
    }
    std::mem::take(&mut cutter.shown)
}
