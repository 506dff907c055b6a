//! The commands of `nearpm gvr` as a program of their own.

use std::process::ExitCode;

use clap::Parser;
use nearpm_gvr::commands::{GvrCommand, command};

/// Versioned global arrays on one-sided memory, log-structured and durable
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: GvrCommand,
}

fn main() -> ExitCode {
    match command(&Arguments::parse().command) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("nearpm-gvr: {error}");
            ExitCode::FAILURE
        }
    }
}
