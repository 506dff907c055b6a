//! `nearpm gpusim` as a program of its own.

use std::process::ExitCode;

use clap::Parser;
use nearpm_sbrpbench::command::{GpusimCommand, command};

/// A GPU with a persist buffer in each SM (SBRP), simulated
#[derive(Parser)]
#[command(name = "nearpm-sbrpbench", version)]
struct Arguments {
    #[command(subcommand)]
    command: GpusimCommand,
}

fn main() -> ExitCode {
    match command(&Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-sbrpbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
