//! `nearpm pool check`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::check::{Image, Report};

use super::{DAMAGED, Target, print_json};

/// What to check.
#[derive(Args)]
pub struct CheckArguments {
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub fn command(arguments: &CheckArguments) -> Result<ExitCode> {
    let report = Image::open(&arguments.target.location)?.check();
    if arguments.target.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
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
