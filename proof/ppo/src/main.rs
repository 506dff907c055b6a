//! Runs litmus files on the model and prints what it explored.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_ppo::explore::explore;
use nearpm_ppo::litmus::parse;
use nearpm_ppo::rules::{Rule, Rules};
use nearpm_ppo::verdict::{differences, printed};

/// Runs litmus tests of Partitioned Persist Ordering on the model.
#[derive(Parser)]
struct Arguments {
    /// Litmus files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Drops a rule of the model.
    #[arg(long)]
    without: Option<String>,
    /// Prints every state that is observed.
    #[arg(long)]
    states: bool,
    /// Gives up beyond this many states.
    #[arg(long, default_value_t = 5_000_000)]
    bound: usize,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let rules = match &arguments.without {
        None => Rules::all(),
        Some(name) => Rules::without(Rule::from_name(name).with_context(|| format!("no rule is called `{name}`"))?),
    };
    let mut failed = 0;
    println!("{:<44} {:>9} {:>9} {:>8}", "test", "states", "cuts", "outcomes");
    for file in &arguments.files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let test = parse(&text).with_context(|| file.display().to_string())?;
        let found = explore(&test, rules, arguments.bound).with_context(|| file.display().to_string())?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        println!("{name:<44} {:>9} {:>9} {:>8}", found.states, found.crash_states, found.outcomes.len());
        if arguments.states {
            found.outcomes.iter().for_each(|state| println!("    {}", printed(&test, state)));
        }
        let differences = differences(&test, &found);
        failed += usize::from(!differences.is_empty());
        differences.iter().for_each(|line| println!("    ! {line}"));
    }
    println!("{} tests, {failed} differ from their expectation", arguments.files.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
