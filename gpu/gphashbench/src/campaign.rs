//! Many histories, each with crashes: by seed, so that a campaign can be split and resumed.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use nearpm_gpmbench::record;
use nearpm_gpu::{Choice, Schedule};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;
use crate::trial::{CrashOf, Shape, Trial};

/// What a campaign went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Histories that ran to their end and were checked.
    pub histories: u64,
    /// Crashes, each recovered and checked.
    pub crashes: u64,
    /// Those of them of which the recovery was crashed, too.
    pub twice: u64,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Tally) -> Tally {
        Tally {
            histories: self.histories + other.histories,
            crashes: self.crashes + other.crashes,
            twice: self.twice + other.twice,
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} histories, {} crashes, {} of them again in the recovery",
            self.histories, self.crashes, self.twice
        )
    }
}

/// How far a campaign has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What is tried.
    pub subject: String,
    /// Crashes of each history.
    pub crashes: u64,
    /// The seed to go on with: all before it were tried.
    pub next_seed: u64,
    /// What they came to.
    pub tally: Tally,
}

impl Record {
    /// Reads a record, or begins one of so many crashes a history where there is no file.
    ///
    /// # Errors
    /// A file of something else.
    pub fn load(path: &Path, subject: &str, crashes: u64) -> Result<Record> {
        let new = || Record { subject: subject.to_owned(), crashes, next_seed: 0, tally: Tally::default() };
        let record = record::read(path)?.unwrap_or_else(new);
        ensure!(record.subject == subject, "{} is of {}: another campaign", path.display(), record.subject);
        Ok(record)
    }
}

/// A history of a seed, and crashes of it at random stores and fences.
///
/// # Errors
/// The first that is not (durably) linearizable, with its seed.
pub fn history(subject: &Subject, seed: u64, crashes: u64, tally: &mut Tally) -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6870_676e);
    // The operations of a batch are all at the same time: few of them, as all orders are gone
    // through.
    let most = if subject.batched { 2 } else { 3 };
    let shape = Shape {
        warps: random.random_range(1..=most),
        lanes: random.random_range(1..=3),
        rounds: random.random_range(1..=most),
        keys: random.random_range(1..=3),
    };
    let said = || format!("seed {seed}");
    let trial = Trial::new(subject, shape, seed).with_context(said)?;
    let schedule = if seed.is_multiple_of(16) { Schedule::RoundRobin } else { Schedule::Seeded(seed) };
    let events = trial.run(&schedule).with_context(said)?;
    tally.histories += 1;
    // A history that stores nothing leaves nothing to crash.
    let mut drawn: Vec<CrashOf> = (0..if events == 0 { 0 } else { crashes })
        .map(|_| {
            let (event, choice) = (random.random_range(1..=events), choice(&mut random));
            // A recovery stores and fences once for each mark that it frees, of which a history
            // leaves few.
            let again = random.random_bool(0.5).then(|| (random.random_range(1..=4), choice));
            CrashOf { event, choice, again }
        })
        .collect();
    if !drawn.is_empty() {
        let crashed = trial.crash(&schedule, &mut drawn).with_context(said)?;
        tally.crashes += crashed.reached;
        tally.twice += crashed.twice;
    }
    Ok(())
}

pub(crate) fn choice(random: &mut ChaCha8Rng) -> Choice {
    match random.random_range(0..6) {
        0 => Choice::None,
        1 => Choice::OnlyThread(random.random_range(0..128)),
        2 => Choice::AllButThread(random.random_range(0..128)),
        _ => Choice::Seeded(random.random()),
    }
}
