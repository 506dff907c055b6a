//! Litmus tests of GPU persistency, as a program of its own.

use std::process::ExitCode;

use clap::Parser;
use nearpm_sbrp::command::{SbrpCommand, command};

/// Persistency of GPUs: litmus tests of the models.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: SbrpCommand,
}

fn main() -> ExitCode {
    match command(&Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-sbrp: {error:#}");
            ExitCode::FAILURE
        }
    }
}
