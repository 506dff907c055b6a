//! `nearpm pool create`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nearpm::direct::DirectPool;
use nearpm::{Options, pmdk, size};
use serde::Serialize;

use super::{Target, line, print_json};

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
    /// For programs of PMDK's libpmemobj, which open it by this layout
    #[arg(long, value_name = "NAME", requires = "direct")]
    layout: Option<String>,
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

/// Makes a pool for direct use; gives its bytes and its identifier.
fn direct(arguments: &CreateArguments) -> Result<(u64, u32)> {
    let location = &arguments.target.location;
    let options = Options::new().id(arguments.id);
    // The pool is there with its layout, or not at all.
    let pool = DirectPool::create_with(location, arguments.size, &options, |pool| match &arguments.layout {
        Some(layout) => pmdk::create(pool, layout.as_bytes()).map(drop),
        None => Ok(()),
    })?;
    let made = (pool.bytes(), pool.id());
    pool.close()?;
    Ok(made)
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
    let (bytes, id) = if arguments.direct {
        direct(arguments)?
    } else {
        // What does not fit is refused as too large.
        let ring = arguments.ring.map(|ring| u32::try_from(ring).unwrap_or(u32::MAX));
        let options = Options::new().id(arguments.id).lanes(arguments.lanes);
        let options = options.ring_bytes(ring).spare_pages(arguments.spare_pages);
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
