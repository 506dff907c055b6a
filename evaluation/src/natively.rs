//! The programs on this processor, in pools in files, in wall-clock time: without crash consistency and with each mechanism.
//!
//! There is no card in it. The copies are the processor's, on the library's best path for memory that is mapped into the process; how stores become durable is
//! the file system's ([`Flush`]).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nearpm::memory::{Flush, MappedMemory};
use nearpm::{Error, Mechanism, PoolOptions, Problem, Survives};
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::{Case, Configuration};
use crate::place::{self, Place, Timing};
use crate::plan::Scope;
use crate::results::{remove_unfinished, unfinished};

/// What these results have in the place of a profile's name.
pub const NAME: &str = "native";
/// What their times are.
pub const ORIGIN: &str = "measured natively";

/// Cases that are compared with each other, one seed of a program with one kind of inputs: without crash consistency, and with each mechanism. `count`
/// transactions each, where not the scope's.
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
                groups.push(std::iter::once(floor).chain(with).collect());
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

    /// Makes a pool of so many bytes and removes it, so that what cannot be is said before anything is measured; gives how stores to it become
    /// durable.
    ///
    /// # Errors
    /// If there is no room, or the folder cannot be written.
    pub fn try_out(&self, bytes: u64, survives: Survives) -> Result<Flush> {
        let (location, folder) = (self.location(), self.folder.display());
        let made = PoolOptions::new().survives(Survives::ProcessCrash).create(&location, bytes);
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

    fn flush(&self, survives: Survives) -> Result<Flush> {
        let file = fs::File::options().read(true).write(true).open(&self.path)?;
        Ok(MappedMemory::map(file, &self.path, survives)?.flush())
    }
}

/// Runs cases that are compared with each other: each once, one after the other, and so again for so many rounds behind one that warms up. Each round
/// begins with another of them. Gives the timings of each case; `tell` is told of each run, those of the warm-up included.
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
