//! What the cuts of a campaign met.

use std::fmt;

use nearpm_sim::core::Activity;
use nearpm_sim::host::Event;

use crate::job::{After, Crash, During};
use nearpm_text::{Table, grouped};

/// Cycles after an event in which a cut counts as near it.
const NEAR_CYCLES: u64 = 24;

/// A question about a cut, and how it reads in the table.
type Question = (&'static str, fn(&Crash) -> bool);

fn near(crash: &Crash, event: Event) -> bool {
    let since = crash.fall.card.and_then(|(record, _)| record.since(event));
    since.is_some_and(|cycles| cycles <= NEAR_CYCLES)
}

/// Commands and stores in the save that the cut made. In a replay the image of before still stands.
fn saved(crash: &Crash) -> (usize, usize) {
    let during_boot = matches!(crash.fall.during, During::Boot | During::Replay);
    let image = crash.fall.card.and_then(|(_, saved)| saved.image).filter(|_| !during_boot);
    image.map_or((0, 0), |image| (image.commands, image.stores))
}

fn undone_or_redone(crash: &Crash) -> bool {
    crash.recovered().is_some_and(|r| r.recovery.undone + r.recovery.redone > 0)
}

const QUESTIONS: &[Question] = &[
    ("near an accepted command", |c| near(c, Event::CommandAccepted)),
    ("near an accepted store", |c| near(c, Event::WriteAccepted)),
    ("near an answered load", |c| near(c, Event::ReadAnswered)),
    ("near an issue", |c| near(c, Event::Inside(Activity::Issued))),
    ("near a durable write", |c| near(c, Event::Inside(Activity::Durable))),
    ("near a retirement (model only)", |c| near(c, Event::Inside(Activity::Retired))),
    ("near a completion record", |c| near(c, Event::Completion)),
    ("in the making of pool and structure", |c| c.fall.during == During::Making),
    ("in operations", |c| c.fall.during == During::Operations),
    ("in the boot, nothing to replay", |c| c.fall.during == During::Boot),
    ("in the replay of a save", |c| c.fall.during == During::Replay),
    ("- with items replayed already", |c| {
        let image = c.fall.card.and_then(|(_, saved)| saved.image);
        c.fall.during == During::Replay && image.is_some_and(|image| image.replayed > 0)
    }),
    ("in the library's recovery", |c| c.fall.during == During::Recovery),
    ("in the comparison after it", |c| c.fall.during == During::Check),
    ("found stores in the caches, and lost them", |c| c.fall.lost_lines > 0),
    ("found commands that had not retired", |c| saved(c).0 > 0),
    ("found stores that were not durable", |c| saved(c).1 > 0),
    ("found both", |c| saved(c).0 > 0 && saved(c).1 > 0),
    ("found a transaction to undo or redo", undone_or_redone),
    ("with little energy for the save", |c| c.fall.cut.energy.is_some()),
    ("- save torn, and reported as torn", |c| matches!(c.after, After::TornSave)),
];

/// What the cuts met, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    cuts: u64,
    answers: [u64; QUESTIONS.len()],
    most_items: usize,
}

impl Census {
    /// Counts a cut.
    pub fn count(&mut self, crash: &Crash) {
        self.cuts += 1;
        for ((_, question), answer) in QUESTIONS.iter().zip(&mut self.answers) {
            *answer += u64::from(question(crash));
        }
        let (commands, stores) = saved(crash);
        self.most_items = self.most_items.max(commands + stores);
    }

    /// Adds another census.
    pub fn add(&mut self, other: &Census) {
        self.cuts += other.cuts;
        self.most_items = self.most_items.max(other.most_items);
        for (mine, theirs) in self.answers.iter_mut().zip(other.answers) {
            *mine += theirs;
        }
    }

    /// Cuts.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Cuts that are counted under a line of the table.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn of(&self, line: &str) -> u64 {
        let at = QUESTIONS.iter().position(|(name, _)| *name == line);
        self.answers[at.unwrap_or_else(|| panic!("the table has no line {line:?}"))]
    }
}

impl<'c> FromIterator<&'c Crash> for Census {
    fn from_iter<I: IntoIterator<Item = &'c Crash>>(crashes: I) -> Census {
        let mut census = Census::default();
        crashes.into_iter().for_each(|crash| census.count(crash));
        census
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["power cuts", "number", "share"]);
        let share = |n: u64| format!("{:.1} %", 100.0 * n as f64 / self.cuts.max(1) as f64);
        for ((name, _), &number) in QUESTIONS.iter().zip(&self.answers) {
            table.row([(*name).to_string(), grouped(number), share(number)]);
        }
        table.row(["all".into(), grouped(self.cuts), share(self.cuts)]);
        write!(f, "{table}")?;
        writeln!(f, "\nNear: within {NEAR_CYCLES} cycles after. Most items in one save: {}.", self.most_items)
    }
}
