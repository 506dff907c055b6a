//! `ecp5`: builds the bitstream for the ECP5-85k and its manifest.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_bitstreams::ecp5;
use nearpm_bitstreams::manifest::Manifest;

/// Builds the execution side of the card with one unit for an ECP5-85k, and writes its part of
/// `bitstreams/manifest.toml`.
#[derive(Parser)]
struct Arguments {
    /// Folder for the bitstream and intermediate files.
    #[arg(long, default_value = "target/ecp5")]
    work: PathBuf,
    /// Print what the build gave and leave the manifest alone.
    #[arg(long)]
    keep_manifest: bool,
    /// Judge what an earlier run left in the folder.
    #[arg(long)]
    built: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let built = if arguments.built {
        let design = std::fs::read_to_string(arguments.work.join("design.v")).context("there is no earlier run")?;
        ecp5::built(&design, &arguments.work)?
    } else {
        eprintln!("building {} (ten minutes, longer on a busy machine)", ecp5::TOP);
        ecp5::build(&arguments.work)?
    };
    println!("{built:#?}");
    println!("\nThe longest path:");
    for step in ecp5::longest_path(&arguments.work)? {
        println!("{step}");
    }
    if !arguments.keep_manifest {
        Manifest::change(|manifest| manifest.ecp5 = built)?;
    }
    Ok(())
}
