//! What the programs `nearpm-gpmbench` and `nearpm gpu` do.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use nearpm_gpu::{Device, Interpreted};

use crate::crash::{
    Campaign, Checkpoints, Database, LogForm, Record, Scenario, Shared, Store, Sums, Transactions, Way,
};
use crate::measure::{self, Bench, Scale};
use crate::prefix::Sizes;
use crate::report::Report;
use crate::{db, model, show, soak};

/// What to do with GPUs and their persistent memory.
#[derive(Subcommand)]
pub enum GpuCommand {
    /// Run a program on the interpreter, crash it, recover it, and compare it with its oracle
    Run(RunArguments),
    /// Crash all programs on the interpreter for a long time: the record tells where to go on
    Campaign(CampaignArguments),
    /// Measure a GPU, or try the measurements out on the interpreter
    Bench(BenchArguments),
    /// Print the paper's figures and tables as a measurement has them, beside the paper's numbers and what the link allows, and all of its results
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
    /// File for the store's persistent memory, which must not be there; it is removed again where none is given
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
    /// Units of the campaign at a time
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// Arguments of a measurement.
#[derive(Args)]
pub struct BenchArguments {
    /// Run on the interpreter, at small sizes: nothing is measured, times are predicted from counted transactions
    #[arg(long)]
    interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    card: usize,
    /// Numbers of several GPUs of this machine: logs of all of them under one commit record are measured, and nothing else
    #[arg(long, value_delimiter = ',')]
    cards: Vec<usize>,
    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(measure::NAMES))]
    only: Vec<String>,
    /// Processes that the soak kills; 0 for no soak
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// PTX of another library's hierarchical log, to be measured beside ours: kernels peer_create, peer_insert and peer_check
    #[arg(long)]
    peer_log: Option<PathBuf>,
    /// What the soak starts
    #[arg(long, hide = true)]
    soak_child: Option<PathBuf>,
    /// Repeats of each value
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// File for the results as text, which go to standard output, too
    #[arg(long)]
    text: Option<PathBuf>,
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
    let mut record = Record::load(&arguments.record)?;
    let time = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    record.go_on(&arguments.record, arguments.crashes, time, arguments.threads)?;
    for (program, crashes) in &record.crashes {
        let images = record.images.get(program).copied().unwrap_or_default();
        println!("{program:<26} {crashes:>10} crashes, {images:>10} images recovered");
    }
    let (total, second) = (record.total(), record.second_crashes);
    println!("{total} crashes in all, {second} more in recoveries; no violation");
    Ok(())
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

/// The GPUs of `--cards`.
fn devices(arguments: &BenchArguments) -> Result<Vec<Rc<dyn Device>>> {
    anyhow::ensure!(arguments.cards.len() > 1, "--cards names two GPUs or more");
    if arguments.interpreted {
        return Ok(arguments.cards.iter().map(|_| Rc::new(Interpreted::new(1 << 28)) as Rc<dyn Device>).collect());
    }
    #[cfg(feature = "cuda")]
    return arguments.cards.iter().map(|&card| Ok(Rc::new(nearpm_gpu::Cuda::open(card)?) as Rc<dyn Device>)).collect();
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

fn bench_several(arguments: &BenchArguments) -> Result<bool> {
    let devices = devices(arguments)?;
    let names: Vec<String> = devices.iter().map(|device| device.name()).collect();
    let mut report = empty_report(arguments, names.join(", "));
    if let Err(error) =
        measure::several::measure(&devices, !arguments.interpreted, arguments.repeats.max(1), &mut report)
    {
        report.failures.push(format!("several GPUs: {error:#}"));
    }
    tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}

fn empty_report(arguments: &BenchArguments, device: String) -> Report {
    Report {
        device,
        times: match arguments.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    }
}

fn device(arguments: &BenchArguments) -> Result<(Rc<dyn Device>, Scale)> {
    if arguments.interpreted {
        return Ok((Rc::new(Interpreted::new(1 << 30)), Scale::Small));
    }
    #[cfg(feature = "cuda")]
    return Ok((Rc::new(nearpm_gpu::Cuda::open(arguments.card)?), Scale::Full));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

/// Measures. Whether everything went well.
///
/// # Errors
/// No device, or a file that cannot be written.
pub fn bench(arguments: &BenchArguments, again: &[&str]) -> Result<bool> {
    if !arguments.cards.is_empty() {
        return bench_several(arguments);
    }
    let (device, scale) = device(arguments)?;
    if let Some(path) = &arguments.soak_child {
        return soak::child(device, path).map(|()| true);
    }
    // What cannot be written is known before an hour of measuring.
    for path in arguments.json.iter().chain(&arguments.text) {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut report = empty_report(arguments, device.name());
    let bench = Bench { device, scale, repeats: arguments.repeats.max(1) };
    let wanted = |name: &&str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    for name in measure::NAMES.into_iter().filter(wanted) {
        measure::run(&bench, &[name.to_owned()], &mut report);
        // What was measured stays, whatever ends the rest.
        if let Some(path) = &arguments.json {
            write(path, &serde_json::to_string_pretty(&report)?)?;
        }
    }
    if let Some(path) = &arguments.peer_log {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if let Err(error) = measure::peer::measure(&bench, text, &mut report) {
            report.failures.push(format!("{}: {error:#}", path.display()));
        }
    }
    if !arguments.interpreted && arguments.only.is_empty() && arguments.kills > 0 {
        soaked(arguments, again, &mut report);
    }
    tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}

/// Prints the results as a table, and writes them into these files; says whether all of what was done is right.
///
/// # Errors
/// A file that cannot be written.
pub fn tell(report: &Report, text: Option<&Path>, json: Option<&Path>) -> Result<bool> {
    let table = report.table();
    print!("{table}");
    if let Some(path) = text {
        write(path, &table)?;
    }
    if let Some(path) = json {
        write(path, &serde_json::to_string_pretty(report)?)?;
    }
    Ok(report.failures.is_empty())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Kills processes that use the GPU; what is wrong is in the report.
fn soaked(arguments: &BenchArguments, again: &[&str], report: &mut Report) {
    let path = PathBuf::from(format!("/dev/shm/nearpm-soak-{}.region", std::process::id()));
    let outcome = std::env::current_exe().map_err(anyhow::Error::from).and_then(|program| {
        let command = || {
            let mut command = std::process::Command::new(&program);
            command.args(again).arg("--soak-child").arg(&path).arg("--card").arg(arguments.card.to_string());
            command
        };
        soak::soak(&command, &path, arguments.kills)
    });
    let _ = std::fs::remove_file(&path);
    match outcome {
        Ok(soaked) => {
            let group = "SIGKILL soak of gpKVS (shows recovery on hardware, not missing fences)";
            report.value(group, "kills, no violation", f64::from(soaked.kills), "", Some(">= 200"));
            report.value(group, "kills that left a batch to undo", f64::from(soaked.undone), "", None);
            report.value(group, "batches", f64::from(soaked.batches), "", None);
        }
        Err(error) => report.failures.push(format!("soak: {error:#}")),
    }
}
