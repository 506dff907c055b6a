//! `nearpm-verification`: runs the campaigns and writes the page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use nearpm_verification::built::build;
use nearpm_verification::campaigns::{ALL, Campaign, WHOLE_RUN_MINUTES, named};
use nearpm_verification::coverage::constants::{Constants, TOP};
use nearpm_verification::coverage::points::{Merged, merge};
use nearpm_verification::coverage::report::Report;
use nearpm_verification::coverage::scenarios;
use nearpm_verification::coverage::waivers::Waivers;
use nearpm_verification::packed::Packed;
use nearpm_verification::run::{Kept, Outcome, Way, run};
use nearpm_verification::times::Times;
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
    /// Builds what campaigns run, and copies it into a folder, for a machine without Rust:
    /// `run --packed` runs it there.
    Pack {
        /// The folder.
        folder: PathBuf,
        /// Only these; without it all that can be packed.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Writes the page with what campaigns have left in a folder, wherever they ran.
    Take {
        /// The folder.
        folder: PathBuf,
    },
    /// Measures the coverage of the RTL and compares it with the waivers.
    Coverage(Coverage),
    /// Lists the campaigns.
    List,
    /// Prints where the time of the last `./x test` went: steps, crates, test programs, tests.
    Times {
        /// Rows of each part.
        #[arg(long, default_value_t = 12)]
        most: usize,
    },
}

#[derive(Args)]
struct Run {
    /// Minutes of the whole: what is left of them is shared by the campaigns that go on for as long
    /// as they are given.
    #[arg(long, default_value_t = WHOLE_RUN_MINUTES, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Only these; the page keeps the rows of the others. Without it all, and with `--packed`
    /// all that were packed.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs none: writes the page anew with the rows that it has.
    #[arg(long)]
    page: bool,
    /// Folder of the logs [default: target/verification].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Workers of what works in parallel [default: as many as there are processors].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    /// Runs what was packed into this folder, builds nothing, and leaves what was counted in the
    /// folder of the logs instead of the page.
    #[arg(long, conflicts_with = "page")]
    packed: Option<PathBuf>,
}

#[derive(Args)]
struct Coverage {
    /// Judges what a former measurement left, and measures nothing.
    #[arg(long)]
    judge: bool,
    /// Names each point that is open, with the reason that the file gives.
    #[arg(long)]
    open: bool,
    /// Folder of the counts [default: target/verification/coverage].
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn logs() -> PathBuf {
    workspace().join("target/verification")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// What runs here, without its name.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    format!("{processors} processors, {model}")
}

/// The page with what has been found, which is written after each campaign: one that is interrupted
/// has the rows of those before.
struct Page {
    path: PathBuf,
    outcomes: Vec<Outcome>,
    /// Where they ran.
    machines: BTreeSet<String>,
    coverage: String,
}

impl Page {
    fn read() -> Page {
        let path = workspace().join("docs/verification.md");
        let former = std::fs::read_to_string(&path).unwrap_or_default();
        let coverage = page::former_coverage(&former).unwrap_or("Not measured.").to_owned();
        Page { path, outcomes: page::former(&former), machines: page::former_machines(&former), coverage }
    }

    fn take(&mut self, kept: Kept) {
        let Kept { outcome, machine, coverage } = kept;
        self.outcomes.retain(|former| former.campaign != outcome.campaign);
        self.outcomes.push(outcome);
        self.machines.insert(machine);
        if let Some(measured) = coverage {
            self.coverage = measured;
        }
    }

    fn write(&self) -> Result<()> {
        let text = page::render(&self.outcomes, &self.machines, &self.coverage);
        std::fs::write(&self.path, text).with_context(|| format!("write {}", self.path.display()))
    }
}

/// The campaigns of these names.
fn chosen(names: &[String]) -> Result<Vec<&'static Campaign>> {
    let campaign = |name: &String| {
        named(name).with_context(|| format!("there is no campaign {name}: see nearpm-verification list"))
    };
    names.iter().map(campaign).collect()
}

/// Tells where results are of different commits: the page says so, but nobody may have meant it.
fn warn_of_commits(all: &[Kept]) {
    let commits: BTreeSet<String> = all.iter().map(|kept| kept.outcome.commit.clone()).collect();
    if commits.len() > 1 {
        let named: Vec<String> = commits.into_iter().collect();
        eprintln!("WARNING: these results are of {} commits: {}", named.len(), named.join(", "));
    }
}

/// Writes the page with what campaigns have left in a folder.
fn take(folder: &Path) -> Result<ExitCode> {
    let mut page = Page::read();
    let all = Kept::all(folder)?;
    warn_of_commits(&all);
    // What all of them have run on is where they ran; the rows of others are of other machines.
    if all.len() == ALL.len() {
        page.machines.clear();
    }
    let all_hold = all.iter().all(|kept| kept.outcome.holds());
    for kept in all {
        let verdict = if kept.outcome.holds() { "holds" } else { "FAILED" };
        eprintln!("{}: {verdict}, of commit {}, {}", kept.outcome.campaign, kept.outcome.commit, kept.machine);
        page.take(kept);
    }
    page.write()?;
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_all(arguments: &Run) -> Result<ExitCode> {
    let named = chosen(&arguments.only)?;
    let packed = arguments.packed.as_deref().map(Packed::read).transpose()?;
    if let Some(packed) = &packed {
        packed.check_has(&named)?;
    }
    let is_packed = |campaign: &Campaign| packed.as_ref().is_none_or(|packed| packed.has(campaign));
    let wanted: Vec<&'static Campaign> = match (arguments.page, named.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => ALL.iter().filter(|campaign| is_packed(campaign)).collect(),
        // In the order of the list, each once.
        (false, false) => ALL.iter().filter(|campaign| named.iter().any(|named| named.name == campaign.name)).collect(),
    };
    let is_here = packed.is_none();
    let way = Way { jobs: arguments.jobs.map(|jobs| jobs as usize), packed };
    let folder = arguments.folder.clone().unwrap_or_else(logs);
    let (mut page, mut good, start) = (Page::read(), true, Instant::now());
    if is_here && !wanted.is_empty() {
        eprintln!("==> build");
        build()?;
    }
    for campaign in wanted {
        eprintln!("==> {}: {}", campaign.name, campaign.claim);
        let left = arguments.minutes.saturating_sub(start.elapsed().as_secs() / 60);
        let outcome = run(campaign, campaign.minutes(arguments.minutes, left), &folder, &way)?;
        let found: Vec<String> = outcome.found().map(|(name, n)| format!("{} {name}", page::grouped(n))).collect();
        let verdict = if outcome.holds() { "holds" } else { "FAILED" };
        eprintln!("    {verdict}: {}; {} s", found.join(", "), outcome.seconds);
        good &= outcome.holds();
        // A shorter run may count less.
        let missed = campaign.aims.iter().filter(|(name, least)| !outcome.reaches(name, *least));
        for (name, least) in missed.filter(|_| arguments.minutes >= WHOLE_RUN_MINUTES) {
            eprintln!("    MISSED: {} {name}", page::grouped(*least));
            good = false;
        }
        let coverage = std::fs::read_to_string(folder.join("coverage.md")).ok().filter(|_| campaign.name == "coverage");
        let kept = Kept { outcome, machine: machine(), coverage };
        kept.write(&folder)?;
        if is_here {
            page.take(kept);
            page.write()?;
        }
    }
    if !is_here {
        return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if arguments.only.is_empty() && !arguments.page {
        page.machines = BTreeSet::from([machine()]);
    }
    page.write()?;
    eprintln!("==> {}", page.path.display());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn coverage(arguments: &Coverage) -> Result<ExitCode> {
    let folder = arguments.folder.clone().unwrap_or_else(|| logs().join("coverage"));
    if !arguments.judge {
        scenarios::run(&folder, &mut |what| eprintln!("==> {what}"))?;
    }
    let Merged { counts, verilog } = merge(&folder, &scenarios::models(), TOP)?;
    let constants = Constants::of(&verilog, &folder)?;
    let report = Report::new(&counts, &constants, &Waivers::read(&Waivers::path())?);
    let table = report.table();
    std::fs::write(folder.with_extension("md"), &table).context("write the table")?;
    print!("{table}{}", report.complaints());
    for (point, reason) in report.open.iter().filter(|_| arguments.open) {
        println!("open: {} {}: {reason}", point.module, point.name);
    }
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
        Action::Take { folder } => take(&folder),
        Action::Pack { folder, only } => {
            let named = if only.is_empty() {
                ALL.iter().filter(|campaign| campaign.is_packed).collect()
            } else {
                chosen(&only)?
            };
            build()?;
            let packed = Packed::pack(&folder, &named)?;
            eprintln!("{} campaigns of commit {} in {}", named.len(), packed.commit, folder.display());
            Ok(ExitCode::SUCCESS)
        }
        Action::List => {
            ALL.iter().for_each(|campaign| println!("{:<12} {}", campaign.name, campaign.claim));
            Ok(ExitCode::SUCCESS)
        }
        Action::Times { most } => {
            print!("{}", Times::read(&target())?.render(most));
            Ok(ExitCode::SUCCESS)
        }
    }
}
