//! The command line of the crash explorer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use nearpm_explorer::explore::{Limits, Report, explore};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

/// Explores what crashes leave of a pool.
#[derive(Parser)]
#[command(name = "nearpm-explorer")]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Explores random programs; a failure is made small and written to a file.
    Explore(Exploration),
    /// Repeats a failure from its file.
    Replay {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Args)]
struct Exploration {
    /// The kind of pool; every kind without it.
    #[arg(long, value_enum)]
    pool: Option<Kind>,
    /// What is in it; every structure without it.
    #[arg(long, value_enum)]
    structure: Option<Structure>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs for each pair of pool and structure.
    #[arg(long, default_value_t = 1)]
    programs: u64,
    /// Transactions of a program.
    #[arg(long, default_value_t = 2)]
    transactions: usize,
    /// Most operations of a transaction.
    #[arg(long, default_value_t = 2)]
    operations: u64,
    /// Every state, one by one, instead of one for all that recovery cannot tell apart.
    #[arg(long)]
    exhaustive: bool,
    /// Leaves the write-back or fence of this number out: a planted fault.
    #[arg(long)]
    leave_out: Option<usize>,
    /// Where a failure goes.
    #[arg(long, default_value = "crash.json")]
    output: PathBuf,
}

fn run(options: &Exploration) -> anyhow::Result<ExitCode> {
    let limits = if options.exhaustive { Limits::EXHAUSTIVE } else { Limits::LAZY };
    let mut total = Report::default();
    let begin = Instant::now();
    for pool in Kind::ALL.into_iter().filter(|kind| options.pool.is_none_or(|wanted| wanted == *kind)) {
        for structure in Structure::ALL.into_iter().filter(|s| options.structure.is_none_or(|wanted| wanted == *s)) {
            for seed in options.seed..options.seed + options.programs {
                let (transactions, operations) = (options.transactions, options.operations);
                let random = Program::random(pool, structure, seed, transactions, operations);
                let program = Program { leave_out: options.leave_out, ..random };
                let (report, failure) = explore(&program, limits).map_err(|e| anyhow!("{program:?}: {e}"))?;
                println!("{pool:?}, {structure:?}, seed {seed}: {report}");
                total += report;
                if let Some(failure) = failure {
                    println!("failed: {}", failure.message);
                    let case = Case { program, failure }.minimise(limits);
                    println!("smallest: {}", case.failure.message);
                    case.write(&options.output)?;
                    println!("repeat it with: nearpm-explorer replay {}", options.output.display());
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
    }
    println!("total: {total}; {:.1} s", begin.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Action::Explore(options) => run(&options),
        Action::Replay { file } => match Case::read(&file)?.replay()? {
            Some(message) => {
                println!("it fails: {message}");
                Ok(ExitCode::FAILURE)
            }
            None => {
                println!("nothing is wrong with it");
                Ok(ExitCode::SUCCESS)
            }
        },
    }
}
