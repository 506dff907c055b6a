//! The programs on this processor, in pools in files, in wall-clock time: without crash consistency
//! and with each mechanism.
//!
//! There is no card in it. The copies are the processor's, on the library's best path for memory
//! that is mapped into the process; how stores become durable is the file system's ([`Flush`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use nearpm::memory::{Flush, MappedMemory};
use nearpm::{Error, Mechanism, Options, Problem, Survives};
use nearpm_bench::machine::Machine;
use nearpm_statistics::Figure;
use nearpm_workloads::programs::{Inputs, Program};
use serde::{Deserialize, Serialize};

use crate::case::{self, Case, Configuration};
use crate::place::{self, Place, Timing};
use crate::plan::Scope;
use crate::results::{remove_unfinished, unfinished};

/// What these cases have in the place of a profile's name.
pub const NAME: &str = "native";
/// What their times are.
pub const ORIGIN: &str = "measured natively";
/// What `nearpm bench --native` gave, for the report.
const STORED: &str = include_str!("../results/native.csv");

/// What is run beside the mechanisms of pools: what is durable when it returns.
pub const BESIDE: [(Mechanism, Configuration); 2] = [Configuration::BESIDE[0], Configuration::BESIDE[1]];

/// Cases that are compared with each other, one seed of a program with one kind of inputs: without
/// crash consistency, with each mechanism, and with what there is beside them. `count` transactions
/// each, where not the scope's.
pub fn groups(scope: &Scope, programs: &[Program], mechanisms: &[Mechanism], count: Option<usize>) -> Vec<Vec<Case>> {
    let mut groups = Vec::new();
    for seed in 1..=scope.seeds {
        for inputs in Inputs::ALL {
            for &program in programs {
                let of = |mechanism, configuration| {
                    let case = scope.case(NAME, program, mechanism, configuration);
                    let count = count.unwrap_or(case.count);
                    Case { inputs, count, seed, devices: 0, units: 0, ..case }
                };
                let floor = of(Mechanism::Undo, Configuration::Bare);
                let with = mechanisms.iter().map(|&mechanism| of(mechanism, Configuration::Cpu));
                // Commits of released inputs are asynchronous, which these two have not.
                let beside = BESIDE.into_iter().filter(|_| inputs == Inputs::Corrected);
                let beside = beside.filter(|(mechanism, _)| mechanisms.contains(mechanism));
                let beside = beside.map(|(mechanism, configuration)| of(mechanism, configuration));
                groups.push(std::iter::once(floor).chain(with).chain(beside).collect());
            }
        }
    }
    groups
}

/// Where pools lie, one after the other.
pub struct Files {
    /// The folder that was named, or the one of the file that was.
    folder: PathBuf,
    path: PathBuf,
}

impl Files {
    /// In a folder that is there, or at a path where nothing is.
    ///
    /// # Errors
    /// If the path is neither, or is not text.
    pub fn at(path: &Path) -> Result<Files> {
        let text = path.to_str().with_context(|| format!("{} is not text: name another place", path.display()))?;
        ensure!(
            !text.starts_with("card:"),
            "{text} lies on a card, where --card runs the programs: name a folder or a file"
        );
        if path.is_dir() {
            // Of benches that were killed.
            remove_unfinished(path);
            let name = format!("{}bench.pool", unfinished(std::process::id()));
            return Ok(Files { folder: path.to_owned(), path: path.join(name) });
        }
        if fs::symlink_metadata(path).is_ok() {
            bail!("{} is there already, and no folder: name a folder, or a path where nothing is", path.display());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ensure!(folder.is_dir(), "there is no folder {}: make it first, or name another", folder.display());
        Ok(Files { folder: folder.to_owned(), path: path.to_owned() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where each pool lies.
    pub fn location(&self) -> String {
        // It was text when the place was named, and loses nothing by this.
        self.path.to_string_lossy().into_owned()
    }

    /// Makes a pool of so many bytes and removes it, so that what cannot be is said before anything
    /// is measured; gives how stores to it become durable.
    ///
    /// # Errors
    /// If there is no room, or the folder cannot be written.
    pub fn try_out(&self, bytes: u64, survives: Survives) -> Result<Flush> {
        let (location, folder) = (self.location(), self.folder.display());
        let made = Options::new().survives(Survives::ProcessCrash).create(&location, bytes);
        let made = made.map_err(|error| match error {
            Error::Pool { problem: Problem::ReadOnly, .. } => {
                anyhow!("the folder {folder} cannot be written: change its permissions, or name another")
            }
            other => anyhow!(other).context(format!("no pool of {bytes} bytes can be made in {folder}")),
        });
        made?.close()?;
        let flush = self.flush(survives);
        nearpm::remove(&location)?;
        flush
    }

    /// Gives the place to `run`: its clock is that of this machine, and pools are prepared before
    /// it starts.
    pub fn with_place<T>(&self, survives: Survives, run: impl FnOnce(&Place<'_>) -> T) -> T {
        let start = Instant::now();
        run(&Place {
            name: NAME,
            location: &|_| self.location(),
            now_ns: &|| start.elapsed().as_nanos() as u64,
            room: u64::MAX,
            units: 0,
            survives,
            is_prepared: true,
        })
    }

    fn flush(&self, survives: Survives) -> Result<Flush> {
        let file = fs::File::options().read(true).write(true).open(&self.path)?;
        Ok(MappedMemory::map(file, &self.path, survives)?.flush())
    }
}

/// Runs cases that are compared with each other: each once, one after the other, and so again for
/// so many rounds behind one that warms up. Each round begins with another of them. Gives the
/// timings of each case; `tell` is told of each run, those of the warm-up included.
///
/// # Errors
/// If a case fails: see [`place::run`].
pub fn in_turn(
    place: &Place<'_>,
    cases: &[Case],
    rounds: usize,
    tell: &mut dyn FnMut(&Timing),
) -> Result<Vec<Vec<Timing>>> {
    let mut timings = vec![Vec::new(); cases.len()];
    for round in 0..=rounds {
        for turn in 0..cases.len() {
            let number = (round + turn) % cases.len();
            let timing = place::run(place, &cases[number])?;
            tell(&timing);
            if round > 0 {
                timings[number].push(timing);
            }
        }
    }
    Ok(timings)
}

/// What all rows of a run share.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Commit that the program was built from.
    pub commit: String,
    /// Processor, kernel, and whether they are a virtual machine's.
    pub machine: String,
    /// Type of the file system that the pools lie on.
    pub file_system: String,
    /// How stores to them become durable.
    pub flush: Flush,
}

impl Setting {
    /// That of this machine.
    pub fn here(commit: &str, is_virtual: bool, file_system: &str, flush: Flush) -> Setting {
        let Machine { cpu, processors, kernel, .. } = Machine::here();
        let kind = if is_virtual { ", a virtual machine" } else { "" };
        let machine = format!("{cpu}, {processors} processors, {kernel}{kind}");
        Setting { commit: commit.to_owned(), machine, file_system: file_system.to_owned(), flush }
    }
}

/// A case with all its rounds, as a line of the table of comma-separated values. Of what was timed
/// the median, the least and the most of the rounds are there; counts are those of the last round,
/// a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The program.
    #[serde(with = "case::program")]
    pub program: Program,
    /// Its inputs.
    #[serde(with = "case::inputs")]
    pub inputs: Inputs,
    /// The mechanism; of no meaning without crash consistency.
    #[serde(with = "case::mechanism")]
    pub mechanism: Mechanism,
    /// Without crash consistency, or with the mechanism on the processor.
    pub configuration: Configuration,
    /// Transactions of a round.
    pub count: usize,
    /// The paper's tables are divided by this.
    pub share: usize,
    /// Seed.
    pub seed: u64,
    /// See [`Setting::commit`].
    pub commit: String,
    /// [`ORIGIN`].
    pub origin: String,
    /// See [`Setting::machine`].
    pub machine: String,
    /// See [`Setting::file_system`].
    pub file_system: String,
    /// See [`Setting::flush`].
    pub durable_by: String,
    /// Rounds, behind one that warmed up.
    pub rounds: usize,
    /// Nanoseconds a transaction.
    pub ns_per_transaction: f64,
    /// The least of them.
    pub least_ns: f64,
    /// The most.
    pub most_ns: f64,
    /// Time over what the same round took without crash consistency.
    pub over_bare: f64,
    /// The least of these ratios.
    pub least_over_bare: f64,
    /// The most.
    pub most_over_bare: f64,
    /// Part of the time in which the program had a processor.
    pub processor_share: f64,
    /// Entries and records that were logged, checkpoints of pages included.
    pub log_entries: f64,
    /// Pages that were shadowed.
    pub shadow_pages: f64,
    /// Epochs that were cut.
    pub epochs: f64,
    /// Fences.
    pub fences: f64,
    /// Lines whose write-back was asked for, streamed ones included.
    pub lines_written_back: f64,
}

impl Row {
    /// The rows of cases that were run in turn, the first of them without crash consistency.
    ///
    /// # Errors
    /// If nothing was run.
    pub fn all(timings: &[Vec<Timing>], setting: &Setting) -> Result<Vec<Row>> {
        let bare = samples(timings.first().context("there is a floor")?);
        timings.iter().map(|timings| Row::of(timings, &bare, setting).context("there is a round")).collect()
    }

    fn of(timings: &[Timing], bare: &[f64], setting: &Setting) -> Option<Row> {
        let Timing { case, counts, .. } = timings.last()?;
        let ns = samples(timings);
        let [ns, over_bare] = [Figure::of(&ns)?, Figure::of_ratios(&ns, bare)?];
        let shares: Vec<f64> = timings.iter().map(|timing| timing.processor_ns / timing.ns_per_transaction).collect();
        let each = |total: u64| thousandths(case.each(total));
        Some(Row {
            program: case.program,
            inputs: case.inputs,
            mechanism: case.mechanism,
            configuration: case.configuration,
            count: case.count,
            share: case.share,
            seed: case.seed,
            commit: setting.commit.clone(),
            origin: ORIGIN.to_owned(),
            machine: setting.machine.clone(),
            file_system: setting.file_system.clone(),
            durable_by: setting.flush.name().to_owned(),
            rounds: timings.len(),
            ns_per_transaction: thousandths(ns.median),
            least_ns: thousandths(ns.min),
            most_ns: thousandths(ns.max),
            over_bare: thousandths(over_bare.median),
            least_over_bare: thousandths(over_bare.min),
            most_over_bare: thousandths(over_bare.max),
            processor_share: thousandths(Figure::of(&shares)?.median),
            log_entries: each(counts.log_entries),
            shadow_pages: each(counts.shadow_pages),
            epochs: each(counts.epochs),
            fences: each(counts.fences),
            lines_written_back: each(counts.lines_written_back),
        })
    }

    /// Whether it is without crash consistency.
    pub fn is_bare(&self) -> bool {
        self.configuration == Configuration::Bare
    }
}

fn samples(timings: &[Timing]) -> Vec<f64> {
    timings.iter().map(|timing| timing.ns_per_transaction).collect()
}

/// A number to the digits that are kept.
fn thousandths(number: f64) -> f64 {
    (1e3 * number).round() / 1e3
}

/// Rows as comma-separated values.
///
/// # Errors
/// If memory does not take them.
pub fn csv(rows: &[Row]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Reads what [`csv()`] has made.
///
/// # Errors
/// If it is something else, or holds no rows.
pub fn parse(text: &str) -> Result<Vec<Row>> {
    let rows: Vec<Row> = csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>()?;
    ensure!(!rows.is_empty(), "there are no rows");
    if let Some(row) = rows.iter().find(|row| row.origin != ORIGIN) {
        bail!("{:?} is there where it must say that it was {ORIGIN}", row.origin);
    }
    Ok(rows)
}

/// What is stored.
///
/// # Errors
/// If it is no table of rows.
pub fn stored() -> Result<Vec<Row>> {
    parse(STORED).context("the stored measurements on a processor")
}
