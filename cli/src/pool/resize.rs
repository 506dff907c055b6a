//! `nearpm pool resize`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::{check, size};

use super::{Target, line, print_json};

/// What to make larger or shorter.
#[derive(Args)]
pub struct ResizeArguments {
    #[command(flatten)]
    target: Target,
    /// Bytes that the pool is to have, as in 64M; it gets whole chunks of 16 KiB
    #[arg(long, value_parser = size::parse)]
    size: u64,
}

/// Runs the command.
pub fn command(arguments: &ResizeArguments) -> Result<ExitCode> {
    let resized = check::resize(&arguments.target.location, arguments.size)?;
    if arguments.target.json {
        print_json(&resized)?;
    } else {
        line("bytes", resized.bytes);
        line("before", resized.former);
    }
    Ok(ExitCode::SUCCESS)
}
