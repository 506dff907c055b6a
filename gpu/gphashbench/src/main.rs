//! Measures the hash tables on this machine's GPU: `nearpm gpu hash bench` as a program of its own, for machines that have a GPU and nothing else.

use std::process::ExitCode;

use clap::Parser;
use nearpm_gphashbench::command::{BenchArguments, bench};

/// Measures hash tables of a GPU in persistent memory.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
}

fn main() -> ExitCode {
    match bench(&Arguments::parse().bench) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-gphashbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
