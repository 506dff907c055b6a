//! The command line of the crash explorer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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
    /// What is in it; every structure without it, but the nine programs on pools with a mechanism alone.
    #[arg(long, value_enum)]
    structure: Option<Structure>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs for each pair of pool and structure.
    #[arg(long, default_value_t = 1)]
    programs: u64,
    /// Goes on with further seeds for so many minutes.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Transactions of a program.
    #[arg(long, default_value_t = 2)]
    transactions: usize,
    /// Most operations of a transaction.
    #[arg(long, default_value_t = 2)]
    operations: u64,
    /// Every state, one by one, instead of one for all that recovery cannot tell apart.
    #[arg(long)]
    exhaustive: bool,
    /// Leaves the write-back or fence of this number out (on a card also command, read that pushes, or wait for a command): a planted fault.
    #[arg(long)]
    leave_out: Option<usize>,
    /// Where a failure goes.
    #[arg(long, default_value = "crash.json")]
    output: PathBuf,
}

/// What was explored in all, and of that what was on cards.
#[derive(Default)]
struct Total {
    all: Report,
    on_cards: Report,
}

/// Explores programs of every wanted kind with one seed; `false` after a failure.
fn run_seed(options: &Exploration, seed: u64, total: &mut Total) -> anyhow::Result<bool> {
    let limits = if options.exhaustive { Limits::EXHAUSTIVE } else { Limits::LAZY };
    for pool in Kind::ALL.into_iter().filter(|kind| options.pool.is_none_or(|wanted| wanted == *kind)) {
        let is_wanted = |structure: &Structure| match options.structure {
            Some(wanted) => wanted == *structure,
            // On direct pools a program takes minutes.
            None => !pool.is_direct() || Structure::LIBRARY.contains(structure),
        };
        for structure in Structure::all().filter(is_wanted) {
            let (transactions, operations) = (options.transactions, options.operations);
            let random = Program::random(pool, structure, seed, transactions, operations);
            let program = Program { leave_out: options.leave_out, ..random };
            let (report, failure) = explore(&program, limits).map_err(|e| anyhow!("{program:?}: {e}"))?;
            println!("{pool:?}, {structure:?}, seed {seed}: {report}");
            total.all += report;
            if pool.is_on_card() {
                total.on_cards += report;
            }
            if let Some(failure) = failure {
                println!("failed: {}", failure.message);
                let case = Case { program, failure }.minimise(limits);
                println!("smallest: {}", case.failure.message);
                case.write(&options.output)?;
                println!("repeat it with: nearpm-explorer replay {}", options.output.display());
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn run(options: &Exploration) -> anyhow::Result<ExitCode> {
    let mut total = Total::default();
    let begin = Instant::now();
    let limit = Duration::from_secs(60 * options.minutes);
    let mut seeds = 0;
    while seeds < options.programs || begin.elapsed() < limit {
        if !run_seed(options, options.seed + seeds, &mut total)? {
            return Ok(ExitCode::FAILURE);
        }
        seeds += 1;
    }
    println!("total: {}; {:.1} s", total.all, begin.elapsed().as_secs_f64());
    let Report { executions, cuts, states, again, not_followed, recoveries, deepest, cut_short, .. } = total.all;
    let on_cards = total.on_cards.states;
    println!(
        r#"{{"counts":{{"seeds":{seeds},"programs":{executions},"cuts":{cuts},"states":{states},"states on cards":{on_cards},"states left by recoveries":{again},"states left by recoveries and not followed":{not_followed},"recoveries":{recoveries},"crashes in a row":{deepest},"cuts not explored whole":{cut_short},"violations":0}}}}"#
    );
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
