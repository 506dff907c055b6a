//! `nearpm-guest`: the guest test from a command line.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_guest::trial::{CxlTrial, Programs, Trial};

/// Boots a virtual machine with the simulated card as a PCI device, works on it through VFIO, cuts
/// the power, boots another one, and checks what is left.
#[derive(Parser)]
#[command(name = "nearpm-guest", version)]
struct Arguments {
    /// How the guest reaches the PM window
    #[arg(long, default_value = "trapping", value_parser = ["trapping", "mapped"])]
    window: String,
    /// No card: a pool on persistent memory of CXL, mapped by DAX
    #[arg(long, conflicts_with_all = ["window", "card"])]
    cxl: bool,
    /// Card to simulate
    #[arg(long, default_value = "model", value_parser = ["model", "rtl"])]
    card: String,
    /// Seed of the operations and of the cut
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Operations in all
    #[arg(long, default_value_t = 120)]
    operations: usize,
    /// The power is cut some time after so many operations are acknowledged
    #[arg(long, default_value_t = 60)]
    cut_after: usize,
}

fn run() -> Result<()> {
    let Arguments { window, cxl, card, seed, operations, cut_after } = Arguments::parse();
    let program = std::env::current_exe()?;
    let programs = Programs::of(program.parent().context("this program lies nowhere")?)?;
    let show = &mut |line: &str| println!("{line}");
    let verdict = match cxl {
        true => CxlTrial { seed, operations, cut_after }.run(&programs, show)?,
        false => Trial { window, card, seed, operations, cut_after, untrue: 0 }.run(&programs, show)?,
    };
    println!(
        "PASSED: {} operations were acknowledged before the power cut, {} were started; {} are there after it, and nothing in part",
        verdict.acknowledged, verdict.started, verdict.kept
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}
