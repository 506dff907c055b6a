//! What can be cut at every cycle, and how far that goes.

use std::time::Instant;

use nearpm_sim::rtl::RtlCards;

use super::tally::Findings;

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
    /// No cut is made after it.
    pub deadline: Option<Instant>,
}

impl Settings {
    /// What a scenario gets in the thorough tests.
    pub const THOROUGH: Settings =
        Settings { seed: 1, jobs: 4, draws: 3, saves: 2, replays: 1, second_replays: 1, stride: 1, deadline: None };
    /// What a scenario gets in the ordinary tests.
    pub const FAST: Settings = Settings { saves: 1, second_replays: 0, ..Settings::THOROUGH };
    /// In the ordinary tests, what takes longer gets this.
    pub const SAMPLES: Settings = Settings { stride: 16, saves: 0, ..Settings::THOROUGH };

    /// What a scenario gets beyond the cuts of its work, cheaper things first.
    pub fn deeper(&self) -> Vec<Deeper> {
        let (saves, replays) = ((0..self.saves).map(Deeper::Save), (0..self.replays).map(Deeper::Replay));
        // Saves first: a replay costs ten times as much.
        saves.chain(replays).collect()
    }

    /// Whether the time is over.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Something behind a cut of the work that is itself cut at every cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deeper {
    /// The save behind the n-th of the cuts that are chosen for it.
    Save(usize),
    /// The replay behind the n-th of the cuts that are chosen for it.
    Replay(usize),
}

impl Deeper {
    /// What is cut.
    pub fn name(self) -> &'static str {
        match self {
            Deeper::Save(_) => "a save",
            Deeper::Replay(_) => "a replay",
        }
    }
}

/// Something that runs on the RTL, and whose power can be cut at every cycle.
pub trait Subject {
    /// What it belongs to.
    fn family(&self) -> &str;

    /// Names it among all.
    fn name(&self) -> String;

    /// Cuts its work, and nothing behind these cuts.
    fn cut_work(&self, cards: &RtlCards, settings: Settings) -> Findings;

    /// Cuts a save or a replay behind a cut of the work.
    fn cut_deeper(&self, cards: &RtlCards, settings: Settings, deeper: Deeper) -> Findings;

    /// Whether only such subjects, of which there are few, have what lies behind this cut. It is
    /// not to be left out where the time is short.
    fn is_rare(&self, _deeper: Deeper) -> bool {
        false
    }

    /// Cuts its work and counts it where every cycle was cut.
    fn every_cycle(&self, cards: &RtlCards, settings: Settings) -> Findings {
        let mut found = self.cut_work(cards, settings);
        let whole = settings.stride == 1 && !found.cut_short && found.failure.is_none();
        found.tally.scenarios = u64::from(whole);
        found
    }

    /// Cuts it as far as the settings go.
    fn explore(&self, cards: &RtlCards, settings: Settings) -> Findings {
        let mut found = self.every_cycle(cards, settings);
        for deeper in settings.deeper() {
            if found.failure.is_none() && !found.cut_short {
                found.add(self.cut_deeper(cards, settings, deeper));
            }
        }
        found
    }
}
