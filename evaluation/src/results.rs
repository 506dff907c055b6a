//! A folder of results, one file a case: a run that was interrupted goes on where it was.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nearpm_sim::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::meter::Kind;
use crate::run::Outcome;

/// Number of this form of results.
const FORM: u32 = 1;

/// A result, with everything that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Form of the file.
    pub form: u32,
    /// Commit that the program was built from, with `-changed` behind it where its sources had been changed; `unknown` where it was built outside git.
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

/// Files that a process has not finished begin with this.
fn unfinished(process: u32) -> String {
    format!(".unfinished-{process}-")
}

/// Removes what processes that are gone have not finished. What cannot be removed is in nobody's way.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(".unfinished-").and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A profile's values in a line.
pub fn values(profile: &Profile) -> String {
    let value = |entry: &nearpm_sim::profile::Entry<'_>| format!("{}={}", entry.key, entry.sourced.value);
    profile.entries().iter().map(value).collect::<Vec<_>>().join(" ")
}

impl Results {
    /// Opens a folder for results of a commit, and makes it where it is missing. Results of other commits count where `keeps`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path, commit: &str, keeps: bool) -> Result<Results> {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        remove_unfinished(folder);
        Ok(Results { folder: folder.to_owned(), commit: commit.to_owned(), keeps })
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
        let written = tempfile::Builder::new()
            .prefix(&unfinished(std::process::id()))
            .tempfile_in(&self.folder)
            .map_err(anyhow::Error::from)
            .and_then(|mut file| {
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

/// A line of the table of comma-separated values.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// What was run.
    pub case: &'l Case,
    /// Commit that the program was built from.
    pub commit: &'l str,
    /// What the time is: of the model, or of which transport.
    pub origin: &'l str,
    /// Nanoseconds a transaction.
    pub ns_per_transaction: f64,
    /// What only a simulator sees.
    pub inside: Option<&'l Outcome>,
}

impl<'l> From<&'l Record> for Line<'l> {
    fn from(record: &'l Record) -> Line<'l> {
        let Record { case, commit, outcome, .. } = record;
        Line { case, commit, origin: "model", ns_per_transaction: outcome.per_transaction(), inside: Some(outcome) }
    }
}

/// Results as a table of comma-separated values.
pub fn csv(records: &[Record]) -> String {
    table(records.iter().map(Line::from))
}

/// Lines as a table of comma-separated values. What is not known is empty.
pub fn table<'l>(lines: impl Iterator<Item = Line<'l>>) -> String {
    let mut text = String::from(
        "profile,program,inputs,mix,mechanism,configuration,devices,units,threads,count,share,seed,commit,origin,ns_per_transaction,busy_ns,overlap_ns",
    );
    Kind::ALL.iter().for_each(|kind| text.push_str(&format!(",{}_ns", kind.name())));
    text.push('\n');
    for Line { case, commit, origin, ns_per_transaction, inside } in lines {
        let cells = [
            case.profile.clone(),
            case.program.name().into(),
            case.inputs.name().into(),
            case.mix.name().into(),
            case.mechanism.name().into(),
            case.configuration.name().into(),
            case.devices.to_string(),
            case.units.to_string(),
            case.threads.to_string(),
            case.count.to_string(),
            case.share.to_string(),
            case.seed.to_string(),
            commit.into(),
            origin.into(),
            format!("{ns_per_transaction:.1}"),
        ];
        text.push_str(&cells.map(|cell| cell.replace([',', '\n'], " ")).join(","));
        let each = |ns: f64| inside.map(|outcome| ns / outcome.transactions.max(1) as f64);
        let of = |part: fn(&Outcome) -> f64| inside.map(part).and_then(each);
        let parts = Kind::ALL.map(|kind| inside.and_then(|outcome| each(*outcome.breakdown.get(kind.name())?)));
        for value in [of(|o| o.busy_ns), of(|o| o.overlap_ns)].into_iter().chain(parts) {
            text.push_str(&value.map_or(",".into(), |ns| format!(",{ns:.1}")));
        }
        text.push('\n');
    }
    text
}
