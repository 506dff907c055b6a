//! `nearpm pool dump`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use nearpm::check::{Image, Object};
use nearpm::size;
use serde::Serialize;

use super::{Target, hex, print_json};

/// What to print.
#[derive(Args)]
pub struct DumpArguments {
    #[command(flatten)]
    target: Target,
    /// Print the bytes of objects, too, or raw ones as text: as `hexdump -C` does
    #[arg(long)]
    contents: bool,
    /// Only the object at this offset
    #[arg(long, value_parser = size::parse_offset)]
    object: Option<u64>,
    /// No objects but the bytes of the file from this offset on, as they are before a recovery
    #[arg(long, value_parser = size::parse_offset, requires = "bytes", conflicts_with_all = ["object", "json"])]
    raw: Option<u64>,
    /// How many bytes
    #[arg(long, value_parser = size::parse, requires = "raw")]
    bytes: Option<u64>,
    /// File to write raw bytes to; standard output by default
    #[arg(long, requires = "raw")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Dumped {
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<String>,
}

/// Runs the command.
pub fn command(arguments: &DumpArguments) -> Result<ExitCode> {
    let mut image = Image::open(&arguments.target.location)?;
    if let (Some(offset), Some(bytes)) = (arguments.raw, arguments.bytes) {
        raw(&image, offset, bytes, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut objects = image.objects()?;
    if let Some(offset) = arguments.object {
        objects.retain(|object| object.offset == offset);
        if objects.is_empty() {
            return Err(nearpm::Error::NotAllocated { offset }.into());
        }
    }
    let contents = |image: &mut Image, object: &Object| -> Result<Option<Vec<u8>>> {
        Ok(if arguments.contents { Some(image.read(object.offset, object.bytes)?) } else { None })
    };
    let mut dumped = Vec::new();
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    for object in &objects {
        let Object { offset, bytes } = *object;
        let contents = contents(&mut image, object)?;
        if arguments.target.json {
            dumped.push(Dumped { offset, bytes, contents: contents.map(|bytes| hex::digits(&bytes)) });
            continue;
        }
        writeln!(out, "{offset:#x} {bytes}")?;
        if let Some(bytes) = contents {
            hex::write(&mut out, offset, &bytes)?;
        }
    }
    out.flush()?;
    if arguments.target.json {
        print_json(&dumped)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn raw(image: &Image, offset: u64, bytes: u64, arguments: &DumpArguments) -> Result<()> {
    let mut bytes = image.raw(offset, bytes)?;
    if arguments.contents {
        let mut text = Vec::new();
        hex::write(&mut text, offset, &bytes)?;
        bytes = text;
    }
    match &arguments.out {
        Some(path) => std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display())),
        None => std::io::stdout().write_all(&bytes).context("cannot write to standard output"),
    }
}
