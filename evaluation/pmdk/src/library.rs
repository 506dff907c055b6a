//! A `libpmemobj.so.1`, and running a program with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::case::Case;
use crate::count::{Counted, Counts, Method, count};
use crate::programs::{Program, Programs};

/// What programs ask the loader for.
const SONAME: &str = "libpmemobj.so.1";

/// A library that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Where the loader is to look first.
    folder: Option<PathBuf>,
    /// The library itself.
    file: PathBuf,
    /// The mode of its pools, where it has several.
    mode: Option<Mode>,
}

/// How a library of ours keeps what a program stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In ordinary memory, and in the pool from the commit on.
    WorkingCopy,
    /// In the pool.
    InPlace,
}

impl Library {
    /// The one in a folder.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let file = folder.join(SONAME);
        let file = file.canonicalize().with_context(|| format!("there is no {}", file.display()))?;
        let folder = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
        Ok(Library { folder: Some(folder), file, mode: None })
    }

    /// The one that is installed on the system, as its loader finds it.
    pub fn installed(rig: &Rig) -> Result<Self> {
        let lines = rig
            .lines_of(None, &[Case::adds(0, 8, 1)])
            .context("libpmemobj cannot be used: is libpmemobj1 installed?")?;
        let file = lines[0].library.canonicalize().context("the library that a program loaded is not there")?;
        Ok(Library { folder: None, file, mode: None })
    }

    /// The same, told which mode its pools have.
    pub fn in_mode(&self, mode: Mode) -> Self {
        Library { mode: Some(mode), ..self.clone() }
    }

    /// The library's file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// How a pool's content becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// By write-backs and fences, as on persistent memory.
    Instructions,
    /// By msync, as on a disk.
    Msync,
}

/// The line that a program prints.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    variant: String,
    #[serde(default)]
    bytes: u64,
    ops: u64,
    nanoseconds: u64,
    processor_nanoseconds: u64,
    library: PathBuf,
}

/// What an operation of a run took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// By the wall's clock.
    pub wall: f64,
    /// Of processors, all threads together.
    pub processor: f64,
}

/// Programs, and where and how their pools are kept.
pub struct Rig<'a> {
    /// The programs.
    pub programs: &'a Programs,
    /// The folder for pools. Each run has a fresh one.
    pub pools: &'a Path,
    /// How they are made durable.
    pub persistence: Persistence,
}

impl Rig<'_> {
    /// Runs a case with a library, by both clocks.
    pub fn time(&self, library: &Library, case: &Case) -> Result<Timing> {
        self.time_run(library, std::slice::from_ref(case)).map(|timings| timings[0])
    }

    /// Runs cases of one process with a library, by both clocks: a timing for each.
    pub fn time_run(&self, library: &Library, run: &[Case]) -> Result<Vec<Timing>> {
        let lines = self.lines_of(Some(library), run)?;
        let timing = |(case, line): (&Case, &Line)| {
            check(library, case, line)?;
            let per_op = |nanoseconds: u64| nanoseconds as f64 / line.ops as f64;
            Ok(Timing { wall: per_op(line.nanoseconds), processor: per_op(line.processor_nanoseconds) })
        };
        run.iter().zip(&lines).map(timing).collect()
    }

    /// Runs a case with a library and counts what it does. `None` where processes may not be
    /// traced.
    pub fn count(&self, library: &Library, case: &Case, method: Method) -> Result<Option<Counts>> {
        let pool = self.fresh()?;
        let mut command = self.command(Some(library), std::slice::from_ref(case), pool.path());
        match count(command.arg("--counted"), method)? {
            Counted::NotPermitted => Ok(None),
            Counted::Counts(counts, printed) => {
                check(library, case, &parse(&printed)?)?;
                Ok(Some(counts))
            }
        }
    }

    /// What a run prints, a line for each case; of the library that the system's loader finds,
    /// where none is named.
    fn lines_of(&self, library: Option<&Library>, run: &[Case]) -> Result<Vec<Line>> {
        let pool = self.fresh()?;
        let output = self.command(library, run, pool.path()).output().context("the program does not start")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}: {}", run[0].title(), output.status, said.trim());
        let printed = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Line> = printed.lines().map(parse).collect::<Result<_>>()?;
        ensure!(lines.len() == run.len(), "{}: {} lines of results, not {}", run[0].title(), lines.len(), run.len());
        Ok(lines)
    }

    fn fresh(&self) -> Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("nearpm-bench-").tempdir_in(self.pools);
        folder.with_context(|| format!("no pool can be made in {}", self.pools.display()))
    }

    fn command(&self, library: Option<&Library>, run: &[Case], pools: &Path) -> Command {
        let mut command = Command::new(self.programs.path(run[0].program));
        command.args(Case::arguments(run)).arg(format!("--pool={}", pools.join("pool").display()));
        command.env("PMEM_IS_PMEM_FORCE", if self.persistence == Persistence::Instructions { "1" } else { "0" });
        // Page faults are those of the operating system: all happen before the clock runs. A
        // session is what a program does that sets nothing.
        match run[0].program {
            Program::Session => command.env_remove("PMEMOBJ_CONF"),
            _ => command.env("PMEMOBJ_CONF", "prefault.at_create=1"),
        };
        match library.and_then(|library| library.mode) {
            Some(Mode::WorkingCopy) => _ = command.env("NEARPM_MODE", "working-copy"),
            Some(Mode::InPlace) => _ = command.env("NEARPM_MODE", "in-place"),
            None => {}
        }
        match library.and_then(|library| library.folder.as_deref()) {
            Some(folder) => command.env("LD_LIBRARY_PATH", folder),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
        command
    }
}

fn parse(printed: &str) -> Result<Line> {
    serde_json::from_str(printed).with_context(|| format!("this is no line of results: {printed:?}"))
}

/// A figure counts only if the program did what it was told, with the library that is meant.
fn check(library: &Library, case: &Case, line: &Line) -> Result<()> {
    let loaded = line.library.canonicalize().context("the library that a program loaded is not there")?;
    ensure!(loaded == library.file, "{} ran with {}, not {}", case.title(), loaded.display(), library.file.display());
    let ops = case.ops * u64::from(case.threads);
    ensure!(line.ops == ops, "{}: {} operations, not {ops}", case.title(), line.ops);
    let same = case.program != Program::Session || (&line.variant, line.bytes) == (&case.variant, case.bytes);
    ensure!(same, "{}: the line is of {} of {} bytes", case.title(), line.variant, line.bytes);
    Ok(())
}
