//! `verification/coverage.toml`: what need not be covered, each with its reason, and what is not covered yet.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use wildmatch::WildMatch;

use super::points::{Counts, Kind, Point};
use crate::workspace;

/// Points by patterns, in which `*` stands for anything.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Module.
    pub module: String,
    /// `line`, `toggle`, or both without it.
    pub kind: Option<String>,
    /// Name of the point.
    #[serde(default = "anything")]
    pub point: String,
    /// Why it need not be covered; what would cover it, of one that is open.
    pub reason: String,
}

fn anything() -> String {
    "*".into()
}

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waivers {
    /// What cannot be covered, or need not.
    #[serde(default)]
    pub waiver: Vec<Entry>,
    /// What could be and is not.
    #[serde(default)]
    pub open: Vec<Entry>,
}

impl Entry {
    /// Whether it speaks of a point.
    pub fn matches(&self, point: &Point) -> bool {
        self.kind.as_ref().is_none_or(|kind| kind == point.kind.name())
            && WildMatch::new(&self.module).matches(&point.module)
            && WildMatch::new(&self.point).matches(&point.name)
    }
}

/// What becomes of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It was hit.
    Covered,
    /// It was not, and need not be.
    Waived,
    /// It was not, and the file says so.
    Open,
    /// It was not, and nothing is said of it.
    Unexplained,
}

impl Waivers {
    /// Where the file lies.
    pub fn path() -> PathBuf {
        workspace().join("verification/coverage.toml")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A kind that there is not, a reason of fewer than four words.
    pub fn read(path: &Path) -> Result<Waivers> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Waivers::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`Waivers::read`].
    pub fn parse(text: &str) -> Result<Waivers> {
        let waivers: Waivers = toml::from_str(text)?;
        for entry in waivers.waiver.iter().chain(&waivers.open) {
            let known = entry.kind.as_ref().is_none_or(|kind| Kind::ALL.iter().any(|k| k.name() == kind));
            ensure!(known, "there is no kind of coverage {:?}", entry.kind);
            ensure!(entry.reason.split_whitespace().count() >= 4, "{entry:?} has no reason");
        }
        Ok(waivers)
    }

    /// The fate of a point.
    pub fn fate(&self, point: &Point, count: u64) -> Fate {
        if count > 0 {
            Fate::Covered
        } else if self.waiver.iter().any(|entry| entry.matches(point)) {
            Fate::Waived
        } else if self.open.iter().any(|entry| entry.matches(point)) {
            Fate::Open
        } else {
            Fate::Unexplained
        }
    }

    /// Entries that match nothing that is not covered: what they speak of has gone, or is covered meanwhile.
    pub fn stale<'a>(&'a self, counts: &'a Counts) -> impl Iterator<Item = &'a Entry> {
        let uncovered: Vec<&Point> = counts.iter().filter(|(_, n)| **n == 0).map(|(point, _)| point).collect();
        let needed = move |entry: &&Entry| !uncovered.iter().any(|point| entry.matches(point));
        self.waiver.iter().chain(&self.open).filter(needed)
    }
}
