//! What the programs `nearpm-gphashbench` and `nearpm gpu hash` do.

use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use nearpm_gphash::Design;
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Device, Interpreted};

use crate::campaign::{self, Record, Tally};
use crate::exhaust::{self, Bounds};
use crate::growing;
use crate::measure::{self, Bench};
use crate::trial::Subject;

/// What to do with hash tables of a GPU in persistent memory.
#[derive(Subcommand)]
pub enum HashCommand {
    /// Run histories on the interpreter, crash them at any instruction, and check that they are durably linearizable
    Run(RunArguments),
    /// The same for a long time: the record tells where to go on
    Campaign(CampaignArguments),
    /// Go through every order of two or three threads on one bucket, within a bound on preemptions
    Exhaust(ExhaustArguments),
    /// Measure a GPU, or try the measurements out on the interpreter
    Bench(BenchArguments),
    /// Print the results of a measurement
    Report {
        /// The file that `bench --json` has written
        results: PathBuf,
    },
}

/// A design of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DesignName {
    /// Buckets in levels, all in persistent memory: GPHash, with its holes closed
    Levels,
    /// Tags in the GPU's memory: ours
    Tags,
}

/// A hole that the paper's table has, or that ours could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hole {
    /// No fence between value and pointer, and key
    Fence,
    /// Answers before what they depend on has persisted
    Readers,
    /// Inserts of one key do not look for each other
    Twice,
    /// Slots are used again in the same epoch
    Reuse,
    /// Updates of a batch give way to what may be no update of the same key
    Overwrite,
    /// Growing drops pairs that find no slot, and a pair leaves the stash before its copy has persisted
    Lost = 6,
    /// The cache is written behind persistent memory, and not what is being put into it
    Stale = 7,
}

impl Hole {
    fn code(self) -> u32 {
        1 << self as u32
    }
}

/// Which table is run.
#[derive(Args)]
pub struct SubjectArguments {
    /// The design
    design: DesignName,
    /// All operations of a history are one batch
    #[arg(long)]
    batched: bool,
    /// The table has a cache, behind so many turns: behind one it is filled meanwhile, behind two it is in use
    #[arg(long, default_value_t = 0)]
    turns: u32,
    /// The table grows, and is crashed in that, with batches of readers and writers in between
    #[arg(long, conflicts_with_all = ["batched", "turns"])]
    growing: bool,
}

impl SubjectArguments {
    fn subject(&self, hole: Option<Hole>) -> Subject {
        let design = match self.design {
            DesignName::Levels => Design::Levels,
            DesignName::Tags => Design::Tags,
        };
        let mut subject = Subject::small(design);
        if let Some(hole) = hole {
            subject = subject.with_holes(hole.code());
        }
        if self.growing {
            subject = subject.growing();
        }
        if self.turns > 0 {
            subject = subject.cached(self.turns);
        }
        if self.batched { subject.batched() } else { subject }
    }

    fn name(&self) -> String {
        let mut name = if self.design == DesignName::Tags { "tags" } else { "levels" }.to_owned();
        if self.batched {
            name += ", batched";
        }
        if self.growing {
            name += ", growing";
        }
        match self.turns {
            0 => name,
            turns => format!("{name}, cache behind {turns} turns"),
        }
    }

    /// A history of a seed.
    fn history(&self, subject: &Subject, seed: u64, crashes: u64, tally: &mut Tally) -> Result<()> {
        match self.growing {
            true => growing::history(subject, seed, crashes, tally),
            false => campaign::history(subject, seed, crashes, tally),
        }
    }
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
    #[command(flatten)]
    subject: SubjectArguments,
    /// File with the record, which is made or gone on with
    #[arg(long)]
    record: PathBuf,
    /// Histories in all
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,
    /// Crashes of each
    #[arg(long, default_value_t = 1)]
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
}

fn exhaust_of(arguments: &ExhaustArguments) -> Result<()> {
    println!("on the interpreter: no GPU is used");
    let subject = arguments.subject.subject(arguments.hole).one_bucket();
    let ExhaustArguments { threads, preemptions, limit, crashes, .. } = *arguments;
    let gone = exhaust::all(&subject, threads, Bounds { preemptions, limit, crashes })?;
    println!(
        "{}, {threads} threads on one bucket, at most {preemptions} preemptions: {} trials, every schedule of {} of them; \
         {} schedules, {} crashes; each is durably linearizable",
        arguments.subject.name(),
        gone.trials,
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
        HashCommand::Report { results } => {
            let text =
                std::fs::read_to_string(results).with_context(|| format!("cannot read {}", results.display()))?;
            let report: Report = serde_json::from_str(&text)
                .with_context(|| format!("{} holds no results of nearpm gpu hash bench --json", results.display()))?;
            print!("{}", report.table());
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

fn campaign_of(arguments: &CampaignArguments) -> Result<()> {
    let subject = arguments.subject.subject(None);
    let until = arguments.seconds.map(|seconds| std::time::Instant::now() + std::time::Duration::from_secs(seconds));
    let mut record = Record::load(&arguments.record, &arguments.subject.name(), arguments.crashes)?;
    while record.next_seed < arguments.histories && until.is_none_or(|until| std::time::Instant::now() < until) {
        let outcome = arguments.subject.history(&subject, record.next_seed, arguments.crashes, &mut record.tally);
        record.next_seed += 1;
        if outcome.is_err() || record.next_seed.is_multiple_of(500) {
            record.save(&arguments.record)?;
        }
        outcome?;
    }
    record.save(&arguments.record)?;
    println!("{}: {}; each is durably linearizable", record.subject, record.tally);
    Ok(())
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

fn device(arguments: &BenchArguments) -> Result<Rc<dyn Device>> {
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
    let device = device(arguments)?;
    let mut report = Report {
        device: device.name(),
        times: match arguments.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    };
    let bench = Bench {
        device,
        full: !arguments.interpreted,
        repeats: arguments.repeats.max(1),
        spares: arguments.spares.max(1),
    };
    measure::run(&bench, &arguments.only, &mut report);
    nearpm_gpmbench::command::tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}
