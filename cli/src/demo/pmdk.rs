//! A C program for PMDK on a simulated card: the program knows nothing of it, the library that it
//! is started with has the card inside.
//!
//! The program is `libnearpm/pmemobj/tests/c/power_cut.c`, or one with its arguments:
//! `POOL nearpm prepare`, `POOL nearpm work SEED OPERATIONS`, which prints a dot when an operation
//! has returned, and `POOL nearpm verify SEED DOTS`, which fails unless the pool holds what the
//! operations that have returned have done, or one more.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nearpm::memory::{CUT_STATUS, not_cut_in};
use nearpm::{Mechanism, Statistics};
use nearpm_cards::SimulatedCard;
use nearpm_sim::rng::Rng;
use nearpm_text::grouped;
use wait_timeout::ChildExt;

/// Bytes of the card's memory.
const CARD_BYTES: &str = "16777216";

/// The C program, and what it runs on.
#[derive(Args, Clone, Debug)]
pub struct PmdkArguments {
    /// A C program for PMDK, with the arguments of libnearpm/pmemobj/tests/c/power_cut.c, to be cut
    /// on the card too
    #[arg(long, value_name = "PROGRAM", requires = "pmdk_library")]
    pub pmdk_program: Option<PathBuf>,
    /// Folder with the libpmemobj.so.1 that has a simulated card in it
    /// (`./x pmemobj --simulated-card`)
    #[arg(long, value_name = "FOLDER", requires = "pmdk_program")]
    pub pmdk_library: Option<PathBuf>,
    /// Operations of that program
    #[arg(long, default_value_t = 2_000)]
    pub pmdk_ops: u64,
    /// Seconds that each run of that program may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub pmdk_timeout: u64,
}

/// What came of the program.
pub struct Shown {
    title: String,
    cycle: u64,
    cycles: u64,
    acknowledged: usize,
    commands: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { title, cycle, cycles, acknowledged, commands } = self;
        writeln!(f, "{title}")?;
        writeln!(
            f,
            "  without a cut  {} cycles of the card, {} commands posted",
            grouped(*cycles),
            grouped(*commands)
        )?;
        writeln!(f, "  power cut      at cycle {} of the card; the process ends there", grouped(*cycle))?;
        writeln!(f, "  at that time   {} operations acknowledged", grouped(*acknowledged as u64))?;
        writeln!(
            f,
            "  found          by the next process: those, or one more; nothing acknowledged lost, nothing half done"
        )
    }
}

/// A program, its library, and the folder of its card and pool.
struct Rig<'a> {
    program: &'a Path,
    library: &'a Path,
    folder: &'a Path,
    /// How long a run may take.
    patience: Duration,
}

/// How a run ended, and what it printed.
struct Ended {
    status: ExitStatus,
    /// On standard output.
    printed: Vec<u8>,
    /// On standard error.
    said: String,
}

impl Rig<'_> {
    fn start(&self, arguments: &[&str], cut: &str) -> Result<Ended> {
        // What the caller's environment says to the library is not meant for this program.
        let is_said = |(name, _): &(std::ffi::OsString, _)| {
            ["NEARPM_", "PMEM_", "PMEMOBJ_"].iter().any(|start| name.to_string_lossy().starts_with(start))
        };
        let mut command = Command::new(self.program);
        for (name, _) in std::env::vars_os().filter(is_said) {
            command.env_remove(name);
        }
        command
            .arg(self.folder.join("pool"))
            .arg("nearpm")
            .args(arguments)
            .env("LD_LIBRARY_PATH", self.library)
            .env("NEARPM_CARD", self.folder.join("card"))
            .env("NEARPM_CARD_BYTES", CARD_BYTES)
            .env("NEARPM_CARD_CUT", cut)
            .env("NEARPM_MECHANISM", Mechanism::Undo.name())
            .env("NEARPM_STATISTICS", "1");
        // Files, as a pipe that nobody reads would hold up a program that prints much.
        let [printed, said] = ["printed", "said"].map(|name| self.folder.join(name));
        let file = |path: &Path| File::create(path).with_context(|| format!("{} cannot be made", path.display()));
        command.stdin(Stdio::null()).stdout(file(&printed)?).stderr(file(&said)?);
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", self.program.display()))?;
        let Some(status) = child.wait_timeout(self.patience)? else {
            child.kill()?;
            child.wait()?;
            bail!("{} {} has not ended within {:?}", self.program.display(), arguments[0], self.patience);
        };
        let said = String::from_utf8_lossy(&fs::read(said)?).into_owned();
        Ok(Ended { status, printed: fs::read(printed)?, said })
    }

    /// Runs it to its end. Gives what it says on standard error.
    fn whole(&self, arguments: &[&str], cut: &str) -> Result<String> {
        let Ended { status, said, .. } = self.start(arguments, cut)?;
        ensure!(status.success(), "{} {}: {status}: {said}", self.program.display(), arguments[0]);
        Ok(said)
    }
}

/// Cuts the power at a random cycle of the program's work, and has the next process verify what is
/// left. `None` where no program was given.
pub fn run(arguments: &PmdkArguments, seed: u64) -> Result<Option<Shown>> {
    let (Some(program), Some(library)) = (&arguments.pmdk_program, &arguments.pmdk_library) else {
        return Ok(None);
    };
    let (pmdk_ops, patience) = (arguments.pmdk_ops, Duration::from_secs(arguments.pmdk_timeout));
    let folder = tempfile::tempdir().context("no folder for the card can be made")?;
    let rig = Rig { program, library, folder: folder.path(), patience };
    rig.whole(&["prepare"], "")?;
    let (card, prepared) = (folder.path().join("card"), folder.path().join("prepared"));
    fs::copy(&card, &prepared).with_context(|| format!("{} has no library with a card in it", library.display()))?;
    let (seed_text, operations) = (seed.to_string(), pmdk_ops.to_string());
    let work = ["work", &seed_text, &operations];
    let said = rig.whole(&work, &format!("cycle={}", u64::MAX))?;
    let cycles = not_cut_in(&said).with_context(|| format!("the card does not say that it was not cut: {said}"))?;
    let statistics = Statistics::printed_in(&said);
    let commands = statistics.with_context(|| format!("the library prints no statistics: {said}"))?.commands;

    fs::copy(&prepared, &card)?;
    let cycle = 1 + Rng::new(seed).below(cycles);
    let Ended { status, printed, said } = rig.start(&work, &format!("cycle={cycle},seed={seed}"))?;
    let is_cut = status.code() == Some(CUT_STATUS);
    ensure!(is_cut, "{} was not cut at cycle {cycle}: {status}: {said}", program.display());
    let acknowledged = printed.len();
    rig.whole(&["verify", &seed_text, &acknowledged.to_string()], "").context("CRASH CONSISTENCY IS VIOLATED")?;
    let title = format!(
        "C program for PMDK, transactions, atomic allocation and lists: {} operations, {}, {}, seed {seed}",
        grouped(pmdk_ops),
        Mechanism::Undo.name(),
        SimulatedCard::Model.name()
    );
    Ok(Some(Shown { title, cycle, cycles, acknowledged, commands }))
}
