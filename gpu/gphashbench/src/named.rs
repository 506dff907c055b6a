//! Designs, holes and subjects as the command line names them.

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use nearpm_gphash::Design;

use crate::campaign::{self, Tally};
use crate::growing;
use crate::subject::Subject;

/// A design of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DesignName {
    /// Buckets in levels, all in persistent memory: GPHash, with its holes closed
    Levels,
    /// Tags in the GPU's memory: ours
    Tags,
}

impl DesignName {
    /// The design.
    pub fn design(self) -> Design {
        match self {
            DesignName::Levels => Design::Levels,
            DesignName::Tags => Design::Tags,
        }
    }
}

/// A hole that the paper's table has, or that ours could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hole {
    /// No fence between value and pointer, and key
    Fence,
    /// Answers before what they depend on has persisted
    Readers,
    /// Inserts of one key do not look for each other
    Twice,
    /// Slots are used again in the same epoch
    Reuse,
    /// Updates of a batch give way to what may be no update of the same key
    Overwrite,
    /// Growing drops pairs that find no slot, and a pair leaves the stash before its copy has
    /// persisted
    Lost = 6,
    /// The cache is written behind persistent memory, and not what is being put into it
    Stale = 7,
}

impl Hole {
    fn code(self) -> u32 {
        1 << self as u32
    }
}

/// Which table is run.
#[derive(Args)]
pub struct SubjectArguments {
    /// The design
    design: DesignName,
    /// All operations of a history are one batch
    #[arg(long)]
    batched: bool,
    /// The table has a cache, behind so many turns: behind one it is filled meanwhile, behind two
    /// it is in use
    #[arg(long, default_value_t = 0)]
    turns: u32,
    /// The table grows, and is crashed in that, with batches of readers and writers in between
    #[arg(long, conflicts_with_all = ["batched", "turns"])]
    growing: bool,
}

impl SubjectArguments {
    /// The subject, with a hole planted.
    pub fn subject(&self, hole: Option<Hole>) -> Subject {
        let mut subject = Subject::small(self.design.design());
        if let Some(hole) = hole {
            subject = subject.with_holes(hole.code());
        }
        if self.growing {
            subject = subject.growing();
        }
        if self.turns > 0 {
            subject = subject.cached(self.turns);
        }
        if self.batched { subject.batched() } else { subject }
    }

    /// Refuses a hole that these tables do not have: it would be searched for in vain.
    ///
    /// # Errors
    /// Such a hole, with what has it.
    pub fn check(&self, hole: Option<Hole>) -> Result<()> {
        match hole {
            Some(Hole::Overwrite) => {
                ensure!(
                    self.design == DesignName::Tags && self.batched,
                    "only batches of tags have the hole overwrite: tags --batched"
                );
            }
            Some(Hole::Lost) => ensure!(self.growing, "only tables that grow have the hole lost: --growing"),
            Some(Hole::Stale) => ensure!(self.turns > 0, "only tables with a cache have the hole stale: --turns"),
            _ => {}
        }
        Ok(())
    }

    /// Refuses what has no orders to be gone through on one bucket.
    ///
    /// # Errors
    /// A table that grows or has a cache, whatever runs beside it, or batches, which have no orders
    /// between.
    pub fn check_one_bucket(&self) -> Result<()> {
        let alone = !self.growing && !self.batched && self.turns == 0;
        ensure!(
            alone,
            "threads on one bucket neither come as a batch nor have a cache or grow: leave --batched, --turns and --growing out"
        );
        Ok(())
    }

    /// Its arguments on the command line.
    pub fn words(&self) -> Vec<String> {
        let design = self.design.to_possible_value().map(|value| value.get_name().to_owned());
        let flags = [(self.batched, "--batched"), (self.growing, "--growing")];
        let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.to_owned());
        let turns = (self.turns > 0).then(|| format!("--turns={}", self.turns));
        design.into_iter().chain(flags).chain(turns).collect()
    }

    /// What records call it.
    pub fn name(&self) -> String {
        let mut name = if self.design == DesignName::Tags { "tags" } else { "levels" }.to_owned();
        if self.batched {
            name += ", batched";
        }
        if self.growing {
            name += ", growing";
        }
        match self.turns {
            0 => name,
            turns => format!("{name}, cache behind {turns} turns"),
        }
    }

    /// Everything that a campaign goes through: a subject, the file of its record, and how much of
    /// the campaign it is.
    pub fn all() -> Vec<(SubjectArguments, String, u64)> {
        let of = |design, batched, turns, growing| SubjectArguments { design, batched, turns, growing };
        let kinds = [(false, 0, false), (true, 0, false), (false, 1, false), (false, 2, false), (false, 0, true)];
        let named = |(batched, turns, growing): (bool, u32, bool)| {
            [(DesignName::Tags, "tags", 2), (DesignName::Levels, "levels", 1)].map(|(design, name, weight)| {
                let (kind, times) = match (batched, turns, growing) {
                    // Those that grow take ten times as long.
                    (true, ..) => ("-batched", 32),
                    (_, 1, _) => ("-cache-filled", 8),
                    (_, 2, _) => ("-cache-used", 8),
                    (.., true) => ("-growing", 1),
                    _ => ("", 32),
                };
                (of(design, batched, turns, growing), format!("{name}{kind}.json"), weight * times)
            })
        };
        kinds.into_iter().flat_map(named).collect()
    }

    /// A history of a seed.
    pub fn history(&self, subject: &Subject, seed: u64, crashes: u64, tally: &mut Tally) -> Result<()> {
        match self.growing {
            true => growing::history(subject, seed, crashes, tally),
            false => campaign::history(subject, seed, crashes, tally),
        }
    }
}
