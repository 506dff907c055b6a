//! `nearpm pool check`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::check::{self, Report};

use super::{DAMAGED, Target, print_json};

/// What to check.
#[derive(Args)]
pub struct CheckArguments {
    #[command(flatten)]
    target: Target,
    /// Put right what can be put right without losing anything; the bytes that are overwritten are
    /// kept in a file beside the pool
    #[arg(long)]
    repair: bool,
}

/// Runs the command.
pub fn command(arguments: &CheckArguments) -> Result<ExitCode> {
    if arguments.repair {
        return repair(&arguments.target);
    }
    let report = check::check(&arguments.target.location)?;
    if arguments.target.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    Ok(status(&report))
}

fn status(report: &Report) -> ExitCode {
    if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

fn repair(target: &Target) -> Result<ExitCode> {
    let repair = check::repair(&target.location)?;
    if target.json {
        print_json(&repair)?;
    } else {
        repair.before.findings.iter().for_each(|finding| println!("found {finding}"));
        if let Some(backup) = &repair.backup {
            println!("{} bytes written; what they were is in {}", repair.bytes, backup.display());
        }
        print(&repair.after);
    }
    Ok(status(&repair.after))
}

fn print(report: &Report) {
    for finding in &report.findings {
        println!("{finding} ({})", if finding.repairable { "can be repaired" } else { "cannot be repaired" });
    }
    if report.is_sound() {
        println!("sound");
    } else if !report.judged_heap {
        println!("what lies behind this damage was not judged");
    }
}
