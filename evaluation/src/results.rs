//! A folder of results, one file a case: a run that was interrupted goes on where it was.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use csv::StringRecord;
use nearpm_sim::profile::Profile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::{Case, Charge};
use crate::compute::Compute;
use crate::device::Device;
use crate::meter::Kind;
use crate::run::Outcome;

/// Folder of results where none is named.
pub const FOLDER: &str = "target/evaluation";
/// Number of this form of results.
const FORM: u32 = 2;

/// A result, with everything that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Form of the file.
    pub form: u32,
    /// Commit that the program was built from, with `-changed-` and a sum of the changes behind it
    /// where its sources had been changed; `unknown` where it was built outside git.
    pub commit: String,
    /// What was charged, of [`charged`], so that a result of other charges is not taken for one of
    /// these; empty where it was read from a table.
    pub profile: String,
    /// What was run.
    pub case: Case,
    /// What it gave.
    pub outcome: Outcome,
    /// Wall-clock time of the simulation, in seconds: it grows with what else the machine has to
    /// do.
    pub wall_s: f64,
    /// What a processor was busy for with the simulation, in seconds.
    pub cpu_s: f64,
    /// The folder or the table that it was read from.
    #[serde(skip)]
    pub place: PathBuf,
}

/// What a simulation took, in seconds: see [`Record`].
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Wall-clock time.
    pub wall_s: f64,
    /// Processor time.
    pub cpu_s: f64,
}

/// The folder.
pub struct Results {
    folder: PathBuf,
    commit: String,
    /// Results of other commits count, too.
    keeps: bool,
}

/// Files that a process has not finished begin with this.
pub(crate) fn unfinished(process: u32) -> String {
    format!(".unfinished-{process}-")
}

/// Removes what processes that are gone have not finished. What cannot be removed is in nobody's
/// way.
pub(crate) fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(".unfinished-").and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What a case is charged with, in a line: the profile's values, and where its library's
/// instructions are charged by path, what these take. The count of these may be a file's that no
/// commit has.
pub fn charged(case: &Case, profile: &Profile, compute: &Compute) -> String {
    let path = match case.charge {
        Charge::Path => compute.paths.library_ns(case).ok(),
        _ => None,
    };
    let path = path.map(|ns| format!(" library_ns={ns:?}")).unwrap_or_default();
    values(profile) + &path
}

/// A profile's values in a line.
fn values(profile: &Profile) -> String {
    let value = |entry: &nearpm_sim::profile::Entry<'_>| format!("{}={}", entry.key, entry.sourced.value);
    profile.entries().iter().map(value).collect::<Vec<_>>().join(" ")
}

impl Results {
    /// Opens a folder for results of a commit, and makes it where it is missing. Results of other
    /// commits count where `keeps`.
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

    /// The result of a case with these [charges](charged) that need not be run again.
    pub fn find(&self, case: &Case, charges: &str) -> Option<Record> {
        let text = fs::read(self.file(case)).ok()?;
        // A file that is no result is written anew.
        let record: Record = serde_json::from_slice(&text).ok()?;
        let record = Record { place: self.folder.clone(), ..record };
        let same = record.form == FORM && record.case == *case && record.profile == charges;
        (same && (self.keeps || record.commit == self.commit)).then_some(record)
    }

    /// Keeps a result. A file is there whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, case: &Case, charges: String, outcome: Outcome, took: Took) -> Result<Record> {
        let (Took { wall_s, cpu_s }, case) = (took, case.clone());
        let (commit, place) = (self.commit.clone(), self.folder.clone());
        let record = Record { form: FORM, commit, profile: charges, case, outcome, wall_s, cpu_s, place };
        let path = self.file(&record.case);
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

    /// Every result of the folder, or of a table that [`csv()`] has made. Files that are none are
    /// named in the second list.
    ///
    /// # Errors
    /// If the folder cannot be read, or the table is none of results.
    pub fn all(folder: &Path) -> Result<(Vec<Record>, Vec<String>)> {
        if folder.is_file() {
            let text = fs::read_to_string(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
            let records = parse(&text).with_context(|| format!("{} is no table of results", folder.display()))?;
            let at = |record| Record { place: folder.to_owned(), ..record };
            return Ok((records.into_iter().map(at).collect(), Vec::new()));
        }
        let (mut records, mut others) = (Vec::new(), Vec::new());
        let entries =
            fs::read_dir(folder).with_context(|| format!("the folder {} cannot be read", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
            let record = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
            match record.filter(|record| record.form == FORM) {
                Some(record) => records.push(Record { place: folder.to_owned(), ..record }),
                None => others.push(path.display().to_string()),
            }
        }
        Ok((records, others))
    }
}

/// Why a table in memory is written.
const ROOM: &str = "memory takes all cells, and each line has as many";

/// A line of the table of comma-separated values.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// What was run.
    pub case: &'l Case,
    /// Commit that the program was built from.
    pub commit: &'l str,
    /// What the time is: of which device ([`Device::origin`]), or of which transport.
    pub origin: &'l str,
    /// Nanoseconds a transaction.
    pub ns_per_transaction: f64,
    /// What only a simulator sees.
    pub inside: Option<&'l Record>,
}

impl<'l> From<&'l Record> for Line<'l> {
    fn from(record: &'l Record) -> Line<'l> {
        let Record { case, commit, outcome, .. } = record;
        Line {
            case,
            commit,
            origin: case.device.origin(),
            ns_per_transaction: outcome.per_transaction(),
            inside: Some(record),
        }
    }
}

/// Results as a table of comma-separated values.
pub fn csv(records: &[Record]) -> String {
    table(records.iter().map(Line::from))
}

/// Columns that say what was run: the fields of a [`Case`] but its device, which the origin says.
const CASE: [&str; 13] = [
    "profile",
    "program",
    "inputs",
    "mix",
    "mechanism",
    "configuration",
    "devices",
    "units",
    "threads",
    "count",
    "share",
    "seed",
    CHARGE,
];
/// The one that older tables do not have: all of theirs is charged alike.
const CHARGE: &str = "charge";
/// Those behind them. `transactions` were run, which is `count` or, where threads do not divide it,
/// a little less; `_ns` are nanoseconds a transaction, `_s` seconds of the simulation.
const GIVEN: [&str; 8] =
    ["commit", "origin", "ns_per_transaction", "transactions", "wall_s", "cpu_s", "busy_ns", "overlap_ns"];

/// The column of a kind of time.
fn column(kind: Kind) -> String {
    format!("{}_ns", kind.name())
}

/// Lines as a table of comma-separated values. What is not known is empty.
pub fn table<'l>(lines: impl Iterator<Item = Line<'l>>) -> String {
    let kinds = Kind::ALL.map(column);
    let columns = CASE.into_iter().chain(GIVEN).chain(kinds.iter().map(String::as_str));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).expect(ROOM);
    for Line { case, commit, origin, ns_per_transaction, inside } in lines {
        let named = [
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
            case.charge.name().into(),
            commit.into(),
            origin.into(),
            format!("{ns_per_transaction:.3}"),
        ];
        let outcome = inside.map(|record| &record.outcome);
        let each = |ns: f64| outcome.map(|outcome| ns / outcome.transactions.max(1) as f64);
        let of = |part: fn(&Outcome) -> Option<f64>| outcome.and_then(part).and_then(each);
        let parts = Kind::ALL.map(|kind| each(*outcome?.breakdown.get(kind.name())?));
        let numbers = [inside.map(|record| record.wall_s), inside.map(|record| record.cpu_s)]
            .into_iter()
            .chain([of(|o| o.busy_ns), of(|o| o.overlap_ns)])
            .chain(parts)
            .map(|value| value.map_or(String::new(), |value| format!("{value:.3}")));
        let transactions = outcome.map_or(String::new(), |outcome| outcome.transactions.to_string());
        writer.write_record(named.into_iter().chain([transactions]).chain(numbers)).expect(ROOM);
    }
    String::from_utf8(writer.into_inner().expect(ROOM)).expect("all cells are text")
}

/// Reads what [`csv()`] has made. The library's counters are not in it, nor are the profile's
/// values.
fn parse(text: &str) -> Result<Vec<Record>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers()?.clone();
    ensure!(!columns.is_empty(), "it is empty");
    let line = |cells: csv::Result<StringRecord>| {
        let cells = cells?;
        let at = cells.position().map_or(0, |at| at.line());
        record(&columns, &cells).with_context(|| format!("line {at}"))
    };
    reader.records().map(line).collect()
}

/// A line as a record.
fn record(columns: &StringRecord, cells: &StringRecord) -> Result<Record> {
    let cell = |name: &str| {
        let at = columns.iter().position(|column| column == name);
        at.and_then(|at| cells.get(at)).with_context(|| format!("no column {name}"))
    };
    let number = |name: &str| {
        let found = cell(name)?;
        found.parse::<f64>().with_context(|| format!("{name} is {found:?}, and must be a number"))
    };
    let origin = cell("origin")?;
    let Some(device) = Device::ALL.into_iter().find(|device| device.origin() == origin) else {
        bail!("the time of {origin} is none of the model or of the RTL");
    };
    let value = |text: &str| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
    let is_there = |name: &&str| *name != CHARGE || columns.iter().any(|column| column == CHARGE);
    let case = CASE.into_iter().filter(is_there).map(|name| Ok((name.to_owned(), value(cell(name)?))));
    let case: Case = serde_json::from_value(Value::Object(case.collect::<Result<_>>()?))?;
    let case = Case { device, ..case };
    let transactions: usize = cell("transactions")?.parse().context("the transactions are no number")?;
    let all = |name: &str| Ok::<f64, anyhow::Error>(number(name)? * transactions as f64);
    let of_card = |name: &str| match device {
        Device::Model => all(name).map(Some),
        Device::Rtl => Ok(None),
    };
    let part = |kind: Kind| Ok((kind.name().to_owned(), all(&column(kind))?));
    let outcome = Outcome {
        ns: all("ns_per_transaction")?,
        transactions,
        breakdown: Kind::ALL.into_iter().map(part).collect::<Result<_>>()?,
        busy_ns: of_card("busy_ns")?,
        overlap_ns: of_card("overlap_ns")?,
        counts: Default::default(),
    };
    let (wall_s, cpu_s, commit) = (number("wall_s")?, number("cpu_s")?, cell("commit")?.to_owned());
    Ok(Record { form: FORM, commit, profile: String::new(), case, outcome, wall_s, cpu_s, place: PathBuf::new() })
}

#[cfg(test)]
mod tests {
    use nearpm::Mechanism;
    use nearpm_workloads::programs::Program;

    use super::*;
    use crate::case::{Charge, Configuration};
    use crate::plan::{OURS, Scope};

    fn some() -> Record {
        let case = Scope::TINY.case(OURS, Program::Tatp, Mechanism::Undo, Configuration::Card);
        let breakdown = Kind::ALL.into_iter().zip([1.0, 2.0, 3.0]).map(|(kind, ns)| (kind.name().to_owned(), ns));
        let parts = breakdown.chain(Kind::ALL[3..].iter().map(|kind| (kind.name().to_owned(), 0.0))).collect();
        let (breakdown, counts) = (parts, Default::default());
        let outcome =
            Outcome { ns: 6.0, transactions: 2, breakdown, busy_ns: Some(4.0), overlap_ns: Some(0.5), counts };
        let (commit, profile, place) = ("fedcba987654".into(), String::new(), PathBuf::new());
        Record { form: FORM, commit, profile, case, outcome, wall_s: 0.25, cpu_s: 0.125, place }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let rtl = Case { device: Device::Rtl, ..some().case };
        assert_ne!(rtl.key(), some().case.key());
        let outcome = Outcome { busy_ns: None, overlap_ns: None, ..some().outcome };
        let records = [
            some(),
            Record { case: Case { seed: 2, ..some().case }, ..some() },
            Record { case: rtl, outcome, ..some() },
            Record { case: Case { charge: Charge::Path, ..some().case }, ..some() },
        ];
        assert_eq!(parse(&csv(&records)).unwrap(), records);
        let older = csv(&records[..2]).replace(",charge,", ",").replace(",alike,", ",");
        assert_eq!(parse(&older).unwrap(), records[..2]);
    }

    #[test]
    fn what_is_no_table_of_results_is_refused() {
        let table = csv(&[some()]);
        for (from, to, said) in [
            ("cpu_s", "cpu", "no column cpu_s"),
            (",0.125,", ",,", "cpu_s is \"\""),
            (",0.125,", ",", "fields"),
            ("tatp", "tatq", "tatq"),
            (",model,", ",wall-clock time,", "none of the model"),
        ] {
            let error = parse(&table.replace(from, to)).expect_err("it is wrong");
            assert!(format!("{error:#}").contains(said), "{from} as {to}: {error:#}");
        }
        assert!(parse("").is_err());
    }
}
