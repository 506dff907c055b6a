//! `nearpm bench stored`: all simulated results that are stored with the sources, made anew.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use nearpm::Mechanism;
use nearpm_evaluation::case::Configuration;
use nearpm_evaluation::compute::{Compute, Paths};
use nearpm_evaluation::copies::Copies;
use nearpm_evaluation::device::Device;
use nearpm_evaluation::plan;
use nearpm_evaluation::results::Results;
use nearpm_evaluation::stored::{self, Table};
use nearpm_sim::profile::Profile;

use super::COMMIT;
use super::evaluation::verilated;
use super::progress::with_progress;

/// The table of the micro-benchmark on the RTL, which needs Verilator and a compiler.
const COPIES: &str = "copies-rtl";

/// Arguments of `nearpm bench stored`.
#[derive(Args, Clone, Debug)]
pub struct StoredArguments {
    /// Only these tables
    #[arg(long, value_delimiter = ',', value_name = "TABLE", value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
    /// Only results of these configurations; the others stay as they are in the tables
    #[arg(long, value_delimiter = ',', value_name = "CONFIGURATION", value_parser = PossibleValuesParser::new(configurations()))]
    configurations: Vec<String>,
    /// Likewise, only under these mechanisms
    #[arg(long, value_delimiter = ',', value_name = "MECHANISM", value_parser = PossibleValuesParser::new(Mechanism::ALL.map(Mechanism::name)))]
    mechanisms: Vec<String>,
    /// Folder of the tables
    #[arg(long, value_name = "DIR", default_value = "evaluation/results")]
    folder: PathBuf,
    /// Folder of results, one a case: a run that was killed goes on where it was
    #[arg(long, value_name = "DIR", default_value = "target/stored")]
    results: PathBuf,
    /// Charge paths with the instructions of this file, as the count prints them
    /// (evaluation/examples/instructions.rs), and not with those that are stored
    #[arg(long, value_name = "FILE")]
    paths: Option<PathBuf>,
    /// Take results of other commits, too
    #[arg(long)]
    keep: bool,
    /// Cases that run at once [default: as many as there are processors]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
}

fn configurations() -> Vec<&'static str> {
    let mut all = Configuration::ALL.to_vec();
    for (_, configuration) in Configuration::choices() {
        if !all.contains(&configuration) {
            all.push(configuration);
        }
    }
    all.into_iter().map(Configuration::name).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    stored::ALL.iter().map(|table| table.name).chain([COPIES])
}

/// Whether something is wanted: nothing named is everything.
fn is_among(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one == name)
}

/// Makes them.
pub fn command(arguments: &StoredArguments) -> Result<()> {
    let start = Instant::now();
    let is_wanted = |name: &str| is_among(&arguments.only, name);
    let tables: Vec<Table> = stored::ALL.into_iter().filter(|table| is_wanted(table.name)).collect();
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or_else(processors, |jobs| jobs as usize);
    let results = Results::open(&arguments.results, COMMIT, arguments.keep)?;
    let mut compute = Compute::stored()?;
    if let Some(file) = &arguments.paths {
        compute.paths = Paths::read(file)?;
    }
    let mut cases = stored::cases(&tables, &arguments.folder);
    cases.retain(|case| {
        is_among(&arguments.configurations, case.configuration.name())
            && is_among(&arguments.mechanisms, case.mechanism.name())
    });
    let number = cases.len();
    with_progress(number, |tell| stored::make(&compute, &tables, &cases, &results, jobs, &arguments.folder, tell))?;
    let is_whole = arguments.configurations.is_empty() && arguments.mechanisms.is_empty();
    if is_whole && is_wanted(COPIES) {
        let rtl = Copies::run(&Profile::load(plan::OURS)?, Device::Rtl, Some(&verilated), COMMIT);
        let rtl = rtl.with_context(|| format!("the table {COPIES}"))?;
        stored::write(&arguments.folder.join(format!("{COPIES}.csv")), &rtl.csv()?)?;
    }
    eprintln!(
        "{number} cases, {jobs} at once, {:.0} s; the page is written anew by\n\
         NEARPM_BLESS=1 cargo nextest run --workspace --release -E 'binary(documented)'",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
