//! `nearpm gpusim` as a program of its own.

use std::process::ExitCode;

use clap::Parser;
use nearpm_sbrpbench::command::{GpusimArguments, command};

fn main() -> ExitCode {
    match command(&GpusimArguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-sbrpbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
