//! `nearpm bench` and `nearpm report`: the paper's evaluation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nearpm::{Mechanism, Survives};
use nearpm_evaluation::bench::run_all;
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::copies::Copies;
use nearpm_evaluation::device::{Cards, Device};
use nearpm_evaluation::on_host as measured;
use nearpm_evaluation::plan::{self, Scope};
use nearpm_evaluation::report;
use nearpm_evaluation::results::{FOLDER, Results, csv};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_serve::Survival;
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::Program;

use super::progress::with_progress;
use super::{COMMIT, on_card, on_host};
use crate::card::Transport;
use nearpm_cards::SimulatedCard;
use nearpm_cards::rtl_cards;

/// Transactions of each program on a card that is there, where nobody says how many.
const ON_CARD_COUNT: usize = 1_000;
/// Rounds of each case on this processor, where nobody says how many.
const NATIVE_ROUNDS: usize = 7;

/// Arguments of `nearpm bench` itself.
#[derive(Args, Clone, Debug)]
pub struct EvaluationArguments {
    /// The paper's own tables and numbers of transactions, ten seeds: hours. Without it a twentieth
    /// of the transactions, one seed: minutes
    #[arg(long)]
    full: bool,
    /// So many seeds, from 1 on, instead of the form's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Folder of results: what is there is not run again
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    results: PathBuf,
    /// Take results of other commits, too
    #[arg(long)]
    keep: bool,
    /// Profiles instead of the plan's: names, or paths of TOML files, each with every program,
    /// mechanism and configuration
    #[arg(long, value_delimiter = ',', value_name = "PROFILE")]
    profiles: Vec<String>,
    /// Only these programs: tpcc, tatp, btree, rbtree, skiplist, hashmap, memcached, redis, pmemkv
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM")]
    programs: Vec<Program>,
    /// Only these mechanisms: undo, redo, checkpoint, shadow
    #[arg(long, value_delimiter = ',', value_name = "MECHANISM")]
    mechanisms: Vec<Mechanism>,
    /// Cases that run at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// Write all results as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write all results as one JSON file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["card", "native"])]
    json: Option<PathBuf>,
    /// What plays the card of the simulated computers: the transaction-level model, or the
    /// Verilated RTL (slow; so a small form, with the model beside it, of this project's card
    /// unless --profiles says otherwise)
    #[arg(long, value_enum, value_name = "DEVICE", default_value = "model", conflicts_with_all = ["card", "full"])]
    device: SimulatedCard,
    /// Run undo logging, checkpointing and shadow paging on this card instead, in its transport's
    /// time: vfio:ADDRESS (in this machine), vfio-user:SOCKET (of another process), model or rtl
    /// (simulated in this one)
    #[arg(long, value_name = "CARD", conflicts_with_all = ["profiles", "results", "keep", "jobs"])]
    card: Option<Transport>,
    /// Run all mechanisms, and none, on this processor instead: measured in wall-clock time, in
    /// pools in files, with the paper's own tables and numbers of transactions and both kinds of
    /// inputs (--full is ten seeds, and nothing else there)
    #[arg(long, conflicts_with_all = ["card", "device", "profiles", "results", "keep", "jobs"])]
    native: bool,
    /// Folder for the pools of --native, or the path of their file, where nothing may be [default:
    /// a tmpfs]
    #[arg(long, value_name = "PATH", requires = "native")]
    pool: Option<PathBuf>,
    /// What the pools of --native survive [default: as-persistent-memory on a tmpfs, power-cut
    /// elsewhere]
    #[arg(long, value_enum, value_name = "WHAT", requires = "native")]
    survives: Option<Survival>,
    /// Rounds of each case with --native, behind one that warms up [default: 7]
    #[arg(long, value_name = "N", requires = "native", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    repeats: Option<u64>,
    /// Transactions of each program on that card (1000 unless said; --full is ten seeds of them,
    /// and nothing else there), with --device rtl (70) or with --native (the paper's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: Option<u64>,
}

impl EvaluationArguments {
    fn scope(&self) -> Scope {
        let form = if self.full { Scope::FULL } else { Scope::QUICK };
        Scope { seeds: self.seeds.unwrap_or(form.seeds), ..form }
    }

    /// Cases on simulated computers.
    fn cases(&self) -> Result<Vec<Case>> {
        let scope = self.scope();
        let mut cases = match (self.device, &self.profiles[..]) {
            (SimulatedCard::Model, []) => scope.cases(),
            (SimulatedCard::Model, profiles) => scope.cases_of(profiles),
            (SimulatedCard::Rtl, profiles) => {
                let ours = [plan::OURS.to_owned()];
                let profiles = if profiles.is_empty() { &ours } else { profiles };
                let count = self.transactions.map_or(plan::RTL_COUNT, |count| count as usize);
                plan::on_both_devices(profiles, count, scope.seeds)
            }
        };
        ensure!(
            self.transactions.is_none() || self.device == SimulatedCard::Rtl,
            "--transactions is for --card, --native and --device rtl: the forms of the model have their own numbers"
        );
        cases.retain(|case| {
            let wanted = self.programs.is_empty() || self.programs.contains(&case.program);
            let is_floor = case.configuration == Configuration::Bare;
            wanted && (is_floor || self.mechanisms.is_empty() || self.mechanisms.contains(&case.mechanism))
        });
        ensure!(!cases.is_empty(), "nothing is left to run");
        Ok(cases)
    }
}

/// Arguments of `nearpm report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// Folder of results that `nearpm bench` has filled, or a table that it has written (`--csv`)
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    results: PathBuf,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "target/evaluation.html")]
    output: PathBuf,
    /// Folder for the figures as files of their own
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// A table that `nearpm bench --native --csv` has written, to show instead of the stored one
    #[arg(long, value_name = "FILE")]
    native: Option<PathBuf>,
    /// Print these figures, as bars, instead of the tables: by the names of their files, such as
    /// fig16b
    #[arg(long, value_delimiter = ',', value_name = "FIGURE")]
    show: Vec<String>,
}

/// Arguments of `nearpm bench copies`.
#[derive(Args, Clone, Debug)]
pub struct CopiesArguments {
    /// Name of the profile, or path of a TOML file
    #[arg(long, default_value = plan::OURS)]
    profile: String,
    /// What plays the card: the transaction-level model or the Verilated RTL
    #[arg(long, value_enum, default_value = "model")]
    device: SimulatedCard,
}

/// Arguments of `nearpm bench compute`.
#[derive(Args, Clone, Debug)]
pub struct ComputeArguments {
    /// What is measured on: processor, what else runs there, date
    #[arg(long)]
    origin: String,
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Runs the cases that have no result yet.
pub fn command(arguments: &EvaluationArguments) -> Result<()> {
    if let Some(card) = &arguments.card {
        return on_that_card(arguments, card);
    }
    if arguments.native {
        return on_host(arguments);
    }
    let cases = arguments.cases()?;
    let results = Results::open(&arguments.results, COMMIT, arguments.keep)?;
    let start = Instant::now();
    let records =
        with_progress(cases.len(), |tell| run_all(&cases, &results, arguments.jobs as usize, Some(&verilated), tell))?;
    if let Some(path) = &arguments.csv {
        write(path, &csv(&records))?;
    }
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string_pretty(&records).context("the results cannot be written")?)?;
    }
    eprintln!("{} cases, {:.0} s", records.len(), start.elapsed().as_secs_f64());
    print!("{}", report::text(&records, &report::recoveries()?)?);
    Ok(())
}

/// Runs the programs on a card that is there.
fn on_that_card(arguments: &EvaluationArguments, card: &Transport) -> Result<()> {
    let scope = arguments.scope();
    let measured = on_card::command(&on_card::Plan {
        card: card.clone(),
        programs: arguments.programs.clone(),
        mechanisms: arguments.mechanisms.clone(),
        transactions: arguments.transactions.map_or(ON_CARD_COUNT, |count| count as usize),
        seeds: scope.seeds,
    })?;
    arguments.csv.as_ref().map_or(Ok(()), |path| write(path, &measured.csv))?;
    measured.failed.map_or(Ok(()), Err)
}

/// Runs the programs on this processor.
fn on_host(arguments: &EvaluationArguments) -> Result<()> {
    let measured = on_host::command(&on_host::Plan {
        pool: arguments.pool.clone(),
        survives: arguments.survives.map(Survives::from),
        programs: arguments.programs.clone(),
        mechanisms: arguments.mechanisms.clone(),
        // What takes long is the simulation: natively the paper's own numbers do not.
        scope: Scope { seeds: arguments.scope().seeds, ..Scope::FULL },
        transactions: arguments.transactions.map(|count| count as usize),
        rounds: arguments.repeats.map_or(NATIVE_ROUNDS, |rounds| rounds as usize),
    })?;
    arguments.csv.as_ref().map_or(Ok(()), |path| write(path, &measured.csv))?;
    measured.failed.map_or(Ok(()), Err)
}

/// Makes the page.
pub fn report(arguments: &ReportArguments) -> Result<()> {
    let (records, others) = Results::all(&arguments.results)?;
    others.iter().for_each(|other| eprintln!("{other} is no result, and is left out"));
    ensure!(!records.is_empty(), "no results in {}: run `nearpm bench` first", arguments.results.display());
    let commits: BTreeSet<&str> = records.iter().map(|record| record.commit.as_str()).collect();
    if commits.len() > 1 {
        eprintln!("the results are of several commits: {}", commits.into_iter().collect::<Vec<_>>().join(", "));
    }
    let recoveries = report::recoveries()?;
    let figures = report::figures(&records, &recoveries)?;
    let measured = arguments.native.as_ref().map_or_else(measured::stored, |path| {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        measured::parse(&text).with_context(|| format!("{} is no table of `nearpm bench --native`", path.display()))
    })?;
    write(&arguments.output, &report::page(&records, &figures, &measured)?)?;
    if let Some(folder) = &arguments.svg {
        for figure in &figures {
            write(&folder.join(format!("{}.svg", figure.id)), &figure.file())?;
        }
    }
    if arguments.show.is_empty() {
        print!("{}", report::text(&records, &recoveries)?);
    }
    for wanted in &arguments.show {
        let figure = figures.iter().find(|figure| figure.id == *wanted).with_context(|| {
            let known: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
            format!("no figure is called {wanted}: there are {}", known.join(", "))
        })?;
        println!("{}", figure.text());
    }
    eprintln!("{} written, {} figures", arguments.output.display(), figures.len());
    Ok(())
}

/// Cards of the Verilated RTL with one memory port.
pub(super) fn verilated(mhz: u64) -> Result<Cards> {
    Ok(Box::new(rtl_cards(mhz, MemoryPorts::One)?))
}

/// Runs the micro-benchmark, and prints it as comma-separated values.
pub fn copies(arguments: &CopiesArguments) -> Result<()> {
    let profile = Profile::load(&arguments.profile)?;
    print!("{}", Copies::run(&profile, device(arguments.device), Some(&verilated), COMMIT)?.csv()?);
    Ok(())
}

/// A simulated card as the device of a case.
fn device(kind: SimulatedCard) -> Device {
    match kind {
        SimulatedCard::Model => Device::Model,
        SimulatedCard::Rtl => Device::Rtl,
    }
}

/// Measures compute times.
pub fn compute(arguments: &ComputeArguments) -> Result<()> {
    let compute = Compute::measure(arguments.origin.clone(), &|what| eprintln!("{what}"))?;
    print!("{}", compute.to_toml()?);
    Ok(())
}
