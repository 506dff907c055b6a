//! `nearpm gvr`: what the command line offers.
//!
//! A command that needs ranks starts this program again, once for each, with the same arguments;
//! [`shm::launched`] tells a process which of both it is.

mod backend;
mod bench;
mod campaign;
mod demo;
mod figures;
mod job;
mod kills;
mod run;

use std::process::{Command, ExitCode};

use clap::Subcommand;

use crate::error::{Error, Result};
use crate::rma::shm;

/// Versioned global arrays
#[derive(Subcommand)]
pub enum GvrCommand {
    /// Four ranks solve a system; one is killed; three take the job up again and end it
    Demo(demo::DemoArguments),
    /// Start a program once for each rank, as `mpiexec` does: a client of gds.h, or one of `World`
    Run(run::RunArguments),
    /// Measure arrays on this machine, against a flat array in the same run
    Bench(bench::BenchArguments),
    /// The paper's figures 5 to 13 by a model of a network, in virtual time, beside what the paper
    /// says
    Figures(figures::FiguresArguments),
    /// Read every block of a job's pools, and compare it with its checksums
    Check(job::FolderArguments),
    /// Read every block of a job's pools, and mend what is damaged from the partners' copies
    Scrub(job::FolderArguments),
    /// Say which arrays and versions a job holds
    Versions(job::FolderArguments),
    /// Make an old version of a job the newest one
    Restore(job::RestoreArguments),
    /// Check many random runs: histories, crashes, flipped bits, killed ranks. It goes on where it
    /// was interrupted
    Campaign(campaign::CampaignArguments),
}

/// Runs a command.
///
/// # Errors
/// A sentence that says what to do.
pub fn command(command: &GvrCommand) -> Result<ExitCode> {
    match command {
        GvrCommand::Demo(arguments) => demo::command(arguments),
        GvrCommand::Run(arguments) => run::command(arguments),
        GvrCommand::Bench(arguments) => bench::command(arguments),
        GvrCommand::Figures(arguments) => figures::command(arguments),
        GvrCommand::Check(arguments) => job::check(arguments),
        GvrCommand::Scrub(arguments) => job::scrub(arguments),
        GvrCommand::Versions(arguments) => job::versions(arguments),
        GvrCommand::Restore(arguments) => job::restore(arguments),
        GvrCommand::Campaign(arguments) => campaign::command(arguments),
    }
}

/// This program once more, with the same arguments and some variables.
fn again(variables: &[(&str, String)]) -> Result<Command> {
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).envs(variables.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Starts this program as so many ranks, and waits for them.
fn launch(ranks: usize, window: u64, variables: &[(&str, String)]) -> Result<shm::Launched> {
    let first = again(variables)?;
    shm::launch(ranks, window, |_| {
        let mut command = Command::new(first.get_program());
        command.args(first.get_args()).envs(first.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    })
}
