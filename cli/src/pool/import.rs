//! `nearpm pool import`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::{pmdk, size};

use super::{line, print_json};

/// What to import.
#[derive(Args)]
pub struct ImportArguments {
    /// The pool of PMDK's libpmemobj: a file that no program has open, and no pool set
    from: PathBuf,
    /// The new pool: a file, or card:NAME/POOL
    #[arg(required_unless_present = "dry_run")]
    to: Option<String>,
    /// Bytes of the new pool, as in 64M; as many as the old one has by default, or more where its
    /// objects need them
    #[arg(long, value_parser = size::parse)]
    size: Option<u64>,
    /// Say what would be imported, and make nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn objects(count: u64, bytes: u64) {
    line("objects", format_args!("{count} of {bytes} bytes altogether"));
}

/// Runs the command.
pub fn command(arguments: &ImportArguments) -> Result<ExitCode> {
    match &arguments.to {
        Some(to) if !arguments.dry_run => {
            let imported = pmdk::import(&arguments.from, to, arguments.size, &nearpm::Options::new())?;
            if arguments.json {
                print_json(&imported)?;
            } else {
                line("imported to", to);
                line("bytes", imported.bytes);
                objects(imported.objects, imported.object_bytes);
                line("identifiers", format_args!("{} follow their objects", imported.identifiers));
                line("dangling", format_args!("{} lead into no object, and stay as they are", imported.dangling));
            }
        }
        _ => {
            let holds = pmdk::examine(&arguments.from)?;
            if arguments.json {
                print_json(&holds)?;
            } else {
                line("layout", &holds.layout);
                line("bytes", holds.bytes);
                objects(holds.objects, holds.object_bytes);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
