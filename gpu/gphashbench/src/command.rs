//! What the programs `nearpm-gphashbench` and `nearpm gpu hash` do.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Device, Interpreted};

use crate::campaign::{Record, Tally};
use crate::exhaust::{self, Bounds};
use crate::figures;
use crate::measure::{self, Bench};
use crate::model::{self, Model};
use crate::named::{DesignName, Hole, SubjectArguments};
use crate::soak;

/// What to do with hash tables of a GPU in persistent memory.
#[derive(Subcommand)]
pub enum HashCommand {
    /// Run histories on the interpreter, crash them at any instruction, and check that they are durably linearizable
    Run(RunArguments),
    /// The same of all tables in turn, until there are so many: the records tell where to go on
    Campaign(CampaignArguments),
    /// Go through every order of two or three threads on one bucket, within a bound on preemptions
    Exhaust(ExhaustArguments),
    /// Measure a GPU, or try the measurements out on the interpreter
    Bench(BenchArguments),
    /// Compare a table on a GPU, or on the interpreter, with a model, operation by operation
    Model(ModelArguments),
    /// Kill processes that work on a table of a GPU, and look at what is left
    Soak(SoakArguments),
    /// Print the results of a measurement
    Report {
        /// The file that `bench --json` has written
        results: PathBuf,
        /// Figures 5 to 15 of the paper instead: what it says, beside what was measured here
        #[arg(long)]
        figures: bool,
    },
}

/// Arguments of a run.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// A hole to plant: the run ends with the history that shows it
    #[arg(long)]
    hole: Option<Hole>,
    /// Histories, one a seed
    #[arg(long, default_value_t = 200)]
    histories: u64,
    /// Crashes of each
    #[arg(long, default_value_t = 4)]
    crashes: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Arguments of a campaign.
#[derive(Args)]
pub struct CampaignArguments {
    /// Folder with the records, which are made or gone on with
    #[arg(long)]
    records: PathBuf,
    /// Histories in all, and as many crashes
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,
    /// Crashes of each history, where a record does not say it
    #[arg(long, default_value_t = 2)]
    crashes: u64,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
}

/// Arguments of exhaustive schedules.
#[derive(Args)]
pub struct ExhaustArguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// A hole to plant: it ends with the schedule that shows it
    #[arg(long)]
    hole: Option<Hole>,
    /// Threads, of a warp each
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=3))]
    threads: u32,
    /// How often a thread that could go on is made to wait
    #[arg(long, default_value_t = 1)]
    preemptions: u32,
    /// Most schedules of each choice of operations
    #[arg(long, default_value_t = 1_000_000)]
    limit: u64,
    /// Crash each schedule at each of its stores and fences, too
    #[arg(long)]
    crashes: bool,
    /// File with the record, which is made or gone on with
    #[arg(long)]
    record: Option<PathBuf>,
    /// Stop after so many seconds, behind a choice of operations
    #[arg(long)]
    seconds: Option<u64>,
}

/// Which device runs it.
#[derive(Args)]
pub struct DeviceArguments {
    /// Run on the interpreter: no GPU is used
    #[arg(long)]
    interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    card: usize,
}

/// Arguments of a model test.
#[derive(Args)]
pub struct ModelArguments {
    #[command(flatten)]
    device: DeviceArguments,
    /// The design
    design: DesignName,
    /// Operations in all
    #[arg(long, default_value_t = 100_000_000)]
    operations: u64,
    /// Operations of a batch
    #[arg(long, default_value_t = 1 << 18)]
    batch: u32,
    /// Keys that are asked for
    #[arg(long, default_value_t = 1 << 21)]
    keys: u32,
    /// Of the operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Arguments of a soak.
#[derive(Args)]
pub struct SoakArguments {
    #[command(flatten)]
    device: DeviceArguments,
    /// The design
    design: DesignName,
    /// Processes that are killed
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// What a process that is killed works on
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
    /// Batches that were answered before
    #[arg(long, hide = true, default_value_t = 0)]
    answered: u32,
}

fn exhaust_of(arguments: &ExhaustArguments) -> Result<()> {
    println!("on the interpreter: no GPU is used");
    let subject = arguments.subject.subject(arguments.hole).one_bucket();
    let ExhaustArguments { threads, preemptions, limit, crashes, .. } = *arguments;
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let bounds = Bounds { preemptions, limit, crashes };
    let name = arguments.subject.name();
    let mut record = match &arguments.record {
        Some(path) => exhaust::Record::load(path, &name, threads, bounds)?,
        None => exhaust::Record::new(&name, threads, bounds),
    };
    let trials = exhaust::trials(threads);
    while (record.gone.trials as usize) < trials.len() && until.is_none_or(|until| Instant::now() < until) {
        exhaust::all(&subject, threads, bounds, &trials[record.gone.trials as usize..][..1], &mut record.gone)?;
        if let Some(path) = &arguments.record {
            record.save(path)?;
        }
    }
    let gone = record.gone;
    println!(
        "{name}, {threads} threads on one bucket, at most {preemptions} preemptions: {} of {} trials, every schedule of {} of them; \
         {} schedules, {} crashes that differ; each is durably linearizable",
        gone.trials,
        trials.len(),
        gone.complete,
        gone.tally.histories,
        gone.tally.crashes
    );
    Ok(())
}

/// Runs a command. Whether what it looked at is sound.
///
/// # Errors
/// What was refused, or is wrong.
pub fn command(command: &HashCommand) -> Result<bool> {
    match command {
        HashCommand::Run(arguments) => run(arguments).map(|()| true),
        HashCommand::Campaign(arguments) => campaign_of(arguments).map(|()| true),
        HashCommand::Exhaust(arguments) => exhaust_of(arguments).map(|()| true),
        HashCommand::Bench(arguments) => bench(arguments),
        HashCommand::Model(arguments) => model_of(arguments).map(|()| true),
        HashCommand::Soak(arguments) => soak_of(arguments).map(|()| true),
        HashCommand::Report { results, figures } => {
            let text =
                std::fs::read_to_string(results).with_context(|| format!("cannot read {}", results.display()))?;
            let report: Report = serde_json::from_str(&text)
                .with_context(|| format!("{} holds no results of nearpm gpu hash bench --json", results.display()))?;
            print!("{}", if *figures { figures::beside_the_paper(&report) } else { report.table() });
            Ok(true)
        }
    }
}

fn run(arguments: &RunArguments) -> Result<()> {
    println!("on the interpreter: no GPU is used");
    let subject = arguments.subject.subject(arguments.hole);
    let mut tally = Tally::default();
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.histories) {
        arguments.subject.history(&subject, seed, arguments.crashes, &mut tally)?;
    }
    println!("{}: {tally}; each is durably linearizable", arguments.subject.name());
    Ok(())
}

/// Histories of a subject before it is another one's turn.
const TURN: u64 = 100;

fn campaign_of(arguments: &CampaignArguments) -> Result<()> {
    println!("on the interpreter: no GPU is used");
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let load = |(subject, file, weight): (SubjectArguments, String, u64)| -> Result<_> {
        let path = arguments.records.join(file);
        Ok((Record::load(&path, &subject.name(), arguments.crashes)?, subject.subject(None), subject, path, weight))
    };
    let mut all = SubjectArguments::all().into_iter().map(load).collect::<Result<Vec<_>>>()?;
    loop {
        let sum = all.iter().fold(Tally::default(), |sum, (record, ..)| sum.plus(&record.tally));
        let done = sum.histories >= arguments.histories && sum.crashes >= arguments.histories;
        if done || until.is_some_and(|until| Instant::now() >= until) {
            println!("{sum}; each is durably linearizable");
            return Ok(());
        }
        // Whoever has come least far for its weight.
        let next = all.iter_mut().min_by_key(|(record, .., weight)| record.tally.histories / *weight);
        let (record, subject, named, path, _) = next.expect("there are subjects");
        for _ in 0..TURN {
            let outcome = named.history(subject, record.next_seed, record.crashes, &mut record.tally);
            record.next_seed += 1;
            if outcome.is_err() {
                record.save(path)?;
            }
            outcome.with_context(|| named.name())?;
        }
        record.save(path)?;
    }
}

fn model_of(arguments: &ModelArguments) -> Result<()> {
    let device = device(&arguments.device)?;
    println!("on {}", device.name());
    let ModelArguments { operations, batch, keys, seed, .. } = *arguments;
    let started = Instant::now();
    let model = Model { design: arguments.design.design(), operations, batch: batch.max(1), keys: keys.max(1), seed };
    let tested = model::run(&device, &model)?;
    println!("{tested:?} in {:.1} s; no difference from the model", started.elapsed().as_secs_f64());
    Ok(())
}

fn soak_of(arguments: &SoakArguments) -> Result<()> {
    let (design, sizes) = (arguments.design.design(), soak::Sizes { keys: 1 << 18, batch: 1 << 14 });
    if let Some(path) = &arguments.child {
        return soak::child(device(&arguments.device)?, path, design, sizes, arguments.answered, u32::MAX);
    }
    ensure!(
        !arguments.device.interpreted,
        "the interpreter keeps PM in the process that is killed: `run` crashes tables there"
    );
    let path = PathBuf::from(format!("/dev/shm/nearpm-hash-soak-{}.region", std::process::id()));
    let executable = std::env::current_exe().context("a program knows where it is")?;
    // The words that lead here: a few, in `nearpm`, or one.
    let words: Vec<String> = std::env::args().skip(1).take_while(|word| word != "soak").collect();
    let command = |answered: u32| {
        let mut command = std::process::Command::new(&executable);
        command.args(&words).arg("soak").args(std::env::args().skip_while(|word| word != "soak").skip(1));
        command.arg("--child").arg(&path).arg("--answered").arg(answered.to_string());
        command
    };
    let outcome = soak::soak(&command, arguments.kills);
    let removed = std::fs::remove_file(&path);
    let soaked = outcome?;
    removed.context("the soak's region is gone")?;
    println!("{} kills, {} batches answered: nothing that was answered is lost", soaked.kills, soaked.batches);
    Ok(())
}

/// Arguments of a measurement.
#[derive(Args)]
pub struct BenchArguments {
    /// On the interpreter sizes are small: nothing is measured, times are predicted from counted transactions
    #[command(flatten)]
    device: DeviceArguments,
    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(measure::NAMES))]
    only: Vec<String>,
    /// Repeats of each value
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Slots of our table for each spare cell
    #[arg(long, default_value_t = 16)]
    spares: u32,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// File for the results as text, which go to standard output, too
    #[arg(long)]
    text: Option<PathBuf>,
}

fn device(arguments: &DeviceArguments) -> Result<Rc<dyn Device>> {
    if arguments.interpreted {
        return Ok(Rc::new(Interpreted::new(1 << 30)));
    }
    #[cfg(feature = "cuda")]
    return Ok(Rc::new(nearpm_gpu::Cuda::open(arguments.card)?));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

/// Measures. Whether everything went well.
///
/// # Errors
/// No device, or a file that cannot be written.
pub fn bench(arguments: &BenchArguments) -> Result<bool> {
    let device = device(&arguments.device)?;
    let mut report = Report {
        device: device.name(),
        times: match arguments.device.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    };
    let bench = Bench {
        device,
        full: !arguments.device.interpreted,
        repeats: arguments.repeats.max(1),
        spares: arguments.spares.max(1),
    };
    measure::run(&bench, &arguments.only, &mut report);
    nearpm_gpmbench::command::tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}
