//! A folder of results, one file a case: a run that was interrupted goes on where it was.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nearpm_sim::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::run::Outcome;

/// Number of this form of results.
const FORM: u32 = 1;

/// A result, with everything that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Form of the file.
    pub form: u32,
    /// Commit of the program that ran it, with `-changed` behind it where files had been changed.
    pub commit: String,
    /// The profile's values, so that a result of other values is not taken for one of these.
    pub profile: String,
    /// What was run.
    pub case: Case,
    /// What it gave.
    pub outcome: Outcome,
    /// Wall-clock time of the simulation, in seconds.
    pub wall_s: f64,
}

/// The folder.
pub struct Results {
    folder: PathBuf,
    commit: String,
    /// Results of other commits count, too.
    keeps: bool,
}

/// The commit of this program's sources, as far as they are here.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    if changed { format!("{head}-changed") } else { head }
}

/// A profile's values in a line.
pub fn values(profile: &Profile) -> String {
    let value = |entry: &nearpm_sim::profile::Entry<'_>| format!("{}={}", entry.key, entry.sourced.value);
    profile.entries().iter().map(value).collect::<Vec<_>>().join(" ")
}

impl Results {
    /// Opens a folder, and makes it where it is missing. Results of other commits count where `keeps`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path, keeps: bool) -> Result<Results> {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        Ok(Results { folder: folder.to_owned(), commit: commit(), keeps })
    }

    fn file(&self, case: &Case) -> PathBuf {
        self.folder.join(format!("{}.json", case.key()))
    }

    /// The result of a case that need not be run again.
    pub fn find(&self, case: &Case, profile: &Profile) -> Option<Record> {
        let text = fs::read(self.file(case)).ok()?;
        // A file that is no result is written anew.
        let record: Record = serde_json::from_slice(&text).ok()?;
        let same = record.form == FORM && record.case == *case && record.profile == values(profile);
        (same && (self.keeps || record.commit == self.commit)).then_some(record)
    }

    /// Keeps a result. A file is there whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, case: &Case, profile: &Profile, outcome: Outcome, wall_s: f64) -> Result<Record> {
        let commit = self.commit.clone();
        let record = Record { form: FORM, commit, profile: values(profile), case: case.clone(), outcome, wall_s };
        let path = self.file(case);
        let written =
            tempfile::NamedTempFile::new_in(&self.folder).map_err(anyhow::Error::from).and_then(|mut file| {
                serde_json::to_writer_pretty(&mut file, &record)?;
                file.write_all(b"\n")?;
                file.persist(&path)?;
                Ok(())
            });
        written.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(record)
    }

    /// Every result of the folder. Files that are none are named in the second list.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(folder: &Path) -> Result<(Vec<Record>, Vec<String>)> {
        let (mut records, mut others) = (Vec::new(), Vec::new());
        let entries =
            fs::read_dir(folder).with_context(|| format!("the folder {} cannot be read", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
            let record = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
            match record.filter(|record| record.form == FORM) {
                Some(record) => records.push(record),
                None => others.push(path.display().to_string()),
            }
        }
        Ok((records, others))
    }
}

/// Results as a table of comma-separated values.
pub fn csv(records: &[Record]) -> String {
    let mut text = String::from(
        "profile,program,inputs,mix,mechanism,configuration,devices,units,threads,count,share,seed,commit,origin,ns_per_transaction,busy_ns,overlap_ns",
    );
    let Some(first) = records.first() else { return text };
    let breakdown: Vec<&String> = first.outcome.breakdown.keys().collect();
    breakdown.iter().for_each(|kind| text.push_str(&format!(",{kind}_ns")));
    for Record { case, commit, outcome, .. } in records {
        let each = |ns: f64| ns / outcome.transactions.max(1) as f64;
        text.push_str(&format!(
            "\n{},{},{},{},{},{},{},{},{},{},{},{},{commit},model,{:.1},{:.1},{:.1}",
            case.profile.replace(',', " "),
            case.program.name(),
            case.inputs.name(),
            case.mix.name(),
            case.mechanism.name(),
            case.configuration.name(),
            case.devices,
            case.units,
            case.threads,
            case.count,
            case.share,
            case.seed,
            outcome.per_transaction(),
            each(outcome.busy_ns),
            each(outcome.overlap_ns),
        ));
        for kind in &breakdown {
            text.push_str(&format!(",{:.1}", each(outcome.breakdown.get(*kind).copied().unwrap_or(0.0))));
        }
    }
    text.push('\n');
    text
}
