//! Measures GPM on this machine's GPU, or runs the same measurements, small, on the interpreter:
//! `nearpm gpu` as a program of its own, for machines that have a GPU and nothing else. Without a
//! command it measures.

use std::process::ExitCode;

use clap::Parser;
use nearpm_gpmbench::command::{BenchArguments, GpuCommand, bench, command};

/// Measures persistent memory of a GPU: streams, logs, key-value store, table, checkpoints,
/// programs, recovery.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<GpuCommand>,
    #[command(flatten)]
    bench: BenchArguments,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Some(given) => command(given, &["bench"]),
        None => bench(&arguments.bench, &[]),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-gpmbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
