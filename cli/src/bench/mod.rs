//! `nearpm bench`: the paper's evaluation on simulated computers, on a card or natively, and other
//! libraries on this machine.

mod evaluation;
pub mod on_card;
pub mod on_host;
mod pmdk;
mod progress;
mod stored;

use anyhow::Result;
use clap::{Args, Subcommand};

pub use evaluation::{EvaluationArguments, ReportArguments, report};

/// Commit that this program was built from, with `-changed-` and a sum of the changes behind it
/// where its sources had been changed; `unknown` outside git.
pub const COMMIT: &str = env!("NEARPM_COMMIT");

/// What is measured; without one of these, the paper's evaluation.
#[derive(Subcommand, Clone, Debug)]
pub enum BenchCommand {
    /// PMDK's libpmemobj, as it is installed, against a library with its interface and against none
    /// (times are measured)
    Pmdk(pmdk::PmdkArguments),
    /// Run the paper's micro-benchmark (waiting copies, Fig. 17) and asynchronous logs with a
    /// profile's host and link, and print it as CSV
    Copies(evaluation::CopiesArguments),
    /// Make all simulated results anew that are stored with the sources, in their own folder: two
    /// and a half hours of processor time
    Stored(stored::StoredArguments),
    /// Measure what programs and library compute for, on this machine, and print it as the file
    /// that profiles are completed with
    Compute(evaluation::ComputeArguments),
}

/// Arguments of `nearpm bench`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    #[command(flatten)]
    evaluation: EvaluationArguments,
}

/// Runs the command.
///
/// # Errors
/// If something cannot be measured, run or written.
pub fn command(arguments: &BenchArguments) -> Result<()> {
    match &arguments.command {
        None => evaluation::command(&arguments.evaluation),
        Some(BenchCommand::Pmdk(arguments)) => pmdk::command(arguments),
        Some(BenchCommand::Copies(arguments)) => evaluation::copies(arguments),
        Some(BenchCommand::Stored(arguments)) => stored::command(arguments),
        Some(BenchCommand::Compute(arguments)) => evaluation::compute(arguments),
    }
}
