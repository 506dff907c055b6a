//! `nearpm gpu hash` as a program of its own, for machines that have a GPU and nothing else.

use std::process::ExitCode;

use clap::Parser;
use nearpm_gphashbench::command::{HashCommand, command};

/// Hash tables of a GPU in persistent memory.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: HashCommand,
}

fn main() -> ExitCode {
    match command(&Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-gphashbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
