//! The command line: `nearpm gpusim` and `nearpm-sbrpbench`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use nearpm_gpusim::{Changes, Config, Rule, RunFile};

use crate::campaign;
use crate::device::Simulated;
use crate::export::export;
use crate::figures::{Runs, figure};
use crate::kernels::{KERNELS, Lowering, changes};
use crate::mutants::{Seen, harmless, look, look_at_change, no_crash_shows};
use crate::programs::{NAMES, Size, program};
use crate::stalls::breakdown;

/// What to simulate.
#[derive(Clone, Debug, Subcommand)]
pub enum GpusimCommand {
    /// Run a program on the GPU that a file describes, and print what it took.
    Run {
        /// Program, size, base configuration and changes to it (TOML).
        file: PathBuf,
    },
    /// Print a figure of the paper (6 to 11), or what our improvements add (12).
    Figure {
        /// Its number.
        #[arg(value_parser = clap::value_parser!(u32).range(6..=12))]
        number: u32,
        /// The configurations: of the paper's Table 1, or those that its artifact has run.
        #[arg(long, default_value = "artifact", value_parser = ["paper", "artifact"])]
        family: String,
        /// The programs' size.
        #[arg(long, value_enum, default_value = "paper")]
        size: Size,
        /// Keep each run in this file, and take from it what is there already.
        #[arg(long)]
        record: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print what the programs' warps and persist buffers wait for, and the cycles that their
    /// persists take at least.
    Stalls {
        /// The configuration.
        #[arg(long, default_value = "artifact-sbrp-near")]
        base: String,
        /// The programs' size.
        #[arg(long, value_enum, default_value = "paper")]
        size: Size,
        /// Settings that differ, as in a run file.
        #[arg(long, value_name = "NAME=VALUE")]
        set: Vec<String>,
    },
    /// Crash the programs at random cycles, recover, and look at what is found; goes on where the
    /// record ends.
    Crash {
        /// Crashes in all.
        #[arg(long, default_value_t = 10_000)]
        crashes: u64,
        /// The record.
        #[arg(long, default_value = "gpusim-crashes.json")]
        record: PathBuf,
    },
    /// Write a program's kernels, memory and launches into a folder, for another simulator.
    Export {
        /// The program.
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
        program: String,
        /// The folder.
        folder: PathBuf,
        /// Its size.
        #[arg(long, value_enum, default_value = "small")]
        size: Size,
        /// What the six operations are lowered to.
        #[arg(long, value_enum, default_value = "hardware")]
        lowering: Lowering,
    },
    /// Take each rule of the persist buffer away, and each persist operation of the programs, and
    /// say who sees it.
    Mutants,
    /// Print the configurations' names, and the bits that the persist buffer of each adds to an SM.
    Configurations,
}

/// Runs the command; whether all was as it should be.
///
/// # Errors
/// What could not be done.
pub fn command(command: &GpusimCommand) -> Result<bool> {
    match command {
        GpusimCommand::Run { file } => run(file).map(|()| true),
        GpusimCommand::Figure { number, family, size, record, json } => {
            let mut runs = record.as_deref().map(Runs::read).transpose()?.unwrap_or_default();
            let table = figure(*number, family, *size, &mut runs)?;
            if *json {
                println!("{}", serde_json::to_string_pretty(&table)?)
            } else {
                print!("{table}")
            }
            Ok(true)
        }
        GpusimCommand::Stalls { base, size, set } => {
            let base = Config::named(base).with_context(|| format!("no configuration {base}"))?;
            let config = base.with(&Changes::parse(set).map_err(|reason| anyhow!("--set: {reason}"))?);
            config.check()?;
            print!("{}", breakdown(&config, *size)?);
            Ok(true)
        }
        GpusimCommand::Crash { crashes, record } => {
            let record = campaign::run(record, *crashes, |done| eprintln!("{done} crashes"))?;
            println!(
                "{} crashes, {} of them with a second one in the recovery: {} failures",
                record.crashes,
                record.second_crashes,
                record.failures.len()
            );
            record.failures.iter().for_each(|failure| println!("{failure}"));
            Ok(record.failures.is_empty())
        }
        GpusimCommand::Export { program, folder, size, lowering } => {
            export(program, *size, *lowering, folder).map(|()| true)
        }
        GpusimCommand::Mutants => mutants(),
        GpusimCommand::Configurations => {
            for name in nearpm_gpusim::names() {
                let bits = Config::named(&name).map_or(0, |config| config.storage_bits());
                println!("{name:<30} {bits:>6} bits an SM");
            }
            Ok(true)
        }
    }
}

fn run(file: &PathBuf) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let RunFile { program: name, size, config } =
        RunFile::parse(&file.display().to_string(), &text, &NAMES, &Size::NAMES)?;
    let program = program(&name, Size::parse(&size)?)?;
    let mut device = Simulated::new(&config, Lowering::Hardware, program.image())?;
    let start = processor_time();
    program.run(&mut device)?;
    let took = processor_time().zip(start).map(|(end, start)| (end - start).as_secs_f64());
    program.check_done(&device.image())?;
    println!("{}", serde_json::to_string_pretty(&device.statistics)?);
    let instructions = device.statistics.thread_instructions as f64;
    if let Some(took) = took {
        eprintln!("{:.1} M thread instructions a second of processor time, on this machine", instructions / took / 1e6);
    }
    Ok(())
}

/// Time that this thread had a core for, where the system tells it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

fn mutants() -> Result<bool> {
    let mut all = true;
    for rule in Rule::ALL {
        let text = match (look(rule)?, harmless(rule)) {
            (Seen::By(who), _) => format!("seen: {who}"),
            (Seen::Nobody, Some(why)) => format!("harmless: {why}"),
            (Seen::Nobody, None) => {
                all = false;
                "not seen".to_string()
            }
        };
        println!("{rule:?}: {text}");
    }
    for change in KERNELS.iter().flat_map(|kernel| changes(kernel)) {
        let text = match (look_at_change(&change)?, no_crash_shows(&change)) {
            (Seen::By(who), _) => format!("seen: {who}"),
            (Seen::Nobody, Some(why)) => format!("no crash shows it: {why}"),
            (Seen::Nobody, None) => {
                all = false;
                "not seen".to_string()
            }
        };
        let left = if change.wrong.is_empty() { "nothing" } else { change.wrong };
        println!("{}, {} {} becomes {left}: {text}", change.kernel, change.right, change.number);
    }
    Ok(all)
}
