//! `nearpm-verification`: runs the campaigns and writes the page.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use nearpm_verification::campaigns::{ALL, named};
use nearpm_verification::coverage::constants::{Constants, TOP};
use nearpm_verification::coverage::points::{Merged, merge};
use nearpm_verification::coverage::report::Report;
use nearpm_verification::coverage::scenarios;
use nearpm_verification::coverage::waivers::Waivers;
use nearpm_verification::run::{former, run};
use nearpm_verification::{page, workspace};

/// Runs the campaigns that show what is claimed, and writes docs/verification.md.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs campaigns, and writes the page.
    Run(Run),
    /// Measures the coverage of the RTL and compares it with the waivers.
    Coverage(Coverage),
    /// Lists the campaigns.
    List,
}

#[derive(Args)]
struct Run {
    /// Minutes that campaigns share which go on for as long as they are given.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Only these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs none: writes the page from what former runs left.
    #[arg(long)]
    page: bool,
    /// Folder of the outcomes [default: target/verification].
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Args)]
struct Coverage {
    /// Judges what a former measurement left, and measures nothing.
    #[arg(long)]
    judge: bool,
    /// Folder of the counts [default: target/verification/coverage].
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn outcomes() -> PathBuf {
    workspace().join("target/verification")
}

/// What runs here, without its name.
fn machine(minutes: u64) -> Result<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    Ok(format!("Machine: {processors} processors, {model}. A whole run is given {minutes} minutes."))
}

fn run_all(arguments: &Run) -> Result<ExitCode> {
    if let Some(unknown) = arguments.only.iter().find(|name| named(name).is_none()) {
        bail!("there is no campaign {unknown}: see nearpm-verification list");
    }
    let folder = arguments.folder.clone().unwrap_or_else(outcomes);
    let mut good = true;
    for campaign in ALL.iter().filter(|_| !arguments.page) {
        if arguments.only.is_empty() || arguments.only.iter().any(|name| name == campaign.name) {
            eprintln!("==> {}: {}", campaign.name, campaign.claim);
            let outcome = run(campaign, arguments.minutes, &folder)?;
            let found: Vec<String> = outcome.found().map(|(name, n)| format!("{} {name}", page::grouped(n))).collect();
            let verdict = if outcome.holds() { "holds" } else { "FAILED" };
            eprintln!("    {verdict}: {}; {} s", found.join(", "), outcome.seconds);
            good &= outcome.holds();
        }
    }
    let mut found = Vec::new();
    for campaign in ALL {
        found.extend(former(campaign, &folder)?);
    }
    let coverage = std::fs::read_to_string(folder.join("coverage.md")).unwrap_or_else(|_| "Not measured.".into());
    let text = page::render(&found, &machine(arguments.minutes)?, &coverage);
    let path = workspace().join("docs/verification.md");
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    eprintln!("==> {}", path.display());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn coverage(arguments: &Coverage) -> Result<ExitCode> {
    let folder = arguments.folder.clone().unwrap_or_else(|| outcomes().join("coverage"));
    if !arguments.judge {
        scenarios::run(&folder, &mut |what| eprintln!("==> {what}"))?;
    }
    let Merged { counts, verilog } = merge(&folder, &scenarios::models(), TOP)?;
    let constants = Constants::of(&verilog, &folder)?;
    let report = Report::new(&counts, &constants, &Waivers::read(&Waivers::path())?);
    let table = report.table();
    std::fs::write(folder.with_extension("md"), &table).context("write the table")?;
    print!("{table}{}", report.complaints());
    let of = |count: fn(&nearpm_verification::coverage::report::Total) -> u64| {
        report.totals.values().map(count).sum::<u64>()
    };
    println!(
        r#"{{"counts":{{"points":{},"covered":{},"constant":{},"waived":{},"open":{},"violations":{}}}}}"#,
        of(|t| t.points),
        of(|t| t.covered),
        of(|t| t.constant),
        of(|t| t.waived),
        of(|t| t.open),
        report.violations()
    );
    Ok(if report.violations() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Action::Run(arguments) => run_all(&arguments),
        Action::Coverage(arguments) => coverage(&arguments),
        Action::List => {
            ALL.iter().for_each(|campaign| println!("{:<12} {}", campaign.name, campaign.claim));
            Ok(ExitCode::SUCCESS)
        }
    }
}
