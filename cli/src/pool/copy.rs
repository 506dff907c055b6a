//! `nearpm pool copy`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::{check, size};

use super::{Target, line, print_json};

/// What to copy.
#[derive(Args)]
pub struct CopyArguments {
    #[command(flatten)]
    target: Target,
    /// The new pool
    to: String,
    /// Bytes of the new pool, as in 64M; as many as the old one has by default
    #[arg(long, value_parser = size::parse)]
    size: Option<u64>,
}

/// Runs the command.
pub fn command(arguments: &CopyArguments) -> Result<ExitCode> {
    let copied = check::copy(&arguments.target.location, &arguments.to, arguments.size)?;
    if arguments.target.json {
        print_json(&copied)?;
    } else {
        line("copied to", &arguments.to);
        line("bytes", copied.bytes);
        line("objects", format_args!("{} of {} bytes altogether", copied.objects, copied.object_bytes));
    }
    Ok(ExitCode::SUCCESS)
}
