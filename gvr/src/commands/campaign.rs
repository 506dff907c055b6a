//! Campaigns: as many seeds as are wanted, over as many calls as it takes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueEnum};

use crate::campaign::{crash, flips, history};
use crate::error::{Error, Result};
use crate::{Access, Protocol};

#[derive(Args)]
pub struct CampaignArguments {
    /// What is checked
    #[arg(value_enum)]
    what: What,
    /// Seeds in all, with those of earlier calls
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The first seed: several processes, or machines, share a campaign by it
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Where the number of the next seed is kept, so that the next call goes on
    #[arg(long)]
    state: Option<PathBuf>,
    /// Seeds that are run at the same time. Each stays on a processor of its own, except killed
    /// ranks
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Operations under reordered one-sided access, each element linearizable
    Histories,
    /// All ranks stopped anywhere, or one; then recovery on any number of ranks
    Crashes,
    /// Bits flipped in memory and in pools, 16 for each seed
    Flips,
    /// Ranks as processes, killed at any moment, and restarted on other numbers
    Kills,
}

/// Flips of one seed.
const FLIPS: u64 = 16;

/// Seeds between two notes of the state.
const PIECE: u64 = 500;

fn play(what: What, seed: u64) -> std::result::Result<(), String> {
    match what {
        What::Histories => {
            // Every eighth history goes by messages.
            let access = if seed % 8 == 7 { Access::Message } else { Access::Rma };
            let program = history::Program { seed, protocol: Some(Protocol::Batched), access, fault: None };
            history::play(&program).map(drop)
        }
        What::Crashes => crash::play(&crash::Program { seed, fault: None }).map(drop),
        What::Flips => flips::play(seed, FLIPS).map(drop),
        What::Kills => super::kills::play(seed),
    }
}

fn begun(state: Option<&Path>, first: u64) -> Result<u64> {
    let Some(path) = state else { return Ok(first) };
    match std::fs::read_to_string(path) {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| Error::option(format!("{} does not hold a number: remove it to begin anew", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(first),
        Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
    }
}

/// Keeps this thread, and those that it starts, on one processor: ranks of a seeded world run one
/// at a time, and hand over faster there.
fn stay(job: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let Some(processor) = processors.get(job % processors.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(*processor);
    // Where the system does not let it, it is slower and no less right.
    let _ = sched_setaffinity(None, &one);
}

pub fn command(arguments: &CampaignArguments) -> Result<ExitCode> {
    let launched = match crate::rma::shm::launched() {
        Err(Error::DeadRank { .. }) => return Ok(ExitCode::FAILURE),
        launched => launched?,
    };
    if let Some(shm) = launched {
        return match super::kills::rank(shm) {
            Ok(status) => Ok(ExitCode::from(status)),
            // That is what the campaign is about, and happens thousands of times.
            Err(Error::DeadRank { .. }) => Ok(ExitCode::FAILURE),
            Err(error) => Err(error),
        };
    }
    let mut next = begun(arguments.state.as_deref(), arguments.first)?;
    let last = arguments.first.saturating_add(arguments.count);
    if next > arguments.first {
        eprintln!("going on with seed {next}");
    }
    while next < last {
        let end = (next + PIECE).min(last);
        let seeds = AtomicU64::new(next);
        let work = |job: u64| {
            // Processes are spread by the system.
            if arguments.jobs > 1 && !matches!(arguments.what, What::Kills) {
                stay(job as usize);
            }
            let mut wrong = Vec::new();
            loop {
                let seed = seeds.fetch_add(1, Ordering::Relaxed);
                if seed >= end || !wrong.is_empty() {
                    return wrong;
                }
                wrong.extend(play(arguments.what, seed).err().map(|what| (seed, what)));
            }
        };
        let wrong: Vec<(u64, String)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..arguments.jobs).map(|job| scope.spawn(move || work(job))).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        if let Some((seed, what)) = wrong.first() {
            println!("seed {seed}: {what}");
            return Ok(ExitCode::FAILURE);
        }
        next = end;
        if let Some(path) = &arguments.state {
            std::fs::write(path, format!("{next}\n")).map_err(Error::io(format!("write {}", path.display())))?;
        }
    }
    println!("{} seeds, nothing found", next - arguments.first);
    Ok(ExitCode::SUCCESS)
}
