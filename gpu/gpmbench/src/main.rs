//! Measures GPM on this machine's GPU, or runs the same measurements, small, on the interpreter: `nearpm gpu bench` as a program of its own, for machines
//! that have a GPU and nothing else.

use std::process::ExitCode;

use clap::Parser;
use nearpm_gpmbench::command::{BenchArguments, bench};

/// Measures persistent memory of a GPU: streams, logs, key-value store, checkpoints, programs, recovery.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
}

fn main() -> ExitCode {
    match bench(&Arguments::parse().bench, &[]) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-gpmbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
