//! The whole benchmark against PMDK.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Selection, groups};
use crate::count::{Counts, Method};
use crate::library::{Library, Mode, Persistence, Rig};
use crate::machine::{self, Machine};
use crate::measure::{Libraries, Measured, in_turn};
use crate::programs::Programs;

/// Insertions in a file on a disk, where each transaction waits for it.
const FILE_OPS: u64 = 500;
/// Insertions in a transaction, in a file on a disk.
const FILE_BATCHES: [u32; 2] = [1, 64];

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the library that is to replace PMDK's.
    pub library: Option<PathBuf>,
    /// That one is measured in place as well.
    pub in_place: bool,
    /// The folder of PMDK's library, where it is not the installed one.
    pub pmdk: Option<PathBuf>,
    /// The folder of programs that were built before.
    pub built: Option<PathBuf>,
    /// Rounds of each case, after one that warms up.
    pub pairs: usize,
    /// Operations of each thread.
    pub ops: Vec<u64>,
    /// What to run.
    pub selection: Vec<Selection>,
    /// A folder on a disk, for pools that become durable by msync.
    pub files: Option<PathBuf>,
    /// A folder for the other pools; a tmpfs unless it is named.
    pub pools: Option<PathBuf>,
    /// Which time is shown.
    pub clock: Clock,
}

/// Which time the table of one thread shows; all else is by the wall's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// What a user waits for.
    Wall,
    /// What processors were busy for, all threads together. On a machine with other work it is the
    /// only fair one: a short run ends before the scheduler takes the processor away, and a long
    /// one does not.
    Processor,
}

/// What was measured, where, and with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// PMDK's library and its version.
    pub pmdk: String,
    /// The library that is to replace it.
    pub ours: Option<String>,
    /// The file system of the pools.
    pub pools: String,
    /// Rounds of each case.
    pub pairs: usize,
    /// Which time is shown.
    pub clock: Clock,
    /// Times, pools made durable by instructions.
    pub measured: Vec<Measured>,
    /// Counts, or `None` where processes may not be traced.
    pub counted: Option<Vec<Counted>>,
    /// Times in files on a disk, made durable by msync.
    pub files: Option<Files>,
}

/// What a case executed in each library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// What was run.
    pub case: Case,
    /// With PMDK.
    pub pmdk: Counts,
    /// With the library that is to replace it.
    pub ours: Option<Counts>,
}

/// The part on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The file system.
    pub file_system: String,
    /// Times; no floor, which writes nothing to a disk.
    pub measured: Vec<Measured>,
}

/// Runs everything; `progress` is told what comes next.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    ensure!(options.pairs > 0, "no pairs, no figures");
    ensure!(options.library.is_some() || !options.in_place, "in place is a mode of the library that --lib names");
    let machine = Machine::here();
    // What cannot be measured is said before anything is, not minutes after.
    let disk = options.files.as_deref().map(|folder| Ok::<_, anyhow::Error>((folder, disk_of(folder)?))).transpose()?;
    let programs = match &options.built {
        Some(folder) => Programs::built_in(folder)?,
        None => {
            progress("building the programs");
            Programs::build()?
        }
    };
    let pools = options.pools.clone().map_or_else(machine::memory_folder, Ok)?;
    let rig = Rig { programs: &programs, pools: &pools, persistence: Persistence::Instructions };
    let ours = options.library.as_deref().map(Library::in_folder).transpose()?;
    let libraries = Libraries {
        pmdk: options.pmdk.as_deref().map_or_else(|| Library::installed(&rig), Library::in_folder)?,
        // Told its mode where there are two, so that no use of a pool chooses another.
        ours: ours.as_ref().map(|ours| if options.in_place { ours.in_mode(Mode::WorkingCopy) } else { ours.clone() }),
        in_place: ours.filter(|_| options.in_place).map(|ours| ours.in_mode(Mode::InPlace)),
        floor: Library::in_folder(&programs.floor())?,
    };
    let mut measured = Vec::new();
    for group in groups(&options.selection, &options.ops) {
        progress(&group[0].title());
        measured.extend(in_turn(&rig, &libraries, &group, options.pairs, true)?);
    }
    let counted = count_all(&rig, &libraries, &options.selection, progress)?;
    let files = disk.map(|(folder, file_system)| -> Result<Files> {
        progress(&format!("files on {file_system}"));
        let rig = Rig { programs: &programs, pools: folder, persistence: Persistence::Msync };
        let cases = FILE_BATCHES.map(|batch| Case::map("btree", FILE_OPS).in_batches(batch));
        let measured = in_turn(&rig, &libraries, &cases, options.pairs, false);
        Ok(Files { file_system, measured: measured.with_context(|| format!("with pools in {}", folder.display()))? })
    });
    let version = options.pmdk.is_none().then(|| machine::package_version("libpmemobj1")).flatten();
    Ok(Report {
        machine,
        pmdk: format!(
            "{}, libpmemobj1 {}",
            libraries.pmdk.file().display(),
            version.as_deref().unwrap_or("of no package")
        ),
        ours: libraries.ours.map(|library| library.file().display().to_string()),
        pools: machine::file_system(&pools)?,
        pairs: options.pairs,
        clock: options.clock,
        measured,
        counted,
        files: files.transpose()?,
    })
}

/// Counts what the libraries execute in the cases that are counted.
fn count_all(
    rig: &Rig,
    libraries: &Libraries,
    selection: &[Selection],
    progress: &dyn Fn(&str),
) -> Result<Option<Vec<Counted>>> {
    let mut counted = Vec::new();
    for case in selection.iter().flat_map(|selection| selection.counted()) {
        progress(&format!("{}: fences and lines", case.title()));
        let count = |library: &Library| rig.count(library, &case, Method::Breakpoints);
        let Some(pmdk) = count(&libraries.pmdk)? else { return Ok(None) };
        let ours = libraries.ours.as_ref().map(count).transpose()?.flatten();
        counted.push(Counted { case, pmdk, ours });
    }
    Ok(Some(counted))
}

/// The file system of a folder, which must be that of a disk.
fn disk_of(folder: &Path) -> Result<String> {
    let file_system = machine::file_system(folder)?;
    ensure!(file_system != "tmpfs", "{} lies in memory: --files takes a folder on a disk", folder.display());
    Ok(file_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_memory_is_no_disk() {
        let folder = machine::memory_folder().expect("a folder in memory");
        assert!(disk_of(&folder).expect_err("it is refused").to_string().contains("lies in memory"));
        assert!(disk_of(Path::new("/nowhere/at/all")).is_err());
    }
}
