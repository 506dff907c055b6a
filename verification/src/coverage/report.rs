//! Totals of a measurement.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::points::{Counts, Kind, Point};
use super::waivers::{Fate, Waivers};
use crate::page::grouped;

/// Most points that are named of a module.
const NAMED: usize = 6;

/// What became of the points of a kind, or of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// All.
    pub points: u64,
    /// Hit.
    pub covered: u64,
    /// Not hit, with a reason why not.
    pub waived: u64,
    /// Not hit, and listed.
    pub open: u64,
    /// Not hit, and nothing said.
    pub unexplained: u64,
}

impl Total {
    fn count(&mut self, fate: Fate) {
        self.points += 1;
        match fate {
            Fate::Covered => self.covered += 1,
            Fate::Waived => self.waived += 1,
            Fate::Open => self.open += 1,
            Fate::Unexplained => self.unexplained += 1,
        }
    }

    /// Hit, in percent of those that are not waived, rounded down to tenths.
    pub fn percent(&self) -> f64 {
        let wanted = (self.points - self.waived).max(1);
        (self.covered * 1000 / wanted) as f64 / 10.0
    }
}

/// A measurement, judged.
#[derive(Debug)]
pub struct Report {
    /// Totals of each kind.
    pub totals: BTreeMap<Kind, Total>,
    /// Points that are neither hit nor explained, by module.
    pub unexplained: BTreeMap<String, Vec<Point>>,
    /// Entries of the file that match nothing.
    pub stale: Vec<String>,
}

impl Report {
    /// Judges a measurement.
    pub fn new(counts: &Counts, waivers: &Waivers) -> Report {
        let mut totals: BTreeMap<Kind, Total> = Kind::ALL.into_iter().map(|kind| (kind, Total::default())).collect();
        let mut unexplained: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        for (point, &count) in counts {
            let fate = waivers.fate(point, count);
            totals.entry(point.kind).or_default().count(fate);
            if fate == Fate::Unexplained {
                unexplained.entry(point.module.clone()).or_default().push(point.clone());
            }
        }
        let entry =
            |e: &super::waivers::Entry| format!("{} {} {}", e.module, e.kind.as_deref().unwrap_or("*"), e.point);
        Report { totals, unexplained, stale: waivers.stale(counts).map(entry).collect() }
    }

    /// What contradicts the file of waivers.
    pub fn violations(&self) -> usize {
        self.unexplained.values().map(Vec::len).sum::<usize>() + self.stale.len()
    }

    /// The totals as a table in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| kind | points | covered | waived | open | unexplained | of those not waived |\n|---|---:|---:|---:|---:|---:|---:|\n",
        );
        for (kind, total) in &self.totals {
            let [points, covered, waived, open, unexplained] =
                [total.points, total.covered, total.waived, total.open, total.unexplained].map(grouped);
            let _ = writeln!(
                text,
                "| {} | {points} | {covered} | {waived} | {open} | {unexplained} | {:.1} % |",
                kind.name(),
                total.percent()
            );
        }
        text
    }

    /// What is wrong, for people.
    pub fn complaints(&self) -> String {
        let mut text = String::new();
        for (module, points) in &self.unexplained {
            let names: Vec<String> =
                points.iter().take(NAMED).map(|p| format!("{} {}", p.kind.name(), p.name)).collect();
            let _ = writeln!(text, "{module}: {} not covered: {}", points.len(), names.join(", "));
        }
        for entry in &self.stale {
            let _ = writeln!(text, "no uncovered point matches: {entry}");
        }
        text
    }
}
