//! `nearpm cuts`: many power cuts on short runs, each followed by recovery and the comparison with
//! the model.

mod census;
mod trial;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_workloads::{BTree, HashMap};

pub use census::Census;
pub use trial::{CUTS, Trial};

use crate::cut::PowerCuts;
use crate::job::{Crash, Job, RunArguments, Workload, bar};
use nearpm_cards::{Cards, SimulatedCard};
use nearpm_text::grouped;

/// Arguments of `nearpm cuts`.
#[derive(Args, Clone, Debug)]
pub struct CutsArguments {
    /// Card
    #[arg(long, value_enum, default_value = "model")]
    pub card: SimulatedCard,
    /// Memory ports of the card, each with a DDR4 channel behind it: 1, or 2 (RTL)
    #[arg(long, default_value_t)]
    pub memory_ports: MemoryPorts,
    /// Power cuts
    #[arg(long, default_value_t = 10_000)]
    pub cuts: u64,
    /// Seed of everything
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Computers that are simulated at once; without it, as many as this machine has processors
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: Option<u64>,
}

/// A campaign.
pub struct Campaign {
    /// Card.
    pub kind: SimulatedCard,
    /// Its memory ports.
    pub memory_ports: MemoryPorts,
    /// What makes the cards.
    pub cards: Cards,
    /// Power cuts.
    pub cuts: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Computers that are simulated at once. The result does not depend on it.
    pub threads: u64,
}

/// A trial that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the trial in the campaign.
    pub trial: u64,
    /// The run that repeats it.
    pub run: RunArguments,
    /// What was found.
    pub error: String,
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trial {}: {}\nto repeat it: {}", self.trial, self.error, self.run)
    }
}

/// Runs the command.
pub fn command(arguments: &CutsArguments) -> Result<()> {
    let started = Instant::now();
    let threads = arguments.threads.unwrap_or_else(processors);
    let CutsArguments { card: kind, memory_ports, cuts, seed, .. } = *arguments;
    let campaign = Campaign { kind, memory_ports, cards: kind.cards(memory_ports)?, cuts, seed, threads };
    let census = campaign.run()?;
    println!(
        "{} power cuts, {}, seed {seed}: no violation.\n\n{census}",
        grouped(census.cuts()),
        kind.named_with(memory_ports)
    );
    eprintln!("wall-clock time: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Processors of this machine.
pub fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

impl Campaign {
    /// Makes all cuts.
    ///
    /// # Errors
    /// The failure of the first trial, by number, that fails.
    pub fn run(&self) -> Result<Census, Box<Failure>> {
        let bar = bar(self.cuts as usize, &format!("power cuts, {}", self.kind.name()));
        let census = Mutex::new(Census::default());
        let first: Mutex<Option<Box<Failure>>> = Mutex::new(None);
        // Trials below the least number that failed are all run, so that the same one is reported
        // whatever the threads do.
        let (next, end) = (AtomicU64::new(0), AtomicU64::new(self.cuts.div_ceil(CUTS as u64)));
        std::thread::scope(|scope| {
            for worker in 0..self.threads {
                let (bar, census, first, next, end) = (&bar, &census, &first, &next, &end);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= end.load(Ordering::SeqCst) {
                            return;
                        }
                        match self.trial(number, &format!("sim{worker}")) {
                            Ok(found) => {
                                bar.inc(found.cuts());
                                census.lock().unwrap_or_else(PoisonError::into_inner).add(&found);
                            }
                            Err(failure) => {
                                end.fetch_min(number, Ordering::SeqCst);
                                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                                if first.as_ref().is_none_or(|other| number < other.trial) {
                                    *first = Some(failure);
                                }
                            }
                        }
                    }
                });
            }
        });
        bar.finish_and_clear();
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(census.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Runs one trial.
    fn trial(&self, number: u64, name: &str) -> Result<Census, Box<Failure>> {
        let cuts = (self.cuts - number * CUTS as u64).min(CUTS as u64) as usize;
        let Trial { run, strikes } = Trial::new(self.kind, self.memory_ports, self.seed, number, cuts);
        let job = Job::new(&run, self.cards.clone()).insisting(strikes);
        let mut crashes = Vec::new();
        let error = match attempt(&job, run.workload, name, &mut crashes) {
            Ok(()) if crashes.len() == cuts => return Ok(crashes.iter().collect()),
            Ok(()) => format!("{} of {cuts} power cuts came", crashes.len()),
            Err(error) => error,
        };
        let power_cut = PowerCuts(crashes.iter().map(|crash| crash.fall.cut).collect());
        Err(Box::new(Failure { trial: number, run: RunArguments { power_cut, ..run }, error }))
    }

    /// Does again what [`Failure::run`] says, on the cards of this campaign.
    ///
    /// # Errors
    /// What is found, as [`Failure::error`] says it.
    pub fn repeat(&self, run: &RunArguments) -> Result<(), String> {
        attempt(&Job::new(run, self.cards.clone()), run.workload, "sim", &mut Vec::new())
    }
}

/// Runs a job; gives the words of an error or a panic.
fn attempt(job: &Job, workload: Workload, name: &str, crashes: &mut Vec<Crash>) -> Result<(), String> {
    let hidden = ProgressBar::hidden();
    let outcome = catch_unwind(AssertUnwindSafe(|| match workload {
        Workload::Btree => job.through::<BTree>(name, &hidden, crashes),
        Workload::Hashmap => job.through::<HashMap>(name, &hidden, crashes),
    }));
    match outcome {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(nearpm_cards::sentence(&error)),
        Err(panic) => Err(message(&*panic)),
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    /// What a crash was, without what only a watched card shows.
    fn shown(crashes: &[Crash]) -> Vec<String> {
        let saved = |crash: &Crash| crash.fall.card.map(|(record, saved)| (record.cycle, saved));
        crashes.iter().map(|crash| format!("{crash}{:?} {:?}", crash.fall.during, saved(crash))).collect()
    }

    #[test]
    fn the_printed_command_repeats_a_trial_to_the_byte() {
        let cards = SimulatedCard::Model.cards(MemoryPorts::One).unwrap();
        for number in 0..160 {
            let Trial { run, strikes } = Trial::new(SimulatedCard::Model, MemoryPorts::One, 5, number, CUTS);
            let repeat = |job: Job, workload| {
                let mut crashes = Vec::new();
                attempt(&job, workload, "repeated", &mut crashes).unwrap();
                crashes
            };
            let first = repeat(Job::new(&run, cards.clone()).insisting(strikes), run.workload);
            let cuts = PowerCuts(first.iter().map(|crash| crash.fall.cut).collect());
            let line = RunArguments { power_cut: cuts, ..run }.to_string();
            let again = Line::parse_from(line.split(' ').skip(1)).run;
            assert_eq!(again.to_string(), line);
            let second = repeat(Job::new(&again, cards.clone()), again.workload);
            assert_eq!(shown(&first), shown(&second), "{line}");
        }
    }
}
