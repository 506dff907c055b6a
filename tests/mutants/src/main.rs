//! Runs the faults and prints what became of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use nearpm_mutants::{Verdict, Workshop, all, workspace};

/// Plants faults into driver and library, one at a time, and demands that tests notice.
#[derive(Parser)]
struct Arguments {
    /// Runs the faults with these numbers only.
    #[arg(long, value_delimiter = ',')]
    only: Vec<usize>,
    /// Folder for the copy of the workspace and what is built of it [default: target/mutants]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Lists the faults and runs none.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mutants = all();
    if arguments.list {
        for (number, mutant) in (1..).zip(&mutants) {
            println!("{number:3}  {}  {}", mutant.file, mutant.breaks);
        }
        return Ok(());
    }
    if let Some(number) = arguments.only.iter().find(|&&number| number == 0 || number > mutants.len()) {
        bail!("there is no fault {number}: 1 to {} are", mutants.len());
    }
    let folder = arguments.folder.unwrap_or_else(|| workspace().join("target/mutants"));
    let chosen: BTreeSet<usize> = match arguments.only.is_empty() {
        true => (1..=mutants.len()).collect(),
        false => arguments.only.into_iter().collect(),
    };
    let workshop = Workshop::open(&folder, &mutants, &chosen, &mut |step| eprintln!("==> {step}"))?;
    let mut survivors = Vec::new();
    for (number, mutant) in (1..).zip(&mutants).filter(|(number, _)| chosen.contains(number)) {
        let outcome = workshop.run(number, mutant).with_context(|| format!("fault {number}"))?;
        let word = match outcome.verdict {
            Verdict::Failed => "noticed",
            Verdict::Hung => "noticed: no end",
            Verdict::Passed => "SURVIVES",
        };
        println!("{number:3}  {word:16} {:5.1} s  {}  {}", outcome.took.as_secs_f64(), mutant.file, mutant.breaks);
        if outcome.verdict == Verdict::Passed {
            survivors.push(number);
        }
    }
    let (faults, survive) = (chosen.len(), survivors.len());
    println!(r#"{{"counts":{{"faults":{faults},"noticed":{},"violations":{survive}}}}}"#, faults - survive);
    if survivors.is_empty() { Ok(()) } else { bail!("faults that no test notices: {survivors:?}") }
}
