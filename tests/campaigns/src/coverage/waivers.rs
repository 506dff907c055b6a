//! `tests/campaigns/coverage.toml`: what need not be covered, each with its reason, and what is not
//! covered yet.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use wildmatch::WildMatch;

use super::points::{Bit, Point};
use crate::workspace;

/// A pattern, in which `*` stands for anything.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub struct Pattern(WildMatch);

impl From<String> for Pattern {
    fn from(text: String) -> Pattern {
        Pattern(WildMatch::new(&text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Points by patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Signals of which it speaks, by module and name with `$` between
    /// (`nearpm_core$back$m$awlen`), with `bits` and `direction`.
    #[serde(default)]
    pub signals: Vec<Pattern>,
    /// Their bits, as `0-5,14`; all without it.
    #[serde(default)]
    pub bits: Bits,
    /// `0->1` or `1->0`; both without it.
    pub direction: Option<String>,
    /// Lines of which it speaks, by module, kind of block and what stands there
    /// (`nearpm_core$front else: if (full) begin`).
    #[serde(default)]
    pub lines: Vec<Pattern>,
    /// Of a waiver: as many of these points are not covered, neither more nor fewer. For points
    /// that no pattern tells from others, which are.
    pub count: Option<u64>,
    /// Why it need not be covered; what would cover it, of one that is open.
    pub reason: String,
}

/// Numbers of bits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Bits(Vec<RangeInclusive<u32>>);

impl TryFrom<String> for Bits {
    type Error = String;

    fn try_from(text: String) -> Result<Bits, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.parse::<u32>(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
                _ => Err(format!("{part:?} is no range of bits")),
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Bits)
    }
}

impl Bits {
    fn has(&self, bit: u32) -> bool {
        self.0.is_empty() || self.0.iter().any(|range| range.contains(&bit))
    }
}

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waivers {
    /// Most points of a kind that may be open: some entries speak of whole units, and what is no
    /// longer covered there would not show.
    #[serde(default)]
    pub most_open: BTreeMap<String, u64>,
    /// What cannot be covered, or need not.
    #[serde(default)]
    pub waiver: Vec<Entry>,
    /// What could be and is not.
    #[serde(default)]
    pub open: Vec<Entry>,
    /// Bits that are constant and counted all the same.
    #[serde(default)]
    pub miscounted: Vec<Entry>,
}

impl Entry {
    /// The patterns of signals and lines, each of which has to be needed.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.signals.iter().chain(&self.lines)
    }

    /// The first of its patterns that speaks of a point.
    pub fn pattern(&self, point: &Point) -> Option<&Pattern> {
        self.matching(point).next()
    }

    /// All of its patterns that speak of a point.
    pub fn matching(&self, point: &Point) -> impl Iterator<Item = &Pattern> {
        let (patterns, what) = match point.bit() {
            Some(Bit { signal, bit, rises }) => {
                let direction = if rises { "0->1" } else { "1->0" };
                let wanted = self.direction.as_deref().is_none_or(|wanted| wanted == direction);
                let spoken_of = wanted && self.bits.has(bit);
                (if spoken_of { &self.signals[..] } else { &[] }, format!("{}${signal}", point.module))
            }
            // The number of the line changes with any other line.
            None => (
                &self.lines[..],
                point.name.split_once(' ').map_or_else(String::new, |(_, block)| format!("{} {block}", point.module)),
            ),
        };
        patterns.iter().filter(move |pattern| pattern.0.matches(&what))
    }
}

/// What becomes of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It was hit.
    Covered,
    /// It was not, and cannot: the bit is constant.
    Constant,
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
        workspace().join("tests/campaigns/coverage.toml")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// An entry that speaks of nothing, a direction that there is not, bits that are none, a reason
    /// of fewer than four words.
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
        for entry in waivers.waiver.iter().chain(&waivers.open).chain(&waivers.miscounted) {
            let known = entry.direction.as_ref().is_none_or(|direction| ["0->1", "1->0"].contains(&direction.as_str()));
            ensure!(known, "there is no direction {:?}", entry.direction);
            ensure!(entry.patterns().next().is_some(), "{entry:?} speaks of no signal and no line");
            ensure!(entry.reason.split_whitespace().count() >= 4, "{entry:?} has no reason");
        }
        Ok(waivers)
    }

    /// The fate of a point, and the entry with the pattern that says so.
    pub fn fate(&self, point: &Point, count: u64) -> (Fate, Option<(&Entry, &Pattern)>) {
        if count > 0 {
            return (Fate::Covered, None);
        }
        let waived = self.waiver.iter().map(|entry| (Fate::Waived, entry));
        let open = self.open.iter().map(|entry| (Fate::Open, entry));
        let found = waived.chain(open).find_map(|(fate, entry)| Some((fate, Some((entry, entry.pattern(point)?)))));
        found.unwrap_or((Fate::Unexplained, None))
    }
}
