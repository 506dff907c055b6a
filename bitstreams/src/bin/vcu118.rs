//! `vcu118`: writes what the VCU118's flow takes.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

/// Writes the Verilog of the card with two memory ports and of the PCIe bridge; see
/// `bitstreams/vcu118/build.tcl`.
#[derive(Parser)]
struct Arguments {
    /// Folder to write to.
    folder: PathBuf,
}

fn main() -> Result<()> {
    let folder = Arguments::parse().folder;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, generated) in nearpm_bitstreams::vcu118::modules() {
        let path = folder.join(name).with_extension("v");
        std::fs::write(&path, generated.verilog).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
