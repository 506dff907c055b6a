//! Writes the header and the manual pages of the C interface.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_cdoc::Interface;

/// Writes the header and the manual pages of the C interface.
#[derive(Parser)]
struct Arguments {
    /// Folder of the crate nearpm-c.
    #[arg(long, default_value = "libnearpm/c")]
    library: PathBuf,
    /// File for the header.
    #[arg(long)]
    header: Option<PathBuf>,
    /// Folder for the manual: man3 and man7 are made in it.
    #[arg(long)]
    manual: Option<PathBuf>,
    /// File for the manual as a page of the book.
    #[arg(long)]
    book: Option<PathBuf>,
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let interface = Interface::read(&arguments.library)?;
    if let Some(path) = &arguments.header {
        write(path, &interface.header)?;
    }
    if let Some(path) = &arguments.book {
        write(path, &interface.book())?;
    }
    if let Some(folder) = &arguments.manual {
        for (name, text) in interface.manual() {
            let section = name.rsplit('.').next().unwrap_or_default();
            write(&folder.join(format!("man{section}")).join(&name), &text)?;
        }
    }
    Ok(())
}
