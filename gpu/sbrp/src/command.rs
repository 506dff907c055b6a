//! The verbs of `nearpm sbrp`, which are those of the program `nearpm-sbrp`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;

use crate::litmus::{Test, parse};
use crate::outcome::in_words;
use crate::rules::{Rule, Semantics};
use crate::scopes::{Argument, Job, Source, check};
use crate::verdict::{BOUND, differences, outcomes};
use crate::{Model, campaign, explain};

/// Persistency of GPUs: litmus tests of the models.
#[derive(Clone, Debug, Subcommand)]
pub enum SbrpCommand {
    /// Run litmus tests on both forms of the models
    Litmus {
        /// Litmus files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Drop a rule
        #[arg(long)]
        without: Option<String>,
        /// Print the states that a model allows
        #[arg(long, value_name = "MODEL")]
        states: Option<String>,
        /// Name the rules without which the states differ
        #[arg(long)]
        needs: bool,
    },
    /// Say why a state of a litmus test may be, by a run, or may not
    Explain {
        /// Litmus file
        file: PathBuf,
        /// The state: `x=1 y=0`
        state: String,
        /// The model
        #[arg(long, default_value = "sbrp")]
        model: String,
    },
    /// Compare the two forms of the models on random programs; goes on where the record ends
    Campaign {
        /// The record
        #[arg(long)]
        record: PathBuf,
        /// Programs in all
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
    },
    /// Find releases and acquires of a CUDA program that are missing or too narrow, and say at
    /// which line
    Scopes {
        /// Its PTX; with NVRTC's --generate-line-info lines are those of the source
        ptx: PathBuf,
        /// The kernel
        #[arg(long)]
        kernel: String,
        /// Blocks of the launch
        #[arg(long, default_value_t = 2)]
        blocks: u32,
        /// Threads of a block
        #[arg(long, default_value_t = 64)]
        threads: u32,
        /// Arguments in order: pm:BYTES and gpu:BYTES are pointers to zeros, pm:BYTES:WORD to that
        /// word again and again, others numbers of 32 bits
        #[arg(long, value_delimiter = ',')]
        arguments: Vec<Argument>,
        /// Interleavings of warps that are run
        #[arg(long, default_value_t = 20)]
        schedules: u64,
        /// Warp instructions after which a run is given up
        #[arg(long, default_value_t = 100_000_000)]
        budget: u64,
    },
}

/// Runs a command; whether all was as it should be.
///
/// # Errors
/// A bad file, with its line; what cannot be read or written.
pub fn command(command: &SbrpCommand) -> Result<bool> {
    match command {
        SbrpCommand::Litmus { files, without, states, needs } => {
            let dropped = without.as_deref().map(rule).transpose()?;
            let states = states.as_deref().map(model).transpose()?;
            let mut failed = 0;
            for file in files {
                failed += usize::from(!litmus(file, dropped, states, *needs)?);
            }
            println!("{} tests, {failed} differ from their expectation", files.len());
            Ok(failed == 0)
        }
        SbrpCommand::Explain { file, state, model: name } => {
            let test = read(file)?;
            let state = explain::state(&test, state).map_err(|wrong| anyhow!(wrong))?;
            let found = explain::explain(&test, Semantics::of(model(name)?), &state, BOUND)?;
            let allowed = matches!(found, explain::Explanation::Allowed(_));
            println!("{}", if allowed { "allowed, by this run:" } else { "not allowed:" });
            explain::in_words(&test, &found).iter().for_each(|line| println!("    {line}"));
            Ok(true)
        }
        SbrpCommand::Campaign { record, programs } => {
            let tell =
                |r: campaign::Record| println!("{} programs, {} outcomes, {} states", r.programs, r.outcomes, r.states);
            tell(campaign::run(record, *programs, tell)?);
            Ok(true)
        }
        SbrpCommand::Scopes { ptx, kernel, blocks, threads, arguments, schedules, budget } => {
            let job = Job {
                kernel: kernel.clone(),
                blocks: *blocks,
                threads: *threads,
                arguments: arguments.clone(),
                schedules: *schedules,
                budget: *budget,
            };
            scopes(ptx, &job)
        }
    }
}

fn scopes(path: &Path, job: &Job) -> Result<bool> {
    let place = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(place)?;
    let source = Source::of(&text);
    let findings = check(&text, job).with_context(place)?;
    findings.iter().for_each(|finding| println!("{}", finding.in_words(|line| source.in_words(line))));
    println!("{}: {} findings in {} interleavings", job.kernel, findings.len(), job.schedules);
    Ok(findings.is_empty())
}

fn litmus(file: &Path, dropped: Option<Rule>, states: Option<Model>, needs: bool) -> Result<bool> {
    let test = read(file)?;
    let without = |semantics: Semantics| dropped.map_or(semantics, |rule| semantics.without(rule));
    let wrong = differences(&test, without)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    println!("{name:<52} {:>4} states", outcomes(&test, Model::Sbrp).len());
    wrong.iter().for_each(|line| println!("    ! {line}"));
    if test.allowed.is_empty() {
        println!("    no section `allowed` says what is expected");
    }
    for outcome in states.map(|model| outcomes(&test, model)).unwrap_or_default() {
        println!("    {}", nearpm_ppo::verdict::with_names(&test.observed, &in_words(&outcome)));
    }
    if needs {
        let all: Vec<&str> = crate::verdict::needed(&test).into_iter().map(Rule::name).collect();
        println!("    needs: {}", all.join(" "));
    }
    Ok(wrong.is_empty())
}

fn read(file: &Path) -> Result<Test> {
    let place = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(place)?;
    parse(&text).with_context(place)
}

fn model(name: &str) -> Result<Model> {
    let all = || Model::ALL.map(Model::name).join(", ");
    Model::from_name(name).with_context(|| format!("no model is called `{name}`: {}", all()))
}

fn rule(name: &str) -> Result<Rule> {
    Rule::from_name(name).with_context(|| format!("no rule is called `{name}`"))
}
