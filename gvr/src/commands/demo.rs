//! The demonstration: a rank is killed, and nothing is lost.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::backend::Backend;
use crate::array::Options;
use crate::error::{Error, Result};
use crate::persist::{Folder, Job, Storage, describe};
use crate::programs::pcg::{self, Solved, Vectors};
use crate::world::World;

/// Which rank dies in which iteration: `RANK:ITERATION`.
const DIES: &str = "NEARPM_GVR_DIES";

const WINDOW: u64 = 256 << 20;

#[derive(Args)]
pub struct DemoArguments {
    /// Folder of the job; it must not hold one
    folder: PathBuf,
    /// Points along an edge of the grid
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(4..=100))]
    side: u64,
    /// Ranks that begin
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=64))]
    ranks: u64,
    /// What connects the ranks
    #[arg(long, value_enum, default_value_t = Backend::Shm)]
    backend: Backend,
    /// Keep each rank's versions in a partner's pool, too, and lose the killed rank's own
    #[arg(long)]
    partners: bool,
    /// Compress what the pools keep
    #[arg(long)]
    compress: bool,
    /// The iteration in which one is killed
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(2..))]
    kill_at: u64,
}

pub fn command(arguments: &DemoArguments) -> Result<ExitCode> {
    if let Some(world) = arguments.backend.launched(WINDOW)? {
        return rank(arguments, &world);
    }
    let folder = Folder::new(&arguments.folder);
    if folder.current()?.is_some() {
        let what = "there is a job already, and it stays as it is: give another folder".to_owned();
        return Err(Error::Job { folder: folder.name(), what });
    }
    let ranks = arguments.ranks as usize;
    let victim = ranks / 2;
    println!("{ranks} ranks solve a system of {} unknowns; each iteration is a durable version", arguments.side.pow(3));
    let dies = [(DIES, format!("{victim}:{}", arguments.kill_at))];
    if arguments.backend.run(ranks, WINDOW, &dies, |rank, end| println!("  {rank}: {end}"))? {
        println!("  it was solved before iteration {}: give a smaller --kill-at", arguments.kill_at);
        return Ok(ExitCode::FAILURE);
    }
    if arguments.partners {
        lose(&arguments.folder, victim)?;
    }
    say_versions(&arguments.folder)?;
    println!("{} ranks take it up again", ranks - 1);
    let failed = |rank: &str, end: std::process::ExitStatus| {
        if !end.success() {
            println!("  {rank}: {end}");
        }
    };
    let ended = arguments.backend.run(ranks - 1, WINDOW, &[], failed)?;
    Ok(if ended { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The machine of the killed rank does not come back: its pool goes.
fn lose(folder: &Path, rank: usize) -> Result<()> {
    let pool = folder.join(format!("1-rank-{rank}.pool"));
    std::fs::remove_file(&pool).map_err(Error::io(format!("remove {}", pool.display())))?;
    println!("  the pool of rank {rank} is lost; its partner has a copy");
    Ok(())
}

fn say_versions(folder: &Path) -> Result<()> {
    let (_, report, arrays) = describe(&Folder::new(folder))?;
    for array in arrays {
        let newest = array.versions.last().map(|(number, label)| format!("version {number} {label:?}"));
        println!("  {}: {}", array.name, newest.unwrap_or_else(|| "no version".to_owned()));
    }
    println!("  cut {}; {} that not all ranks had sealed", report.cut, report.taken_back);
    Ok(())
}

fn rank(arguments: &DemoArguments, world: &World) -> Result<ExitCode> {
    let dies = std::env::var(DIES).ok().and_then(|text| {
        let (rank, iteration) = text.split_once(':')?;
        Some((rank.parse::<usize>().ok()?, iteration.parse::<u64>().ok()?))
    });
    match solve(world, arguments, dies) {
        Ok(Solved { iterations, from, error }) => {
            if world.rank() == 0 {
                println!(
                    "  went on with iteration {from}; after {iterations} the solution is within {error:.1e} of all ones"
                );
            }
            Ok(if error < 1e-6 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(error) => {
            println!("  rank {}: {error}", world.rank());
            Ok(ExitCode::FAILURE)
        }
    }
}

fn solve(world: &World, arguments: &DemoArguments, dies: Option<(usize, u64)>) -> Result<Solved> {
    let bytes = (arguments.side.pow(3) * 8 * 3 * 8 / world.ranks() as u64).max(1 << 20) + (4 << 20);
    let folder = Folder::new(&arguments.folder);
    let folder = if arguments.partners { folder.with_partners() } else { folder };
    let job = Job::open_or_create(world, &folder, bytes.next_multiple_of(4096))?;
    let vectors = Vectors::new(arguments.side, |name, dims| {
        let options = Options { compress: arguments.compress, ..Options::log(1024) };
        job.array(name, dims, options)
    })?;
    let solved = pcg::solve(world, &vectors, arguments.side, 500, |iteration| {
        if dies == Some((world.rank(), iteration)) {
            println!("  rank {} is killed in iteration {iteration}", world.rank());
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .map_err(Error::system("kill this process"))?;
        }
        Ok(())
    })?;
    drop(vectors);
    job.close()?;
    Ok(solved)
}
