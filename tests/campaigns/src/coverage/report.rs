//! Totals of a measurement.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::constants::Constants;
use super::points::{Counts, CoverPoint, Point};
use super::waivers::{Entry, Fate, Pattern, Waivers};
use crate::page::grouped;

/// Most points that are named of a module, or of a pattern.
const NAMED: usize = 6;

/// What became of the points of a kind, or of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// All.
    pub points: u64,
    /// Hit.
    pub covered: u64,
    /// Not hit, of a bit that is constant.
    pub constant: u64,
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
            Fate::Constant => self.constant += 1,
            Fate::Waived => self.waived += 1,
            Fate::Open => self.open += 1,
            Fate::Unexplained => self.unexplained += 1,
        }
    }

    /// Hit, in percent of those that are neither constant nor waived, rounded down to tenths.
    pub fn percent(&self) -> f64 {
        let wanted = (self.points - self.constant - self.waived).max(1);
        (self.covered * 1000 / wanted) as f64 / 10.0
    }
}

/// A measurement, judged.
#[derive(Debug)]
pub struct Report {
    /// Totals of each kind.
    pub totals: BTreeMap<CoverPoint, Total>,
    /// Points that are neither hit nor explained, by module.
    pub unexplained: BTreeMap<String, Vec<Point>>,
    /// Points that are open, each with the reason of the entry that speaks of it.
    pub open: Vec<(Point, String)>,
    /// What each entry of the file explains: kind of entry, reason, points.
    pub explained: Vec<(&'static str, String, u64)>,
    /// Patterns of the file that explain nothing, each with its entry's reason.
    pub stale: Vec<(String, String)>,
    /// Patterns that waive points which were hit, each with these points.
    pub refuted: Vec<(String, Vec<Point>)>,
    /// Waivers of a number of points that speak of another number: their reasons, how many, and how
    /// many it should be.
    pub miscounted: Vec<(String, u64, u64)>,
    /// Points that were hit although their bits are said to be constant.
    pub wrong: Vec<Point>,
    /// Kinds of which more is open than may be: how much, and how much may be.
    pub too_open: Vec<(CoverPoint, u64, u64)>,
}

impl Report {
    /// Judges a measurement.
    pub fn new(counts: &Counts, constants: &Constants, waivers: &Waivers) -> Report {
        let mut totals: BTreeMap<CoverPoint, Total> =
            CoverPoint::ALL.into_iter().map(|kind| (kind, Total::default())).collect();
        let mut unexplained: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        let mut open = Vec::new();
        let mut needed: BTreeMap<*const Pattern, u64> = BTreeMap::new();
        for (point, &count) in counts {
            let (fate, by) = match constants.value(point) {
                Some(_) if count == 0 => (Fate::Constant, None),
                _ => waivers.fate(point, count),
            };
            if let (Fate::Open, Some((entry, _))) = (fate, by) {
                open.push((point.clone(), entry.reason.clone()));
            }
            totals.entry(point.kind).or_default().count(fate);
            if let Some((_, pattern)) = by {
                *needed.entry(std::ptr::from_ref(pattern)).or_default() += 1;
            }
            if fate == Fate::Unexplained {
                unexplained.entry(point.module.clone()).or_default().push(point.clone());
            }
        }
        let mut wrong = Vec::new();
        for (point, _) in counts.iter().filter(|(point, count)| **count > 0 && constants.are_wrong(point)) {
            match waivers.miscounted.iter().find_map(|entry| entry.pattern(point)) {
                Some(pattern) => *needed.entry(std::ptr::from_ref(pattern)).or_default() += 1,
                None => wrong.push(point.clone()),
            }
        }
        let points = |pattern: &Pattern| needed.get(&std::ptr::from_ref(pattern)).copied().unwrap_or(0);
        let entries = waivers.waiver.iter().map(|e| ("waived", e)).chain(waivers.open.iter().map(|e| ("open", e)));
        let entries = entries.chain(waivers.miscounted.iter().map(|e| ("miscounted", e)));
        let (mut explained, mut stale, mut miscounted) = (Vec::new(), Vec::new(), Vec::new());
        for (fate, entry) in entries {
            let found = entry.patterns().map(points).sum();
            explained.push((fate, entry.reason.clone(), found));
            let other = entry.count.filter(|wanted| *wanted != found);
            miscounted.extend(other.map(|wanted| (entry.reason.clone(), found, wanted)));
            let unneeded = entry.patterns().filter(|pattern| points(pattern) == 0);
            stale.extend(unneeded.map(|pattern| (pattern.to_string(), entry.reason.clone())));
        }
        let all = waivers.waiver.iter().filter(|entry| entry.count.is_none());
        let refuted = all.flat_map(|entry| refuted(entry, counts)).collect();
        let too_open = totals.iter().filter_map(|(kind, total)| {
            let most = *waivers.most_open.get(kind.name())?;
            (total.open > most).then_some((*kind, total.open, most))
        });
        let too_open = too_open.collect();
        Report { totals, unexplained, open, explained, stale, refuted, miscounted, wrong, too_open }
    }

    /// What contradicts the file of waivers.
    pub fn violations(&self) -> usize {
        let unexplained: usize = self.unexplained.values().map(Vec::len).sum();
        let patterns = self.stale.len() + self.refuted.len() + self.miscounted.len();
        unexplained + patterns + self.wrong.len() + self.too_open.len()
    }

    /// The totals as a table in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| kind | points | covered | constant | waived | open | unexplained | of those neither constant nor waived |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (kind, total) in &self.totals {
            let Total { points, covered, constant, waived, open, unexplained } = *total;
            let [points, covered, constant, waived, open, unexplained] =
                [points, covered, constant, waived, open, unexplained].map(grouped);
            let _ = writeln!(
                text,
                "| {} | {points} | {covered} | {constant} | {waived} | {open} | {unexplained} | {:.1} % |",
                kind.name(),
                total.percent()
            );
        }
        text
    }

    /// What each entry explains, and what is wrong, for people.
    pub fn complaints(&self) -> String {
        let mut text = String::new();
        for (fate, reason, points) in &self.explained {
            let _ = writeln!(text, "{points:>7} {fate}: {reason}");
        }
        for (module, points) in &self.unexplained {
            let names: Vec<String> =
                points.iter().take(NAMED).map(|p| format!("{} {}", p.kind.name(), p.name)).collect();
            let _ = writeln!(text, "{module}: {} not covered: {}", points.len(), names.join(", "));
        }
        for (pattern, reason) in &self.stale {
            let _ = writeln!(text, "explains no uncovered point: {pattern:?} of: {reason}");
        }
        for (pattern, points) in &self.refuted {
            let names: Vec<String> = points.iter().take(NAMED).map(|p| format!("{} {}", p.module, p.name)).collect();
            let _ = writeln!(text, "{pattern:?} waives {} covered points: {}", points.len(), names.join(", "));
        }
        for (reason, found, wanted) in &self.miscounted {
            let _ = writeln!(text, "{found} points are not covered, where {wanted} are waived: {reason}");
        }
        for point in self.wrong.iter().take(NAMED) {
            let _ = writeln!(text, "not constant: {} {}", point.module, point.name);
        }
        for (kind, open, most) in &self.too_open {
            let _ = writeln!(text, "{open} points of the kind {} are open, where {most} may be", kind.name());
        }
        text
    }
}

/// Patterns of a waiver that match points which were hit, with these. A waiver says why its points
/// cannot be covered, or need not; an open entry says only that some are not yet.
fn refuted(entry: &Entry, counts: &Counts) -> Vec<(String, Vec<Point>)> {
    let mut hit: BTreeMap<*const Pattern, (String, Vec<Point>)> = BTreeMap::new();
    for (point, _) in counts.iter().filter(|(_, count)| **count > 0) {
        for pattern in entry.matching(point) {
            let of = hit.entry(std::ptr::from_ref(pattern)).or_insert_with(|| (pattern.to_string(), Vec::new()));
            of.1.push(point.clone());
        }
    }
    hit.into_values().collect()
}
