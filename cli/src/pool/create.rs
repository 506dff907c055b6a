//! `nearpm pool create`.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use nearpm::PoolOptions;
use nearpm::direct::{DirectOptions, DirectPool};
use serde::Serialize;

use super::{Target, line, print_json, size};

/// What to make.
#[derive(Args)]
pub struct CreateArguments {
    #[command(flatten)]
    target: Target,
    /// Bytes of the pool, as in 64M
    #[arg(long, value_parser = size::parse)]
    size: u64,
    /// For programs that store by pointer alone: one small log ring, no spare pages
    #[arg(long, conflicts_with_all = ["lanes", "ring", "spare_pages"])]
    direct: bool,
    /// Identifier, not 0; drawn at random by default
    #[arg(long)]
    id: Option<u32>,
    /// Log rings, 1 to 64
    #[arg(long)]
    lanes: Option<u16>,
    /// Bytes of each log ring, as in 64K
    #[arg(long, value_parser = size::parse)]
    ring: Option<u64>,
    /// Pages of 4 KiB for shadow paging
    #[arg(long)]
    spare_pages: Option<u64>,
}

#[derive(Serialize)]
struct Created<'a> {
    location: &'a str,
    bytes: u64,
    id: u32,
}

/// Runs the command.
pub fn command(arguments: &CreateArguments) -> Result<ExitCode> {
    let location = &arguments.target.location;
    // To the library 0 says that a file which exists is to be filled.
    ensure!(arguments.size > 0, "a pool has bytes: --size 0 makes none");
    let (bytes, id) = if arguments.direct {
        let options = DirectOptions { id: arguments.id, ..DirectOptions::default() };
        let pool = DirectPool::create(location, arguments.size, &options)?;
        let made = (pool.bytes(), pool.id());
        pool.close()?;
        made
    } else {
        let mut options = PoolOptions::new();
        if let Some(id) = arguments.id {
            options = options.id(id);
        }
        if let Some(lanes) = arguments.lanes {
            options = options.lanes(lanes);
        }
        if let Some(ring) = arguments.ring {
            // What does not fit is refused as too large.
            options = options.ring_bytes(u32::try_from(ring).unwrap_or(u32::MAX));
        }
        if let Some(pages) = arguments.spare_pages {
            options = options.spare_pages(pages);
        }
        let pool = options.create(location, arguments.size)?;
        let made = (pool.bytes(), pool.id());
        pool.close()?;
        made
    };
    if arguments.target.json {
        print_json(&Created { location, bytes, id })?;
    } else {
        line("created", location);
        line("identifier", format_args!("{id:#010x}"));
        line("bytes", bytes);
    }
    Ok(ExitCode::SUCCESS)
}
