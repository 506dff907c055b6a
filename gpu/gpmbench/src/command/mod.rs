//! What the programs `nearpm-gpmbench` and `nearpm gpu` do.

mod bench;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};

pub use bench::{BenchArguments, bench, tell};

use crate::crash::{
    self, Campaign, Checkpoints, Database, LogForm, Record, Scenario, Shared, Store, Sums, Transactions, Way,
};
use crate::prefix::Sizes;
use crate::record::{self, Saved};
use crate::report::Report;
use crate::{db, model, show, workers};

/// What to do with GPUs and their persistent memory.
#[derive(Subcommand)]
pub enum GpuCommand {
    /// Run a program on the interpreter, crash it, recover it, and compare it with its oracle
    Run(RunArguments),
    /// Crash all programs on the interpreter for a long time: the record tells where to go on
    Campaign(CampaignArguments),
    /// Measure a GPU, or try the measurements out on the interpreter
    Bench(BenchArguments),
    /// Print the paper's figures and tables as a measurement has them, beside the paper's numbers
    /// and what the link allows, and all of its results
    Report {
        /// The file that `bench --json` has written
        results: PathBuf,
    },
    /// Print what the interpreter's cost model predicts beside the results of a measurement
    Model {
        /// The file that `bench --json` has written
        results: PathBuf,
    },
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The key-value store, told step by step
    Kvs,
    /// The key-value store, crashed at many moments
    KvsCampaign,
    /// Transactions with the hierarchical log, one fence
    Sealed,
    /// Transactions with the hierarchical log, two fences
    Tail,
    /// Transactions with the conventional log
    Conventional,
    /// Transactions whose threads change the same cells
    Shared,
    /// Checkpoints
    Checkpoint,
    /// Checkpoints of pages that changed
    ChangedPages,
    /// Checkpoints that are taken while the program goes on
    InFlight,
    /// Transactions that insert and update rows
    Db,
    /// Prefix sums
    Ps,
}

/// Arguments of a run.
#[derive(Args)]
pub struct RunArguments {
    /// What to run
    program: Program,
    /// Seed of inputs and crashes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File for the store's persistent memory, which must not be there; it is removed again where
    /// none is given
    #[arg(long)]
    pool: Option<PathBuf>,
    /// Crash at every moment, not at some
    #[arg(long)]
    thorough: bool,
}

/// Arguments of a campaign.
#[derive(Args)]
pub struct CampaignArguments {
    /// File with the record, which is made or gone on with
    #[arg(long)]
    record: PathBuf,
    /// Crashes in all
    #[arg(long, default_value_t = 1_000_000)]
    crashes: u64,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Processes that do it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    workers: u64,
    /// Go through units from this one on, in steps as large as there are workers, and print each as
    /// JSON: for the command without it
    #[arg(long, hide = true)]
    unit: Option<u64>,
}

/// Runs a command; `again` are the arguments that start this program's `bench`.
///
/// # Errors
/// What was refused, or is wrong.
pub fn command(command: &GpuCommand, again: &[&str]) -> Result<bool> {
    match command {
        GpuCommand::Run(arguments) => run(arguments).map(|()| true),
        GpuCommand::Campaign(arguments) => campaign(arguments).map(|()| true),
        GpuCommand::Bench(arguments) => bench(arguments, again),
        GpuCommand::Report { results } => {
            let results = results_of(results)?;
            print!("{}\n{}", crate::figures::figures(&results), results.table());
            Ok(true)
        }
        GpuCommand::Model { results } => {
            print!("{}", model::table(&results_of(results)?)?);
            Ok(true)
        }
    }
}

fn results_of(path: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} holds no results of nearpm gpu bench --json", path.display()))
}

fn run(arguments: &RunArguments) -> Result<()> {
    let scenario = match arguments.program {
        Program::Kvs => return told(arguments),
        Program::KvsCampaign => {
            Box::new(Store { set_bits: 3, batch: 80, keys: 60, module: crate::kernels::kvs().clone() })
                as Box<dyn Scenario>
        }
        Program::Sealed => transactions(LogForm::Sealed),
        Program::Tail => transactions(LogForm::Tail),
        Program::Conventional => transactions(LogForm::Conventional),
        Program::Shared => {
            Box::new(Shared { threads: 12, sharing: 3, by_stamp: true, module: crate::kernels::txn().clone() })
        }
        Program::Checkpoint => Box::new(Checkpoints { part: 1 << 8, way: Way::Whole }),
        Program::ChangedPages => Box::new(Checkpoints { part: 4096, way: Way::Changed }),
        Program::InFlight => Box::new(Checkpoints { part: 1 << 8, way: Way::Concurrent }),
        Program::Db => {
            let sizes = db::Sizes { rows: 80, updated: 40, groups: 3, partitions: 0 };
            Box::new(Database { sizes, rows: 40, module: crate::kernels::db().clone() })
        }
        Program::Ps => {
            let sizes = Sizes { arrays: 2, blocks: 3, threads: 64 };
            Box::new(Sums { sizes, module: crate::kernels::prefix().clone() })
        }
    };
    println!("on the interpreter: no GPU is used");
    let campaign = if arguments.thorough { Campaign::thorough(8) } else { Campaign::sampled(1 + arguments.seed % 3) };
    let tally = campaign.run(scenario.as_ref())?;
    println!(
        "{} crashes that left {} images, each recovered and compared with the oracle; {} more crashes in the recovery; no violation",
        tally.crashes, tally.images, tally.second_crashes
    );
    Ok(())
}

fn campaign(arguments: &CampaignArguments) -> Result<()> {
    if let Some(first) = arguments.unit {
        return (first..)
            .step_by(arguments.workers as usize)
            .try_for_each(|unit| workers::say(unit, &crash::unit(unit)?));
    }
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut record = Record::load(&arguments.record)?;
    if record.total() < arguments.crashes {
        go_on(&mut record, arguments, until)?;
    }
    for (program, crashes) in &record.crashes {
        let images = record.images.get(program).copied().unwrap_or_default();
        println!("{program:<26} {crashes:>10} crashes, {images:>10} images recovered");
    }
    let (total, second) = (record.total(), record.second_crashes);
    println!("{total} crashes in all, {second} more in recoveries; no violation");
    Ok(())
}

/// Goes on until there were so many crashes, or the time is over. Units are counted in their order,
/// so that a record is the same however many processes made it.
fn go_on(record: &mut Record, arguments: &CampaignArguments, until: Option<Instant>) -> Result<()> {
    let CampaignArguments { record: path, crashes, workers, .. } = arguments;
    let (first, mut saved) = (record.next, Saved::now());
    let worker = |worker: u64| -> Result<std::process::Command> {
        let mut command = workers::itself("campaign", "campaign")?;
        command.arg("--record").arg(path).args([format!("--workers={workers}"), format!("--unit={}", first + worker)]);
        Ok(command)
    };
    let commands = (0..*workers).map(worker).collect::<Result<Vec<_>>>()?;
    let outcome = workers::in_order(commands, until, first, |unit| {
        record.add(unit);
        saved.keep(path, record)?;
        Ok(if record.total() >= *crashes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    record::write(path, record)?;
    outcome
}

fn transactions(form: LogForm) -> Box<dyn Scenario> {
    let module = crate::kernels::txn().clone();
    Box::new(Transactions { form, blocks: 2, threads: 5, rounds: 2, by_processor: false, module })
}

fn told(arguments: &RunArguments) -> Result<()> {
    let mut say = |line: String| println!("{line}");
    match &arguments.pool {
        Some(path) => show::show(path, arguments.seed, &mut say),
        None => {
            let path = std::env::temp_dir().join(format!("nearpm-gpu-{}.region", std::process::id()));
            let outcome = show::show(&path, arguments.seed, &mut say);
            // It was made here; a file that was there before was refused and is not this one.
            let _ = std::fs::remove_file(&path);
            outcome
        }
    }
}
