//! `nearpm bench` and `nearpm report`: the paper's evaluation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nearpm::Mechanism;
use nearpm_evaluation::bench::{Event, run_all};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::report;
use nearpm_evaluation::results::{FOLDER, Results, csv};
use nearpm_workloads::programs::Program;

use super::{COMMIT, on_card};
use crate::card::Transport;

/// Arguments of `nearpm bench` itself.
#[derive(Args, Clone, Debug)]
pub struct EvaluationArguments {
    /// The paper's own tables and numbers of transactions, ten seeds: hours. Without it a twentieth of the transactions, one seed: minutes
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
    /// Profiles instead of the plan's: names, or paths of TOML files, each with every program, mechanism and configuration
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
    #[arg(long, value_name = "FILE", conflicts_with = "card")]
    json: Option<PathBuf>,
    /// Run undo logging, checkpointing and shadow paging on this card instead, in its transport's time: vfio:ADDRESS (in this machine),
    /// vfio-user:SOCKET (of another process), model or rtl (simulated in this one)
    #[arg(long, value_name = "CARD", conflicts_with_all = ["profiles", "results", "keep", "jobs"])]
    card: Option<Transport>,
    /// Transactions of each program on that card; --full is ten seeds of them, and nothing else there
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "card", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: u64,
}

impl EvaluationArguments {
    fn scope(&self) -> Scope {
        let form = if self.full { Scope::FULL } else { Scope::QUICK };
        Scope { seeds: self.seeds.unwrap_or(form.seeds), ..form }
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
}

/// Arguments of `nearpm bench compute`.
#[derive(Args, Clone, Debug)]
pub struct ComputeArguments {
    /// What is measured on: processor, what else runs there, date
    #[arg(long)]
    origin: String,
}

fn write(path: &Path, text: &str) -> Result<()> {
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
    let scope = arguments.scope();
    let mut cases = if arguments.profiles.is_empty() { scope.cases() } else { scope.cases_of(&arguments.profiles) };
    cases.retain(|case| {
        let wanted = arguments.programs.is_empty() || arguments.programs.contains(&case.program);
        let is_floor = case.configuration == nearpm_evaluation::case::Configuration::Bare;
        wanted && (is_floor || arguments.mechanisms.is_empty() || arguments.mechanisms.contains(&case.mechanism))
    });
    ensure!(!cases.is_empty(), "nothing is left to run");
    let results = Results::open(&arguments.results, COMMIT, arguments.keep)?;
    let style =
        ProgressStyle::with_template("{msg:60!} [{bar:30}] {human_pos}/{human_len} {eta}").expect("it is right");
    let bar = ProgressBar::new(cases.len() as u64).with_style(style.progress_chars("=> "));
    let start = Instant::now();
    let told = AtomicUsize::new(0);
    let records = run_all(&cases, &results, arguments.jobs as usize, &|event| {
        let line = match event {
            Event::Found(case) => format!("{case}: there"),
            Event::Ran(record) => {
                format!("{}: {:.0} ns, ran {:.1} s", record.case, record.outcome.per_transaction(), record.wall_s)
            }
            Event::Failed(case, error) => format!("{case}: FAILED: {error:#}"),
        };
        // A bar is for terminals; in a log each case is a line.
        bar.inc(1);
        let number = told.fetch_add(1, Ordering::Relaxed) + 1;
        if bar.is_hidden() || matches!(event, Event::Failed(..)) {
            eprintln!("{number} of {}: {line}", cases.len());
        }
        bar.set_message(line);
    });
    bar.finish_and_clear();
    let records = records?;
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
        transactions: arguments.transactions as usize,
        seeds: scope.seeds,
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
    write(&arguments.output, &report::page(&records, &figures)?)?;
    if let Some(folder) = &arguments.svg {
        for figure in &figures {
            write(&folder.join(format!("{}.svg", figure.id)), &figure.file())?;
        }
    }
    print!("{}", report::text(&records, &recoveries)?);
    eprintln!("{} written, {} figures", arguments.output.display(), figures.len());
    Ok(())
}

/// Measures compute times.
pub fn compute(arguments: &ComputeArguments) -> Result<()> {
    let compute = Compute::measure(arguments.origin.clone(), &|what| eprintln!("{what}"))?;
    print!("{}", compute.to_toml()?);
    Ok(())
}
