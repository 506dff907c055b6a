//! The simulated results that are stored beside the sources: which tables there are, what is in
//! each, and how all are made anew.
//!
//! What is measured on a processor ([`crate::on_host`], [`crate::compute`]) and the RTL's copies
//! ([`crate::copies`]) are tables of other forms.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::bench::{Event, run_all_charged};
use crate::case::Case;
use crate::compute::Compute;
use crate::plan::{OURS, PAPER, Scope};
use crate::results::{Record, Results, csv};

/// A table of results.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of its file, without `.csv`.
    pub name: &'static str,
    /// What was run.
    pub what: &'static str,
    /// Its cases, in the order of its lines.
    pub cases: fn() -> Vec<Case>,
}

/// The results of what somebody may choose from, which are no figures of the paper's.
pub const CHOICES: Table = Table {
    name: "choices",
    what: "what somebody may choose from, quick form, each path charged with its own instructions",
    cases: || Scope::QUICK.choices(),
};

/// All tables.
pub const ALL: [Table; 4] = [
    Table { name: "quick", what: "the quick form, whole", cases: || Scope::QUICK.cases() },
    Table {
        name: "full-paper-vcu118",
        what: "the full form, ten seeds, the paper's profile",
        cases: || Scope::FULL.cases_of(&[PAPER.to_owned()]),
    },
    Table {
        name: "full-vcu118-300",
        what: "the full form, ten seeds, this project's card",
        cases: || Scope::FULL.cases_of(&[OURS.to_owned()]),
    },
    CHOICES,
];

impl Table {
    /// Where it lies in a folder of such tables.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.csv", self.name))
    }

    /// What is stored of it in a folder.
    ///
    /// # Errors
    /// If it is not there, or no table of results.
    pub fn stored(&self, folder: &Path) -> Result<Vec<Record>> {
        Ok(Results::all(&self.path(folder))?.0)
    }
}

/// The cases of some tables, each once: those that took longest by the tables of a folder come
/// first, so that nothing long is left for the end, and of what is in no table of it nobody knows.
pub fn cases(tables: &[Table], folder: &Path) -> Vec<Case> {
    let stored = tables.iter().flat_map(|table| table.stored(folder).unwrap_or_default());
    let took: HashMap<Case, f64> = stored.map(|record| (record.case, record.cpu_s)).collect();
    let mut seen = HashSet::new();
    let all = tables.iter().flat_map(|table| (table.cases)());
    let mut cases: Vec<Case> = all.filter(|case| seen.insert(case.clone())).collect();
    let took = |case: &Case| took.get(case).copied().unwrap_or(f64::MAX);
    cases.sort_by(|one, other| took(other).total_cmp(&took(one)));
    cases
}

/// Runs what tables lack of some cases, `jobs` at once, with instructions charged as `compute` has
/// them, and writes each table anew into a folder when all of it is there: what is not among the
/// cases stays as the folder has it. `tell` is told of each case.
///
/// # Errors
/// If cases fail, something is neither among them nor in the folder, or a table cannot be written:
/// then no table is written, and the results that were found are kept.
pub fn make(
    compute: &Compute,
    tables: &[Table],
    cases: &[Case],
    results: &Results,
    jobs: usize,
    folder: &Path,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Result<()> {
    let made = run_all_charged(compute, cases, results, jobs, None, tell)?;
    let stored = tables.iter().flat_map(|table| table.stored(folder).unwrap_or_default());
    let of: HashMap<Case, Record> = stored.chain(made).map(|record| (record.case.clone(), record)).collect();
    std::fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    for table in tables {
        let lack = |case: &Case| format!("{case} is not made, and not stored in {}", table.path(folder).display());
        let cases = (table.cases)();
        let records = cases.iter().map(|case| of.get(case).cloned().with_context(|| lack(case)));
        write(&table.path(folder), &csv(&records.collect::<Result<Vec<Record>>>()?))?;
    }
    Ok(())
}

/// Writes a table beside its place and renames it: one that is cut short would be read as a whole
/// one.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, table: &str) -> Result<()> {
    let fresh = path.with_extension("csv.new");
    std::fs::write(&fresh, table)
        .and_then(|()| std::fs::rename(&fresh, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}
