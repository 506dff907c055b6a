//! Litmus tests of GPU persistency, as a program of its own.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nearpm_sbrp::command::{SbrpCommand, command};

/// Persistency of GPUs: litmus tests of the models.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: SbrpCommand,
}

fn main() -> Result<ExitCode> {
    let sound = command(&Arguments::parse().command)?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
